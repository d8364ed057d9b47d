"""What one partition remembers of its idempotent producers: who may append which sequence next, what is a repetition.

`decide` only looks, `replay` and `replay_marker` only change; the same replay rebuilds the state from the log.
Rules [R] of released Kafka for a batch of sequences f..l of a known producer (L = the last sequence of its epoch):

| batch                                    | answer                                       |
|------------------------------------------|----------------------------------------------|
| epoch and f..l equal a cached batch      | the offset of that batch, nothing is written |
| epoch below the known one                | INVALID_PRODUCER_EPOCH                       |
| epoch above the known one, f = 0         | append                                       |
| epoch above the known one, f > 0         | OUT_OF_ORDER_SEQUENCE_NUMBER                 |
| f = L + 1, or f = 0 after L = 2^31 - 1   | append                                       |
| any other f                              | OUT_OF_ORDER_SEQUENCE_NUMBER                 |

A producer nobody knows may begin anywhere: its state may have expired, or been deleted with its records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError

BATCHES_KEPT: Final = 5  # a Java producer has at most five requests in flight, so none older is sent again
MAX_SEQUENCE: Final = 2**31 - 1
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_OFFSET: Final = -1


def add_to_sequence(sequence: int, increment: int) -> int:
    """Sequences count modulo 2^31: 0 follows 2147483647."""
    return (sequence + increment) & MAX_SEQUENCE


class CachedBatch(NamedTuple):
    """One appended batch, as far as its repetition must be recognised and answered."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int


class ProducerEntry:
    """One producer id on this partition. last_timestamp_ms is Unix milliseconds, of the batch, not of its arrival."""

    __slots__ = ("batches", "coordinator_epoch", "last_timestamp_ms", "producer_epoch", "txn_first_offset")

    def __init__(
        self,
        producer_epoch: int = NO_EPOCH,
        batches: Iterable[CachedBatch] = (),
        *,
        coordinator_epoch: int = -1,
        last_timestamp_ms: int = -1,
        txn_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_epoch = producer_epoch
        self.batches = list(batches)  # of this epoch, newest last
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp_ms = last_timestamp_ms
        self.txn_first_offset = txn_first_offset

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class ProducerSnapshot(NamedTuple):
    """A producer as Kafka's `.snapshot` files hold it: of its batches only the last one."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    txn_first_offset: int


class Producers:
    """All producers of one partition."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}

    def decide(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        last_sequence: int,
        *,
        transactional: bool = False,
    ) -> CachedBatch | None:
        """None: append it. A cached batch: it is there already, answer with that one's offset.

        Errors:  INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER: as the table above says.
                 INVALID_TXN_STATE: plain records while a transaction of this producer is open.
        Source:  Kafka's ProducerStateEntry and ProducerAppendInfo.
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            return None
        batches = entry.batches
        known_epoch = entry.producer_epoch
        if producer_epoch == known_epoch:
            for batch in batches:
                if batch[0] == base_sequence and batch[1] == last_sequence:
                    return batch
            last = batches[-1][1] if batches else NO_SEQUENCE
            if base_sequence != last + 1 and not (base_sequence == 0 and last == MAX_SEQUENCE):
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Producer {producer_id} sent sequence {base_sequence} after {last}",
                )
        elif producer_epoch < known_epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Producer {producer_id} has epoch {producer_epoch}, the last one seen is {known_epoch}",
            )
        elif base_sequence != 0 and known_epoch != NO_EPOCH:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Producer {producer_id} began epoch {producer_epoch} with sequence {base_sequence}, not 0",
            )
        if entry.txn_first_offset != NO_OFFSET and not transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, f"Producer {producer_id} has a transaction open on this partition"
            )
        return None

    def replay(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        last_sequence: int,
        base_offset: int,
        last_offset: int,
        timestamp_ms: int,
        *,
        transactional: bool = False,
    ) -> None:
        """A batch of data is in the log."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_epoch)
        batches = entry.batches
        if entry.producer_epoch != producer_epoch:
            batches.clear()
            entry.producer_epoch = producer_epoch
        elif len(batches) == BATCHES_KEPT:
            del batches[0]
        batches.append(CachedBatch(base_sequence, last_sequence, base_offset, last_offset, timestamp_ms))
        entry.last_timestamp_ms = timestamp_ms
        if transactional and entry.txn_first_offset == NO_OFFSET:
            entry.txn_first_offset = base_offset

    def replay_marker(self, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp_ms: int) -> None:
        """A transaction marker is in the log: whatever the producer had open has ended."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_epoch)
        if entry.producer_epoch != producer_epoch:
            entry.batches.clear()
            entry.producer_epoch = producer_epoch
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp_ms = timestamp_ms
        entry.txn_first_offset = NO_OFFSET

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget who has not written for expiration_ms and has no transaction open; how many those were."""
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp_ms >= expiration_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        return len(expired)

    def first_open_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return min((e.txn_first_offset for e in self.entries.values() if e.txn_first_offset >= 0), default=None)

    def snapshot(self) -> Iterator[ProducerSnapshot]:
        """Every producer with its last batch, by producer id."""
        for producer_id, entry in sorted(self.entries.items()):
            last = entry.batches[-1] if entry.batches else None
            yield ProducerSnapshot(
                producer_id,
                entry.producer_epoch,
                last.last_sequence if last else NO_SEQUENCE,
                last.last_offset if last else NO_OFFSET,
                last.last_offset - last.base_offset if last else 0,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )

    def load(self, snapshot: Iterable[ProducerSnapshot]) -> None:
        """Start from a snapshot; what was appended after it is replayed on top."""
        self.entries.clear()
        for producer in snapshot:
            batches: tuple[CachedBatch, ...] = ()
            if producer.last_offset >= 0:
                delta = producer.offset_delta
                first = producer.last_sequence
                first = first if first == NO_SEQUENCE else add_to_sequence(first, -delta)
                batches = (
                    CachedBatch(
                        first,
                        producer.last_sequence,
                        producer.last_offset - delta,
                        producer.last_offset,
                        producer.timestamp_ms,
                    ),
                )
            self.entries[producer.producer_id] = ProducerEntry(
                producer.producer_epoch,
                batches,
                coordinator_epoch=producer.coordinator_epoch,
                last_timestamp_ms=producer.timestamp_ms,
                txn_first_offset=producer.txn_first_offset,
            )

    def recall(self, before: Producers) -> None:
        """Add batches that this state, loaded anew, does not know and the one before it did: snapshots hold one."""
        for producer_id, entry in self.entries.items():
            old = before.entries.get(producer_id)
            if old is not None and old.producer_epoch == entry.producer_epoch and entry.batches:
                first = entry.batches[0].base_offset
                older = [batch for batch in old.batches if batch.last_offset < first]
                entry.batches = (older + entry.batches)[-BATCHES_KEPT:]

    def fingerprint(self) -> tuple[tuple[object, ...], ...]:
        """The whole state as a value, for comparing what replay built with what was there."""
        return tuple(
            (
                producer_id,
                entry.producer_epoch,
                entry.coordinator_epoch,
                entry.last_timestamp_ms,
                entry.txn_first_offset,
                tuple(entry.batches),
            )
            for producer_id, entry in sorted(self.entries.items())
        )
