"""Random transactions of several producers against a model: who reads committed records sees exactly those, in order.

Over commits and aborts in both protocols, repeated markers, retries of batches, plain records in between, lost writes,
snapshots, and restarts after clean stops and kills.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from budget import budget
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from unit.partitions.data_path import DataPath, batch, values_of
from unit.partitions.txn_path import committed, read_committed, send

from protocol.errors import ErrorCode

PRODUCERS = st.integers(1, 4)
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


class Span(NamedTuple):
    """Some records of one transaction, or plain ones."""

    offset: int
    values: list[bytes]
    transaction: int  # 0: none


class TransactionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.path = DataPath()
        self.path.topic(segment_bytes=str(1 << 20))
        self.epochs: dict[int, int] = {}
        self.next: dict[int, int] = {}  # producer -> its next sequence
        self.last: dict[int, tuple[list[bytes], int, int]] = {}  # its last batch: values, sequence, offset
        self.open: dict[int, int] = {}  # producer -> its open transaction
        self.fate: dict[int, str] = {0: COMMITTED}
        self.spans: list[Span] = []
        self.end = 0
        self.number = 0

    def values(self, count: int) -> list[bytes]:
        self.number += count
        return [b"%d" % n for n in range(self.number - count, self.number)]

    # -- producers

    @rule(pid=PRODUCERS, count=st.integers(1, 3), large=st.booleans())
    def write(self, pid: int, count: int, large: bool) -> None:
        values = self.values(count)
        if large and count == 1:
            values = [values[0].ljust(300_000, b".")]  # segments roll
        epoch, seq = self.epochs.setdefault(pid, 0), self.next.get(pid, 0)
        answer = send(self.path, *values, pid=pid, epoch=epoch, seq=seq)
        assert (answer.error_code, answer.base_offset) == (0, self.end)
        if pid not in self.open:
            self.open[pid] = transaction = len(self.fate)
            self.fate[transaction] = OPEN
        self.spans.append(Span(self.end, values, self.open[pid]))
        self.last[pid] = values, seq, self.end
        self.next[pid] = seq + count
        self.end += count

    @rule(pid=PRODUCERS)
    def repeat(self, pid: int) -> None:
        if pid in self.open:
            values, seq, offset = self.last[pid]
            answer = send(self.path, *values, pid=pid, epoch=self.epochs[pid], seq=seq)
            assert (answer.error_code, answer.base_offset) == (0, offset)

    @rule(pid=PRODUCERS, commit=st.booleans(), version=st.sampled_from([1, 2]), again=st.integers(0, 2))
    def end_transaction(self, pid: int, commit: bool, version: int, again: int) -> None:
        """In version 2 the epoch rises with every transaction; a marker that is sent again changes nothing."""
        if pid not in self.epochs:
            return
        if version == 2:
            self.epochs[pid] += 1
            self.next[pid] = 0
        transaction = self.open.pop(pid, 0)
        if transaction:
            self.fate[transaction] = COMMITTED if commit else ABORTED
        for _ in range(1 + again):
            self.path.mark(pid, self.epochs[pid], commit=commit, version=version)
            self.end += 1

    @rule(pid=PRODUCERS)
    def write_with_an_old_epoch(self, pid: int) -> None:
        if self.epochs.get(pid, 0) > 0:
            answer = send(self.path, b"zombie", pid=pid, epoch=self.epochs[pid] - 1, seq=0)
            assert answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH

    @rule(pid=PRODUCERS)
    def write_plainly_in_a_transaction(self, pid: int) -> None:
        if pid in self.open:
            answer = self.path.produce(batch(b"plain", pid=pid, epoch=self.epochs[pid], seq=self.next[pid]))
            assert answer.error_code == ErrorCode.INVALID_TXN_STATE

    @rule(count=st.integers(1, 3))
    def write_plainly(self, count: int) -> None:
        values = self.values(count)
        assert self.path.produce(batch(*values)).base_offset == self.end
        self.spans.append(Span(self.end, values, 0))
        self.end += count

    # -- the broker

    @rule(pid=PRODUCERS, short=st.sampled_from([0, 1, 40]))
    def lose_a_batch(self, pid: int, short: int) -> None:
        self.path.env.files.inject(1, short_bytes=short)
        send(self.path, b"lost", pid=pid, epoch=self.epochs.get(pid, 0), seq=self.next.get(pid, 0))
        self.path.env.files.heal()

    @rule(pid=PRODUCERS, commit=st.booleans())
    def lose_a_marker(self, pid: int, commit: bool) -> None:
        if pid in self.epochs:
            self.path.env.files.inject(1)
            self.path.mark(pid, self.epochs[pid] + 1, commit=commit)
            self.path.env.files.heal()

    @rule()
    def snapshot(self) -> None:
        self.path.partition(self.path.metadata.topics["t"], 0).take_snapshot()

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        self.path = self.path.reopened(clean=clean)

    @rule()
    def lose_power(self) -> None:
        """With everything written synced: what a snapshot or an index may not say is what the log does not hold."""
        for partition in self.path.partitions.open.values():
            partition.log.sync()
        self.path = self.path.reopened(clean=False, files=self.path.env.files.crash(lose_unsynced=True))

    # -- readers

    @invariant()
    def committed_records_are_read_in_order_and_no_others(self) -> None:
        stable = min((s.offset for s in self.spans if self.fate[s.transaction] == OPEN), default=self.end)
        answer = self.path.fetch()
        assert (answer.high_watermark, answer.last_stable_offset) == (self.end, stable)
        below = [s for s in self.spans if s.offset < stable and self.fate[s.transaction] == COMMITTED]
        assert read_committed(self.path) == [value for span in below for value in span.values]

    @rule(data=st.data())
    def read_from_anywhere(self, data: st.DataObject) -> None:
        """A reader that begins in the middle of a transaction is told of it."""
        offset = data.draw(st.integers(0, self.end))
        answer = committed(self.path, offset)
        if not len(answer.records):
            return
        got = values_of(answer.records)
        named = {(a.producer_id, a.first_offset) for a in answer.aborted_transactions}
        firsts = {}
        for span in self.spans:
            firsts.setdefault(span.transaction, span.offset)
        for span in self.spans:
            if self.fate[span.transaction] == ABORTED and span.values[0] in got:
                assert any(first == firsts[span.transaction] for _, first in named)

    @invariant()
    def both_ends_are_told(self) -> None:
        assert self.path.list_offset(-1).offset == self.end
        assert self.path.list_offset(-1, isolation_level=1).offset == self.path.fetch().last_stable_offset


TransactionMachine.TestCase.settings = budget(30, stateful_step_count=30)
test_transactions_keep_to_the_model = pytest.mark.heavy(TransactionMachine.TestCase)
