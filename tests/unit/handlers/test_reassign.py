"""Leaders elected and replicas moved: what the partitions are afterwards, and what is refused with which code."""

from __future__ import annotations

import pytest
from admin_broker import AdminBroker

from broker.handlers.reassign import (
    alter_partition_reassignments,
    alter_replica_log_dirs,
    elect_leaders,
    list_partition_reassignments,
)
from broker.handlers.topics import create_topics
from protocol.errors import ErrorCode
from protocol.messages.reassign import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    ElectLeadersRequest,
    ElectLeadersRequestTopicPartitions,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest

UNKNOWN, NOT_NEEDED = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.ELECTION_NOT_NEEDED


def broker_with(*assignments, name="t"):
    """Nodes 1, 2, 3 and a topic whose partitions lie there as told."""
    broker = AdminBroker((1, 2, 3))
    rows = [CreatableReplicaAssignment(partition_index=i, broker_ids=ids) for i, ids in enumerate(assignments)]
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=rows)
    assert broker.call(create_topics, CreateTopicsRequest(topics=[topic])).topics[0].error_code == 0
    return broker


def state(broker, name="t"):
    """(replicas, leader, leader epoch, partition epoch) of each partition."""
    found = broker.metadata.topics[name].partitions
    return [(p.replicas, p.leader, p.leader_epoch, p.partition_epoch) for p in found]


def move(broker, *targets, name="t", version=1, **more):
    partitions = [ReassignablePartition(partition_index=index, replicas=replicas) for index, replicas in targets]
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=partitions)], timeout_ms=1000, **more
    )
    reply = broker.call(alter_partition_reassignments, request, version)
    assert (reply.error_code, reply.error_message) == (0, None)
    (told,) = reply.responses
    assert told.name == name
    return [(p.partition_index, p.error_code, p.error_message) for p in told.partitions]


def elect(broker, topics, kind=0, version=2):
    asked = None
    if topics is not None:
        asked = [ElectLeadersRequestTopicPartitions(topic=name, partitions=ids) for name, ids in topics.items()]
    reply = broker.call(elect_leaders, ElectLeadersRequest(election_type=kind, topic_partitions=asked), version)
    if reply.error_code:
        return reply.error_code
    return {
        row.topic: [(p.partition_id, p.error_code) for p in row.partition_result]
        for row in reply.replica_election_results
    }


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        ([1], [2], ([2], 2, 1, 1)),  # the leader goes: a new one, a new epoch
        ([1, 2], [2, 1], ([2, 1], 1, 0, 1)),  # only the order: the leader stays, nothing begins anew
        ([1], [1, 2], ([1, 2], 1, 0, 1)),
        ([1, 2], [1], ([1], 1, 1, 1)),  # a replica goes: a new epoch under the same leader
        ([1, 2], [3, 2], ([3, 2], 3, 1, 1)),
        ([1, 2], [1, 3], ([1, 3], 1, 1, 1)),
        ([1, 2], [1, 2], ([1, 2], 1, 0, 0)),
    ],
)
def test_reassignment_is_done_when_it_is_answered(before, target, after):
    broker = broker_with(before)
    assert move(broker, (0, target)) == [(0, 0, None)]
    assert state(broker) == [after]
    broker.check_reload()
    listed = broker.call(list_partition_reassignments, ListPartitionReassignmentsRequest(topics=None))
    assert (listed.error_code, listed.error_message, listed.topics) == (0, None, [])


def test_reassignment_to_where_it_is_writes_nothing():
    broker = broker_with([1])
    batches = len(broker.batches)
    assert move(broker, (0, [1])) == [(0, 0, None)]
    assert len(broker.batches) == batches


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty replica list"),
        ([4], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no such broker"),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "more than once"),
        ([-1], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no such broker"),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."),
    ],
)
def test_partition_that_cannot_lie_there_stays_where_it_is(target, code, words):
    broker = broker_with([1], [1])
    (refused, moved) = move(broker, (0, target), (1, [2]))
    assert refused[:2] == (0, code)
    assert words in refused[2]
    assert moved == (1, 0, None)
    assert state(broker) == [([1], 1, 0, 0), ([2], 2, 1, 1)]


def test_reassignment_of_what_is_not_there_is_refused():
    broker = broker_with([1])
    assert [code for _, code, _ in move(broker, (1, [2]), (-1, [2]))] == [UNKNOWN, UNKNOWN]
    assert move(broker, (0, [2]), name="x") == [(0, UNKNOWN, "Unable to find a topic named x.")]


def test_replication_factor_is_held_where_that_was_asked():
    broker = broker_with([1])
    (refused,) = move(broker, (0, [2, 3]), allow_replication_factor_change=False)
    assert refused == (0, ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor is changed from 1 to 2")
    assert move(broker, (0, [3]), allow_replication_factor_change=False) == [(0, 0, None)]
    assert move(broker, (0, [1, 2]), version=0) == [(0, 0, None)]


def test_last_word_counts_for_a_partition_named_twice():
    broker = broker_with([1])
    assert move(broker, (0, [2]), (0, [1, 3])) == [(0, 0, None), (0, 0, None)]
    assert state(broker) == [([1, 3], 1, 0, 1)]


def test_listing_by_name_finds_nothing_under_way():
    asked = [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0]) for name in ("t", "x")]
    request = ListPartitionReassignmentsRequest(topics=asked)
    assert broker_with([1]).call(list_partition_reassignments, request).topics == []


def test_election_gives_a_partition_back_to_its_first_replica():
    broker = broker_with([1, 2], [1, 2])
    move(broker, (0, [2, 1]))
    assert elect(broker, {"t": [0, 1]}) == {"t": [(0, 0), (1, NOT_NEEDED)]}
    assert state(broker) == [([2, 1], 2, 1, 2), ([1, 2], 1, 0, 0)]
    broker.check_reload()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_election_everywhere_tells_only_of_what_it_changed(version):
    broker = broker_with([1, 2], [1, 2])
    move(broker, (1, [2, 1]))
    assert elect(broker, None, version=version) == {"__consumer_offsets": [], "t": [(1, 0)]}
    assert state(broker)[1][1] == 2


def test_election_of_what_is_not_there_is_refused():
    broker = broker_with([1])
    assert elect(broker, {"t": [1, -1], "x": [0]}) == {"t": [(1, UNKNOWN), (-1, UNKNOWN)], "x": [(0, UNKNOWN)]}


def test_unclean_election_is_never_needed():
    broker = broker_with([1, 2])
    move(broker, (0, [2, 1]))
    assert elect(broker, {"t": [0]}, kind=1) == {"t": [(0, NOT_NEEDED)]}


def test_unknown_kind_of_election_refuses_all():
    assert elect(broker_with([1]), {"t": [0]}, kind=2) == ErrorCode.INVALID_REQUEST


def move_dirs(broker, *targets, version=2, node_id=1):
    """Codes by topic and partition; a target is (path, topic, partitions)."""
    dirs = [
        AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=partitions)])
        for path, name, partitions in targets
    ]
    reply = broker.call(alter_replica_log_dirs, AlterReplicaLogDirsRequest(dirs=dirs), version, node_id)
    return {row.topic_name: [(p.partition_index, p.error_code) for p in row.partitions] for row in reply.results}


# The codes are those that brokers of Apache Kafka 4.3.1 with one log directory answered to the same requests.
@pytest.mark.parametrize("version", [1, 2])
def test_log_dir_of_the_broker_is_where_partitions_are(version):
    broker = broker_with([1], [1])
    assert move_dirs(broker, ("/data", "t", [0, 1]), version=version) == {"t": [(0, 0), (1, 0)]}
    assert move_dirs(broker, ("/data", "t", []), version=version) == {}


@pytest.mark.parametrize("path", ["/nowhere", "relative/data", "data", "", "/data/", "/data/."])
@pytest.mark.parametrize("name", ["t", "missing"])
def test_log_dir_of_another_name_is_not_found(path, name):
    assert move_dirs(broker_with([1]), (path, name, [0])) == {name: [(0, ErrorCode.LOG_DIR_NOT_FOUND)]}


def test_log_dir_of_unknown_partitions_is_answered_beside_the_known():
    broker = broker_with([1], [1])
    assert move_dirs(broker, ("/data", "t", [5, -1, 2, 0]), ("/data", "missing", [0])) == {
        "t": [(5, UNKNOWN), (-1, UNKNOWN), (2, UNKNOWN), (0, 0)],
        "missing": [(0, UNKNOWN)],
    }


def test_log_dir_named_last_counts():
    broker = broker_with([1])
    assert move_dirs(broker, ("/data", "t", [0, 0]), ("/nowhere", "t", [0])) == {
        "t": [(0, ErrorCode.LOG_DIR_NOT_FOUND)]
    }
    assert move_dirs(broker, ("/nowhere", "t", [0]), ("/data", "t", [0])) == {"t": [(0, 0)]}


def test_log_dir_of_a_node_without_a_replica_is_refused():
    broker = broker_with([2])
    assert move_dirs(broker, ("/data", "t", [0])) == {"t": [(0, ErrorCode.REPLICA_NOT_AVAILABLE)]}
    assert move_dirs(broker, ("/data", "t", [0]), node_id=2) == {"t": [(0, 0)]}
