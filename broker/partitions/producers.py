"""The idempotent producers of one partition: which sequence each may append next, and which batches are repetitions.

`decide` only reads; `replay` and `replay_marker` only change, live and from the log at a start.
A batch of sequences f..l comes from a producer whose last batch here is F..L. D(x) = (L - x) modulo 2^31. W is the
length of the unbroken run of this epoch's sequences that ends at L, 2^30 at most:

| batch                                           | lookup, latest (KAFKA-12207) | batches (released Kafka)     |
|-------------------------------------------------|------------------------------|------------------------------|
| epoch below the known one, or below -1          | INVALID_PRODUCER_EPOCH       | INVALID_PRODUCER_EPOCH       |
| epoch above the known one, f = 0                | append                       | append                       |
| epoch above the known one, f > 0                | OUT_OF_ORDER_SEQUENCE_NUMBER | OUT_OF_ORDER_SEQUENCE_NUMBER |
| f..l = F..L                                     | the offset of that batch     | the offset of that batch     |
| f..l equal one of the four batches before F..L  | see below                    | the offset of that batch     |
| f = L + 1, or f = 0 after L = 2^31 - 1          | append                       | append                       |
| D(l) <= D(f) < W: f..l is known to be written   | DUPLICATE_SEQUENCE_NUMBER    | OUT_OF_ORDER_SEQUENCE_NUMBER |
| any other f                                     | OUT_OF_ORDER_SEQUENCE_NUMBER | OUT_OF_ORDER_SEQUENCE_NUMBER |

An unknown producer may begin with any sequence: its state may have expired, or been deleted with its records. There
are two exceptions. Transactions of KIP-890 begin at 0. And when a batch of the producer was lost here before any
succeeded, or refused with an error after which clients send it again, later batches are refused until that one is
appended (`batches`: only in transactions, as in Kafka). So DUPLICATE_SEQUENCE_NUMBER is never answered for records that
this partition did not write. D(l) <= D(f) refuses a batch that begins before L and ends behind it. The limit of W keeps
a batch that is up to 2^30 ahead of L from counting as written: ahead by n is the same as behind by 2^31 - n.

`lookup` answers no DUPLICATE_SEQUENCE_NUMBER where `requests/written_batch.py` finds the batch in the log.

Differs: `producer.state=latest` answers KAFKA-12207 in its pure form: the last batch with its offset, an older one with
         DUPLICATE_SEQUENCE_NUMBER if all of it is known to be written, anything else with OUT_OF_ORDER_SEQUENCE_NUMBER.
         What is known is kept beside Kafka's `.snapshot`. `producer.state=batches` answers as Kafka does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Final

from broker.base.facts import facts
from broker.partitions.aborted import AbortedTransactions
from broker.partitions.producer_snapshots import MOST_WRITTEN, NO_OFFSET, rows_of, snapshot_of
from broker.partitions.producer_table import FAR, MAX_SEQUENCE, CachedBatch, ProducerSnapshot, ProducerTable
from broker.partitions.producer_undo import Change, revert
from broker.partitions.record_rules import WrittenBeforeError, fenced, out_of_order
from protocol.errors import ErrorCode, KafkaError

OLDER_BATCHES: Final = 4  # kept with `batches` beside the last one: a Java producer has five requests in flight
MOST_AWAITED: Final = 10_000
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
STABLE: Final = 2**63 - 1  # above every offset


class Producers:
    """All producers of one partition, and their transactions."""

    __slots__ = ("_awaited", "_ended", "_far", "_older", "aborted", "open", "table", "undo", "unstable")

    VOLATILE: ClassVar[Mapping[str, str]] = {
        "_awaited": "batches that were refused; no log holds them",
        "_ended": "markers that are not durable yet; all that a start finds are",
        "_far": "times of batches weeks away from a marker; a start from a snapshot has the marker's, as in Kafka",
        "undo": "rows before the batches that are not durable yet",
    }

    def __init__(self, *, batches: bool = False) -> None:
        self.table = ProducerTable()
        self.open: dict[int, int] = {}  # producer id -> first offset of its open transaction, by rising offset
        self.aborted = AbortedTransactions()
        self.unstable = STABLE  # the first offset that readers of committed records may not get
        self._ended: deque[tuple[int, int]] = deque()  # (first offset, offset of a marker that is not durable)
        self._older: dict[int, deque[CachedBatch]] | None = {} if batches else None
        self._awaited: dict[int, tuple[int, int]] = {}  # unknown producer -> epoch, first failed sequence
        self._far: dict[int, int] = {}  # producer id -> timestamp of its last batch, where a row has no room for it
        self.undo: list[Change] | None = None  # by rising offset; None: what is replayed is durable

    # -- rules

    def decide(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        last_sequence: int,
        *,
        transactional: bool = False,
        begins_at_zero: bool = False,
    ) -> CachedBatch | None:
        """None: append the batch. A CachedBatch: it is a repetition, to be answered with that one's offset.

        Errors:  INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER (as a
                 WrittenBeforeError): see the table above.
                 INVALID_TXN_STATE: plain records while a transaction of this producer is open.
        Source:  Kafka's ProducerStateEntry and ProducerAppendInfo; KAFKA-12207.
        """
        row = self.table.get(producer_id)
        if row is None:
            self._decide_unknown(producer_id, producer_epoch, base_sequence, transactional, begins_at_zero)
            return None
        known_epoch, last, last_offset, delta, timestamp_ms, _, written, delay = row
        if producer_epoch == known_epoch:
            if base_sequence != last + 1 and not (base_sequence == 0 and last == MAX_SEQUENCE):
                if last_offset >= 0:
                    if last_sequence == last and (last - base_sequence) & MAX_SEQUENCE == delta:
                        timestamp_ms = self._batch_time(producer_id, timestamp_ms, delay)
                        return CachedBatch(base_sequence, last, last_offset - delta, last_offset, timestamp_ms)
                    if self._older is not None:
                        for batch in self._older.get(producer_id, ()):
                            if batch[0] == base_sequence and batch[1] == last_sequence:
                                return batch
                    elif (last - last_sequence) & MAX_SEQUENCE <= (last - base_sequence) & MAX_SEQUENCE < written:
                        raise WrittenBeforeError(
                            f"Producer {producer_id} has sequences up to {last} here, {base_sequence} is one of them",
                            last_offset - delta,
                        )
                if producer_epoch != NO_EPOCH:  # Kafka takes any sequence where there is no epoch
                    raise out_of_order(producer_id, base_sequence, last)
        elif producer_epoch < known_epoch:
            raise fenced(producer_id, producer_epoch, known_epoch)
        elif base_sequence != 0 and known_epoch != NO_EPOCH:
            text = f"Producer {producer_id} began epoch {producer_epoch} with sequence {base_sequence}, not 0"
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text)
        if not transactional and producer_id in self.open:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, f"Producer {producer_id} has a transaction open on this partition"
            )
        return None

    def _decide_unknown(
        self, producer_id: int, producer_epoch: int, base_sequence: int, transactional: bool, begins_at_zero: bool
    ) -> None:
        if producer_epoch < NO_EPOCH:
            raise fenced(producer_id, producer_epoch, NO_EPOCH)
        if begins_at_zero and base_sequence:
            text = f"Producer {producer_id} is not known here and began with sequence {base_sequence}, not 0"
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text)
        if begins_at_zero or not (transactional or self._older is None):
            return  # nothing comes before 0
        epoch, awaited = self._awaited.get(producer_id, (NO_EPOCH - 1, 0))
        if epoch == producer_epoch and self._follows(base_sequence, awaited):
            raise out_of_order(producer_id, base_sequence, awaited - 1)

    def _follows(self, sequence: int, other: int) -> bool:
        """Whether a sequence comes behind another; Kafka compares numbers here, without a wrap."""
        behind = (sequence - other) & MAX_SEQUENCE
        return sequence > other if self._older is not None else 0 < behind <= MAX_SEQUENCE // 2

    def check_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Errors: INVALID_PRODUCER_EPOCH."""
        row = self.table.get(producer_id)
        if row is not None and producer_epoch < row[0]:
            raise fenced(producer_id, producer_epoch, row[0])

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """Check that a coordinator may write a marker with these epochs; a transaction need not be open.

        Errors:  INVALID_PRODUCER_EPOCH: below the known epoch; from transaction version 2 on, where every transaction
                 ends with a higher epoch, also the known one itself while a transaction is open under it.
                 TRANSACTION_COORDINATOR_FENCED: a newer coordinator has written here.
        Source:  Kafka's ProducerAppendInfo.appendEndTxnMarker, KAFKA-19999.
        """
        row = self.table.get(producer_id)
        known_epoch, known_coordinator_epoch = (NO_EPOCH, -1) if row is None else (row[0], row[5])
        stale = producer_epoch < known_epoch
        if transaction_version >= 2 and producer_epoch == known_epoch:
            stale = producer_id in self.open and producer_epoch != 0x7FFF
        if stale:
            raise fenced(producer_id, producer_epoch, known_epoch)
        if coordinator_epoch < known_coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Producer {producer_id} has a marker of coordinator epoch {coordinator_epoch}, "
                f"the last one seen is {known_coordinator_epoch}",
            )

    def refused(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """A batch was refused. Later batches of a producer without a row must not be appended before it."""
        if self.table.get(producer_id) is not None:
            return
        awaited = self._awaited.get(producer_id)
        if awaited is not None:
            is_later = base_sequence == awaited[1] or self._follows(base_sequence, awaited[1])
            if producer_epoch < awaited[0] or (producer_epoch == awaited[0] and is_later):
                return
        elif len(self._awaited) >= MOST_AWAITED:
            del self._awaited[next(iter(self._awaited))]
        self._awaited[producer_id] = producer_epoch, base_sequence

    def given_up(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """A batch was refused, and clients do not send it again: later batches need not wait for it any more."""
        if self._awaited.get(producer_id) == (producer_epoch, base_sequence):
            del self._awaited[producer_id]

    # -- replay

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
        """Replay a batch of data."""
        table = self.table
        row = table.get(producer_id)
        if self.undo is not None:
            self.undo.append((base_offset, producer_id, row, producer_epoch, base_sequence))
        coordinator_epoch = -1
        delta = last_offset - base_offset
        written = delta + 1
        if row is not None:
            known_epoch, known, known_offset, known_delta, known_ms, coordinator_epoch, known_written, delay = row
            if known_epoch == producer_epoch and known_offset >= 0:
                if base_sequence == (known + 1) & MAX_SEQUENCE:
                    written = min(written + known_written, MOST_WRITTEN)
                if self._older is not None:
                    first = (known - known_delta) & MAX_SEQUENCE
                    known_ms = self._batch_time(producer_id, known_ms, delay)
                    last = CachedBatch(first, known, known_offset - known_delta, known_offset, known_ms)
                    self._older.setdefault(producer_id, deque(maxlen=OLDER_BATCHES)).append(last)
            elif self._older:
                self._older.pop(producer_id, None)
        elif self._awaited:
            self._awaited.pop(producer_id, None)
        table.put(
            producer_id, producer_epoch, last_sequence, last_offset, delta, timestamp_ms, coordinator_epoch, written, 0
        )
        if transactional and producer_id not in self.open:
            self.open[producer_id] = base_offset
            if base_offset < self.unstable:
                self.unstable = base_offset

    def replay_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        timestamp_ms: int,
        offset: int,
        *,
        commit: bool,
    ) -> None:
        """Replay a transaction marker, which ends the producer's open transaction."""
        row = self.table.get(producer_id)
        if self.undo is not None:
            self.undo.append((offset, producer_id, row, producer_epoch, NO_SEQUENCE))
        if row is not None and row[0] == producer_epoch:
            _, last, last_offset, delta, before_ms, _, written, delay = row
            batch_ms = self._batch_time(producer_id, before_ms, delay)
            delay = timestamp_ms - batch_ms if last_offset >= 0 else 0
            if not FAR < delay < -FAR:
                self._far[producer_id], delay = batch_ms, FAR
            self.table.put(
                producer_id, producer_epoch, last, last_offset, delta, timestamp_ms, coordinator_epoch, written, delay
            )
        else:
            if self._older:
                self._older.pop(producer_id, None)
            row = producer_epoch, NO_SEQUENCE, NO_OFFSET, 0, timestamp_ms, coordinator_epoch, 0, 0
            self.table.put(producer_id, *row)
            self._awaited.pop(producer_id, None)
        first = self.open.pop(producer_id, None)
        if first is None:
            return
        self._ended.append((first, offset))
        if not commit:
            self.aborted.append(producer_id, first, offset, next(iter(self.open.values()), offset + 1))

    def replay_cleaned(self, producer_id: int) -> None:
        """The transaction that a snapshot calls open has ended, and the cleaner has removed all of it."""
        self.open.pop(producer_id, None)

    def settle(self, durable_offset: int) -> None:
        """Everything below this offset is durable: the transactions that markers ended there are stable."""
        ended = self._ended
        while ended and ended[0][1] < durable_offset:
            ended.popleft()
        first = next(iter(self.open.values()), STABLE)
        self.unstable = min(first, min(ended)[0]) if ended else first

    # -- the whole

    def _batch_time(self, producer_id: int, timestamp_ms: int, marker_delay_ms: int) -> int:
        """The timestamp of a producer's last batch."""
        if marker_delay_ms == FAR:
            return self._far.get(producer_id, timestamp_ms)
        return timestamp_ms - marker_delay_ms

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer has a transaction open here in this epoch."""
        if producer_id not in self.open:
            return False
        row = self.table.get(producer_id)
        return row is not None and row[0] == producer_epoch

    def expire(self, now_ms: int, expiration_ms: int) -> Iterator[int]:
        """Remove producers without an open transaction that have not written for expiration_ms, in small steps."""
        for gone in self.table.remove_if_before(now_ms - expiration_ms, self.open):
            if gone and self._older:
                self._older = {key: older for key, older in self._older.items() if key in self.table}
            if gone and self._far:
                self._far = {key: timestamp_ms for key, timestamp_ms in self._far.items() if key in self.table}
            yield gone

    def snapshot(self) -> Iterator[ProducerSnapshot]:
        """Every producer with its last batch, by producer id; later changes do not show."""
        return snapshot_of(self.table.copy(), self.open.copy())

    def load(self, snapshot: Iterable[ProducerSnapshot]) -> None:
        """Start from a snapshot; the caller then replays what was appended after it."""
        rows, self.open = rows_of(snapshot)
        self.table.fill(rows)
        self.settle(0)

    def revert(self, end_offset: int) -> None:
        """The log was cut back to this offset: the table has its rows of before again."""
        undo, self.undo = self.undo or [], None
        for producer_id, producer_epoch, base_sequence in revert(self.table, undo, end_offset):
            self.refused(producer_id, producer_epoch, base_sequence)

    def recall(self, before: Producers) -> None:
        """Take over from the state before a failed write, which was reverted, what the log does not hold.

        That is the table (retention may have removed the batches that a row comes from), the batches before the last
        one, and what refused producers are awaited with.
        """
        self.table, self._awaited = before.table, before._awaited
        if self._older is None or before._older is None:
            return
        for producer_id, older in before._older.items():
            row = self.table.get(producer_id)
            if row is not None and row[2] >= 0:
                known = self._older.get(producer_id, ())
                first = known[0].base_offset if known else row[2] - row[3]
                found = [batch for batch in older if batch.last_offset < first]
                if found or known:
                    self._older[producer_id] = deque([*found, *known], maxlen=OLDER_BATCHES)

    def batches(self, producer_id: int) -> list[CachedBatch]:
        """The batches whose repetition is answered with their offset, newest last."""
        row = self.table.get(producer_id)
        if row is None or row[2] < 0:
            return []
        _, last, offset, delta, timestamp_ms, _, _, delay = row
        older = self._older.get(producer_id, ()) if self._older else ()
        timestamp_ms = self._batch_time(producer_id, timestamp_ms, delay)
        return [*older, CachedBatch((last - delta) & MAX_SEQUENCE, last, offset - delta, offset, timestamp_ms)]

    def fingerprint(self) -> dict[str, object]:
        """What replaying the log must reproduce: all but what is VOLATILE."""
        return {**facts(self), "table": self.table.facts(), "open": list(self.open.items())}
