"""A member of a classic group, for `kafka-console-consumer --group`: joins, takes its share, commits, leaves."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from broker.asks.ask import SOON
from momus.cli.records.client import RETRY_PAUSE_S, RecordClient
from momus.client.kafka_client import Client, RequestFailedError
from momus.client.kafka_client import _check as check
from protocol.codegen import codec
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
from protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from protocol.messages.offsets import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic

SESSION_MS, REBALANCE_MS = 45_000, 300_000
HEARTBEAT_S, COMMIT_S = 3.0, 5.0
WAIT_S = 310.0  # a rebalance may take as long as the slowest member
RANGE = "range"
AGAIN = (
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    *SOON,
    ErrorCode.NOT_COORDINATOR,
)
Positions = dict[tuple[str, int], int]


class Member:
    """One member. `join` first; then `beat` between reads, which says when to join again.

    Errors: RequestFailedError, OSError.
    """

    def __init__(
        self, bootstrap: str, group: str, topics: Sequence[str], instance: str | None, *, commits: bool
    ) -> None:
        self._client = Client(bootstrap, timeout_s=WAIT_S)
        self._group = group
        self._topics = sorted(topics)
        self._instance = instance
        self._commits = commits
        self._member, self._generation = "", -1
        self._beat_at = self._commit_at = 0.0

    def join(self, client: RecordClient) -> list[tuple[str, int]]:
        """The partitions that it gets."""
        while True:
            try:
                joined = self._joined()
                assignment = self._synced(joined, client)
            except RequestFailedError as error:
                if error.code not in (*AGAIN, ErrorCode.MEMBER_ID_REQUIRED):
                    raise
                if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
                    self._member = ""
                time.sleep(0 if error.code == ErrorCode.MEMBER_ID_REQUIRED else RETRY_PAUSE_S)
                continue
            now = time.monotonic()
            self._beat_at, self._commit_at = now + HEARTBEAT_S, now + COMMIT_S
            return assignment

    def _call(self, request: Any, version_limit: int | None = None) -> Any:
        return self._client._call(self._client._coordinator(self._group), request, version_limit)

    def _joined(self) -> Any:
        metadata = b"\0\0" + codec(ConsumerProtocolSubscription, 0).encode(
            ConsumerProtocolSubscription(topics=self._topics)
        )
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._member,
            group_instance_id=self._instance,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=RANGE, metadata=metadata)],
        )
        answer = self._call(request)
        if answer.member_id:
            self._member = answer.member_id
        check(f"group {self._group}", answer.error_code)
        self._generation = answer.generation_id
        return answer

    def _synced(self, joined: Any, client: RecordClient) -> list[tuple[str, int]]:
        """The member's own partitions; its leader gives all members theirs."""
        shares: dict[str, dict[str, list[int]]] = {}
        if joined.leader == self._member and not joined.skip_assignment:
            wishes = {each.member_id: (each.group_instance_id, _topics(each.metadata)) for each in joined.members}
            every = {topic for _, topics in wishes.values() for topic in topics}
            counts = {topic: len(client.leaders(topic)) for topic in every if _is_there(client, topic)}
            shares = shared_out(wishes, counts)
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=self._member,
            group_instance_id=self._instance,
            protocol_type="consumer",
            protocol_name=RANGE,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=_encoded(share))
                for member, share in shares.items()
            ],
        )
        answer = self._call(request)
        check(f"group {self._group}", answer.error_code)
        if len(answer.assignment) < 2:
            return []
        decoded, _ = codec(ConsumerProtocolAssignment, 0).decode(bytes(answer.assignment), 2)
        return [(each.topic, partition) for each in decoded.assigned_partitions for partition in each.partitions]

    def beat(self, positions: Positions) -> bool:
        """Say that it is alive and commit, when it is time. False: the group is balanced again, so join again."""
        now = time.monotonic()
        if self._commits and now >= self._commit_at:
            self._commit_at = now + COMMIT_S
            if not self.commit(positions):
                return False
        if now < self._beat_at:
            return True
        self._beat_at = now + HEARTBEAT_S
        request = HeartbeatRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=self._member,
            group_instance_id=self._instance,
        )
        code = self._call(request).error_code
        if code in AGAIN:
            if self._commits:
                self.commit(positions)
            return False
        check(f"group {self._group}", code)
        return True

    def commit(self, positions: Positions) -> bool:
        """Commit these positions. False: the group is balanced again, or the member is not known any more."""
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (topic, partition), offset in positions.items():
            row = OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
            )
            topics.setdefault(topic, OffsetCommitRequestTopic(name=topic, partitions=[])).partitions.append(row)
        if not topics:
            return True
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member,
            group_instance_id=self._instance,
            topics=list(topics.values()),
        )
        codes = {row.error_code for each in self._call(request, 9).topics for row in each.partitions} - {0}
        for code in codes - set(AGAIN):
            check(f"commit of group {self._group}", code)
        return not codes

    def leave(self, positions: Positions) -> None:
        """Commit and leave. A static member stays, as its instance id says."""
        if self._commits:
            self.commit(positions)
        if self._instance is None:
            identity = MemberIdentity(member_id=self._member, group_instance_id=None)
            self._call(LeaveGroupRequest(group_id=self._group, member_id=self._member, members=[identity]))
        self._client.__exit__()


def _is_there(client: RecordClient, topic: str) -> bool:
    try:
        client.leaders(topic)
    except RequestFailedError:
        return False
    return True


def _topics(metadata: bytes) -> list[str]:
    decoded, _ = codec(ConsumerProtocolSubscription, 0).decode(bytes(metadata), 2)
    return list(decoded.topics)


def _encoded(share: Mapping[str, list[int]]) -> bytes:
    rows = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=each) for topic, each in sorted(share.items())
    ]
    return b"\0\0" + codec(ConsumerProtocolAssignment, 0).encode(ConsumerProtocolAssignment(assigned_partitions=rows))


def shared_out(
    wishes: Mapping[str, tuple[str | None, Sequence[str]]], counts: Mapping[str, int]
) -> dict[str, dict[str, list[int]]]:
    """Member -> topic -> partitions, as Kafka's RangeAssignor: of each topic a run of neighbours to each subscriber in
    the order of instance ids and then member ids, the first ones one more where it does not come out even.

    wishes      member -> instance id, topics
    counts      topic -> partitions; a topic that is not there is left out
    """
    shares: dict[str, dict[str, list[int]]] = {member: {} for member in wishes}
    for topic, count in counts.items():
        members = [member for member, (_, topics) in wishes.items() if topic in topics]
        members.sort(key=lambda member: (wishes[member][0] is None, wishes[member][0] or member))
        each, more = divmod(count, len(members)) if members else (0, 0)
        begin = 0
        for place, member in enumerate(members):
            end = begin + each + (place < more)
            if end > begin:
                shares[member][topic] = list(range(begin, end))
            begin = end
    return shares
