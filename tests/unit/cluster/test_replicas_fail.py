"""Partitions with several replicas whose brokers stop: what is refused, waits, is lost and comes back."""

from __future__ import annotations

import pytest
from core_broker import FLUSHES, Client, World, make_topic
from core_requests import commit_request, committed, fetch_request, produce_request
from stepped_kit import let_load_at_once
from trio_kit import COMMITTED, Trio
from txn_kit import Producer

from broker.cluster.replicas import NOBODY, Sync, follow
from broker.cluster.virtual_nodes import VirtualNodes
from broker.coordinator.offsets import imaging
from protocol.errors import ErrorCode
from protocol.messages.cluster import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopicRequest,
    FindCoordinatorRequest,
    MetadataRequest,
)


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("flush", FLUSHES)
def test_below_min_insync_replicas_acks_all_is_refused_and_acks_1_is_not_readable(flush, shortcuts):
    trio = Trio([1, 2], flush, shortcuts=shortcuts, min_insync_replicas="2")
    assert trio.produce(b"before") == 0
    trio.change("stop 2")
    assert trio.produce(b"refused") == ErrorCode.NOT_ENOUGH_REPLICAS
    assert trio.produce(b"waits", acks=1) == 0
    for how in ({}, COMMITTED):
        assert trio.read(**how) == (1, [b"before"])
    trio.change("start 2")
    for how in ({}, COMMITTED):
        assert trio.read(**how) == (2, [b"before", b"waits"])
    assert trio.produce(b"after") == 0
    assert trio.read()[0] == 3


@pytest.mark.parametrize("how", [{}, COMMITTED], ids=["uncommitted", "committed"])
@pytest.mark.parametrize("shortcuts", [True, False])
def test_reader_at_the_end_waits_until_enough_replicas_are_in_sync(how, shortcuts):
    trio = Trio([1, 2], shortcuts=shortcuts, min_insync_replicas="2")
    trio.change("stop 2")
    reader = Client(trio.world)
    reader.send(fetch_request("t", 0, 0, max_wait_ms=30_000, **how), 12)
    trio.world.run()
    assert trio.produce(b"waits", acks=1) == 0
    assert reader.replies() == []
    trio.change("start 2")
    (answer,) = reader.replies()
    assert answer.responses[0].partitions[0].high_watermark == 1


@pytest.mark.parametrize("v2", [True, False])
def test_transaction_cannot_write_below_min_insync_replicas_and_goes_on_later(v2):
    trio = Trio([1, 2], min_insync_replicas="2")
    producer = Producer(trio.clients[1], v2=v2)
    assert producer.init() == 0
    if not v2:
        producer.add({"t": [0]})
    assert producer.produce(b"a") == 0
    assert producer.produce(b"b") == 0  # by the shortcut
    trio.change("stop 2")
    sequences = dict(producer.sequences)
    for _ in range(3):  # what shortcuts learn was dropped with the stop: at the second try they know it again
        assert producer.produce(b"c") == ErrorCode.NOT_ENOUGH_REPLICAS
        producer.sequences = dict(sequences)
    trio.change("start 2")
    assert producer.produce(b"c") == 0


def test_topic_with_one_replica_in_sync_of_as_many_as_it_needs_is_as_fast_and_free_as_before():
    trio = Trio([1, 2, 3], min_insync_replicas="1")
    trio.change("stop 2", "stop 3")
    assert trio.produce(b"a") == 0
    assert trio.read() == (1, [b"a"])


def test_partition_without_a_leader_is_told_and_its_data_comes_back_with_its_broker():
    trio = Trio([2, 3])
    assert trio.produce(b"a") == 0
    trio.change("stop 2", "stop 3")
    told = trio.clients[1].call(MetadataRequest(topics=None), 12)
    (partition,) = next(topic for topic in told.topics if topic.name == "t").partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, NOBODY)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([2, 3], [], [2, 3])
    refused = trio.clients[1].call(produce_request("t", 0, b"b"), 9).responses[0].partition_responses[0]
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    trio.change("start 2")
    assert trio.info.leader == NOBODY  # it has not been in sync to the end
    trio.change("start 3")
    assert trio.read() == (1, [b"a"])


@pytest.mark.parametrize("flush", FLUSHES)
def test_unclean_leader_has_lost_what_it_missed_and_an_idempotent_producer_goes_on(flush):
    trio = Trio([3, 2], flush, unclean_leader_election_enable="true")
    first = {"producer_id": 7, "producer_epoch": 0}
    assert trio.produce(b"both", **first, base_sequence=0) == 0
    trio.change("stop 3")
    assert trio.produce(b"lost", **first, base_sequence=1) == 0
    assert trio.read() == (2, [b"both", b"lost"])
    trio.change("stop 2", "start 3")
    assert (trio.info.leader, trio.info.isr, trio.info.elr) == (3, [3], [])
    assert trio.read() == (1, [b"both"])
    beyond = trio.leader.call(fetch_request("t", 0, 2), 12).responses[0].partitions[0]
    assert beyond.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert trio.produce(b"again", **first, base_sequence=1) == 0
    trio.change("start 2")
    assert trio.read() == (2, [b"both", b"again"])
    if flush == "os":
        again = trio.world.crash()
        assert again.broker.metadata.topics["t"].partitions[0].isr == [3, 2]
        answer = Client(again, 2).call(fetch_request("t", 0, 0), 12)
        assert answer.responses[0].partitions[0].high_watermark == 2


def test_records_that_were_not_committed_are_lost_with_a_clean_leader_too():
    trio = Trio([1, 2], min_insync_replicas="2")
    assert trio.produce(b"both") == 0
    trio.change("stop 2")
    assert trio.produce(b"mine", acks=1) == 0
    trio.change("stop 1", "start 2")
    assert (trio.info.leader, trio.info.elr) == (2, [1])
    trio.change("start 1")
    assert trio.read() == (1, [b"both"])


def test_start_of_the_process_brings_all_replicas_back():
    trio = Trio([2, 3])
    assert trio.produce(b"a") == 0
    trio.change("stop 2", "stop 3")
    again = trio.world.crash()
    info = again.broker.metadata.topics["t"].partitions[0]
    assert (info.leader, info.isr, info.elr, info.last_known_elr) == (2, [2, 3], [], [])


def test_last_broker_does_not_serve_what_it_does_not_lead():
    trio = Trio([2, 3])
    producer = Producer(trio.clients[1])
    assert producer.init() == 0
    trio.change("stop 2", "stop 3")
    for _ in range(3):
        assert producer.produce(b"a") == ErrorCode.NOT_LEADER_OR_FOLLOWER
    trio.change("start 3")
    assert trio.read() == (0, [])


def test_election_of_a_replica_that_is_not_in_sync_is_refused():
    trio = Trio([2, 3])
    trio.change("stop 2")
    for kind, code in ((0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE), (1, ErrorCode.ELECTION_NOT_NEEDED)):
        assert trio.elect(kind) == code


@pytest.mark.parametrize("flush", FLUSHES)
def test_unclean_leader_that_is_asked_for_has_lost_what_it_missed(flush):
    trio = Trio([2, 3], flush)
    assert trio.produce(b"both") == 0
    trio.change("stop 3")
    assert trio.produce(b"lost") == 0
    trio.change("stop 2")
    assert trio.elect(1) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    trio.change("start 3")
    assert trio.info.leader == NOBODY
    assert trio.elect(0) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert trio.elect(1) == 0
    trio.world.run()
    assert (trio.info.leader, trio.info.isr, trio.info.elr) == (3, [3], [])
    assert trio.read() == (1, [b"both"])
    assert trio.produce(b"again") == 0
    trio.change("start 2")
    assert trio.read() == (2, [b"both", b"again"])


def test_group_whose_coordinators_are_all_stopped_has_none():
    world = World("os", brokers=3, offsets_topic_replication_factor="2", offsets_topic_num_partitions="3")
    broker = world.broker
    nodes = VirtualNodes(broker.nodes, broker.metadata_shard, broker.turn, broker.partitions)
    for node_id in (2, 3):
        node = nodes.find(node_id)
        assert node is not None
        nodes.stop(node, lambda durable: None)
        world.run()
    codes = {
        broker.groups.coordinator_of(f"g{n}"): Client(world)
        .call(FindCoordinatorRequest(coordinator_keys=[f"g{n}"]), 4)
        .coordinators[0]
        .error_code
        for n in range(20)
    }
    assert codes == {1: ErrorCode.NONE, NOBODY: ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_coordinator_is_not_reloaded_when_only_its_in_sync_replicas_change(monkeypatch):
    world = World("os", brokers=3, offsets_topic_replication_factor="3", offsets_topic_num_partitions="1")
    broker = world.broker
    nodes = VirtualNodes(broker.nodes, broker.metadata_shard, broker.turn, broker.partitions)
    moved: list[int] = []
    monkeypatch.setattr(broker, "shard_moved", lambda topic, index: moved.append(index))
    for node_id, moves in ((3, []), (1, [0])):
        node = nodes.find(node_id)
        assert node is not None
        nodes.stop(node, lambda durable: None)
        world.run()
        assert moved == moves


def test_without_eligible_leaders_the_last_replica_in_sync_stays_so():
    now = Sync(2, [2], [], [])
    assert follow(now, [2, 3], [3], 2, keeps_eligible=False, unclean=False) == Sync(NOBODY, [2], [], [])
    assert follow(now, [2, 3], [3], 2, keeps_eligible=True, unclean=False) == Sync(NOBODY, [], [2], [2])


def told(world: World) -> tuple[list[int], list[int], list[int] | None, list[int] | None]:
    """What a client is told of the partition: replicas, those in sync, eligible ones, and those that were."""
    asked = [DescribeTopicPartitionsRequestTopicRequest(name="t")]
    answer = Client(world).call(DescribeTopicPartitionsRequest(topics=asked), 0).topics[0].partitions[0]
    return answer.replica_nodes, answer.isr_nodes, answer.eligible_leader_replicas, answer.last_known_elr


@pytest.mark.parametrize(
    ("replicas", "after", "expected"),
    [
        ([1, 2], [1, 3], ([1, 3], [1, 3], [], [])),
        ([1, 2], [1], ([1], [1], [], [])),
        ([1, 2, 3], [3, 1], ([3, 1], [1, 3], [], [])),
    ],
)
def test_replica_that_is_moved_away_is_eligible_no_more(replicas, after, expected):
    trio = Trio(replicas, min_insync_replicas="3" if len(replicas) > 2 else "2")
    trio.change("stop 2")
    assert trio.info.elr == [2]
    trio.reassign(after)
    found = told(trio.world)
    assert (found[0], sorted(found[1]), *found[2:]) == expected


def test_replica_that_lags_stays_eligible_where_others_are_moved_away():
    trio = Trio([1, 2, 3], min_insync_replicas="3")
    trio.change("lag 2")
    assert trio.produce(b"missed", acks=1) == 0
    trio.world.advance(60_000)
    assert told(trio.world) == ([1, 2, 3], [1, 3], [2], [])
    trio.reassign([1, 2])
    assert told(trio.world) == ([1, 2], [1], [2], [])


def test_broker_that_there_is_no_more_after_a_start_is_eligible_no_more():
    trio = Trio([1, 2, 3], min_insync_replicas="3")
    trio.change("stop 3")
    assert told(trio.world) == ([1, 2, 3], [1, 2], [3], [])
    trio.world.brokers = 2
    assert told(trio.world.crash()) == ([1, 2], [1, 2], [], [])


def test_replica_that_was_moved_away_while_stopped_and_back_has_all_that_was_committed_since():
    trio = Trio([1, 2], min_insync_replicas="2")
    assert trio.produce(b"first") == 0
    trio.change("stop 2")
    trio.reassign([1, 3])
    trio.change("start 2")
    trio.reassign([1, 2])
    assert trio.produce(b"committed") == 0
    trio.change("stop 2", "stop 1", "start 2", "start 1")
    assert trio.read() == (2, [b"first", b"committed"])


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_image_that_is_written_while_a_leader_is_elected_does_not_bring_back_what_was_lost(steps, monkeypatch):
    world = World(
        brokers=3,
        offsets_topic_num_partitions="1",
        offsets_topic_replication_factor="2",
        unclean_leader_election_enable="true",
        offsets_image_interval_ms="86400000",
    )
    broker = world.broker
    nodes = VirtualNodes(broker.nodes, broker.metadata_shard, broker.turn, broker.partitions)
    Client(world).call(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    make_topic(Client(world))
    leader, follower = broker.metadata.topics["__consumer_offsets"].partitions[0].replicas
    (other,) = {1, 2, 3} - {leader, follower}
    client = Client(world, other - 1)
    client.call(commit_request("g", {0: 1}), 8)
    nodes.lag(nodes.find(follower), lambda durable: None)
    world.advance(31_000)
    client.call(commit_request("g", {0: 2}), 8)

    def start(write):
        write()
        polls = iter([False, False])
        return lambda: next(polls, True)

    monkeypatch.setattr(type(world.files), "start", lambda files, write: start(write))
    image = imaging.take_image(broker.groups.shards[0])
    for _ in range(steps):
        next(image)
    nodes.stop(nodes.find(leader), lambda durable: None)
    world.run()
    assert committed(world, "g") == {0: 1}
    for _ in image:
        pass
    for offset in range(5):
        client.call(commit_request("h", {0: offset}), 8)
    let_load_at_once(monkeypatch, 0)
    assert committed(world.crash(), "g") == {0: 1}
