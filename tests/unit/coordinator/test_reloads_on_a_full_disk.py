"""A load after a failed write may have to write something; a disk that stays full must not make it do so for ever."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, SimulatedCrash, World, make_topic
from core_requests import alter_request, commit_request, committed, produce_request
from trio_kit import Trio

from broker.cluster.metadata import BROKER, TOPIC
from broker.coordinator import runtime
from broker.coordinator.runtime import READY, UNLOADED, Shard
from protocol.errors import ErrorCode
from protocol.messages.cluster import FeatureUpdateKey, MetadataRequest, UpdateFeaturesRequest
from protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from storage.files.errors import StorageError
from storage.files.sim_env import sim_env
from storage.log.log import Log

PARTITIONS = range(100)


@pytest.fixture(autouse=True)
def reloads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The shards that were loaded anew after a failed write. A test in which there is no end of them fails."""
    seen: list[str] = []
    reload = Shard.reload

    def counted(shard: Shard) -> None:
        seen.append(shard.name)
        if len(seen) > 50:
            pytest.fail("there is no end of loads")
        reload(shard)

    monkeypatch.setattr(Shard, "reload", counted)
    return seen


def create(client: Client, name: str) -> int:
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return int(client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1), 7).topics[0].error_code)


@pytest.mark.parametrize("forever", [False, True], ids=["one write fails", "the disk is full"])
def test_metadata_that_is_loaded_anew_keeps_the_replicas_of_a_stopped_broker(forever):
    trio = Trio([1, 2])
    trio.change("stop 2")
    before = trio.info.replicas, trio.info.isr
    trio.world.files.inject(1, forever=forever)
    assert create(Client(trio.world, 0), "late")
    trio.world.files.heal()
    assert (trio.info.replicas, trio.info.isr) == before == ([1, 2], [1])
    trio.change("start 2")
    assert (trio.info.replicas, trio.info.isr) == ([1, 2], [1, 2])
    assert create(Client(trio.world, 0), "late") == 0


def test_feature_level_that_was_changed_is_not_changed_back():
    world = World("os", feature_transaction_version="2")
    client = Client(world)
    update = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=3)
    assert client.call(UpdateFeaturesRequest(feature_updates=[update]), 1).error_code == 0
    world.files.inject(1)
    assert create(client, "late")
    assert world.broker.metadata.feature_levels["transaction.version"] == 1


def test_number_of_metadata_that_was_lost_does_not_come_again():
    """Caches compare it: two different states must not have the same."""
    world = World("os")
    client = Client(world)
    before = world.broker.metadata.version
    world.files.inject(1)
    client.send(CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=1, replication_factor=1)]), 7)
    lost = world.broker.metadata.version
    world.run()
    assert before < lost < world.broker.metadata.version


def test_lone_replica_leaves_a_broker_whose_stop_could_not_be_written(reloads):
    """On a disk that stays full the move is made in memory, and written once there is room."""
    trio = Trio([2])
    trio.world.files.inject(1, forever=True)
    written: list[bool] = []
    trio.nodes.stop(trio.nodes.find(2), written.append)
    trio.world.run()
    assert written == [False]
    assert trio.info.leader != 2
    assert len(reloads) < 3
    trio.world.advance(3500)
    assert 3 < len(reloads) < 8
    trio.world.files.heal()
    trio.nodes.start(trio.nodes.find(1), written.append)  # it is up: there is nothing to write but the move
    trio.world.run()
    assert written == [False, True]
    assert trio.info.leader != 2
    assert not trio.world.broker.metadata_shard.log.dirty


def test_first_records_of_the_metadata_that_could_not_be_synced_are_made_again():
    """They are written before the broker serves anybody, and synced while it does."""
    made_again = 0
    for nth in range(1, 12):
        env = sim_env()
        env.files.inject(nth, kinds=("sync",))
        try:
            world = World("fsync", env)
        except OSError:
            continue  # it could not begin
        made_again += world.broker.turn.durability.failures
        assert world.broker.metadata.feature_levels["metadata.version"]
        assert "__consumer_offsets" in world.broker.metadata.topics
    assert made_again


def test_start_that_cannot_write_what_it_must_says_so():
    world = World("os", brokers=2)
    make_topic(Client(world), "t", 4)
    files = world.files.crash()
    files.inject(1, forever=True)
    world.brokers = 1
    with pytest.raises(StorageError, match="is there room on the disk"):
        world.again(files)


@pytest.fixture
def torn() -> World:
    """A broker that died within a commit over several batches."""
    world = World("os", offsets_topic_num_partitions="1", message_max_bytes="3000")
    client = Client(world)
    make_topic(client, "t", len(PARTITIONS))
    client.call(commit_request("g", dict.fromkeys(PARTITIONS, 1)), 8)
    world.files.kill_at(1, short_bytes=3500, kinds=("write",))
    with pytest.raises(SimulatedCrash):
        client.call(commit_request("g", dict.fromkeys(PARTITIONS, 2)), 8)
    return world


def test_repairs_that_find_the_disk_full_are_written_once_there_is_room(torn, reloads):
    files = torn.files.crash()
    files.inject(1, forever=True)
    again = torn.again(files)
    assert committed(again, "g") == dict.fromkeys(PARTITIONS, 1)
    log = again.broker.groups.shards[0].log
    assert log.dirty
    assert len(reloads) == 1
    again.files.heal()
    again.advance(runtime.DEFER_MS)
    assert not log.dirty
    assert committed(again, "g") == dict.fromkeys(PARTITIONS, 1)
    assert again.broker.groups.shards[0].may_be_cleaned


def test_commit_on_a_full_disk_behind_repairs_is_refused_and_changes_nothing(torn, reloads):
    files = torn.files.crash()
    files.inject(1, forever=True)
    again = torn.again(files)
    client = Client(again)
    assert client.call(commit_request("g", {0: 7}), 8).topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
    assert committed(again, "g") == dict.fromkeys(PARTITIONS, 1)
    again.files.heal()
    client.call(commit_request("g", {0: 7}), 8)  # it writes the repairs too
    assert committed(again.crash(), "g") == {**dict.fromkeys(PARTITIONS, 1), 0: 7}
    assert len(reloads) == 2


@pytest.mark.parametrize(
    ("kind", "name", "key"), [(TOPIC, "t", "retention.ms"), (BROKER, "", "log.retention.ms")], ids=["topic", "cluster"]
)
def test_retention_that_could_not_be_written_deletes_nothing(kind, name, key):
    world = World("os")
    client = Client(world)
    make_topic(client)
    client.call(produce_request("t", 0, b"x"), 9)
    world.files.inject(1)
    assert client.call(alter_request(kind, name, {key: "1"}), 1).responses[0].error_code
    world.advance(world.broker.config.log_retention_check_interval_ms)
    partition = world.broker.partitions.get(world.broker.metadata.topics["t"], 0)
    assert (partition.log.log_start_offset, partition.log.end_offset) == (0, 1)


@pytest.mark.parametrize(("key", "kind"), [("producer_byte_rate", "user"), ("connection_creation_rate", "ip")])
def test_quota_whose_removal_could_not_be_written_is_obeyed(key, kind):
    def alter(value: float, *, remove: bool = False) -> int:
        entry = AlterClientQuotasRequestEntryData(
            entity=[EntityData(entity_type=kind, entity_name=None)], ops=[OpData(key=key, value=value, remove=remove)]
        )
        answer = client.call(AlterClientQuotasRequest(entries=[entry], validate_only=False))
        return int(answer.entries[0].error_code)

    world = World("os")
    client = Client(world)
    make_topic(client)
    assert not alter(1)
    world.files.inject(1)
    assert alter(0, remove=True)
    if kind == "user":
        assert client.call(produce_request("t", 0, b"x" * 1000), 9).throttle_time_ms
    else:
        late = [Client(world) for _ in range(20)]
        world.advance(30_000)
        assert any(each.closed for each in late)


def unreadable(self: Log, from_offset: int) -> Any:
    """In place of Log.batches."""
    raise OSError(5, "Input/output error")


def topics(world: World) -> list[str]:
    return sorted(
        topic.name for topic in Client(world).call(MetadataRequest(topics=None), 9).topics if not topic.is_internal
    )


def test_metadata_whose_log_could_not_be_read_is_loaded_later_and_shows_nothing_that_was_lost(monkeypatch):
    """No request asks for a load of the metadata: it has to be tried again without one."""
    world = World("os")
    client = Client(world)
    make_topic(client, "kept")
    shard = world.broker.metadata_shard
    told: list[bool] = []
    shard.when_reloaded.append(lambda: told.append("lost" in shard.machine.topics))
    with monkeypatch.context() as patch:
        patch.setattr(Log, "batches", unreadable)
        world.files.inject(1)
        assert create(client, "lost") != 0
        assert create(client, "next") != 0, "it would follow what was lost"
        world.advance(5000)
        assert (shard.state, told) == (UNLOADED, [])
    world.advance(1000)
    assert (shard.state, told) == (READY, [False])
    assert topics(world) == ["kept"]
    assert create(client, "next") == 0
    world.advance(5000)
    assert told == [False]
    assert topics(world.crash()) == ["kept", "next"]


def test_log_that_is_deleted_while_it_cannot_be_read_is_let_alone(monkeypatch, caplog):
    world = World("os")
    shard = world.broker.metadata_shard
    monkeypatch.setattr(Log, "batches", unreadable)
    shard.reload()
    assert "cannot reload" in caplog.text
    world.broker.turn.durability.forget(shard.flush_state)
    caplog.clear()
    world.advance(5000)
    assert "cannot reload" not in caplog.text
