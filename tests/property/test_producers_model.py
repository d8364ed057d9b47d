"""Random work of idempotent producers against a model: retries, gaps, new epochs, wraps, lost writes and restarts.

The model keeps every batch that was ever acknowledged, and says from the rules alone what the partition has to answer:
those of KAFKA-12207 (producer.state=latest), the same with offsets from the log (lookup), and those of released Kafka
(batches).
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from budget import budget
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from unit.partitions.data_path import DataPath, batch, values_of

from protocol.errors import ErrorCode

MAX = 2**31 - 1
PRODUCERS = st.integers(1, 3)
COUNTS = st.integers(1, 4)


class Known(NamedTuple):
    """One batch of a producer's present epoch."""

    first: int
    last: int
    offset: int


class ProducerMachine(RuleBasedStateMachine):
    """producer.state=latest: nothing but a failed first write is forgotten, and that only by a restart."""

    state = "latest"

    def __init__(self) -> None:
        super().__init__()
        self.path = DataPath(producer_state=self.state)
        self.path.topic()
        self.epochs: dict[int, int] = {}
        self.known: dict[int, list[Known]] = {}
        self.lost: dict[int, tuple[int, int]] = {}  # unknown producers: epoch and least sequence that got lost
        self.values: list[bytes] = []
        self.number = 0

    # -- what the rules say

    def expected(self, pid: int, epoch: int, first: int, count: int) -> tuple[ErrorCode, int]:
        last = (first + count - 1) & MAX
        end = len(self.values)
        out_of_order = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        if pid not in self.epochs:
            return out_of_order if self.must_wait(pid, epoch, first) else (ErrorCode.NONE, end)
        known, at = self.known[pid], self.epochs[pid]
        if epoch == at:
            if first == (known[-1].last + 1) & MAX:
                return ErrorCode.NONE, end
            return self.repeated(known, first, last) or out_of_order
        if epoch < at:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        return (ErrorCode.NONE, end) if first == 0 else out_of_order

    def must_wait(self, pid: int, epoch: int, first: int) -> bool:
        lost = self.lost.get(pid)
        return lost is not None and lost[0] == epoch and 0 < (first - lost[1]) & MAX <= MAX // 2

    def repeated(self, known: list[Known], first: int, last: int) -> tuple[ErrorCode, int] | None:
        latest = known[-1]
        if (latest.first, latest.last) == (first, last):
            return ErrorCode.NONE, latest.offset
        written = ((latest.last - known[0].first) & MAX) + 1
        if (latest.last - last) & MAX <= (latest.last - first) & MAX < written:
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1
        return None

    def keep(self, known: list[Known]) -> list[Known]:
        return known

    def send(self, pid: int, epoch: int, first: int, count: int) -> None:
        values = [b"%d" % (self.number + i) for i in range(count)]
        self.number += count
        code, offset = self.expected(pid, epoch, first, count)
        answer = self.path.produce(batch(*values, pid=pid, epoch=epoch, seq=first))
        assert (answer.error_code, answer.base_offset) == (code, offset)
        if code == ErrorCode.NONE and offset == len(self.values):
            if self.epochs.get(pid) != epoch:
                self.epochs[pid], self.known[pid] = epoch, []
            self.known[pid] = self.keep([*self.known[pid], Known(first, (first + count - 1) & MAX, offset)])
            self.lost.pop(pid, None)
            self.values += values

    # -- what producers do

    @rule(pid=PRODUCERS, count=COUNTS)
    def go_on(self, pid: int, count: int) -> None:
        known = self.known.get(pid)
        self.send(pid, self.epochs.get(pid, 0), (known[-1].last + 1) & MAX if known else 0, count)

    @rule(pid=PRODUCERS, near=st.integers(0, 3))
    def go_over_the_wrap(self, pid: int, near: int) -> None:
        """A producer nobody knows may begin anywhere: just below 2^31, with a batch that ends there."""
        pid += 10
        if pid not in self.epochs:
            self.send(pid, 0, MAX - near, near + 1)
            self.send(pid, 0, 0, 1)

    @rule(pid=PRODUCERS)
    def go_far(self, pid: int) -> None:
        for _ in range(3):
            self.go_on(pid, 500)

    @rule(pid=PRODUCERS)
    def go_on_and_repeat_all(self, pid: int) -> None:
        for _ in range(6):
            self.go_on(pid, 1)
        if pid in self.known:
            for entry in self.known[pid]:
                self.send(pid, self.epochs[pid], entry.first, 1)

    @precondition(lambda self: bool(self.known))
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        pid = data.draw(st.sampled_from(sorted(self.known)))
        entry = data.draw(st.sampled_from(self.known[pid]))
        self.send(pid, self.epochs[pid], entry.first, ((entry.last - entry.first) & MAX) + 1)

    @rule(
        pid=PRODUCERS,
        count=COUNTS,
        step=st.one_of(st.integers(-8, 8), st.integers(-1005, -995)),
        epoch_step=st.integers(-1, 1),
    )
    def send_anything(self, pid: int, count: int, step: int, epoch_step: int) -> None:
        known = self.known.get(pid)
        first = (known[-1].last + step) & MAX if known else abs(step)
        self.send(pid, max(0, self.epochs.get(pid, 0) + epoch_step), first, count)

    @rule(pid=PRODUCERS, count=COUNTS)
    def begin_a_new_epoch(self, pid: int, count: int) -> None:
        self.send(pid, self.epochs.get(pid, 0) + 1, 0, count)

    # -- what happens to the broker

    @rule(pid=PRODUCERS, count=COUNTS, short=st.sampled_from([0, 1, 40]))
    def lose_a_write(self, pid: int, count: int, short: int) -> None:
        known = self.known.get(pid)
        lost = self.lost.get(pid)
        epoch, first = self.epochs.get(pid, 0), lost[1] if lost else 0
        if known:
            first = (known[-1].last + 1) & MAX
        self.path.env.files.inject(1, short_bytes=short)
        self.path.produce(batch(*[b"lost"] * count, pid=pid, epoch=epoch, seq=first))
        self.path.env.files.heal()
        if not known:
            self.lost[pid] = epoch, first
        self.reconcile()

    @rule(pid=PRODUCERS, first=st.integers(0, 5))
    def refuse(self, pid: int, first: int) -> None:
        """A batch whose CRC is wrong; an unknown producer's later ones wait for it."""
        data = batch(b"refused", pid=pid, epoch=self.epochs.get(pid, 0), seq=first)
        assert self.path.produce(data[:-1] + b"?").error_code == ErrorCode.CORRUPT_MESSAGE
        if pid not in self.known and (pid not in self.lost or first < self.lost[pid][1]):
            self.lost[pid] = 0, first

    @rule()
    def snapshot(self) -> None:
        self.path.partition(self.path.metadata.topics["t"], 0).take_snapshot()

    @rule()
    def restart(self) -> None:
        self.path = self.path.reopened()
        self.lost.clear()
        self.reconcile()

    @rule()
    def kill(self) -> None:
        self.path = self.path.reopened(clean=False)
        self.lost.clear()
        self.reconcile()

    def reconcile(self) -> None:
        """Nothing is forgotten: the snapshot holds it all."""

    @invariant()
    def every_acknowledged_record_is_there_once(self) -> None:
        answer = self.path.fetch()
        assert answer.high_watermark == len(self.values)
        assert values_of(answer.records) == self.values


class LookupMachine(ProducerMachine):
    """producer.state=lookup: what was written is answered with its offset, and with none if it comes in another cut."""

    state = "lookup"

    def repeated(self, known: list[Known], first: int, last: int) -> tuple[ErrorCode, int] | None:
        found = [entry.offset for entry in known if (entry.first, entry.last) == (first, last)]
        return (ErrorCode.NONE, found[-1]) if found else super().repeated(known, first, last)

    @rule(pid=PRODUCERS, count=st.integers(1, 8))
    def go_on_with_large_batches(self, pid: int, count: int) -> None:
        """The index of the log gets entries, and the search more than one slice."""
        for _ in range(count):
            self.go_on(pid, 300)


class BatchesMachine(ProducerMachine):
    """producer.state=batches: five batches, of which a snapshot holds the last."""

    state = "batches"

    def must_wait(self, pid: int, epoch: int, first: int) -> bool:
        return False

    def repeated(self, known: list[Known], first: int, last: int) -> tuple[ErrorCode, int] | None:
        found = [entry.offset for entry in known if (entry.first, entry.last) == (first, last)]
        return (ErrorCode.NONE, found[0]) if found else None

    def keep(self, known: list[Known]) -> list[Known]:
        return known[-5:]

    def reconcile(self) -> None:
        """How many older batches are known depends on snapshots; the last one is, and none may be another one."""
        partition = self.path.partition(self.path.metadata.topics["t"], 0)
        for pid, known in self.known.items():
            kept = [Known(b.base_sequence, b.last_sequence, b.base_offset) for b in partition.producers.batches(pid)]
            assert kept
            assert kept == known[-len(kept) :]
            assert partition.producers.table[pid].producer_epoch == self.epochs[pid]
            self.known[pid] = kept


SETTINGS = budget(12, stateful_step_count=30)
ProducerMachine.TestCase.settings = SETTINGS
LookupMachine.TestCase.settings = SETTINGS
BatchesMachine.TestCase.settings = SETTINGS
test_producers_keep_to_the_model = pytest.mark.heavy(ProducerMachine.TestCase)
test_offsets_that_are_looked_up_keep_to_the_model = pytest.mark.heavy(LookupMachine.TestCase)
test_producers_of_released_kafka_keep_to_the_model = pytest.mark.heavy(BatchesMachine.TestCase)
