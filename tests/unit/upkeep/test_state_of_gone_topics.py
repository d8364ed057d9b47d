"""What a topic leaves behind belongs to no other one: of the same name, or of a name that could not be written."""

from __future__ import annotations

import errno
import gc

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request, produce_request
from txn_kit import Producer, fetched, state_of, visible

from broker.coordinator.runtime import UNLOADED
from broker.partitions import partition
from broker.partitions.partition import Partition
from protocol.errors import ErrorCode
from protocol.messages.cluster import ApiVersionsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.topics import (
    DeleteTopicsRequest,
)
from protocol.messages.transaction_admin import DescribeTransactionsRequest
from protocol.messages.transactions import InitProducerIdRequest


@pytest.mark.parametrize("steps", range(1, 7))
def test_upkeep_of_a_deleted_topic_writes_nothing_beside_the_log_of_one_made_anew(steps, monkeypatch):
    """The topic is deleted, made anew and written to between two steps of the upkeep that saves its producers."""
    monkeypatch.setattr(partition, "SNAPSHOT_EVERY_BYTES", 300)
    monkeypatch.setattr(partition, "SNAPSHOT_BYTES_A_PRODUCER", 1)
    world = World("os", log_retention_check_interval_ms="1000", transaction_state_log_num_partitions="1")
    client = Client(world)
    make_topic(client, "t")
    producer = Producer(client, v2=False)
    producer.init()

    def transact(*values: bytes, commit: bool) -> None:
        assert set(producer.add({"t": [0]}).values()) == {0}
        assert producer.produce(*values) == 0
        assert producer.end(commit=commit) == 0

    for _ in range(3):
        transact(b"old", b"old", b"old", b"old", commit=False)
    with monkeypatch.context() as patch:
        patch.setattr(World, "run", lambda self: [None for _ in iter(self.turn, False)])  # no jobs
        world.clock.advance(1000)
        world.broker.turn.ring()
        world.run()
        for _ in range(steps):
            world.broker.turn.begin()
            world.broker.turn.jobs.step()
            world.run()
        client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        make_topic(client, "t")
        producer.sequences.clear()
        transact(b"new", b"new", b"new", b"new", commit=True)
    world.run()
    assert not [name for name in world.files.listdir("/data/t-0") if "snap" in name or "txn" in name or "momus" in name]
    for _ in range(3):
        transact(b"new", b"new", b"new", b"new", commit=True)
    assert len(visible(client)) == 16
    again = world.crash()
    assert len(visible(Client(again))) == 16


@pytest.mark.parametrize("how", ["crash", "restart"])
@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_transactional_ids_outlive_a_start_though_their_topic_could_not_be_written_at_first(how, flush):
    world = World(flush)
    client = Client(world)
    make_topic(client, "t")
    first = Producer(client)
    world.files.inject(1, kinds=("write",) if flush == "os" else ("sync",), error=errno.ENOSPC)
    assert first.init()
    world.files.heal()
    while first.init():
        pass
    assert first.produce(b"x") == 0
    assert first.end() == 0
    assert first.produce(b"y") == 0  # in a transaction that stays open
    world.run()
    again = getattr(world, how)()
    client = first.client = Client(again)
    second = Producer(client)
    while second.init():
        pass
    assert (second.id, second.epoch > first.epoch) == (first.id, True)
    assert first.end() == ErrorCode.PRODUCER_FENCED
    again.run()
    assert fetched(client).last_stable_offset == fetched(client).high_watermark
    assert state_of(client).transaction_state in ("Empty", "CompleteAbort")


def test_shards_that_are_read_before_their_topic_is_durable_are_made_anew_with_it():
    """Another client's question opens a log with the id of the topic, before the sync that makes the topic fails."""
    world = World("fsync", transaction_state_log_num_partitions="1")
    client, other = Client(world), Client(world)
    make_topic(client, "t")
    producer = Producer(client)
    world.auto_sync = False
    client.send(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000), 5)
    while world.turn():
        pass
    other.send(DescribeTransactionsRequest(transactional_ids=["tx"]), 0)
    while world.turn():
        pass
    assert ("__transaction_state", 0) in world.broker.directory.logs
    world.sync(fail=True)
    world.auto_sync = True
    world.run()
    assert ("__transaction_state", 0) not in world.broker.directory.logs
    while producer.init():
        pass
    assert Producer(Client(world.crash())).init() == 0
    again = world.crash()
    second = Producer(Client(again))
    assert (second.init(), second.id, second.epoch) == (0, producer.id, producer.epoch + 1)


def test_records_of_a_topic_that_could_not_be_written_go_with_it(caplog):
    """Both are appended in one turn, and the record that makes the topic is written first."""
    world = World("os", transaction_state_log_num_partitions="1")
    coordinator = world.broker.transactions
    world.broker.turn.begin()
    coordinator.ensure_topic(world.env.rng)
    shard = coordinator.shard("tx")
    shard.append([(b"\0\0\0\x02tx", None)])
    world.files.inject(1, error=errno.ENOSPC)
    world.run()
    assert coordinator.shards == []
    assert shard.state is UNLOADED
    assert shard.log.broken
    assert not world.broker.directory.exists("__transaction_state", 0)
    assert "__transaction_state-0" not in caplog.text
    assert Producer(Client(world)).init() == 0


def test_state_of_share_groups_outlives_a_start_though_its_topic_could_not_be_written_at_first():
    world = World("os")
    coordinator = world.broker.share.coordinator
    world.files.inject(1, error=errno.ENOSPC)
    for made in (False, True):
        world.broker.turn.begin()
        coordinator.ensure_topic()
        world.run()
        world.files.heal()
        assert ("__share_group_state" in world.broker.metadata.topics, bool(coordinator.shards)) == (made, made)


def partitions_of(world: World) -> list[Partition]:
    """Those of a broker's topic `t`, of all that there were, that nothing but the garbage collector would free."""
    made = [each for each in gc.get_objects() if type(each) is Partition and each.topic.name == "t"]
    return [each for each in made if each.log.env is world.env]


@pytest.mark.parametrize("shortcuts", [True, False])
def test_deleted_topics_leave_nothing_in_memory(shortcuts, request):
    """Their names come again and again, they are read in fetch sessions, and groups commit on them."""
    gc.collect()
    gc.disable()
    request.addfinalizer(gc.enable)
    world = World("os", shortcuts=shortcuts, offsets_topic_num_partitions="1")
    client, reader = Client(world), Client(world)
    make_topic(client, "stays")
    for _ in range(10):
        topic_id = make_topic(client, "t")
        client.call(produce_request("t", 0, b"v"), 9)
        for topic in ("stays", "t"):
            client.call(commit_request("g", {0: 1}, topic), 8)
        wanted = [FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])]
        opened = reader.call(FetchRequest(session_epoch=0, max_bytes=1000, topics=wanted), 17)
        for epoch in (1, 2, 3):
            again = FetchRequest(session_id=opened.session_id, session_epoch=epoch, max_bytes=1000)
            assert not reader.call(again, 17).error_code
        found = partitions_of(world)
        assert found, "it would find none if there were some"
        client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        del found
    reader.call(ApiVersionsRequest(), 0)  # the connection drops what it has learnt
    client.call(ApiVersionsRequest(), 0)
    assert partitions_of(world) == []
    table = world.broker.groups.shards[0].machine.offsets
    assert list(table._labels) == ["stays"]


def test_labels_of_deleted_topics_go_though_the_name_is_in_use_again():
    world = World("os", offsets_topic_num_partitions="1")
    client = Client(world)
    for _ in range(10):
        make_topic(client, "t")
        client.call(commit_request("g", {0: 1}), 8)
        client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        make_topic(client, "t")
        client.call(commit_request("g", {0: 1}), 8)
        with_label = world.broker.groups.shards[0].machine.offsets._labels["t"]
        assert len(with_label.family) <= 2  # one without an id, as commits begin
        client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
