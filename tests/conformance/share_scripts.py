"""Scripts of share group requests, played to any broker, and the answers in a form that can be compared.

A script is a list of steps: what one member does next. What a request says (epochs, the records that it acknowledges)
follows from the answers before it, so the same script can be played to Apache Kafka and to this broker. Of assignments
only the sizes are compared: Kafka deals partitions in the order of its hash tables.

`python tests/e2e/record_share_scripts.py HOST:PORT [COUNT]` plays random scripts to a broker over a socket (a fresh
Apache Kafka with group.share.assignment.interval.ms=0) and writes share_groups.json: see test_share_groups_as_kafka.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.share_fetch import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeRequestAcknowledgementBatch,
    ShareAcknowledgeRequestAcknowledgePartition,
    ShareAcknowledgeRequestAcknowledgeTopic,
    ShareFetchRequest,
    ShareFetchRequestAcknowledgementBatch,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
)
from protocol.messages.share_group import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
from protocol.messages.share_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.record_batch import build_batch, iter_batches

RECORDED = Path(__file__).with_name("share_groups.json")
# The partition that each member reads: one, because the order of several in an answer is that of Kafka's hash tables.
READS = {"a": 0, "b": 0, "c": 0, "d": 1}
MEMBERS = tuple(READS)
PARTITIONS = 2
KINDS = (
    *["produce"] * 20,
    *["fetch"] * 26,
    *["acknowledge"] * 36,
    *["fetch and acknowledge"] * 8,
    *("wrong", "wrong", "wrong", "renew", "offsets", "offsets", "offsets", "close", "beat", "beat", "beat", "leave"),
    *("old epoch", "describe"),
)


def random_script(number: int) -> list[list[Any]]:
    """The steps of one script."""
    rng = random.Random(number)
    steps: list[list[Any]] = []
    for _ in range(90):
        kind, member = rng.choice(KINDS), rng.choice(MEMBERS)
        if kind == "produce":
            steps.append([kind, rng.randrange(PARTITIONS), rng.choice((1, 1, 2, 5, 9))])
        elif kind in ("fetch", "close"):
            steps.append([kind, member, *_limits(rng)])
        elif kind in ("acknowledge", "renew"):
            steps.append([kind, member, rng.random(), rng.random() < 0.3, _types(rng)])
        elif kind == "fetch and acknowledge":
            # nothing is released: whether Kafka gives it out again in the same answer depends on its speed
            steps.append(
                [kind, member, rng.random(), [each for each in _types(rng) if each != 2] or [1], *_limits(rng)]
            )
        elif kind == "wrong":
            first = rng.randrange(30)
            steps.append([kind, member, first, first + rng.choice((-1, 0, 0, 1, 5)), [rng.choice((0, 1, 2, 3, 4, 5))]])
        else:
            steps.append([kind, member])
    return steps


def _limits(rng: random.Random) -> list[int]:
    return [rng.choice((1, 3, 10, 500)), rng.choice((1, 4, 500)), rng.choice((0, 0, 1))]


def _types(rng: random.Random) -> list[int]:
    """One type for all, or one for each of up to 40 records."""
    if rng.random() < 0.5:
        return [rng.choice((1, 1, 2, 2, 2, 3, 0))]
    return [rng.choice((1, 1, 2, 2, 3, 0)) for _ in range(40)]


class Player:
    """Plays a script in a group and a topic of its own. `wait`: lets so many milliseconds pass."""

    def __init__(self, call: Callable[[Any, int], Any], name: str, wait: Callable[[int], None]) -> None:
        self.call = call
        self.name = name
        self.wait = wait
        self.epochs = dict.fromkeys(MEMBERS, 0)  # of members
        self.sessions = dict.fromkeys(MEMBERS, 0)
        self.held: dict[str, list[tuple[int, int, int]]] = {m: [] for m in MEMBERS}  # partition, first, last
        self.topic_id = b""

    def play(self, script: list[list[Any]]) -> list[Any]:
        """The answers, one for each step."""
        self.prepare()
        return [getattr(self, step[0].replace(" ", "_"))(*step[1:]) for step in script]

    def prepare(self) -> None:
        """Make topic and group, with the state of its share partitions."""
        topic = CreatableTopic(name=self.name, num_partitions=PARTITIONS, replication_factor=1)
        answer = self.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        self.topic_id = answer.topics[0].topic_id
        entries = [
            IncrementalAlterConfigsRequestAlterableConfig(
                name="share.auto.offset.reset", value="earliest", config_operation=0
            )
        ]
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=32, resource_name=self.name, configs=entries
        )
        answer = self.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert answer.responses[0].error_code == 0, answer
        self.wait(200)  # until Kafka's brokers know the topic
        self.beat("a")
        self.wait(400)
        for _ in range(3):  # until the state is made, and its partitions are in use
            self.wait(200)
            for member in MEMBERS:
                self.beat(member)
        for member in MEMBERS:
            self._fetch(member, {}, 500, 500, 0, wait_ms=200)

    # -- steps -------------------------------------------------------------------------------------------------------

    def produce(self, partition: int, count: int) -> Any:
        """One batch."""
        records = build_batch([(None, b"%d" % each) for each in range(count)], timestamp_ms=1_700_000_000_000)
        data = TopicProduceData(name=self.name, partition_data=[PartitionProduceData(index=partition, records=records)])
        answer = self.call(ProduceRequest(transactional_id=None, acks=-1, timeout_ms=5000, topic_data=[data]), 9)
        part = answer.responses[0].partition_responses[0]
        return [part.error_code, part.base_offset]

    def fetch(self, member: str, most: int, size: int, mode: int) -> Any:
        """ShareFetch."""
        return self._fetch(member, {}, most, size, mode)

    def fetch_and_acknowledge(self, member: str, pick: float, types: list[int], most: int, size: int, mode: int) -> Any:
        """ShareFetch with acknowledgements."""
        if not self.held[member]:
            return self._fetch(member, {}, most, size, mode)
        partition, first, last = self._pick(member, pick)
        return self._fetch(member, {partition: (first, last, _fit(types, first, last))}, most, size, mode)

    def acknowledge(self, member: str, pick: float, half: bool, types: list[int]) -> Any:
        """ShareAcknowledge of something that the member has acquired, or of its first half."""
        if not self.held[member]:
            return None
        partition, first, last = self._pick(member, pick)
        if half and last > first:
            middle = (first + last) // 2
            self.held[member].append((partition, middle + 1, last))
            last = middle
        return self._acknowledge(member, partition, first, last, _fit(types, first, last))

    def renew(self, member: str, pick: float, half: bool, types: list[int]) -> Any:
        """ShareAcknowledge that renews a lock."""
        if not self.held[member]:
            return None
        found = self._pick(member, pick)
        self.held[member].append(found)
        return self._acknowledge(member, *found, [4], is_renewal=True)

    def wrong(self, member: str, first: int, last: int, types: list[int]) -> Any:
        """ShareAcknowledge of any records."""
        answer = self._acknowledge(member, 0, first, last, types)
        if answer[1] and answer[1][0][1] == 0:  # it was right
            self.held[member] = [each for each in self.held[member] if each[0] or each[2] < first or each[1] > last]
        return answer

    def close(self, member: str, *_: int) -> Any:
        """End the session, and begin another one."""
        request = ShareFetchRequest(
            group_id=self.name, member_id=member, share_session_epoch=-1, max_bytes=1 << 20, max_records=1
        )
        answer = self.call(request, 2)
        self.held[member] = []
        self.sessions[member] = 0
        self.wait(150)  # Kafka releases the records after it has answered
        return [answer.error_code, self._fetch(member, {}, 1, 500, 0)]

    def old_epoch(self, member: str) -> Any:
        """ShareFetch with a session epoch of the past."""
        request = ShareFetchRequest(
            group_id=self.name, member_id=member, share_session_epoch=self.sessions[member] + 7, max_records=1
        )
        answer = self.call(request, 2)
        return [answer.error_code, answer.error_message]

    def offsets(self, member: str) -> Any:
        """DescribeShareGroupOffsets."""
        asked = DescribeShareGroupOffsetsRequestGroup(group_id=self.name, topics=None)
        (group,) = self.call(DescribeShareGroupOffsetsRequest(groups=[asked]), 1).groups
        return sorted(
            [p.partition_index, p.start_offset, p.leader_epoch, p.lag, p.error_code]
            for topic in group.topics
            for p in topic.partitions
        )

    def beat(self, member: str) -> Any:
        """ShareGroupHeartbeat; the first one joins."""
        epoch = self.epochs[member]
        names = None if epoch else [self.name]
        request = ShareGroupHeartbeatRequest(
            group_id=self.name, member_id=member, member_epoch=epoch, subscribed_topic_names=names
        )
        answer = self.call(request, 1)
        if not answer.error_code:
            self.epochs[member] = answer.member_epoch
        count = None
        if answer.assignment is not None:
            count = sum(len(topic.partitions) for topic in answer.assignment.topic_partitions)
        return [answer.error_code, answer.member_epoch, answer.heartbeat_interval_ms, count]

    def leave(self, member: str) -> Any:
        """ShareGroupHeartbeat that leaves."""
        request = ShareGroupHeartbeatRequest(group_id=self.name, member_id=member, member_epoch=-1)
        answer = self.call(request, 1)
        self.epochs[member] = 0
        return [answer.error_code, answer.member_epoch]

    def describe(self, member: str) -> Any:
        """ShareGroupDescribe."""
        (group,) = self.call(ShareGroupDescribeRequest(group_ids=[self.name]), 1).groups
        return [
            group.error_code,
            group.group_state,
            group.group_epoch,
            group.assignment_epoch,
            group.assignor_name,
            sorted([m.member_id, m.member_epoch, len(m.subscribed_topic_names)] for m in group.members),
        ]

    # -- requests ----------------------------------------------------------------------------------------------------

    def _pick(self, member: str, pick: float) -> tuple[int, int, int]:
        held = self.held[member]
        held.sort()
        return held.pop(int(pick * len(held)))

    def _fetch(
        self,
        member: str,
        acknowledged: dict[int, tuple[int, int, list[int]]],
        most: int,
        size: int,
        mode: int,
        wait_ms: int = 1,
    ) -> Any:
        epoch = self.sessions[member]
        named = dict.fromkeys([*([READS[member]] if epoch == 0 else ()), *acknowledged])
        partitions = [
            ShareFetchRequestFetchPartition(
                partition_index=index,
                acknowledgement_batches=[
                    ShareFetchRequestAcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=types)
                    for a, b, types in ([acknowledged[index]] if index in acknowledged else [])
                ],
            )
            for index in named
        ]
        topics = [ShareFetchRequestFetchTopic(topic_id=self.topic_id, partitions=partitions)] if partitions else []
        request = ShareFetchRequest(
            group_id=self.name,
            member_id=member,
            share_session_epoch=epoch,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=most,
            batch_size=size,
            share_acquire_mode=mode,
            topics=topics,
        )
        answer = self.call(request, 2)
        self.sessions[member] += 1
        found = []
        for part in sorted((p for t in answer.responses for p in t.partitions), key=lambda p: p.partition_index):
            acquired = [[a.first_offset, a.last_offset, a.delivery_count] for a in part.acquired_records]
            self.held[member] += [(part.partition_index, first, last) for first, last, _ in acquired]
            batches = [header.base_offset for _, header in iter_batches(bytes(part.records or b""))]
            errors = [part.error_code, part.error_message, part.acknowledge_error_code, part.acknowledge_error_message]
            found.append([part.partition_index, errors, acquired, batches])
        return [answer.error_code, answer.acquisition_lock_timeout_ms, found]

    def _acknowledge(
        self, member: str, partition: int, first: int, last: int, types: list[int], *, is_renewal: bool = False
    ) -> Any:
        batch = ShareAcknowledgeRequestAcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=types
        )
        part = ShareAcknowledgeRequestAcknowledgePartition(partition_index=partition, acknowledgement_batches=[batch])
        topic = ShareAcknowledgeRequestAcknowledgeTopic(topic_id=self.topic_id, partitions=[part])
        request = ShareAcknowledgeRequest(
            group_id=self.name,
            member_id=member,
            share_session_epoch=self.sessions[member],
            is_renew_ack=is_renewal,
            topics=[topic],
        )
        answer = self.call(request, 2)
        if not answer.error_code:
            self.sessions[member] += 1
        parts = [[p.partition_index, p.error_code, p.error_message] for t in answer.responses for p in t.partitions]
        return [answer.error_code, parts]


def _fit(types: list[int], first: int, last: int) -> list[int]:
    """One type for all, or one for each record."""
    size = last - first + 1
    return types if len(types) == 1 else (types * (size // len(types) + 1))[:size]
