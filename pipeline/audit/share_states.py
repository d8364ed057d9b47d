"""What the records of one share partition in `__share_group_state` prove: a walk through them in order, without Spark.

A ShareSnapshot holds the whole state, a ShareUpdate what has changed since. Kafka combines them so that the higher
delivery count counts, then the state further on. An acquisition alone is not written, and the same state written twice
is a write that was tried again. So a record was delivered again after its end only if it comes with a higher count.
A record on the way to a dead-letter queue (KIP-1191) has come to its end. That it was never archived is no proof of a
fault: the broker may have died, or failed to write it.

Source: KIP-932, KIP-1191; Kafka's PersisterStateBatchCombiner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from protocol.codegen import codec
from protocol.errors import KafkaError, MalformedError
from protocol.messages.share_state_records import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateValue

SNAPSHOT: Final = 0  # record types, in the first two bytes of a key
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4
STATES: Final = {
    AVAILABLE: "available",
    ACKNOWLEDGED: "acknowledged",
    ARCHIVING: "on the way to a dead-letter queue",
    ARCHIVED: "archived",
}
FINISHED: Final = (ACKNOWLEDGED, ARCHIVING, ARCHIVED)  # the group gets such a record no more
MOST_KEPT: Final = 10_000  # stretches of finished records below the start offset
AGAIN, BEYOND, UNREAD, SKIPPED = "again", "beyond", "unread", "skipped"  # what is wrong with a record


class StateRecord(NamedTuple):
    """A record of the log. lost_before: offsets of the log below it that are missing."""

    offset: int
    lost_before: int
    key: bytes
    value: bytes | None


class Wrong(NamedTuple):
    """What a record proves. proof_offset: of the record that it contradicts, with `lost` offsets missing between.

    first, last: the records of the partition; of SKIPPED, they are wrong only where the partition still has them.
    """

    what: str
    offset: int
    proof_offset: int | None
    lost: int
    first: int
    last: int
    detail: str


class Stretch(NamedTuple):
    """Records first..last have this state; said by the record of the log at offset `said`."""

    first: int
    last: int
    state: int
    delivery: int
    said: int
    lost_before: int


class SharePartitionKey(NamedTuple):
    """Names a share partition."""

    group: str
    topic_id: bytes
    partition: int


def partition_key(key: bytes) -> SharePartitionKey | None:
    """Of the key of either record type; None: it cannot be decoded."""
    try:
        found, _ = codec(ShareSnapshotKey, 0).decode(key, 2)
    except (KafkaError, MalformedError, ValueError):
        return None
    return SharePartitionKey(found.group_id, found.topic_id, found.partition)


def walk(records: Iterable[StateRecord], most_deliveries: int) -> Iterator[Wrong]:
    """What is wrong in the records of one share partition, in the order of their offsets.

    most_deliveries: no limit of the group was ever higher.
    """
    known = _Partition(most_deliveries)
    for record in records:
        yield from known.take(record)


class _Partition:
    """What the records so far say."""

    def __init__(self, most_deliveries: int) -> None:
        self.most_deliveries = most_deliveries
        self.forget()

    def forget(self) -> None:
        """Until the next snapshot nothing is known."""
        self.snapshot_epoch: int | None = None
        self.state_epoch = self.start = -1
        self.stretches: list[Stretch] = []  # in order, without overlap
        self.last: StateRecord | None = None

    def take(self, record: StateRecord) -> Iterator[Wrong]:
        """The next record."""
        if record.value is None:
            self.forget()
            return
        is_snapshot = int.from_bytes(record.key[:2], "big") == SNAPSHOT
        found = _decoded(ShareSnapshotValue if is_snapshot else ShareUpdateValue, record.value)
        if found is None or (not is_snapshot and found.snapshot_epoch != self.snapshot_epoch):
            self.forget()  # what it changes is not known
            return
        if is_snapshot:
            if self._begins_again(found):
                self.forget()
            self.snapshot_epoch, self.state_epoch = found.snapshot_epoch, found.state_epoch
        for batch in found.state_batches:
            piece = Stretch(
                batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count,
                record.offset, record.lost_before,
            )  # fmt: skip  # several to a line
            yield from self._write(piece)
        if found.start_offset != -1:
            yield from self._move_start(found.start_offset, record)
        self.last = record

    def _begins_again(self, found: Any) -> bool:
        """Whether a snapshot is that of an operator who set the group's offset, or of a new group: without batches."""
        if found.state_epoch != self.state_epoch:
            return True
        goes_on = found.start_offset == self.start and (not self.stretches or self.stretches[-1].last < self.start)
        return not found.state_batches and not goes_on

    def _write(self, piece: Stretch) -> Iterator[Wrong]:
        """Combine a batch with what is known."""
        kept, again, changed = list[Stretch](), list[Stretch](), [piece]
        for old in self.stretches:
            if old.last < piece.first or old.first > piece.last:
                kept.append(old)
                continue
            if (old.delivery, old.state) >= (piece.delivery, piece.state):  # it counts, also where both are the same
                kept.append(old)
                changed = [part for each in changed for part in _without(each, old)]
                continue
            kept += _without(old, piece)
            if old.state in FINISHED and piece.delivery > old.delivery:
                again.append(old)
        self.stretches = sorted(kept + changed)
        if again:
            old = again[0]
            first, last = max(old.first, piece.first), min(again[-1].last, piece.last)
            was = "were" if last > first else "was"
            detail = (
                f"{_records(first, last)} {_are(first, last)} {STATES.get(piece.state, 'written')} at delivery "
                f"{piece.delivery}, but {was} {STATES[old.state]} at delivery {old.delivery}"
            )
            yield Wrong(AGAIN, piece.said, old.said, piece.lost_before - old.lost_before, first, last, detail)
        if not changed:
            return
        first, last = changed[0].first, changed[-1].last
        if piece.delivery > self.most_deliveries:
            detail = f"{_records(first, last)} came to delivery {piece.delivery}, the limit is {self.most_deliveries}"
            yield Wrong(BEYOND, piece.said, None, 0, first, last, detail)
        if piece.state in (ARCHIVING, ARCHIVED) and piece.delivery <= 0:
            detail = f"{_records(first, last)} {_are(first, last)} {STATES[piece.state]}, but never came to a consumer"
            yield Wrong(UNREAD, piece.said, None, 0, first, last, detail)

    def _move_start(self, start: int, record: StateRecord) -> Iterator[Wrong]:
        """What the start offset passes should be finished, or gone from the partition."""
        before, self.start = self.start, start
        if self.last is not None and 0 <= before < start:
            lost = record.lost_before - self.last.lost_before
            at = before
            for each in [s for s in self.stretches if s.state in FINISHED and s.last >= before]:
                if at < min(each.first, start):
                    yield self._skipped(at, min(each.first, start) - 1, record, lost)
                at = max(at, each.last + 1)
            if at < start:
                yield self._skipped(at, start - 1, record, lost)
        self._forget_below(start)

    def _skipped(self, first: int, last: int, record: StateRecord, lost: int) -> Wrong:
        assert self.last is not None
        detail = f"the start offset passed {_records(first, last)}, neither acknowledged nor archived, but still there"
        return Wrong(SKIPPED, record.offset, self.last.offset, lost, first, last, detail)

    def _forget_below(self, start: int) -> None:
        """Below the start offset only what is finished matters; neighbours that are alike become one."""
        below, rest = list[Stretch](), list[Stretch]()
        for each in self.stretches:
            if each.last >= start:
                rest.append(each)
            elif each.state in FINISHED:
                if below and below[-1].last + 1 == each.first and below[-1][2:4] == each[2:4]:
                    below[-1] = each._replace(first=below[-1].first)
                else:
                    below.append(each)
        self.stretches = below[-MOST_KEPT:] + rest


def _without(one: Stretch, other: Stretch) -> list[Stretch]:
    """The parts of one that are outside of the other."""
    if one.last < other.first or one.first > other.last:
        return [one]
    parts = [one._replace(last=other.first - 1), one._replace(first=other.last + 1)]
    return [part for part in parts if part.first <= part.last]


def _decoded(cls: type[Any], value: bytes) -> Any:
    try:
        return codec(cls, int.from_bytes(value[:2], "big")).decode(value, 2)[0]
    except (KafkaError, MalformedError, ValueError):
        return None


def _records(first: int, last: int) -> str:
    return f"record {first}" if first == last else f"records {first} to {last}"


def _are(first: int, last: int) -> str:
    return "is" if first == last else "are"
