"""What the CurrentMemberAssignment records of consumer and streams groups have alike: the epochs in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

REVOCATION_EPOCH_TAG: Final = 10_000  # a tagged field of this broker; far above the tags that Kafka uses


def put_revocation_epoch(value: Any, revocation_epoch: int) -> None:
    """Write the revocation epoch into a record, if there is one."""
    if revocation_epoch:
        value.unknown_tags = {REVOCATION_EPOCH_TAG: revocation_epoch.to_bytes(4, "big")}


def revocation_epoch_of(value: Any) -> int:
    """The revocation epoch in a record, or 0."""
    return int.from_bytes((value.unknown_tags or {}).get(REVOCATION_EPOCH_TAG, b""), "big")


def epochs_of(entries: Iterable[Any], key: str, epoch: int) -> dict[Any, Mapping[int, int]]:
    """Partitions or tasks with their assignment epochs, by the field `key` of each entry.

    An entry without assignment epochs, or with too many or too few (an older broker wrote it), counts as assigned at
    `epoch`, the member epoch: older commits are then refused, never wrongly accepted.
    """
    found: dict[Any, Mapping[int, int]] = {}
    for entry in entries:
        epochs = entry.assignment_epochs
        if epochs is None or len(epochs) != len(entry.partitions):
            epochs = [epoch] * len(entry.partitions)
        if entry.partitions:
            found[getattr(entry, key)] = dict(zip(entry.partitions, epochs, strict=True))
    return found
