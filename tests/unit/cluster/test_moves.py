"""Partitions moved between virtual brokers: who serves them afterwards, and what became of those who waited."""

from __future__ import annotations

import pytest
from core_broker import FLUSHES, Client, World, make_topic
from core_requests import commit_request, committed, fetch_request, produce_request

from protocol.errors import ErrorCode
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.cluster import FindCoordinatorRequest, MetadataRequest, MetadataRequestTopic
from protocol.messages.fetch import OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic
from protocol.messages.group_admin import ListGroupsRequest
from protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    UnregisterControllerRequest,
)
from protocol.messages.reassign import AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic
from protocol.messages.transactions import InitProducerIdRequest

NOT_LEADER, NOT_COORDINATOR = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR
OFFSETS = "__consumer_offsets"


def move_request(name: str, index: int, node_id: int) -> AlterPartitionReassignmentsRequest:
    partition = ReassignablePartition(partition_index=index, replicas=[node_id])
    return AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=name, partitions=[partition])])


def move(client: Client, name: str, index: int, node_id: int) -> None:
    answer = client.call(move_request(name, index, node_id), 1)
    assert answer.responses[0].partitions[0].error_code == 0, answer.responses[0].partitions[0].error_message


def produced(answer) -> int:
    return answer.responses[0].partition_responses[0].error_code


def two_brokers(flush: str = "os", **settings: str) -> tuple[World, Client, Client]:
    """Nodes 1 and 2 with a client each, and topic t of one partition, on node 1."""
    world = World(flush, brokers=2, **settings)
    first, second = Client(world), Client(world, node=1)
    make_topic(first, "t", 1)
    move(first, "t", 0, 1)
    return world, first, second


def coordinator(client: Client, group_id: str) -> int:
    return client.call(FindCoordinatorRequest(coordinator_keys=[group_id]), 6).coordinators[0].node_id


@pytest.mark.parametrize("flush", FLUSHES)
def test_moved_partition_is_served_by_its_new_node_alone(flush):
    world, first, second = two_brokers(flush)
    epoch = world.broker.metadata.topics["t"].leader_epoch(0)
    assert produced(first.call(produce_request("t", 0, b"a"), 12)) == 0
    move(second, "t", 0, 2)
    refused = first.call(produce_request("t", 0, b"b"), 12)
    assert produced(refused) == NOT_LEADER
    assert refused.responses[0].partition_responses[0].current_leader.leader_id == 2
    assert produced(second.call(produce_request("t", 0, b"b"), 12)) == 0
    read = second.call(fetch_request("t", 0, 0), 12).responses[0].partitions[0]
    assert (read.error_code, read.high_watermark) == (0, 2)
    assert first.call(fetch_request("t", 0, 0), 12).responses[0].partitions[0].error_code == NOT_LEADER
    told = first.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12).topics[0].partitions[0]
    assert (told.leader_id, told.replica_nodes, told.leader_epoch) == (2, [2], epoch + 1)


def test_fetch_that_waits_at_the_old_node_is_told_at_once():
    _, first, second = two_brokers()
    first.send(fetch_request("t", 0, 0, max_wait_ms=30_000), 12)
    move(second, "t", 0, 2)
    assert first.replies()[0].responses[0].partitions[0].error_code == NOT_LEADER


def join_request(group_id: str, member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        protocol_type="consumer",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


@pytest.mark.parametrize("flush", FLUSHES)
def test_moved_shard_keeps_offsets_and_sends_waiting_members_to_its_new_node(flush):
    world, first, second = two_brokers(flush, offsets_topic_num_partitions="1", offsets_any_broker="false")
    assert coordinator(first, "g") == 1
    assert first.call(commit_request("g", {0: 7}), 8).topics[0].partitions[0].error_code == 0
    joined = first.call(join_request("g"), 3)  # the first member, which waits for nobody
    assert joined.error_code == 0
    first.send(join_request("g"), 3)  # a second one, which waits for the first
    world.run()
    assert first.replies() == []
    move(second, OFFSETS, 0, 2)
    assert [reply.error_code for reply in first.replies()] == [NOT_COORDINATOR]
    assert coordinator(first, "g") == 2
    assert first.call(join_request("g"), 3).error_code == NOT_COORDINATOR
    assert first.call(commit_request("g", {0: 8}), 8).topics[0].partitions[0].error_code == NOT_COORDINATOR
    assert first.call(ListGroupsRequest(), 4).groups == []
    assert [group.group_id for group in second.call(ListGroupsRequest(), 4).groups] == ["g"]
    world.broker.config.offsets_any_broker = True
    assert committed(world, "g") == {0: 7}
    assert world.broker.groups.shards[0].log.leader_epoch == world.broker.metadata.topics[OFFSETS].leader_epoch(0)


@pytest.mark.parametrize("flush", FLUSHES)
def test_commits_in_the_turn_of_a_move_are_not_lost(flush):
    world, first, second = two_brokers(flush, offsets_topic_num_partitions="1")
    there = coordinator(first, "g")
    world.auto_sync = False
    for offset in range(3):
        first.send(commit_request("g", {0: offset}), 8)
    second.send(move_request(OFFSETS, 0, 3 - there), 1)
    first.send(commit_request("g", {0: 9}), 8)
    world.run()
    world.auto_sync = True
    world.run()
    assert [reply.topics[0].partitions[0].error_code for reply in first.replies()] == [0] * 4
    assert committed(world, "g") == {0: 9}
    assert committed(world.crash(lose_unsynced=flush == "fsync"), "g") == {0: 9}


def test_shard_whose_log_fails_in_its_move_moves_all_the_same():
    world, first, second = two_brokers(offsets_topic_num_partitions="1")
    there = coordinator(first, "g")
    assert first.call(commit_request("g", {0: 1}), 8).topics[0].partitions[0].error_code == 0
    second.send(move_request(OFFSETS, 0, 3 - there), 1)
    first.send(commit_request("g", {0: 2}), 8)
    world.files.inject(2)  # the metadata is written, the commit is not
    world.run()
    assert first.replies()[0].topics[0].partitions[0].error_code == NOT_COORDINATOR
    assert committed(world, "g") == {0: 1}
    assert coordinator(first, "g") == 3 - there


def epoch_end(client: Client, leader_epoch: int) -> tuple[int, int, int]:
    asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=leader_epoch)
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic="t", partitions=[asked])])
    answer = client.call(request, 4).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_leader_that_could_not_be_recorded_leaves_the_ends_of_the_epochs(flush):
    world, first, second = two_brokers(flush)
    epoch = world.broker.metadata.topics["t"].leader_epoch(0)
    assert produced(first.call(produce_request("t", 0, b"a"), 12)) == 0
    move(second, "t", 0, 2)
    assert produced(second.call(produce_request("t", 0, b"b", b"c"), 12)) == 0
    expected = [(0, epoch, 1), (0, epoch + 1, 3), (0, -1, -1)]
    assert [epoch_end(second, each) for each in range(epoch, epoch + 3)] == expected
    world.broker.faults.add({"fault": "fail_write", "topic": "__cluster_metadata", "trigger": "once"})
    assert second.call(move_request("t", 0, 1), 1).responses[0].partitions[0].error_code != 0
    assert [epoch_end(second, each) for each in range(epoch, epoch + 3)] == expected
    second = Client(world.restart(), node=1)
    assert [epoch_end(second, each) for each in range(epoch, epoch + 3)] == expected


def test_quorum_is_the_first_node_with_the_others_watching():
    world, first, _ = two_brokers()
    answer = first.call(describe_quorum("__cluster_metadata", 0), 2)
    assert (answer.error_code, answer.error_message) == (0, None)
    partition = answer.topics[0].partitions[0]
    log = world.broker.metadata_shard.log
    assert (partition.error_code, partition.leader_id, partition.high_watermark) == (0, 1, log.end_offset)
    assert [(r.replica_id, r.log_end_offset) for r in partition.current_voters] == [(1, log.end_offset)]
    assert [r.replica_id for r in partition.observers] == [2]
    assert [node.node_id for node in answer.nodes] == [1]


@pytest.mark.parametrize(("name", "index"), [("__cluster_metadata", 1), ("t", 0)])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_quorum_of_anything_else_is_unknown(name, index, version):
    answer = Client(World()).call(describe_quorum(name, index), version)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("node_id", "code", "why"),
    [  # as Apache Kafka 4.4.0 answers them
        (1, ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active."),
        (2, ErrorCode.CONTROLLER_ID_NOT_REGISTERED, "Controller ID 2 is not currently registered."),
        (-1, ErrorCode.CONTROLLER_ID_NOT_REGISTERED, "Controller ID -1 is not currently registered."),
    ],
)
def test_no_controller_is_unregistered(node_id, code, why):
    _, first, second = two_brokers()
    for client in (first, second):
        answer = client.call(UnregisterControllerRequest(controller_id=node_id), 0)
        assert (answer.error_code, answer.error_message) == (code, why)


def describe_quorum(name: str, index: int) -> DescribeQuorumRequest:
    partitions = [DescribeQuorumRequestPartitionData(partition_index=index)]
    return DescribeQuorumRequest(topics=[DescribeQuorumRequestTopicData(topic_name=name, partitions=partitions)])


@pytest.mark.parametrize("flush", FLUSHES)
def test_moved_transaction_shard_keeps_its_producers(flush):
    world, first, second = two_brokers(flush, transaction_state_log_num_partitions="1")
    ask = FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])
    there = first.call(ask, 6).coordinators[0].node_id
    old, new = (first, second) if there == 1 else (second, first)
    begin = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    made = old.call(begin, 4)
    assert made.error_code == 0
    move(old, "__transaction_state", 0, 3 - there)
    assert old.call(begin, 4).error_code == NOT_COORDINATOR
    assert first.call(ask, 6).coordinators[0].node_id == 3 - there
    again = new.call(begin, 4)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (0, made.producer_id, made.producer_epoch + 1)
    epoch = world.broker.metadata.topics["__transaction_state"].leader_epoch(0)
    assert world.broker.transactions.shards[0].log.leader_epoch == epoch
