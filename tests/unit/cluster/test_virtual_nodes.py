"""Virtual brokers that stop and start: who leads meanwhile, what clients are told, and what comes back."""

from __future__ import annotations

import pytest
from core_broker import FLUSHES, Client, World, make_topic
from core_requests import commit_request, committed, fetch_request, produce_request

from broker.cluster.virtual_nodes import VirtualNodes
from protocol.errors import ErrorCode
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.cluster import DescribeClusterRequest, FindCoordinatorRequest, MetadataRequest
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.reassign import AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic
from protocol.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest

OFFSETS = "__consumer_offsets"
SETTINGS = {"offsets_topic_num_partitions": "3"}


class Cluster:
    """Three virtual brokers with a client each."""

    def __init__(self, flush: str = "os", **settings: str) -> None:
        self.world = World(flush, brokers=3, **{**SETTINGS, **settings})
        self.nodes = VirtualNodes(
            self.world.broker.nodes,
            self.world.broker.metadata_shard,
            self.world.broker.turn,
            self.world.broker.partitions,
        )
        self.clients = {node.node_id: Client(self.world, i) for i, node in enumerate(self.nodes.all)}

    def change(self, what: str, node_id: int) -> list[bool]:
        written: list[bool] = []
        node = self.nodes.find(node_id)
        assert node is not None
        getattr(self.nodes, what)(node, written.append)
        self.world.run()
        return written

    def stop(self, node_id: int) -> None:
        assert self.change("stop", node_id) == [True]

    def start(self, node_id: int) -> None:
        assert self.change("start", node_id) == [True]

    def leader(self, name: str, index: int = 0) -> int:
        return self.world.broker.metadata.topics[name].partitions[index].leader

    def replicas(self, name: str, index: int = 0) -> list[int]:
        return self.world.broker.metadata.topics[name].partitions[index].replicas

    def isr(self, name: str, index: int = 0) -> list[int]:
        return self.world.broker.metadata.topics[name].partitions[index].isr

    def topic_on(self, name: str, replicas: list[int]) -> None:
        assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment])
        answer = self.clients[1].call(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
        assert answer.topics[0].error_code == 0

    def group_on(self, node_id: int) -> str:
        """A group that a node coordinates."""
        for number in range(100):
            if self.world.broker.groups.coordinator_of(f"g{number}") == node_id:
                return f"g{number}"
        raise AssertionError


@pytest.mark.parametrize("flush", FLUSHES)
def test_stopped_node_leads_nothing_and_clients_do_not_hear_of_it(flush):
    cluster = Cluster(flush)
    make_topic(cluster.clients[1], "t", 6)
    cluster.stop(2)
    partitions = [p for topic in cluster.world.broker.metadata.topics.values() for p in topic.partitions]
    assert all(p.leader != 2 and p.replicas == [p.leader] for p in partitions)
    told = cluster.clients[1].call(MetadataRequest(topics=None), 12)
    assert [node.node_id for node in told.brokers] == [1, 3]
    described = cluster.clients[3].call(DescribeClusterRequest(), 0)
    assert [node.broker_id for node in described.brokers] == [1, 3]


def test_first_node_that_stops_is_no_controller_any_more():
    cluster = Cluster()
    cluster.stop(1)
    assert cluster.clients[2].call(MetadataRequest(topics=None), 12).controller_id == 2


def test_node_that_starts_again_takes_back_what_it_led():
    cluster = Cluster()
    make_topic(cluster.clients[1], "t", 6)
    before = [(cluster.leader("t", i), cluster.replicas("t", i)) for i in range(6)]
    epochs = [p.leader_epoch for p in cluster.world.broker.metadata.topics["t"].partitions]
    for node_id in (2, 1):
        cluster.stop(node_id)
    assert {cluster.leader("t", i) for i in range(6)} == {3}
    for node_id in (2, 1):
        cluster.start(node_id)
    assert [(cluster.leader("t", i), cluster.replicas("t", i)) for i in range(6)] == before
    after = [p.leader_epoch for p in cluster.world.broker.metadata.topics["t"].partitions]
    assert [b > a for a, b in zip(epochs, after, strict=True)] == [leader != 3 for leader, _ in before]


def test_replica_that_is_up_leads_and_the_preferred_one_takes_back():
    cluster = Cluster()
    cluster.topic_on("t", [2, 1, 3])
    for what, node_id, leader, isr in (
        ("stop", 2, 1, [1, 3]),
        ("stop", 3, 1, [1]),
        ("start", 2, 2, [2, 1]),
        ("start", 3, 2, [2, 1, 3]),
    ):
        assert cluster.change(what, node_id) == [True]
        assert (cluster.leader("t"), cluster.isr("t"), cluster.replicas("t")) == (leader, isr, [2, 1, 3])


def test_partition_that_was_moved_meanwhile_stays_where_it_was_put():
    cluster = Cluster()
    cluster.topic_on("t", [2])
    cluster.stop(2)
    target = 4 - cluster.leader("t")
    partition = ReassignablePartition(partition_index=0, replicas=[target])
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=[partition])])
    assert cluster.clients[1].call(request, 1).responses[0].partitions[0].error_code == 0
    cluster.start(2)
    assert (cluster.leader("t"), cluster.replicas("t")) == (target, [target])


def test_topic_made_meanwhile_is_not_put_on_a_stopped_node():
    cluster = Cluster()
    cluster.stop(2)
    make_topic(cluster.clients[1], "t", 8)
    assert {cluster.leader("t", i) for i in range(8)} == {1, 3}
    cluster.start(2)
    assert {cluster.leader("t", i) for i in range(8)} == {1, 3}


@pytest.mark.parametrize("flush", FLUSHES)
def test_commits_and_records_survive_a_stop_and_a_start(flush):
    cluster = Cluster(flush, offsets_any_broker="false")
    cluster.topic_on("t", [2])
    group_id = cluster.group_on(2)
    two = cluster.clients[2]
    assert two.call(produce_request("t", 0, b"a"), 12).responses[0].partition_responses[0].error_code == 0
    two.send(commit_request(group_id, {0: 7}), 8)  # in the turn of the stop
    cluster.stop(2)
    assert two.replies()[0].topics[0].partitions[0].error_code == 0
    now_at = cluster.world.broker.groups.coordinator_of(group_id)
    other = cluster.clients[now_at]
    assert two.call(commit_request(group_id, {0: 8}), 8).topics[0].partitions[0].error_code == (
        ErrorCode.NOT_COORDINATOR
    )
    assert other.call(commit_request(group_id, {0: 9}), 8).topics[0].partitions[0].error_code == 0
    read = cluster.clients[cluster.leader("t")].call(fetch_request("t", 0, 0), 12).responses[0].partitions[0]
    assert (read.error_code, read.high_watermark) == (0, 1)
    cluster.start(2)
    assert cluster.world.broker.groups.coordinator_of(group_id) == 2
    refused = other.call(commit_request(group_id, {0: 10}), 8)
    assert refused.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
    cluster.world.broker.config.offsets_any_broker = True
    assert committed(cluster.world, group_id) == {0: 9}
    if flush != "memory":
        files = cluster.world.files.crash(lose_unsynced=flush == "fsync")
        assert committed(cluster.world.again(files, offsets_any_broker="true"), group_id) == {0: 9}


def test_members_who_wait_at_the_stopped_node_are_sent_to_its_successor():
    cluster = Cluster()
    group_id = cluster.group_on(2)
    two = cluster.clients[2]
    join = JoinGroupRequest(
        group_id=group_id,
        protocol_type="consumer",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    assert two.call(join, 3).error_code == 0
    two.send(join, 3)
    cluster.world.run()
    assert two.replies() == []
    cluster.stop(2)
    assert [reply.error_code for reply in two.replies()] == [ErrorCode.NOT_COORDINATOR]
    found = cluster.clients[1].call(FindCoordinatorRequest(coordinator_keys=[group_id]), 6).coordinators[0].node_id
    assert found == cluster.world.broker.groups.coordinator_of(group_id) != 2


def offset_fetch(group_id: str) -> OffsetFetchRequest:
    topic = OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=[topic])])


def test_large_shard_answers_that_it_is_loading_until_it_is(monkeypatch):
    cluster = Cluster()
    make_topic(cluster.clients[1], "t", 1)
    group_id = cluster.group_on(2)
    cluster.clients[1].call(commit_request(group_id, {0: 7}), 8)
    shard = cluster.world.broker.groups.of(group_id)
    monkeypatch.setattr(shard, "load_at_once_bytes", 0)
    node = cluster.nodes.find(2)
    client = cluster.clients[1]
    cluster.nodes.stop(node, lambda durable: client.send(offset_fetch(group_id), 9))
    cluster.world.run()
    assert [group.error_code for group in client.replies()[0].groups] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    answer = client.call(offset_fetch(group_id), 9).groups[0]
    assert answer.topics[0].partitions[0].committed_offset == 7


@pytest.mark.parametrize("kinds", [("write",), ("sync",)])
def test_stop_that_cannot_be_written_says_so(kinds):
    cluster = Cluster("fsync")
    make_topic(cluster.clients[1], "t", 6)
    cluster.clients[1].call(commit_request("g", {0: 7}, "t"), 8)
    cluster.world.files.inject(1, kinds=kinds)
    assert cluster.change("stop", 2) == [False]
    cluster.world.run()
    assert committed(cluster.world, "g", topic="t") == {0: 7}
    assert all(partition.leader != 2 for partition in cluster.world.broker.metadata.topics["t"].partitions)
