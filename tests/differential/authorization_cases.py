"""Random requests of principals under random ACLs, drawn from a seed.

authorization_live.py asks Apache Kafka and records the answers; tests/conformance/test_authorization_as_kafka.py plays
the same cases to this broker.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from differential.authorization_state import TOPICS, Ids
from protocol.declare import Message
from protocol.messages import (
    acls,
    classic_group,
    cluster,
    configs,
    consumer_group,
    fetch,
    group_admin,
    log_dirs,
    offsets,
    produce,
    quotas,
    scram,
    topics,
    transaction_admin,
    transactions,
)
from protocol.record_batch import build_batch

HERE = Path(__file__).parent
RECORDED = HERE.parent / "conformance" / "authorization.json.xz"
SEED, SETS, CASES_A_SET = 2026, 64, 20  # for each of two principals
PRINCIPALS = ("User:alice", "User:bob")
NEW = ("orders-new", "fresh")
GROUPS = ("billing", "bill", "audit")
IDS = ("tx-a", "tx-ab", "other")


class Case(NamedTuple):
    """One request under a set of ACLs."""

    acl_set: int
    principal: str
    request: Message
    version: int


def acl_sets(rng: random.Random) -> list[list[acls.AclCreation]]:
    """Sets of ACLs, the first of them empty."""
    return [[]] + [[_acl(rng) for _ in range(rng.randint(1, 9))] for _ in range(SETS - 1)]


def _acl(rng: random.Random) -> acls.AclCreation:
    kind = rng.choice((2, 2, 2, 3, 3, 4, 5, 5))
    names = {2: (*TOPICS, *NEW, "*"), 3: (*GROUPS, "*"), 4: ("kafka-cluster",), 5: (*IDS, "*")}[kind]
    name = rng.choice(names)
    pattern = 3 if kind == 4 or name == "*" or rng.random() < 0.6 else 4
    if pattern == 4:
        name = name[: rng.randint(1, len(name))]
    operations = {2: (3, 4, 5, 6, 7, 8, 10, 11), 3: (3, 6, 8), 4: (5, 7, 8, 9, 10, 11, 12, 6), 5: (4, 8)}[kind]
    return acls.AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=rng.choice((*PRINCIPALS, "User:alice", "User:*")),
        host=rng.choice(("*", "*", "*", "127.0.0.1", "10.1.1.1")),
        operation=rng.choice((2, *operations, *operations)),
        permission_type=3 if rng.random() < 0.75 else 2,
    )


def cases(rng: random.Random, ids: Ids) -> Iterator[Case]:
    """The requests. Topic ids differ from broker to broker; nothing else does."""
    for number in range(SETS):
        for principal in PRINCIPALS:
            for _ in range(CASES_A_SET):
                request, version = rng.choice(MAKERS)(rng, ids)
                yield Case(number, principal, request, version)


def _some(rng: random.Random, names: tuple[str, ...]) -> list[str]:
    return rng.sample(names, rng.randint(1, len(names)))


def _produce(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    version = rng.choice((8, 12, 13))
    data = []
    for name in _some(rng, TOPICS):
        records = build_batch([(None, b"x")], timestamp_ms=0)
        parts = [produce.PartitionProduceData(index=0, records=records)]
        data.append(produce.TopicProduceData(name=name, topic_id=ids.by_name[name], partition_data=parts))
    return produce.ProduceRequest(transactional_id=None, acks=1, timeout_ms=1000, topic_data=data), version


def _fetch(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    version = rng.choice((11, 12, 13, 17))
    wanted = [
        fetch.FetchTopic(
            topic=name,
            topic_id=ids.by_name[name],
            partitions=[fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)],
        )
        for name in _some(rng, TOPICS)
    ]
    return fetch.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=10_000, session_epoch=-1, topics=wanted), version


def _list_offsets(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    one = [fetch.ListOffsetsPartition(partition_index=0, timestamp=-1)]
    names = _some(rng, (*TOPICS, *NEW))
    wanted = [fetch.ListOffsetsTopic(name=name, partitions=one) for name in names]
    return fetch.ListOffsetsRequest(replica_id=-1, topics=wanted), rng.choice((5, 7))


def _metadata(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    version = rng.choice((1, 8, 12))
    asked: list[Any] | None = None
    if rng.random() < 0.7:
        asked = [cluster.MetadataRequestTopic(name=name) for name in _some(rng, (*TOPICS, *NEW))]
        if version == 12 and rng.random() < 0.4:
            asked = [cluster.MetadataRequestTopic(name=None, topic_id=ids.by_name[name]) for name in _some(rng, TOPICS)]
    request = cluster.MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    request.include_topic_authorized_operations = version >= 8
    request.include_cluster_authorized_operations = version in (8, 9, 10)
    return request, version


def _topic_partitions(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    """A page of all topics or of some; of all from a cursor on, as the internal topics before it differ."""
    names = _some(rng, (*TOPICS, *NEW)) if rng.random() < 0.5 else []
    cursor = None
    if not names or rng.random() < 0.5:
        start = rng.choice(names) if names else rng.choice(("a", *TOPICS, *NEW))
        cursor = cluster.DescribeTopicPartitionsRequestCursor(topic_name=start, partition_index=0)
    asked = [cluster.DescribeTopicPartitionsRequestTopicRequest(name=name) for name in names]
    limit = rng.randint(1, 3)
    return cluster.DescribeTopicPartitionsRequest(topics=asked, response_partition_limit=limit, cursor=cursor), 0


def _offset_commit(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    parts = [offsets.OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")]
    wanted = [offsets.OffsetCommitRequestTopic(name=name, partitions=parts) for name in _some(rng, TOPICS)]
    request = offsets.OffsetCommitRequest(group_id=rng.choice(GROUPS), topics=wanted)
    request.generation_id_or_member_epoch, request.member_id, request.group_instance_id = -1, "", None
    return request, rng.choice((6, 8))


def _offset_fetch(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    if rng.random() < 0.5:
        named = [offsets.OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in _some(rng, TOPICS)]
        request = offsets.OffsetFetchRequest(group_id=rng.choice(GROUPS), topics=rng.choice((named, None)))
        return request, 7
    groups = []
    for group in _some(rng, GROUPS):
        wanted = [offsets.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in _some(rng, TOPICS)]
        groups.append(
            offsets.OffsetFetchRequestGroup(group_id=group, member_id=None, topics=rng.choice((wanted, None)))
        )
    return offsets.OffsetFetchRequest(groups=groups), 9


def _find_coordinator(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    kind = rng.randint(0, 1)
    keys = _some(rng, (GROUPS, IDS)[kind])
    request = cluster.FindCoordinatorRequest(key=keys[0], key_type=kind, coordinator_keys=keys)
    return request, rng.choice((3, 4))


def _member(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    group = rng.choice(GROUPS)
    return rng.choice(
        (
            (classic_group.HeartbeatRequest(group_id=group, generation_id=1, member_id="m", group_instance_id=None), 4),
            (
                classic_group.SyncGroupRequest(
                    group_id=group,
                    generation_id=1,
                    member_id="m",
                    group_instance_id=None,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=[],
                ),
                5,
            ),
            (classic_group.LeaveGroupRequest(group_id=group, members=[]), 4),
            (
                consumer_group.ConsumerGroupHeartbeatRequest(
                    group_id=group,
                    member_id="nobody",
                    member_epoch=5,
                    instance_id=None,
                    rack_id=None,
                    subscribed_topic_names=_some(rng, TOPICS),
                    server_assignor=None,
                    topic_partitions=None,
                ),
                0,
            ),
        )
    )


def _groups(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    names = _some(rng, GROUPS)
    return rng.choice(
        (
            (group_admin.DescribeGroupsRequest(groups=names, include_authorized_operations=True), 5),
            (group_admin.ListGroupsRequest(), 4),
            (group_admin.DeleteGroupsRequest(groups_names=["bills"]), 2),
        )
    )


def _topics(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    new = [topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in _some(rng, NEW)]
    one = [topics.DeleteRecordsPartition(partition_index=0, offset=0)]
    gone = [topics.DeleteTopicState(name=name) for name in _some(rng, NEW)]
    return rng.choice(
        (
            (topics.CreateTopicsRequest(topics=new, timeout_ms=5000, validate_only=True), rng.choice((4, 7))),
            (
                topics.DeleteTopicsRequest(
                    topics=gone, topic_names=[each.name or "" for each in gone], timeout_ms=5000
                ),
                rng.choice((5, 6)),
            ),
            (
                topics.DeleteRecordsRequest(
                    topics=[topics.DeleteRecordsTopic(name=name, partitions=one) for name in _some(rng, TOPICS)],
                    timeout_ms=5000,
                ),
                2,
            ),
            (
                topics.CreatePartitionsRequest(
                    topics=[
                        topics.CreatePartitionsTopic(name=name, count=2, assignments=None)
                        for name in _some(rng, TOPICS)
                    ],
                    timeout_ms=5000,
                    validate_only=True,
                ),
                3,
            ),
        )
    )


def _configs(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    kinds = [(2, name) for name in TOPICS] + [(4, "1")]
    chosen = rng.sample(kinds, rng.randint(1, len(kinds)))
    asked = [
        configs.DescribeConfigsResource(resource_type=k, resource_name=n, configuration_keys=["retention.ms"])
        for k, n in chosen
    ]
    changes = [
        configs.IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                configs.IncrementalAlterConfigsRequestAlterableConfig(
                    name="retention.ms", config_operation=0, value="1000"
                )
            ],
        )
        for kind, name in chosen
        if kind == 2
    ]
    if changes and rng.random() < 0.5:
        return configs.IncrementalAlterConfigsRequest(resources=changes, validate_only=True), 1
    return configs.DescribeConfigsRequest(resources=asked), 4


def _transactions(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    name = rng.choice(IDS)
    added = [transactions.AddPartitionsToTxnTopic(name=topic, partitions=[0]) for topic in _some(rng, TOPICS)]
    add = transactions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=77,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=added,
    )
    init = transactions.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
    )
    return rng.choice(
        (
            (add, 3),
            (init, 3),
            (transactions.EndTxnRequest(transactional_id=name, producer_id=77, producer_epoch=0, committed=True), 3),
            (
                transactions.AddOffsetsToTxnRequest(
                    transactional_id=name, producer_id=77, producer_epoch=0, group_id=rng.choice(GROUPS)
                ),
                3,
            ),
            (transaction_admin.DescribeTransactionsRequest(transactional_ids=_some(rng, IDS)), 0),
            (transaction_admin.ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 0),
        )
    )


def _cluster(rng: random.Random, ids: Ids) -> tuple[Message, int]:
    some = acls.DescribeAclsRequest(resource_type_filter=4, resource_name_filter="none", operation=1, permission_type=1)
    none = acls.DeleteAclsFilter(resource_type_filter=4, resource_name_filter="none", operation=1, permission_type=1)
    return rng.choice(
        (
            (cluster.DescribeClusterRequest(include_cluster_authorized_operations=True), 0),
            (some, 2),
            (acls.CreateAclsRequest(creations=[]), 2),
            (acls.DeleteAclsRequest(filters=[none]), 2),
            (quotas.DescribeClientQuotasRequest(components=[], strict=False), 1),
            (quotas.AlterClientQuotasRequest(entries=[], validate_only=True), 1),
            (scram.DescribeUserScramCredentialsRequest(users=[]), 0),
            (scram.AlterUserScramCredentialsRequest(deletions=[], upsertions=[]), 0),
            (log_dirs.DescribeLogDirsRequest(topics=[]), 4),
        )
    )


MAKERS: tuple[Callable[[random.Random, Ids], tuple[Message, int]], ...] = (
    _produce,
    _produce,
    _fetch,
    _fetch,
    _list_offsets,
    _metadata,
    _metadata,
    _topic_partitions,
    _topic_partitions,
    _offset_commit,
    _offset_fetch,
    _find_coordinator,
    _member,
    _groups,
    _topics,
    _topics,
    _configs,
    _transactions,
    _transactions,
    _cluster,
)
