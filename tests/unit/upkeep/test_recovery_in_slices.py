"""After a crash logs are recovered in slices between requests; a request that comes first has the rest done at once."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from core_requests import TOPIC, alter_request, commit_request, committed, fetch_bytes, fetch_request, produce_request
from stepped_kit import let_load_at_once

from broker.coordinator.runtime import READY
from broker.upkeep import maintenance
from protocol.errors import ErrorCode
from protocol.messages.topics import DeleteTopicsRequest
from protocol.record_batch import iter_batches
from storage.files.env import Env
from storage.log.log import Log
from storage.segments import recovery, scan
from storage.segments.config import LogConfig

BATCHES = 20


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "SLICE", 3)
    monkeypatch.setattr(scan, "SLICE", 3)
    monkeypatch.setattr(maintenance, "WORTH_AN_INDEX_BYTES", 1)


def crashed(monkeypatch: pytest.MonkeyPatch, steps: int, **settings: str) -> World:
    """A broker that died and starts again: so many steps of its background work are done."""
    world = World("os", **settings)
    client = Client(world)
    make_topic(client)
    for n in range(BATCHES):
        client.call(produce_request("t", 0, b"value %d" % n), 9)
        client.call(commit_request("g", {0: n}), 8)
    with monkeypatch.context() as patch:
        patch.setattr(World, "run", lambda self: None)
        again = world.crash()
    for _ in range(steps):
        again.broker.turn.jobs.step()
    return again


@pytest.mark.parametrize("steps", range(0, 40, 2))
def test_request_in_the_middle_of_the_recovery_finds_everything(steps, monkeypatch):
    again = crashed(monkeypatch, steps)
    client = Client(again)
    produced = client.call(produce_request("t", 0, b"after"), 9).responses[0].partition_responses[0]
    assert (produced.error_code, produced.base_offset) == (0, BATCHES)
    assert committed(again, "g") == {0: BATCHES - 1}
    client.call(commit_request("g", {0: BATCHES}), 8)
    again.run()
    assert not again.broker.turn.jobs
    assert len(list(iter_batches(fetch_bytes(client.call(fetch_request("t", 0, 0), 11))))) == BATCHES + 1
    assert committed(again, "g") == {0: BATCHES}
    broker = again.broker
    assert broker.directory.logs["t", 0] is broker.partitions.get(broker.metadata.topics["t"], 0).log
    shard = broker.groups.of("g")
    assert broker.directory.logs["__consumer_offsets", broker.groups.index_of("g")] is shard.log
    again.check_replay()


def test_logs_are_recovered_without_a_request(monkeypatch):
    again = crashed(monkeypatch, 0)
    slices = 0
    while again.broker.turn.jobs:
        slices += again.broker.turn.jobs.step()
    assert ("t", 0) in again.broker.directory.logs
    assert slices > 2 * BATCHES // 3
    opened = again.broker.directory.logs["t", 0]
    Client(again).call(fetch_request("t", 0, 0), 11)
    assert again.broker.directory.logs["t", 0] is opened


@pytest.mark.parametrize("steps", range(0, 40, 3))
def test_topic_deleted_in_the_middle_of_the_recovery_is_gone(steps, monkeypatch):
    again = crashed(monkeypatch, steps)
    client = Client(again)
    assert client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5).responses[0].error_code == 0
    again.run()
    assert ("t", 0) not in again.broker.directory.logs
    make_topic(client)
    assert client.call(produce_request("t", 0, b"new"), 9).responses[0].partition_responses[0].base_offset == 0
    again.run()
    assert len(list(iter_batches(fetch_bytes(client.call(fetch_request("t", 0, 0), 11))))) == 1


@pytest.mark.parametrize("steps", [0, 12, 16, 18, 20, 24, 40])
def test_settings_changed_in_the_middle_of_the_recovery_are_obeyed(steps, monkeypatch):
    again = crashed(monkeypatch, steps)
    client = Client(again)
    client.call(alter_request(TOPIC, "t", {"segment.bytes": "2000000"}), 1)
    client.call(produce_request("t", 0, b"x"), 9)
    again.run()
    assert again.broker.directory.logs["t", 0].config.segment_bytes == 2_000_000


def test_log_that_cannot_be_recovered_fails_each_request_and_nothing_else(monkeypatch):
    original = Log.opening

    def damaged(env: Env, directory: str, config: LogConfig | None = None, **how):
        if directory.endswith("/t-0"):
            yield
            raise OSError(5, "Input/output error")
        return (yield from original(env, directory, config, **how))

    world = World("os")
    client = Client(world)
    for name in ("t", "u"):
        make_topic(client, name)
        client.call(produce_request(name, 0, b"x"), 9)
    monkeypatch.setattr(Log, "opening", damaged)
    again = world.crash()
    assert set(again.broker.directory.logs) >= {("u", 0)}
    client = Client(again)
    for _ in range(2):
        assert client.call(produce_request("t", 0, b"x"), 9).responses[0].partition_responses[0].error_code == 56
    assert client.call(commit_request("g", {0: 1}), 8).topics[0].partitions[0].error_code == 0
    monkeypatch.setattr(Log, "opening", original)
    assert client.call(produce_request("t", 0, b"x"), 9).responses[0].partition_responses[0].error_code == 0


# -- coordinators' logs that are large


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    let_load_at_once(monkeypatch, 0)


def commit_code(client: Client, offset: int) -> int:
    return client.call(commit_request("g", {0: offset}), 8).topics[0].partitions[0].error_code


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5, 7, 9, 12])
def test_client_of_a_large_log_is_told_to_come_again_until_it_is_recovered_in_slices(steps, all_large, monkeypatch):
    again = crashed(monkeypatch, steps)
    jobs, shard = again.broker.turn.jobs, again.broker.groups.of("g")
    client = Client(again)
    codes = []
    for n in range(100):
        client.send(commit_request("g", {0: 100 + n}), 8)
        again.turn()
        codes.append(client.replies()[-1].topics[0].partitions[0].error_code)
        if codes[-1] == 0:
            break
        assert jobs.is_hurried
        assert shard.state is not READY
        jobs.step()  # one slice between two requests
        assert jobs.is_hurried or shard.state is READY
    assert codes[:-1] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * (len(codes) - 1)
    assert codes[-1] == 0
    assert len(codes) + steps > BATCHES // 3, "more than a slice was done at once"
    again.run()
    assert committed(again, "g") == {0: 100 + n}
    again.check_replay()


def test_large_log_that_cannot_be_recovered_fails_the_next_request_and_is_opened_by_a_later_one(all_large, monkeypatch):
    original = Log.opening

    def damaged(env: Env, directory: str, config: LogConfig | None = None, **how):
        if "__consumer_offsets" in directory:
            yield
            raise OSError(5, "Input/output error")
        return (yield from original(env, directory, config, **how))

    again = crashed(monkeypatch, 0)
    monkeypatch.setattr(Log, "opening", damaged)
    client, codes = Client(again), []
    for n in range(3):
        client.send(commit_request("g", {0: n}), 8)
        again.turn()
        codes.append(client.replies()[-1].topics[0].partitions[0].error_code)
        again.run()
    assert codes[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert set(codes[1:]) == {ErrorCode.NOT_COORDINATOR}
    monkeypatch.setattr(Log, "opening", original)
    assert commit_code(client, 77) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    again.run()
    assert commit_code(client, 78) == 0
    assert committed(again, "g") == {0: 78}


def test_large_log_that_no_request_needs_is_recovered_in_slices(all_large, monkeypatch):
    again = crashed(monkeypatch, 0)
    shard, slices = again.broker.groups.of("g"), 0
    while shard.state is not READY:
        slices += again.broker.turn.jobs.step()
    assert slices > BATCHES // 3


def test_recovery_that_ends_after_the_log_was_loaded_by_others_does_not_load_it_again(all_large, monkeypatch):
    again = crashed(monkeypatch, 0)
    jobs, shard = again.broker.turn.jobs, again.broker.groups.of("g")
    client = Client(again)
    client.send(commit_request("g", {0: 100}), 8)
    again.turn()
    opening = shard._opening
    next(opening)
    jobs.drop(opening)  # the background's job overtakes it
    while shard.state is not READY:
        jobs.step()
    loads = shard._loads
    assert list(opening) == []
    assert (shard.state, shard._loads) == (READY, loads)
