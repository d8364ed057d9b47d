"""The requests of the load generators, for one topic, in versions that all brokers under test answer."""

from __future__ import annotations

from typing import Any

from benchmarks.wire import parse
from protocol.messages.cluster import ApiVersionsResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

COMMIT_V, FETCHOFF_V, PRODUCE_V, FETCH_V, METADATA_V = 8, 8, 8, 11, 8
MARK = 0x0102030405060708  # an offset that stands for the one to come


class Requests:
    """The requests of all scenarios, for one topic."""

    def __init__(self, topic: str, group: str, partitions: int) -> None:
        self.topic, self.group, self.partitions = topic, group, partitions
        self.offset_fetch_version = FETCHOFF_V

    def learn(self, versions: ApiVersionsResponse) -> None:
        """librdkafka's mock knows no OffsetFetch of several groups."""
        known = {each.api_key: each.max_version for each in versions.api_keys}
        self.offset_fetch_version = min(FETCHOFF_V, known[OffsetFetchRequest.API_KEY])

    def commit(self, group: str, offset: int = MARK) -> OffsetCommitRequest:
        """One offset for every partition, as a simple consumer commits it."""
        partitions = [
            OffsetCommitRequestPartition(partition_index=p, committed_offset=offset, committed_metadata="")
            for p in range(self.partitions)
        ]
        topic = OffsetCommitRequestTopic(name=self.topic, partitions=partitions)
        return OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=[topic])

    def fetch_offsets(self, group: str) -> OffsetFetchRequest:
        """The offsets of every partition."""
        partitions = list(range(self.partitions))
        topic = OffsetFetchRequestTopics(name=self.topic, partition_indexes=partitions)
        return OffsetFetchRequest(
            group_id=group,
            topics=[OffsetFetchRequestTopic(name=self.topic, partition_indexes=partitions)],
            groups=[OffsetFetchRequestGroup(group_id=group, topics=[topic])],
        )

    def fetched_offsets(self, reply: Any) -> list[int]:
        """The offsets in a reply to it: the response, or its bytes after the correlation id."""
        if not isinstance(reply, OffsetFetchResponse):
            reply = parse(OffsetFetchRequest.API_KEY, self.offset_fetch_version, reply)
        topics = reply.groups[0].topics if reply.groups else reply.topics
        return [each.committed_offset for topic in topics for each in topic.partitions]

    def produce(self, partition: int, batch: bytes) -> ProduceRequest:
        """One batch, acks=all."""
        data = TopicProduceData(name=self.topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
        return ProduceRequest(acks=-1, timeout_ms=15000, topic_data=[data])

    def fetch(self, partition: int, offset: int) -> FetchRequest:
        """A Fetch from an offset on, which waits where nothing is there yet."""
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic=self.topic, partitions=[wanted])
        return FetchRequest(max_wait_ms=5000, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic])
