"""What is loaded at start before a client asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request, committed
from stepped_kit import let_load_at_once
from txn_kit import Producer

from broker.coordinator.runtime import READY, Shard
from protocol.errors import ErrorCode
from protocol.messages.transaction_admin import ListTransactionsRequest
from storage.files.errors import StorageError

GROUPS = [f"g{n}" for n in range(9)]


@pytest.fixture
def world() -> World:
    """A broker with a log for each of some shards, and none for the others."""
    world = World(offsets_topic_num_partitions="20")
    client = Client(world)
    make_topic(client, "t", 1)
    for n, group in enumerate(GROUPS):
        client.call(commit_request(group, {0: n}), 8)
    return world


def owners(world: World) -> set[int]:
    """The shards that hold something."""
    return {world.broker.groups.index_of(group) for group in GROUPS}


def list_transactions(client: Client, state: str) -> list[str]:
    request = ListTransactionsRequest(state_filters=[state], producer_id_filters=[])
    return [each.transactional_id for each in client.call(request, 0).transaction_states]


def ready(world: World) -> set[int]:
    return {index for index, shard in enumerate(world.broker.groups.shards) if shard.state is READY}


def test_shards_with_a_log_are_loaded_and_no_others(world):
    again = world.crash()
    assert 1 < len(owners(again)) < 20
    assert ready(again) == owners(again)


def test_shard_that_cannot_be_loaded_is_logged_and_the_others_are_loaded(world, monkeypatch, caplog):
    first, *_ = names = [f"__consumer_offsets-{index}" for index in sorted(owners(world))]
    load, asked = Shard.load, []

    def failing(shard: Shard) -> Iterator[None]:
        asked.append(shard.name)
        if shard.name == first:
            raise StorageError("the disk has gone")
        return load(shard)

    monkeypatch.setattr(Shard, "load", failing)
    again = world.crash()
    assert asked == names
    assert f"cannot load {first}: the disk has gone" in caplog.text
    assert [committed(again, group) for group in GROUPS] == [{0: n} for n in range(9)]


def damaged(monkeypatch: pytest.MonkeyPatch) -> World:
    """A broker that starts anew over a log that counts as large, and cannot be replayed; and over other logs."""
    let_load_at_once(monkeypatch, 0)
    world = World(offsets_topic_num_partitions="2")
    client = Client(world)
    make_topic(client, "t", 1)
    for n, group in enumerate(GROUPS):
        client.call(commit_request(group, {0: n}), 8)
    producer = Producer(client)
    producer.init(timeout_ms=5000)
    assert not producer.produce(b"open")
    world.run()
    world.broker.close()
    files = world.files.crash()
    path = "/data/__consumer_offsets-0/00000000000000000000.log"
    data = bytearray(files.read_file(path))
    data[100] ^= 1
    files.write_file_atomic(path, bytes(data))
    with monkeypatch.context() as patch:
        patch.setattr(World, "run", lambda self: None)
        again = world.again(files)
    for _ in range(1000):
        while again.turn():
            pass
        if not again.broker.turn.jobs.step():
            return again
    raise AssertionError("its jobs have no end")


def test_start_over_a_log_that_cannot_be_replayed_says_so_and_loads_all_others(monkeypatch, caplog):
    again = damaged(monkeypatch)
    assert ready(again) == {1}
    assert "cannot load __consumer_offsets-0: the batch at offset 0 has a wrong CRC" in caplog.text
    assert list_transactions(Client(again), "Ongoing") == ["tx"]
    again.advance(10_000)
    assert list_transactions(Client(again), "Ongoing") == []  # it has timed out


def test_group_whose_log_cannot_be_replayed_is_told_so_and_the_log_is_tried_again(monkeypatch):
    again = damaged(monkeypatch)
    index = again.broker.groups.index_of
    group = next(each for each in GROUPS if index(each) == 0)
    client = Client(again)
    codes = [client.call(commit_request(group, {0: 1}), 8).topics[0].partitions[0].error_code for _ in range(4)]
    assert codes == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR] * 2
