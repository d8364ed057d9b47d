"""Usual requests as real clients send them; values, offsets, leader epochs and times differ from one to the next.

A script is a generator: it yields (name, request, version) and is given the reply; None: the request waits. Requests
without a name are not counted.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from core_broker import Client
from txn_kit import Producer

from protocol.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from protocol.messages.cluster import (
    ApiVersionsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    InitProducerIdRequest,
)
from protocol.record_batch import build_batch

Script = Generator[tuple[str, Any, int], Any, None]
MANY = 100  # partitions of a large commit


def records(client: Client, i: int, *producer: int) -> bytes:
    """A batch of one record; of an idempotent producer: its id and epoch."""
    of = dict(zip(("producer_id", "producer_epoch"), producer, strict=False))
    if of:
        of["base_sequence"] = i
    key, value = b"table %d" % (i % 97), b"order %d" % (i * 7919)
    return build_batch([(key, value)], timestamp_ms=client.world.clock.now_ms() - i % 5, **of)


def produced(topic: dict[str, Any], batch: bytes) -> ProduceRequest:
    """One batch for the first partition."""
    data = TopicProduceData(**topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])


def creating(name: str, partitions: int = 1) -> CreateTopicsRequest:
    """A topic."""
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[wanted], timeout_ms=1000)


def librdkafka(client: Client, rounds: int) -> Script:
    """Produce, and Fetch without a session, by the topic's name."""
    yield "", creating("plain"), 7
    for i in range(rounds):
        yield "Produce v10, 1 record", produced({"name": "plain"}, records(client, i)), 10
        wanted = FetchPartition(partition=0, fetch_offset=i, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic="plain", partitions=[wanted])]
        yield (
            "Fetch v11, 1 record",
            FetchRequest(session_epoch=-1, max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=topics),
            11,
        )


def waiting(client: Client, rounds: int) -> Script:
    """A Fetch that waits, as most do, until a record comes."""
    yield "", creating("plain"), 7
    for i in range(rounds):
        wanted = FetchPartition(partition=0, fetch_offset=i, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic="plain", partitions=[wanted])]
        limits = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 50 << 20}
        answer = yield "Fetch v11 that waits", FetchRequest(session_epoch=-1, topics=topics, **limits), 11
        assert answer is None
        yield "Produce v10, which a Fetch waits for", produced({"name": "plain"}, records(client, i)), 10


def java(client: Client, rounds: int) -> Script:
    """An idempotent producer, and Fetch in a session, by the topic's id."""
    topic_id = (yield "", creating("known"), 7).topics[0].topic_id
    answer = yield "", InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4
    session_id = 0
    for i in range(rounds):
        batch = records(client, i, answer.producer_id, answer.producer_epoch)
        yield "Produce v13, idempotent, 1 record", produced({"topic_id": topic_id}, batch), 13
        wanted = FetchPartition(partition=0, fetch_offset=i, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic_id=topic_id, partitions=[wanted])]
        limits = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 50 << 20}
        reply = yield (
            "Fetch v17, session, 1 record",
            FetchRequest(session_id=session_id, session_epoch=i, topics=topics, **limits),
            17,
        )
        session_id = reply.session_id


def committing(i: int, partitions: int, **member: Any) -> OffsetCommitRequest:
    """Offsets of a consumer's partitions, each with a leader epoch and metadata."""
    rows = [
        OffsetCommitRequestPartition(
            partition_index=p,
            committed_offset=i * 131 + p,
            committed_leader_epoch=(i + p) % 10,
            committed_metadata="",
        )
        for p in range(partitions)
    ]
    topic = OffsetCommitRequestTopic(name="plain" if partitions == 1 else "wide", partitions=rows)
    return OffsetCommitRequest(topics=[topic], **member)


def classic_member(client: Client, rounds: int) -> Script:
    """A member of a classic group: commits, reads back what has moved since, and says that it is alive."""
    yield "", creating("plain"), 7
    yield "", creating("wide", MANY), 7
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    asked = JoinGroupRequest(
        group_id="bar", session_timeout_ms=45_000, rebalance_timeout_ms=60_000, member_id="", protocols=protocols
    )
    asked.protocol_type = "consumer"
    joined = yield "", asked, 3
    who = {"group_id": "bar", "generation_id": joined.generation_id, "member_id": joined.member_id}
    given = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")]
    yield "", SyncGroupRequest(**who, assignments=given), 3
    member = {"group_id": "bar", "generation_id_or_member_epoch": joined.generation_id, "member_id": joined.member_id}
    for i in range(rounds):
        yield "OffsetCommit v8, 1 partition", committing(i, 1, **member), 8
        yield f"OffsetCommit v8, {MANY} partitions", committing(i, MANY, **member), 8
        for topic, count in (("plain", 1), ("wide", MANY)):
            wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=list(range(count)))
            group = OffsetFetchRequestGroup(group_id="bar", topics=[wanted])
            name = f"OffsetFetch v8, {count} partition{'s' * (count > 1)} that moved"
            yield name, OffsetFetchRequest(groups=[group], require_stable=True), 8
        yield "Heartbeat v4", HeartbeatRequest(**who), 4


def consumer_member(client: Client, rounds: int) -> Script:
    """A member of a consumer group (KIP-848) that has its partitions."""
    yield "", creating("known"), 7
    yield "", creating("plain"), 7
    member = {"group_id": "new", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "rebalance_timeout_ms": 300_000}
    first = ConsumerGroupHeartbeatRequest(
        **member, member_epoch=0, subscribed_topic_names=["known"], topic_partitions=[]
    )
    answer = yield "", first, 1
    assigned = answer.assignment.topic_partitions[0]
    held = ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=assigned.topic_id, partitions=assigned.partitions)
    who = {"group_id": "new", "member_id": member["member_id"], "member_epoch": answer.member_epoch}
    yield "", ConsumerGroupHeartbeatRequest(**who, topic_partitions=[held]), 1
    commits = {"group_id": "new", "member_id": member["member_id"]}
    for i in range(rounds):
        yield "ConsumerGroupHeartbeat v1", ConsumerGroupHeartbeatRequest(**who), 1
        yield (
            "OffsetCommit v9, 1 partition",
            committing(i, 1, **commits, generation_id_or_member_epoch=answer.member_epoch),
            9,
        )


def transactions_v1(client: Client, rounds: int) -> Script:
    """A producer that names its partitions first."""
    yield "", creating("plain"), 7
    producer = Producer(client, "till-1", v2=False)
    answer = yield "", InitProducerIdRequest(transactional_id=producer.name, transaction_timeout_ms=60_000), 4
    producer._is_now(answer.producer_id, answer.producer_epoch)
    who = {"producer_id": producer.id, "producer_epoch": producer.epoch}
    for i in range(rounds):
        yield (
            "AddPartitionsToTxn v3",
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="till-1",
                v3_and_below_producer_id=producer.id,
                v3_and_below_producer_epoch=producer.epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name="plain", partitions=[0])],
            ),
            3,
        )
        yield "Produce v9, transaction v1", producer.produce_request(b"order %d" % (i * 7919), topic="plain"), 9
        yield "AddOffsetsToTxn v3", AddOffsetsToTxnRequest(transactional_id="till-1", group_id="tx", **who), 3
        yield "TxnOffsetCommit v3", producer.offsets_request({0: i * 131}, "tx", "plain"), 3
        yield "EndTxn v3", producer.end_request(commit=i % 8 != 7), 3


def transactions_v2(client: Client, rounds: int) -> Script:
    """A producer whose partitions come with its records (KIP-890), and whose epoch rises with each transaction."""
    yield "", creating("plain"), 7
    producer = Producer(client, "till-2")
    answer = yield "", InitProducerIdRequest(transactional_id=producer.name, transaction_timeout_ms=60_000), 5
    producer._is_now(answer.producer_id, answer.producer_epoch)
    for i in range(rounds):
        yield "Produce v12, transaction v2", producer.produce_request(b"order %d" % (i * 7919), topic="plain"), 12
        yield "TxnOffsetCommit v5", producer.offsets_request({0: i * 131}, "tx", "plain"), 5
        answer = yield "EndTxn v5", producer.end_request(commit=i % 8 != 7), 5
        producer._is_now(answer.producer_id, answer.producer_epoch)


def finding(client: Client, rounds: int) -> Script:
    """What a client asks when it connects."""
    yield "", creating("plain"), 7
    yield "", creating("known"), 7
    for i in range(rounds):
        yield "ApiVersions v3", ApiVersionsRequest(client_software_name="c", client_software_version="1"), 3
        topics = [MetadataRequestTopic(name=("plain", "known")[i % 2])]
        yield "Metadata v12, 1 topic", MetadataRequest(topics=topics, allow_auto_topic_creation=True), 12
        yield "FindCoordinator v4", FindCoordinatorRequest(key_type=0, coordinator_keys=[f"group-{i}"]), 4


SCRIPTS = (librdkafka, waiting, java, classic_member, consumer_member, transactions_v1, transactions_v2, finding)
