"""The fields of a fault: words that a user gives, with their types and bounds, and the filters that every kind has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    Values = Mapping[str, Any]  # of a fault, by its fields


REQUIRED: Final[Any] = object()


class Field(NamedTuple):
    """A word of a fault. `type`: "number", "text", "error" (of Kafka's), "api", "version", or "choice"."""

    name: str
    type: str
    default: Any = REQUIRED  # None: the field may be left out
    least: int = 0  # of a number
    most: int = 1 << 53
    choices: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The field as `GET /faults/kinds` has it; the default is left out if the field is required or has none."""
        shown: dict[str, object] = {"name": self.name, "type": self.type, "required": self.default is REQUIRED}
        if self.default is not REQUIRED and self.default is not None:
            shown["default"] = self.default
        if self.choices:
            shown["choices"] = list(self.choices)
        return shown


# All that are given must fit. Those of the body need the request decoded.
BODY_FILTERS: Final = ("topic", "partition", "group", "transactional_id")
FILTERS: Final = (
    Field("api", "api", None),
    Field("version", "version", None),
    Field("client_id", "text", None),
    Field("principal", "text", None),
    Field("connection", "text", None),
    Field("listener", "text", None),
    Field("broker", "number", None),
    Field("topic", "text", None),
    Field("partition", "number", None),
    Field("group", "text", None),
    Field("transactional_id", "text", None),
)
