"""Readers of committed records on a compacted partition against a model, over cleaning, merging, horizons and restarts.

The model: every record with its transaction's fate. The cleaner may drop what a later committed record of the same key
has replaced, tombstones and markers after their horizon, and aborted records. So a reader that begins anywhere must see
the last committed value of each key, and must never see an aborted record.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from budget import budget
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from txn_kit import end_of, not_aborted
from unit.partitions.data_path import DataPath, batch
from unit.partitions.txn_path import COMMITTED as READ_COMMITTED

from protocol.errors import ErrorCode
from protocol.record_batch import TRANSACTIONAL
from storage.files.sim_faults import SimulatedCrash

PRODUCERS = st.integers(1, 4)
KEYS = st.integers(0, 5).map(lambda n: b"k%d" % n)
Row = tuple[bytes, bytes | None]
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"
RETENTION_MS = 1000  # of tombstones and markers
EXPIRATION_MS = 5000  # of producers


class Written(NamedTuple):
    """One record as a client wrote it."""

    offset: int
    key: bytes
    value: bytes | None
    transaction: int  # 0: none


class CleanedTransactions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.path = DataPath(producer_id_expiration_ms=str(EXPIRATION_MS))
        self.epochs: dict[int, int] = {}
        self.next: dict[int, int] = {}  # producer -> its next sequence
        self.open: dict[int, int] = {}  # producer -> its open transaction
        self.fate: dict[int, str] = {0: COMMITTED}
        self.written: list[Written] = []
        self.end = 0

    @initialize(segment_bytes=st.sampled_from([400, 900, 1 << 20]))
    def start(self, segment_bytes: int) -> None:
        settings = {
            "cleanup.policy": "compact",
            "delete.retention.ms": str(RETENTION_MS),
            "internal.segment.bytes": str(segment_bytes),
        }
        self.path.topic(**settings)

    @property
    def partition(self) -> Any:
        return self.path.partition(self.path.metadata.topics["t"], 0)

    # -- producers

    @rule(pid=PRODUCERS, keys=st.lists(KEYS, min_size=1, max_size=3), removes=st.booleans())
    def write_in_a_transaction(self, pid: int, keys: list[bytes], removes: bool) -> None:
        rows = self._rows(keys, removes)
        answer = self._send(pid, rows)
        if answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and pid not in self.open:  # it has expired
            self.epochs[pid] += 1
            self.next[pid] = 0
            answer = self._send(pid, rows)
        assert (answer.error_code, answer.base_offset) == (0, self.end)
        self.next[pid] = self.next.get(pid, 0) + len(rows)
        if pid not in self.open:
            self.open[pid] = len(self.fate)
            self.fate[self.open[pid]] = OPEN
        self._written(rows, self.open[pid])

    def _send(self, pid: int, rows: list[Row]) -> Any:
        epoch, seq = self.epochs.setdefault(pid, 0), self.next.get(pid, 0)
        data = batch(*rows, ts=self.path.now_ms, pid=pid, epoch=epoch, seq=seq, attributes=TRANSACTIONAL)
        return self.path.produce(data, version=12, transactional_id=f"tx-{pid}")

    @rule(keys=st.lists(KEYS, min_size=1, max_size=3), removes=st.booleans())
    def write_plainly(self, keys: list[bytes], removes: bool) -> None:
        rows = self._rows(keys, removes)
        assert self.path.produce(batch(*rows, ts=self.path.now_ms)).base_offset == self.end
        self._written(rows, 0)

    def _rows(self, keys: list[bytes], removes: bool) -> list[Row]:
        return [(key, None if removes else b"%d" % (self.end + at)) for at, key in enumerate(keys)]

    def _written(self, rows: list[Row], transaction: int) -> None:
        self.written += [Written(self.end + at, *row, transaction) for at, row in enumerate(rows)]
        self.end += len(rows)

    @rule(pid=PRODUCERS, commit=st.booleans(), version=st.sampled_from([1, 2]))
    def end_transaction(self, pid: int, commit: bool, version: int) -> None:
        if pid not in self.open:
            return
        if version == 2:
            self.epochs[pid] += 1
            self.next[pid] = 0
        self.fate[self.open.pop(pid)] = COMMITTED if commit else ABORTED
        self.path.mark(pid, self.epochs[pid], commit=commit, version=version)
        self.end += 1

    @rule(pid=PRODUCERS, keys=st.lists(KEYS, min_size=1, max_size=2), commit=st.booleans(), rolls=st.booleans())
    def whole_transaction(self, pid: int, keys: list[bytes], commit: bool, rolls: bool) -> None:
        self.write_in_a_transaction(pid, keys, False)
        self.end_transaction(pid, commit, 1)
        if rolls:
            self.roll()

    # -- the broker

    @rule()
    def roll(self) -> None:
        self.partition.log.roll()

    @rule(ms=st.sampled_from([1, RETENTION_MS, EXPIRATION_MS + 1]))
    def time_passes(self, ms: int) -> None:
        self.path.advance(ms)

    @rule(passes=st.integers(1, 3), ms=st.sampled_from([0, RETENTION_MS]))
    def clean(self, passes: int, ms: int) -> None:
        """A marker goes in the third pass: its data, then the horizon, then it."""
        for _ in range(passes):
            partition = self.partition
            partition.log.roll()
            for _ in partition.clean(self.path.now_ms, partition.last_stable_offset):
                pass
            partition.log.cleaned_offset = 0  # the next pass begins anew, as it does when something is dirty
            self.path.advance(ms)

    @rule()
    def housekeeping(self) -> None:
        for _ in self.partition.maintenance(self.path.now_ms):
            pass

    @rule()
    def snapshot(self) -> None:
        self.partition.take_snapshot()

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        self.path = self.path.reopened(clean=clean)

    @rule(nth=st.integers(1, 12))
    def killed_while_cleaning(self, nth: int) -> None:
        """kill -9 at one of the file operations of a pass."""
        partition, files = self.partition, self.path.env.files
        partition.log.roll()
        stable = partition.last_stable_offset
        files.kill_at(nth)
        with suppress(SimulatedCrash):
            for _ in partition.clean(self.path.now_ms, stable):
                pass
        files.heal()
        self.path = self.path.reopened(clean=False, files=files.crash())

    @rule()
    def lose_power(self) -> None:
        for partition in self.path.partitions.open.values():
            partition.log.sync()
        self.path = self.path.reopened(clean=False, files=self.path.env.files.crash(lose_unsynced=True))

    # -- readers

    def _read(self, offset: int, max_bytes: int) -> list[tuple[int, bytes, bytes | None]]:
        """What Kafka's consumer of committed records gives its user, fetching at most so many bytes at once."""
        found = []
        while True:
            answer = self.path.fetch(offset, partition_max_bytes=max_bytes, request=READ_COMMITTED)
            assert answer.error_code == 0
            if not len(answer.records):
                return found
            data = answer.records.read()
            for record in not_aborted(data, answer.aborted_transactions):
                if record.offset >= offset:
                    found.append((record.offset, record.key, record.value))
            offset = end_of(data)

    def _check(self, offset: int, max_bytes: int) -> None:
        stable = self._stable()
        seen = self._read(offset, max_bytes)
        allowed = {
            each[:3]
            for each in self.written
            if offset <= each.offset < stable and self.fate[each.transaction] == COMMITTED
        }
        assert set(seen) <= allowed, f"not committed: {sorted(set(seen) - allowed)}"
        assert seen == sorted(seen, key=lambda each: each[0])
        last = {key: (at, key, value) for at, key, value in sorted(allowed, key=lambda each: each[0])}
        wanted = {each for each in last.values() if each[2] is not None}
        assert wanted <= set(seen), f"lost: {sorted(wanted - set(seen))}"
        state = {}
        for _, key, value in seen:
            state[key] = value
        for key, (_, _, value) in last.items():
            assert state.get(key) == value

    def _stable(self) -> int:
        return min((each.offset for each in self.written if self.fate[each.transaction] == OPEN), default=self.end)

    @rule(data=st.data(), max_bytes=st.sampled_from([1, 200, 1 << 20]))
    def read_from_anywhere(self, data: st.DataObject, max_bytes: int) -> None:
        self._check(data.draw(st.integers(0, self.end)), max_bytes)

    @invariant()
    def committed_records_are_read(self) -> None:
        if "t" not in self.path.metadata.topics:
            return
        assert self.path.fetch(self.end).last_stable_offset == self._stable()
        self._check(0, 1 << 20)

    @invariant()
    def named_transactions_have_their_marker(self) -> None:
        """A reader leaves an aborted transaction at its marker; without one it would drop all that follows."""
        if "t" not in self.path.metadata.topics:
            return
        markers = {header.base_offset for header, _ in self.partition.log.batches(0) if header.is_control}
        named = self.path.fetch(0, request=READ_COMMITTED).aborted_transactions
        lines = {each.first_offset: each.last_offset for each in self.partition.producers.aborted}
        assert {lines[each.first_offset] for each in named} <= markers


CleanedTransactions.TestCase.settings = budget(40, stateful_step_count=40)
test_cleaned_transactions_keep_to_the_model = pytest.mark.heavy(CleanedTransactions.TestCase)
