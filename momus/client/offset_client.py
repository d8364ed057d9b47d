"""What `momus offsets` asks a broker beside what every command asks: committed offsets, and the log they refer to."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterator, Sequence
from typing import Any

from momus.client.kafka_client import EARLIEST, LATEST, Client, Row
from momus.client.kafka_client import _check as check
from momus.client.kafka_client import _code_name as code_name


class OffsetClient(Client):
    """A client that reads and writes offsets."""

    def committed_offsets(self, group_id: str) -> list[Row]:
        """What a group has committed."""
        fetched = self._fetch_offsets(self._coordinator(group_id), group_id)
        return [
            {
                "group": group_id,
                "topic": t.name,
                "partition": p.partition_index,
                "offset": p.committed_offset,
                "leader_epoch": p.committed_leader_epoch,
                "metadata": p.metadata or "",
            }
            for t in fetched.topics
            for p in t.partitions
        ]

    def commit_offsets(self, group_id: str, rows: Sequence[Row]) -> list[Row]:
        """Commit offsets of a group without members, all in one request; the rows that were refused.

        Where every row has a `topic_id` (Kafka's text form), a topic that has another id by now is refused; brokers
        before Kafka 4.1 go by the names alone.
        """
        from protocol.messages.offsets import (
            OffsetCommitRequest,
            OffsetCommitRequestPartition,
            OffsetCommitRequestTopic,
        )

        topics: dict[tuple[str, bytes], OffsetCommitRequestTopic] = {}
        by_id = all(row.get("topic_id") for row in rows)
        for row in rows:
            where = (row["topic"], urlsafe_b64decode(row["topic_id"] + "==") if by_id else b"")
            topic = OffsetCommitRequestTopic(name=where[0], topic_id=where[1] or bytes(16), partitions=[])
            topics.setdefault(where, topic).partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=row["partition"],
                    committed_offset=row["offset"],
                    committed_leader_epoch=row["leader_epoch"],
                    committed_metadata=row["metadata"],
                )
            )
        request = OffsetCommitRequest(
            group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=list(topics.values())
        )
        answer = self._call(self._coordinator(group_id), request, version_limit=None if by_id else 9)
        refused = {
            (t.name or t.topic_id, p.partition_index): code_name(p.error_code)
            for t in answer.topics
            for p in t.partitions
            if p.error_code
        }
        names = {topic.topic_id: name for (name, _), topic in topics.items()} if by_id else {}
        return [
            {"topic": names.get(where, where), "partition": partition, "error": error}
            for (where, partition), error in refused.items()
        ]

    def leaders(self, topic: str) -> dict[int, int]:
        """Partition of a topic -> the node that leads it."""
        answer = self.cluster([topic]).topics[0]
        check(f"topic {topic}", answer.error_code)
        return {p.partition_index: p.leader_id for p in answer.partitions}

    def batches(self, topic: str, partition: int, leader: int) -> Iterator[tuple[Any, memoryview]]:
        """(header, bytes) of the record batches of a partition, as they are in its log now."""
        from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
        from protocol.record_batch import iter_batches

        leaders = {partition: leader}
        offset = self._offsets(topic, leaders, EARLIEST)[partition]
        end = self._offsets(topic, leaders, LATEST)[partition]
        while offset < end:
            wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 22)
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=1 << 24,
                session_epoch=-1,
                topics=[FetchTopic(topic=topic, partitions=[wanted])],
            )
            answer = self._call(leader, request, version_limit=12).responses[0].partitions[0]
            check(f"{topic}-{partition}", answer.error_code)
            records = memoryview(bytes(answer.records or b""))
            before = offset
            for position, header in iter_batches(records):
                yield header, records[position : position + header.size]
                offset = header.next_offset
            if offset == before:
                return  # the rest is not committed
