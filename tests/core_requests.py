"""The requests that tests of the broker's core send again and again, and what they want to know of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core_broker import Client, World

from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import build_batch

TOPIC, BROKER, GROUP_RESOURCE = 2, 4, 32  # kinds of resources


def commit_request(
    group_id: str, offsets: Mapping[int, int], topic: str = "t", metadata: str | None = "", **fields: Any
) -> OffsetCommitRequest:
    """Offsets by partition, as a client outside of groups commits them."""
    rows = [
        OffsetCommitRequestPartition(partition_index=p, committed_offset=offset, committed_metadata=metadata)
        for p, offset in offsets.items()
    ]
    return OffsetCommitRequest(
        group_id=group_id,
        **{"member_id": "", "generation_id_or_member_epoch": -1, **fields},
        topics=[OffsetCommitRequestTopic(name=topic, partitions=rows)],
    )


def committed(world: World, group_id: str, topic: str = "t") -> dict[int, int]:
    """What a new client is told that the group has committed."""
    question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)])
    group = Client(world).call(question, 8).groups[0]
    assert group.error_code == 0
    return {p.partition_index: p.committed_offset for row in group.topics if row.name == topic for p in row.partitions}


def produce_request(topic: str, index: int, *values: bytes, acks: int = -1, **batch: Any) -> ProduceRequest:
    """One batch to one partition."""
    records = build_batch([(None, value) for value in values], timestamp_ms=1_700_000_000_000, **batch)
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=records)])
    return ProduceRequest(transactional_id=None, acks=acks, timeout_ms=1000, topic_data=[data])


def raw_produce(records: bytes | None, name: str = "topic", transactional_id: str | None = "tx") -> ProduceRequest:
    """One partition of one topic, with any bytes as its records."""
    data = TopicProduceData(
        name=name, topic_id=bytes(range(16)), partition_data=[PartitionProduceData(index=5, records=records)]
    )
    return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=9, topic_data=[data])


def fetch_request(topic: str, index: int, offset: int, *, max_wait_ms: int = 0, **fields: Any) -> FetchRequest:
    """One partition, without a session."""
    wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 26)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
        **{"min_bytes": 1, "max_bytes": 1 << 26, **fields},
    )


def fetch_bytes(answer: Any) -> bytes:
    """The records of the first partition in a reply to Fetch."""
    return bytes(answer.responses[0].partitions[0].records or b"")


def first_heartbeat(group_id: str, topic: str, member_id: str = "m" * 22) -> ConsumerGroupHeartbeatRequest:
    """The request by which a member joins a consumer group that reads a topic."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )


def alter_request(kind: int, name: str, configs: Mapping[str, str | None]) -> IncrementalAlterConfigsRequest:
    """Set configs of one resource."""
    entries = [
        IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=0, value=value)
        for key, value in configs.items()
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=entries
    )
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
