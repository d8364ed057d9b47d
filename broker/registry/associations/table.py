"""All associations of a registry, by what clients ask for: subject, resource's id, resource's name.

Shape: `replay` is given the ASSOC records of `_schemas` in their order; nothing else changes the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.registry.associations.association import Association, association_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.registry.records import AssociationKey, Record

    Key = tuple[AssociationKey, str]

ANY: Final = "-"  # a namespace, or a name, that stands for all
SUBJECT, ID, NAME = "subject", "id", "name"


class Wanted:
    """Which of the associations of something are asked for; nothing said: all."""

    __slots__ = ("kinds", "lifecycle", "resource_type")

    def __init__(self, resource_type: str | None = None, kinds: Iterable[str] = (), lifecycle: str | None = None):
        self.resource_type = resource_type
        self.kinds = frozenset(kinds)
        self.lifecycle = lifecycle

    def has(self, row: Association, *, any_type: bool = False) -> bool:
        """Whether it is one of them; `any_type`: of any type of resource."""
        return (
            (any_type or self.resource_type in (None, row.resource.resource_type))
            and (not self.kinds or row.kind in self.kinds)
            and self.lifecycle in (None, row.lifecycle)
        )


ALL: Final = Wanted()


class Associations:
    """The associations of one registry; lists are in the order of resource, kind and subject."""

    __slots__ = ("_named", "_rows")

    def __init__(self) -> None:
        self._rows: dict[Key, Association] = {}
        self._named: dict[tuple[str, str], dict[Key, None]] = {}  # by SUBJECT, ID or NAME, and its value

    def __bool__(self) -> bool:
        return bool(self._rows)

    def rows(self) -> list[Association]:
        """All of them."""
        return [self._rows[key] for key in sorted(self._rows)]

    def of_subject(self, subject: str, wanted: Wanted = ALL) -> list[Association]:
        """Those of a subject."""
        return [row for row in self._of(SUBJECT, subject) if wanted.has(row)]

    def of_resource(self, resource_id: str, wanted: Wanted = ALL) -> list[Association]:
        """Those of the resource with an id."""
        return [row for row in self._of(ID, resource_id) if wanted.has(row)]

    def of_name(self, name: str, namespace: str, wanted: Wanted = ALL) -> list[Association]:
        """Those of the resources with a name, in one namespace, or in ANY and then of any type."""
        if namespace == ANY:
            return [row for row in self._of(NAME, name) if wanted.has(row, any_type=True)]
        return [row for row in self._of(NAME, name) if row.resource.namespace == namespace and wanted.has(row)]

    def of_namespace(self, namespace: str, wanted: Wanted = ALL) -> list[Association]:
        """Those of all resources of a namespace, or of ANY; of any type."""
        rows = (row for row in self.rows() if namespace in (ANY, row.resource.namespace))
        return [row for row in rows if wanted.has(row, any_type=True)]

    def _of(self, what: str, name: str) -> Iterator[Association]:
        return (self._rows[key] for key in sorted(self._named.get((what, name), ())))

    # -- replay

    def replay(self, record: Record, timestamp_ms: int) -> None:
        """Do what an ASSOC record says, which was written then."""
        assert record.association is not None
        assert record.subject is not None
        old = self._replay_gone((record.association, record.subject))
        if not isinstance(record.value, dict):
            return
        created_ms = record.value.get("createTs") or (timestamp_ms if old is None else old.created_ms)
        row = association_of(record, created_ms, timestamp_ms)
        self._rows[row.key] = row
        for named in _names(row):
            self._named.setdefault(named, {})[row.key] = None

    def _replay_gone(self, key: Key) -> Association | None:
        """Take away what a key has. Returns it."""
        row = self._rows.pop(key, None)
        for named in () if row is None else _names(row):
            del self._named[named][key]
            if not self._named[named]:
                del self._named[named]
        return row


def _names(row: Association) -> tuple[tuple[str, str], ...]:
    return (SUBJECT, row.subject), (ID, row.resource_id), (NAME, row.resource.name)
