"""Asks about the quotas of clients: read, set, removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from broker.asks.ask import Ask, Controller, Question, check
from protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
)

if TYPE_CHECKING:
    from protocol.messages.quotas import (
        AlterClientQuotasResponse,
        AlterClientQuotasResponseEntryData,
        ComponentData,
        DescribeClientQuotasResponse,
        DescribeClientQuotasResponseEntryData,
    )

VERSION: Final = 1
Entity = Iterable[tuple[str, "str | None"]]  # type -> name; None: all that have none of their own
Rates = Mapping[str, "float | None"]  # None: removed


def describe(
    components: Sequence[ComponentData] = (), *, strict: bool = False
) -> Ask[list[DescribeClientQuotasResponseEntryData]]:
    """The quotas that match, by entity; all unless told. Errors: AnswerError."""
    request = DescribeClientQuotasRequest(components=list(components), strict=strict)
    answer: DescribeClientQuotasResponse = yield Question(request, VERSION, Controller())
    check("quotas", answer.error_code, answer.error_message)
    return answer.entries or []


def alter(
    changes: Iterable[tuple[Entity, Rates]], *, only_check: bool = False
) -> Ask[list[AlterClientQuotasResponseEntryData]]:
    """Set and remove rates of entities; a row each."""
    entries = [
        AlterClientQuotasRequestEntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in rates.items()],
        )
        for entity, rates in changes
    ]
    request = AlterClientQuotasRequest(entries=entries, validate_only=only_check)
    answer: AlterClientQuotasResponse = yield Question(request, VERSION, Controller())
    return answer.entries
