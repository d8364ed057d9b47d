"""What the cleaner tells by offsets and keys alone equals what it finds by looking at every record.

Two logs get the same history; one is cleaned with the shortcuts, the other without. After each pass their bytes are the
same, whatever was in the log: transactions, commits over several batches, tombstones, compression, clean parts, cuts.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import pytest
from budget import budget
from hypothesis import given
from hypothesis import strategies as st
from log_kit import DIRECTORY, content, put, put_marker

from protocol.record import decode_records
from protocol.record_batch import ABORT, COMMIT, TRANSACTIONAL, BatchHeader, control_batch
from storage.cleaning import compaction_filter, compaction_plan
from storage.cleaning.compaction import clean
from storage.cleaning.compaction_plan import Plan, ProducersInLog
from storage.files.sim_env import sim_env
from storage.log.log import Log, LogConfig
from storage.segments.spans import span_headers

CONFIG = LogConfig(
    segment_bytes=700, index_interval_bytes=100, cleanup_policy=frozenset({"compact"}), delete_retention_ms=1000
)

PRODUCERS = st.integers(1, 3)
KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"long" * 20, b"", None])
VALUES = st.sampled_from([b"1", b"txid", b"2" * 90, None])
HEADERS = st.sampled_from([(), (), (), (("who", b"m"), ("empty", None)), (("txid", b"short"),)])
ROWS = st.lists(st.tuples(KEYS, VALUES, HEADERS), min_size=1, max_size=4)
HISTORY = st.lists(
    st.one_of(
        st.tuples(st.just("plain"), ROWS, st.sampled_from([0, 1])),
        st.tuples(st.just("long"), st.integers(100, 300), KEYS),
        st.tuples(st.just("in transaction"), PRODUCERS, ROWS),
        st.tuples(st.just("whole"), PRODUCERS, ROWS, st.sampled_from([ABORT, COMMIT])),
        st.tuples(st.just("end"), PRODUCERS, st.sampled_from([ABORT, COMMIT])),
        st.tuples(
            st.just("span"), st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=3), st.integers(-1, 1)
        ),
        st.tuples(st.just("roll")),
        st.tuples(st.just("wait"), st.sampled_from([10, 2000])),
        st.tuples(st.just("cut"), st.integers(1, 6)),
        st.tuples(st.just("clean"), st.booleans(), st.sampled_from([2, 4, 10_000]), st.sampled_from([None, 0, 5])),
    ),
    min_size=8,
    max_size=40,
)


def every_key(section: bytes, count: int, base_offset: int) -> Iterator[tuple[int, bytes | None, bool]]:
    for record in decode_records(section, count, base_offset, 0):
        yield record.offset, record.key, record.value is None


def unknown_fate(plan: Plan, header: BatchHeader, section: bytes) -> Generator[None, None, None]:
    return
    yield


def plainly() -> ExitStack:
    """Look at every record."""
    patches = ExitStack()
    patches.enter_context(patch.object(Plan, "is_superseded", lambda self, header: False))
    patches.enter_context(patch.object(compaction_filter, "_fate", unknown_fate))
    patches.enter_context(patch.object(compaction_plan, "decode_keys", every_key))
    return patches


class Pair:
    """The two logs."""

    def __init__(self) -> None:
        self.quick = Log.open(sim_env(), DIRECTORY, CONFIG)
        self.plain = Log.open(sim_env(), DIRECTORY, CONFIG)
        self.now_ms = 50_000
        self.open: set[int] = set()

    def both(self, call: Any) -> None:
        for log in (self.quick, self.plain):
            call(log)
            log.flush()

    def put(self, *rows: tuple[Any, ...], **fields: Any) -> None:
        self.both(lambda log: put(log, *rows, timestamp_ms=self.now_ms, **fields))

    def step(self, what: str, *given: Any) -> None:
        if what == "plain":
            self.put(*given[0], attributes=given[1])
        elif what == "long":
            self.put(*((b"%d" % (number % 90) if number % 7 else given[1], b"v") for number in range(given[0])))
        elif what == "in transaction":
            self.open.add(given[0])
            self.put(*given[1], producer_id=given[0], producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
        elif what == "whole":
            self.step("in transaction", given[0], given[1])
            self.step("end", given[0], given[2])
        elif what == "end" and given[0] in self.open:
            self.open.discard(given[0])
            self.both(lambda log: put_marker(log, self._marker(log, *given)))
        elif what == "span":
            keys, more = given
            headers = span_headers(self.quick.end_offset, max(1, len(keys) + more))
            for key in keys:
                self.put((key, b"1", headers))
        elif what == "roll":
            self.both(lambda log: log.roll())
        elif what == "wait":
            self.now_ms += given[0]
        elif what == "cut":
            keep = (
                max(self.quick.segments[-1].base_offset, self.quick.end_offset - given[0]) if self.quick.segments else 0
            )
            if not self.open:
                self.both(lambda log: log.cut_back(keep))
        elif what == "clean":
            self.clean(*given)

    def _marker(self, log: Log, producer_id: int, kind: int) -> bytes:
        fields = {"producer_id": producer_id, "producer_epoch": 0, "timestamp_ms": self.now_ms}
        return control_batch(kind, base_offset=log.end_offset, **fields)

    def clean(self, commits: bool, max_keys: int, tombstones_end: int | None) -> None:
        def run(log: Log) -> None:
            limits = {"max_keys": max_keys, "tombstones_end": tombstones_end}
            for _ in clean(log, self.now_ms, log.end_offset, ProducersInLog(), commits=commits, **limits):
                pass

        run(self.quick)
        with plainly():
            run(self.plain)
        assert content(self.quick) == content(self.plain)
        for quick, plain in zip(self.quick.segments, self.plain.segments, strict=True):
            assert (quick.base_offset, quick.size) == (plain.base_offset, plain.size)
        assert self.quick.cleaned_offset == self.plain.cleaned_offset
        assert self.quick.held_tombstones == self.plain.held_tombstones


@pytest.mark.heavy
@budget(150)
@given(history=HISTORY)
def test_cleaned_logs_are_the_same_with_and_without_the_shortcuts(history: list[tuple[Any, ...]]) -> None:
    pair = Pair()
    for each in history:
        pair.step(*each)
    pair.step("roll")
    pair.clean(True, 10_000, None)
    pair.step("wait", 2000)
    pair.put((b"a", b"last"))
    pair.step("roll")
    pair.clean(False, 10_000, None)
