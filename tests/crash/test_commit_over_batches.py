"""A commit that is too large for one batch is all there or not there at all, wherever the process ends."""

from __future__ import annotations

import errno

import pytest
from budget import slow
from core_broker import Client, SimulatedCrash, World, make_topic
from core_requests import commit_request, committed

from protocol.errors import ErrorCode
from protocol.record_batch import iter_records
from storage.files.sim_env import sim_env
from storage.log.log import Log
from storage.segments.spans import SPAN_HEADERS

SETTINGS = {"offsets_topic_num_partitions": "1", "message_max_bytes": "400"}
MANY = 12
OLD = dict.fromkeys(range(4), 1)
NEW = {n: 100 + n for n in range(MANY)}


def world_with_commit(flush: str = "os", **settings: str) -> World:
    world = World(flush, **{**SETTINGS, **settings})
    client = Client(world)
    make_topic(client, "t", MANY)
    assert_accepted(client.call(commit_request("g", OLD), 8))
    return world


def assert_accepted(response) -> None:
    assert {p.error_code for topic in response.topics for p in topic.partitions} == {0}


def log_of(world: World) -> Log:
    return world.broker.groups.shards[0].log


def records(log: Log) -> list:
    return [r for _, batch in log.batches(0) for r in iter_records(batch)]


def spans(log: Log) -> int:
    return sum(bool(SPAN_HEADERS & {name for name, _ in r.headers}) for r in records(log))


def test_commit_too_large_for_a_batch_spans_several_and_survives():
    world = world_with_commit()
    assert_accepted(Client(world).call(commit_request("g", NEW), 8))
    assert spans(log_of(world)) == MANY
    assert sum(1 for _ in log_of(world).batches(4)) > 2
    assert committed(world, "g") == NEW
    again = world.crash()
    assert committed(again, "g") == NEW
    assert records(log_of(again)) == records(log_of(world))


def test_commit_that_comes_again_on_its_connection_spans_several_batches_again():
    world = world_with_commit()
    client = Client(world)
    for n in range(3):
        assert_accepted(client.call(commit_request("g", {**NEW, 0: n}), 8))
    assert spans(log_of(world)) == 3 * MANY
    assert max(header.size for header, _ in log_of(world).batches(0)) <= 400
    assert committed(world.crash(), "g") == {**NEW, 0: 2}


# At os, a power cut may take what was acknowledged: only kills are tried there.
@pytest.mark.parametrize(("lose_unsynced", "flush"), [(False, "os"), (False, "fsync"), (True, "fsync")])
def test_killed_at_every_batch_of_a_commit_leaves_all_or_nothing(flush, lose_unsynced):
    whole = world_with_commit(flush)
    assert_accepted(Client(whole).call(commit_request("g", NEW), 8))
    sizes = [header.size for header, _ in log_of(whole).batches(4)]
    cuts = {0, sum(sizes) - 1, sum(sizes), *(sum(sizes[:n]) + more for n in range(len(sizes)) for more in (0, 1, 61))}
    repaired = 0
    for short_bytes in sorted(cuts):
        world = world_with_commit(flush)
        world.files.kill_at(1, short_bytes=short_bytes, kinds=("write",))
        client = Client(world)
        with pytest.raises(SimulatedCrash):
            client.call(commit_request("g", NEW), 8)
        again = world.crash(lose_unsynced=lose_unsynced)
        found = committed(again, "g")
        assert found in (OLD, NEW)
        if not lose_unsynced:
            assert (found == NEW) == (short_bytes == sum(sizes))
            repaired += log_of(again).end_offset > 4 and found == OLD
        assert_cleaner_keeps(again, found)
    assert repaired > 3 or lose_unsynced


@pytest.mark.parametrize("flush", ["os", "fsync"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
def test_disk_that_fails_at_any_batch_of_a_commit_leaves_nothing_of_it(flush, error):
    whole = world_with_commit(flush)
    assert_accepted(Client(whole).call(commit_request("g", NEW), 8))
    sizes = [header.size for header, _ in log_of(whole).batches(4)]
    ends = [sum(sizes[:n]) for n in range(len(sizes))]
    faults = [("write", end + more) for end in ends for more in (0, 1, 61)]
    for kind, short_bytes in faults + [("sync", 0)] * (flush == "fsync"):
        world = world_with_commit(flush)
        world.files.inject(1, kinds=(kind,), error=error, short_bytes=short_bytes)
        client = Client(world)
        answer = client.call(commit_request("g", NEW), 8)
        assert {p.error_code for topic in answer.topics for p in topic.partitions} == {ErrorCode.NOT_COORDINATOR}
        assert committed(world, "g") == OLD
        assert log_of(world).end_offset == len(OLD)
        assert committed(world.crash(lose_unsynced=flush == "fsync"), "g") == OLD
        assert_accepted(client.call(commit_request("g", NEW), 8))
        assert committed(world.crash(lose_unsynced=flush == "fsync"), "g") == NEW


@pytest.mark.parametrize(("partitions", "metadata"), [slow(10_000, "m" * 120), (400, "m" * 4096)])
def test_commit_larger_than_a_batch_may_be_is_whole_with_the_default_settings(partitions, metadata):
    world = World("os", offsets_topic_num_partitions="1")
    client = Client(world)
    make_topic(client, "t", partitions)
    rows = {n: n for n in range(partitions)}
    assert_accepted(client.call(commit_request("g", dict.fromkeys(rows, 7), "t", metadata), 8))
    at = log_of(world).end_offset
    assert_accepted(client.call(commit_request("g", rows, "t", metadata), 8))
    sizes = [header.size for header, _ in log_of(world).batches(at)]
    assert len(sizes) > 1
    assert max(sizes) <= 1048588  # message.max.bytes
    assert committed(world.crash(), "g") == rows
    cut = world.files.crash()
    path = log_of(world).segments[-1].file.path
    cut.write_file_atomic(path, cut.read_file(path)[:-1])
    assert committed(world.again(cut), "g") == dict.fromkeys(rows, 7)


def test_repair_that_is_cut_short_is_done_again():
    world = world_with_commit()
    log_size = log_of(world).size_bytes
    client = Client(world)
    world.files.kill_at(1, short_bytes=700, kinds=("write",))
    with pytest.raises(SimulatedCrash):
        client.call(commit_request("g", NEW), 8)
    files = world.files.crash()
    for short_bytes in (0, 1, 100, 300, 400, 500, 10_000):
        attempt = files.crash()
        attempt.kill_at(1, short_bytes=short_bytes, kinds=("write",))
        with pytest.raises(SimulatedCrash):
            world.again(attempt)
        again = world.again(attempt.crash())
        assert committed(again, "g") == OLD
        end_offset = log_of(again).end_offset
        assert log_of(again).size_bytes > log_size
        for _ in range(2):
            again = again.crash()
            assert committed(again, "g") == OLD
            assert log_of(again).end_offset == end_offset, "a repair was repeated"
        assert_cleaner_keeps(again, OLD)


def assert_cleaner_keeps(world: World, expected: dict[int, int]) -> None:
    """The cleaner at once, and a restart: nothing changes."""
    log = log_of(world)
    log.flush()
    log.roll()
    assert_accepted(Client(world).call(commit_request("other", {0: 5}), 8))
    assert world.broker.groups.shards[0].may_be_cleaned
    for _ in log.clean(world.clock.now_ms(), commits=True):
        pass
    again = world.crash()
    assert committed(again, "g") == expected
    assert committed(again, "other") == {0: 5}


def cleanable_world() -> World:
    """One commit A, B, C over three batches; B is set anew; then a new segment."""
    world = World("os", env=sim_env(), **{**SETTINGS, "message_max_bytes": "360"})
    client = Client(world)
    make_topic(client, "t", 6)
    assert_accepted(client.call(commit_request("g", {n: 10 + n for n in range(6)}), 8))
    log = log_of(world)
    assert sum(1 for _ in log.batches(0)) == 3
    for batch in (2, 3):
        assert_accepted(client.call(commit_request("g", {batch: 99}), 8))
    log.roll()
    assert_accepted(client.call(commit_request("other", {0: 5}), 8))
    return world


EXPECTED = {0: 10, 1: 11, 2: 99, 3: 99, 4: 14, 5: 15}


def clean(world: World) -> None:
    for _ in log_of(world).clean(world.clock.now_ms(), commits=True):
        pass


def test_commit_that_the_cleaner_thinned_is_still_whole():
    world = cleanable_world()
    clean(world)
    assert spans(log_of(world)) == 0
    assert len(records(log_of(world))) == 7
    assert committed(world.crash(), "g") == EXPECTED


def test_cleaner_killed_at_every_change_of_the_disk_loses_nothing():
    world = cleanable_world()
    before = world.files.operations
    clean(world)
    changes = world.files.operations - before
    assert changes > 5
    for nth in range(1, changes + 1):
        world = cleanable_world()
        world.files.kill_at(nth)
        with pytest.raises(SimulatedCrash):
            clean(world)
        assert committed(world.crash(), "g") == EXPECTED
        assert committed(world.crash(lose_unsynced=False), "other") == {0: 5}


@pytest.mark.parametrize("sizes", [(4,), (4, 4), (6,)])
def test_run_of_the_wrong_length_is_not_applied(sizes):
    """Five records that say they are one commit of four or six, or of two commits at once."""
    from protocol.record_batch import build_batch
    from storage.segments.spans import span_headers

    world = world_with_commit()
    whole = Client(world).call(commit_request("g", {4: 7}), 8)
    assert_accepted(whole)
    shard = world.broker.groups.shards[0]
    template = records(shard.log)[-1]
    log = shard.log
    for n in range(5):
        key = template.key[:-4] + (n + 5).to_bytes(4, "big")
        headers = span_headers(1000 + n // 3 * (len(sizes) - 1), sizes[0])
        base = log.end_offset
        batch = build_batch([(key, template.value, headers)], base_offset=base, timestamp_ms=1)
        log.append((batch,), base_offset=base, last_offset=base, max_timestamp_ms=1, size=len(batch))
    log.flush()
    again = world.crash()
    assert committed(again, "g") == {**OLD, 4: 7}
    tombstones = [r for r in records(log_of(again)) if r.value is None]
    assert len(tombstones) == 5
