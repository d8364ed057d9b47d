"""Compaction of keys that the cleaner's map holds as digests: those of more than 64 bytes."""

from __future__ import annotations

import pytest
from log_kit import DIRECTORY, live, put

from protocol.record_batch import iter_records
from storage.cleaning.compaction_plan import Plan, plan_keys
from storage.files.sim_env import sim_env
from storage.log.log import Log, LogConfig

CONFIG = LogConfig(segment_bytes=2000, cleanup_policy=frozenset({"compact"}), delete_retention_ms=1000)
NOW_MS = 50_000
# around the border, and keys that differ in their first, middle or last byte alone
KEYS = [
    *(b"k" * size for size in (1, 16, 63, 64, 65, 66, 127, 128, 129, 1000)),
    *(b"k" * at + b"x" + b"k" * (99 - at) for at in (0, 15, 16, 50, 63, 64, 65, 99)),
    bytes(64),
    bytes(65),
]


@pytest.fixture
def log() -> Log:
    return Log.open(sim_env(), DIRECTORY, CONFIG)


def seal(log: Log) -> None:
    """Roll, so that all that was put can be cleaned."""
    log.flush()
    log.roll()
    put(log, (b"active", b"segment"))
    log.flush()


def kept(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(r.offset, r.key, r.value) for _, batch in log.batches(0) for r in iter_records(batch)]


def test_last_value_of_each_key_stays_and_the_others_go(log):
    assert len(set(KEYS)) == len(KEYS)
    for value in (b"first", b"second", b"last"):
        for key in KEYS:
            put(log, (key, value))
    seal(log)
    before = live(log)
    for _ in log.clean(NOW_MS):
        pass
    last = 2 * len(KEYS)
    assert kept(log)[:-1] == [(last + n, key, b"last") for n, key in enumerate(KEYS)]
    assert live(log) == before


@pytest.mark.parametrize("size", [64, 65, 200])
def test_tombstone_removes_its_key_alone(log, size):
    gone, stays = b"g" * size, b"g" * (size - 1) + b"s"
    put(log, (gone, b"1"))
    put(log, (stays, b"1"))
    put(log, (gone, None))
    seal(log)
    for now_ms in (NOW_MS, NOW_MS + 1001):
        for _ in log.clean(now_ms):
            pass
        seal(log)
    assert [record for record in kept(log) if record[1] != b"active"] == [(1, stays, b"1")]


def test_map_holds_a_digest_in_the_place_of_a_long_key(log):
    for key in KEYS:
        put(log, (key, b"value"))
    seal(log)
    plan = Plan(NOW_MS, log.end_offset - 1)
    for _ in plan_keys(plan, log.segments, 0, 1000, 1 << 30):
        pass
    assert len(plan.last_by_key) == len(KEYS)
    assert {key for key in plan.last_by_key if key in KEYS} == {key for key in KEYS if len(key) <= 64}
    assert {len(key) for key in plan.last_by_key if key not in KEYS} == {16}
