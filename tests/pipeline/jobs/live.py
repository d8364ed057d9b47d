"""A running broker spoken to request by request: commits, transactions, deletions, and what it says is committed.

Everything is drawn from one seed, so that a history can be made again.
"""

from __future__ import annotations

import random
from typing import Any

from txn_kit import Producer

from momus import Broker
from momus.client.wire import Connection
from protocol.errors import ErrorCode
from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.group_admin import DeleteGroupsRequest
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.record_batch import build_batch

OFFSETS = "__consumer_offsets"
PARTITIONS = 4
AGAIN = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS}
Committed = dict[tuple[str, str, int], tuple[int, str]]


class Live:
    """One client of a running broker."""

    world: Any = None  # txn_kit asks a simulated broker's clock for the time of records; the broker's own is used here

    def __init__(self, broker: Broker) -> None:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        self._connection = Connection(host, int(port), 10)

    def call(self, request: Any, version: int | None = None) -> Any:
        """One request in one version; again while the coordinator loads, or ends another transaction."""
        while True:
            answer = self._connection.call(request, version)
            if not _codes(answer) & AGAIN:
                return answer

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def create(self, *topics: str) -> None:
        """Topics of PARTITIONS partitions."""
        wanted = [CreatableTopic(name=t, num_partitions=PARTITIONS, replication_factor=1) for t in topics]
        answer = self.call(CreateTopicsRequest(topics=wanted, timeout_ms=5000), 7)
        assert not any(each.error_code for each in answer.topics), answer

    def configure(self, topic: str, **configs: str) -> None:
        """Set configs of a topic, `_` for `.`."""
        changes = [
            IncrementalAlterConfigsRequestAlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
            for key, value in configs.items()
        ]
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=2, resource_name=topic, configs=changes
        )
        answer = self.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
        assert not answer.responses[0].error_code, answer

    def produce(self, topic: str, partition: int, records: list[tuple[bytes | None, bytes | None]]) -> None:
        """A batch of a producer without an id; its time is the broker's, if the topic is so configured."""
        data = PartitionProduceData(index=partition, records=build_batch(records, leader_epoch=-1, timestamp_ms=0))
        topics = [TopicProduceData(name=topic, partition_data=[data])]
        answer = self.call(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics), 9)
        assert not answer.responses[0].partition_responses[0].error_code, answer

    def commit(self, group: str, topic: str, offsets: dict[int, int], metadata: str = "") -> None:
        """As a group without members."""
        rows = [
            OffsetCommitRequestPartition(partition_index=p, committed_offset=offset, committed_metadata=metadata)
            for p, offset in offsets.items()
        ]
        request = OffsetCommitRequest(
            group_id=group,
            member_id="",
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=rows)],
        )
        answer = self.call(request, 8)
        assert not any(p.error_code for t in answer.topics for p in t.partitions), answer

    def delete_offset(self, group: str, topic: str, partition: int) -> None:
        """One offset; it does not matter whether it is there."""
        wanted = OffsetDeleteRequestTopic(
            name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
        )
        self.call(OffsetDeleteRequest(group_id=group, topics=[wanted]), 0)

    def delete_group(self, group: str) -> None:
        """All of a group."""
        self.call(DeleteGroupsRequest(groups_names=[group]), 2)

    def committed(self, *groups: str) -> Committed:
        """What OffsetFetch answers: (group, topic, partition) -> (offset, metadata)."""
        found: Committed = {}
        for group in groups:
            question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
            answer = self.call(question, 8).groups[0]
            assert not answer.error_code, answer
            for topic in answer.topics:
                for each in topic.partitions:
                    found[group, topic.name, each.partition_index] = each.committed_offset, each.metadata
        return found


class History:
    """Random commits, transactions and deletions of a few groups, that go on over restarts of the broker."""

    def __init__(self, seed: int, groups: int = 6, producers: int = 3) -> None:
        self.rng = random.Random(seed)
        self.groups = [f"g{n}-{seed}" for n in range(groups)]
        self.topics = [f"a{seed}", f"b{seed}"]
        self.producers = [f"tx{n}-{seed}" for n in range(producers)]
        self._open: dict[str, Producer] = {}
        self._value = 0

    def create(self, live: Live) -> None:
        """The topics."""
        live.create(*self.topics)

    def forget(self) -> None:
        """The broker was restarted: producers begin anew, and so end what they had open."""
        self._open.clear()

    def step(self, live: Live) -> None:
        """One thing that somebody does."""
        rng, choice = self.rng, self.rng.random()
        self._value += 1
        group, topic = rng.choice(self.groups), rng.choice(self.topics)
        offsets = dict.fromkeys(rng.sample(range(PARTITIONS), rng.randint(1, PARTITIONS)), self._value)
        if choice < 0.5:
            live.commit(group, topic, offsets, rng.choice(["", "note", "ü" * 9]))
        elif choice < 0.9:
            self._transact(live, rng.choice(self.producers), group, topic, offsets)
        elif choice < 0.97:
            live.delete_offset(group, topic, rng.randrange(PARTITIONS))
        else:
            live.delete_group(group)

    def end(self) -> None:
        """What is open is committed."""
        for producer in self._open.values():
            assert not producer.end(commit=True)
        self._open.clear()

    def _transact(self, live: Live, name: str, group: str, topic: str, offsets: dict[int, int]) -> None:
        producer = self._open.get(name)
        if producer is None:
            producer = self._open[name] = Producer(live, name, v2=self.rng.random() < 0.5)
            assert not producer.init()
        elif self.rng.random() < 0.5:
            assert not producer.end(commit=self.rng.random() < 0.7)
            del self._open[name]
            return
        if not producer.v2:
            assert not producer.add_offsets(group)
        assert not any(producer.send_offsets(offsets, group, topic).values())


def _codes(answer: Any) -> set[int]:
    found = {getattr(answer, "error_code", 0)}
    for group in getattr(answer, "groups", None) or ():
        found.add(group.error_code)
    for topic in getattr(answer, "topics", None) or ():
        for each in getattr(topic, "partitions", None) or ():
            found.add(getattr(each, "error_code", 0))
    return found
