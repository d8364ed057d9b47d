"""A Kafka client of some hundred lines, right and without threads: a run of a program takes milliseconds by it.

It tries again what Kafka's clients try again. What is for the application is raised: RebalancedError, FencedError.
"""

from __future__ import annotations

import time
from typing import Any

from broker.asks.records import committed_records
from momus.client.wire import Connection
from protocol.errors import ErrorCode
from protocol.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from protocol.messages.cluster import FindCoordinatorRequest
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
from protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.record_batch import build_batch

E = ErrorCode
AGAIN = (
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_COORDINATOR,
    E.CONCURRENT_TRANSACTIONS,
    E.NOT_ENOUGH_REPLICAS,
    E.OFFSET_NOT_AVAILABLE,
    E.NOT_LEADER_OR_FOLLOWER,
    E.UNSTABLE_OFFSET_COMMIT,
)
OF_MEMBERS = (E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.REBALANCE_IN_PROGRESS, E.FENCED_INSTANCE_ID)
MOST_TRIES = 200
PAUSE_S = 0.002
TRANSACTIONAL = 0x10


class RebalancedError(RuntimeError):
    """The member is none of its generation: join again."""


class FencedError(RuntimeError):
    """The producer can do nothing more: begin a new one."""


class StuckError(RuntimeError):
    """A request was tried too often."""


class Client:
    """One connection, which is made again when it is cut."""

    def __init__(self, servers: str) -> None:
        host, _, port = servers.partition(",")[0].rpartition(":")
        self._where = (host, int(port))
        self._connection: Connection | None = None

    def ask(self, request: Any, version: int, code: Any, *, again: bool = True) -> Any:
        """Its answer. `code`: takes the error out of it; `again`: it is tried again where that helps."""
        for _ in range(MOST_TRIES):
            try:
                if self._connection is None:
                    self._connection = Connection(*self._where, 30)
                answer = self._connection.call(request, version)
            except OSError:
                self.close()
                time.sleep(PAUSE_S)
                continue
            error = code(answer)
            if error not in AGAIN or not again:
                return answer
            time.sleep(PAUSE_S)
        raise StuckError(type(request).__name__)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def top(answer: Any) -> int:
    """The error code of a whole answer."""
    return int(answer.error_code)


class Consumer:
    """The one member of a group, with one partition. `position`: the next offset to read."""

    def __init__(self, client: Client, group: str, topic: str) -> None:
        self.client, self.group, self.topic = client, group, topic
        self.member, self.generation, self.position = "", -1, 0

    def join(self) -> None:
        """Become a member, and go to what is committed."""
        found = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group])
        self.client.ask(found, 4, lambda answer: answer.coordinators[0].error_code)
        for _ in range(MOST_TRIES):
            protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
            request = JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id=self.member,
                protocol_type="consumer",
                protocols=protocols,
            )
            joined = self.client.ask(request, 5, top)
            if joined.error_code:
                unknown = joined.error_code == E.UNKNOWN_MEMBER_ID
                self.member = "" if unknown else joined.member_id or self.member
                continue
            self.member, self.generation = joined.member_id, joined.generation_id
            given = []
            if joined.leader == self.member:
                given = [SyncGroupRequestAssignment(member_id=self.member, assignment=b"all")]
            synced = self.client.ask(
                SyncGroupRequest(
                    group_id=self.group,
                    generation_id=self.generation,
                    member_id=self.member,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=given,
                ),
                5,
                top,
            )
            if not synced.error_code:
                self.position = max(0, self.committed())
                return
        raise StuckError("joining")

    def committed(self) -> int:
        """What is committed; -1: nothing."""
        topics = [OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self.group, topics=topics)], require_stable=True
        )

        def code(answer: Any) -> int:
            return int(answer.groups[0].error_code or answer.groups[0].topics[0].partitions[0].error_code)

        found = self.client.ask(request, 8, code)
        return int(found.groups[0].topics[0].partitions[0].committed_offset)

    def heartbeat(self) -> None:
        """Errors: RebalancedError."""
        request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member)
        if self.client.ask(request, 4, top).error_code:
            raise RebalancedError

    def poll(self, most: int) -> list[tuple[int, str]]:
        """(offset, value) of the next records that are committed. The position moves on. Errors: RebalancedError."""
        self.heartbeat()
        part = FetchPartition(partition=0, fetch_offset=self.position, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=5,
            min_bytes=1,
            isolation_level=1,
            topics=[FetchTopic(topic=self.topic, partitions=[part])],
        )
        found = self.client.ask(request, 12, lambda answer: answer.responses[0].partitions[0].error_code)
        row = found.responses[0].partitions[0]
        records = [
            (offset, bytes(record.value or b"").decode())
            for offset, record in committed_records(bytes(row.records or b""), row.aborted_transactions)
            if record is not None and offset >= self.position
        ]
        records = records[:most]
        if records:
            self.position = records[-1][0] + 1
        return records

    def commit(self, offset: int) -> None:
        """Errors: RebalancedError."""
        parts = [OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member,
            topics=[OffsetCommitRequestTopic(name=self.topic, partitions=parts)],
        )
        answer = self.client.ask(request, 9, lambda answer: answer.topics[0].partitions[0].error_code)
        if answer.topics[0].partitions[0].error_code:
            raise RebalancedError

    def leave(self) -> None:
        """Leave the group, whatever comes of it."""
        self.client.ask(LeaveGroupRequest(group_id=self.group, members=[MemberIdentity(member_id=self.member)]), 5, top)


class Producer:
    """Of one topic. `name`: its transactional id; None: none."""

    def __init__(self, client: Client, topic: str, name: str | None = None) -> None:
        self.client, self.topic, self.name = client, topic, name
        self.id, self.epoch, self.sequence = -1, -1, 0

    def begin(self) -> None:
        """Get an id: whoever had the name is fenced."""
        if self.name is not None:
            found = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.name])
            self.client.ask(found, 4, lambda answer: answer.coordinators[0].error_code)
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)
        answer = self.client.ask(request, 4, top)
        if answer.error_code:
            raise FencedError
        self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0

    def send(self, values: list[str], *, again: bool = True) -> None:
        """Append records. Errors: FencedError."""
        if self.name is not None:
            topics = [AddPartitionsToTxnTopic(name=self.topic, partitions=[0])]
            added = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=topics,
            )

            def code(answer: Any) -> int:
                return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

            if code(self.client.ask(added, 3, code)):
                raise FencedError
        batch = build_batch(
            [(None, value.encode(), ()) for value in values],
            timestamp_ms=int(time.time() * 1000),
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence if self.id >= 0 else -1,
            attributes=TRANSACTIONAL if self.name is not None else 0,
        )
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(name=self.topic, partition_data=[PartitionProduceData(index=0, records=batch)])
            ],
        )

        def of_partition(answer: Any) -> int:
            return int(answer.responses[0].partition_responses[0].error_code)

        error = of_partition(self.client.ask(request, 9, of_partition, again=again))
        if error and error != E.DUPLICATE_SEQUENCE_NUMBER:
            raise FencedError
        self.sequence += len(values)

    def add_offset(self, consumer: Consumer, offset: int) -> None:
        """Make an offset part of the transaction. Errors: FencedError, RebalancedError."""
        assert self.name is not None
        added = AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, group_id=consumer.group
        )
        if self.client.ask(added, 3, top).error_code:
            raise FencedError
        parts = [TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=consumer.group,
            producer_id=self.id,
            producer_epoch=self.epoch,
            generation_id_or_member_epoch=consumer.generation,
            member_id=consumer.member,
            topics=[TxnOffsetCommitRequestTopic(name=consumer.topic, partitions=parts)],
        )

        def code(answer: Any) -> int:
            return int(answer.topics[0].partitions[0].error_code)

        error = code(self.client.ask(request, 3, code))
        if error:
            raise RebalancedError if error in OF_MEMBERS else FencedError

    def end(self, *, commits: bool) -> None:
        """Errors: FencedError."""
        assert self.name is not None
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=commits
        )
        if self.client.ask(request, 4, top).error_code:
            raise FencedError
