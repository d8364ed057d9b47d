"""How a shard is loaded: at once or in slices, anew after a failure, and what clients are told meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request, committed
from shard_kit import Bench, Machine

from broker.coordinator.runtime import LOADING, READY, UNLOADED
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.classic_group import (
    HeartbeatRequest,
)
from protocol.messages.group_admin import DescribeGroupsRequest
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from storage.files.errors import StorageError
from storage.log.log import Log


def test_whoever_keeps_something_of_the_machine_is_told_of_a_reload(bench):
    told = []
    bench.shard.when_reloaded.append(lambda: told.append(bench.shard.state))
    bench.world.files.inject(1)
    bench.append(b"lost")
    bench.world.run()
    assert told == [READY]


def filled(**settings: Any) -> Bench:
    """A shard with 3 MB to replay, not loaded."""
    bench = Bench("os", ("load", 50), **settings)
    bench.shard.require()
    for n in range(60):
        bench.append(*[b"%d" % n + b"v" * 500] * 100)
        bench.world.run()
    assert bench.shard.log.size_bytes > 3_000_000
    bench.shard.machine = Machine([])
    bench.shard.state = UNLOADED
    return bench


def test_whoever_keeps_something_of_the_machine_is_told_of_a_reload_in_slices_when_it_is_done():
    bench = filled()
    with pytest.raises(KafkaError):
        bench.shard.require()
    bench.world.run()
    told = []
    bench.shard.when_reloaded.append(lambda: told.append(bench.shard.state))
    bench.world.files.inject(1)
    bench.append(b"lost")
    bench.world.turn()
    assert (bench.shard.state, told) == (LOADING, [])
    bench.world.run()
    assert told == [READY]


def test_large_log_is_replayed_in_slices_between_which_clients_are_told_to_come_again():
    bench = filled()
    shard = bench.shard
    with pytest.raises(KafkaError) as told:
        shard.require()
    assert told.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    slices = 0
    while shard.state is LOADING:
        slices += 1
        assert bench.world.broker.turn.jobs.step()
        if shard.state is LOADING:
            with pytest.raises(KafkaError):
                shard.require()
    assert slices > 2
    shard.require()
    assert len(shard.machine.values) == 6000
    bench.world.advance(50)
    assert bench.rung == ["load"]


def test_large_log_of_what_must_be_there_at_once_is_replayed_at_once():
    bench = filled(load_at_once_bytes=1 << 62)
    bench.shard.require()
    assert bench.shard.state is READY
    assert len(bench.shard.machine.values) == 6000


@pytest.mark.parametrize("taken", [0, 2])
def test_small_log_is_loaded_in_slices_until_a_request_needs_it(taken):
    bench = filled(load_at_once_bytes=1 << 62)
    shard, jobs = bench.shard, bench.world.broker.turn.jobs
    loading = shard.load()
    next(loading)
    for _ in range(taken):
        assert jobs.step()
    assert shard.state is LOADING
    shard.require()
    assert shard.state is READY
    assert len(shard.machine.values) == 6000
    assert not jobs
    assert list(loading) == []


def test_small_log_that_no_request_needs_is_loaded_in_slices():
    bench = filled(load_at_once_bytes=1 << 62)
    jobs, slices = bench.world.broker.turn.jobs, 0
    for _ in bench.shard.load():
        slices += jobs.step()
    assert slices > 2
    assert len(bench.shard.machine.values) == 6000


def test_load_that_was_overtaken_by_a_reload_changes_nothing():
    bench = filled()
    with pytest.raises(KafkaError):
        bench.shard.require()
    bench.world.broker.turn.jobs.step()
    bench.shard.reload()
    while bench.world.broker.turn.jobs:
        bench.world.broker.turn.jobs.step()
        if bench.shard.state is READY:
            assert len(bench.shard.machine.values) == 6000
            bench.append(b"new")
            break
    bench.world.run()
    assert len(bench.shard.machine.values) == 6001
    assert bench.shard.machine.values[-1] == b"new"


def test_load_that_fails_in_the_background_is_told_to_the_next_who_asks_and_tried_again_for_the_one_after(monkeypatch):
    bench = filled()
    original = Log.batches

    def broken(self: Log, from_offset: int) -> Any:
        for number, found in enumerate(original(self, from_offset)):
            if number == 30:
                raise OSError(5, "Input/output error")
            yield found

    monkeypatch.setattr(Log, "batches", broken)
    with pytest.raises(KafkaError):
        bench.shard.require()
    bench.world.run()
    assert bench.shard.state is UNLOADED
    monkeypatch.setattr(Log, "batches", original)
    with pytest.raises(StorageError, match="Input/output error"):
        bench.shard.require()
    with pytest.raises(KafkaError):
        bench.shard.require()
    bench.world.run()
    assert bench.shard.state is READY
    assert len(bench.shard.machine.values) == 6000


# -- from outside


def test_requests_to_a_group_whose_shard_is_being_loaded_are_told_so_and_served_later(monkeypatch):
    world = World("os")
    client = Client(world)
    make_topic(client, "t", 4)
    client.call(commit_request("g", dict.fromkeys(range(4), 7)), 8)
    again = world.crash()
    shard = again.broker.groups.of("g")
    shard.state = UNLOADED
    shard.load_at_once_bytes = 0
    client = Client(again)
    question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    for request, version in (
        (question, 8),
        (commit_request("g", {0: 9}), 8),
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4),
        (DescribeGroupsRequest(groups=["g"]), 5),
    ):
        client.send(request, version)
    again.turn()
    fetched, commit, beat, described = client.replies()
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert fetched.groups[0].error_code == loading
    assert commit.topics[0].partitions[0].error_code == loading
    assert beat.error_code in (loading, ErrorCode.NONE)  # a heartbeat is better answered than not
    assert described.groups[0].error_code == loading
    again.run()
    assert committed(again, "g") == dict.fromkeys(range(4), 7)
