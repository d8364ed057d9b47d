"""Faults of dead letters: which of them meets a write of the broker to the dead-letter queue of a share group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.faults.fault import first_acting
from broker.faults.kinds import LetterKind
from broker.faults.named import Named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.faults.fault import Fault
    from protocol.errors import ErrorCode


def letter_fault(faults: Iterable[Fault], group_id: str, queue: str, partition: int) -> ErrorCode | None:
    """The error that the write meets: that of the first fault that fits and fires. All that fit count it."""
    named = Named()
    named.groups.add(group_id)
    named.topics.add(queue)
    named.partitions.add((queue, partition))
    fault = first_acting(each for each in faults if isinstance(each.kind, LetterKind) and each.matches_body(named))
    if fault is None:
        return None
    assert isinstance(fault.kind, LetterKind)
    return fault.kind.error(fault.values)
