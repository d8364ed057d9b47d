"""Random requests of consumer groups, classic groups and share groups."""

from __future__ import annotations

from typing import Any

from stepped_kit import History

from broker.coordinator.groups.consumer.embedded_protocol import write_assignment
from protocol.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatRequestTopicPartitions
from protocol.messages.share_fetch import (
    ShareFetchRequest,
    ShareFetchRequestAcknowledgementBatch,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
)
from protocol.messages.share_group import ShareGroupHeartbeatRequest
from protocol.messages.share_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)

GROUPS, SHARE_GROUPS = ("g0", "g1", "g2"), ("s0", "s1")
TOPICS = {"a": 2, "b": 1}  # and their partitions
MEMBER_ID_REQUIRED = 79
SUBSCRIPTION = b"\0\0" + b"\0\0\0\1" + b"\0\1a" + b"\xff\xff\xff\xff"  # of a classic member: topic a, no data
Member = tuple[str, str]  # group, member id


class MixedGroups(History):
    """What members of all kinds of groups ask for."""

    # -- groups

    def do_consumer(self) -> None:
        """A heartbeat of KIP-848: joins, leaves, or goes on."""
        member = group, member_id = self.rng.choice(GROUPS), self.rng.choice(["m0", "m1"])
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member_id, instance_id="i1" if member_id == "m1" else None, topic_partitions=[]
        )
        kind = self.rng.random()
        leaves = member in self.epochs and kind < 0.15
        if leaves:
            request.member_epoch = -2 if request.instance_id and self.is_likely(0.6) else -1
            request.topic_partitions = None
        else:
            request.member_epoch = self.epochs.get(member, 0)
            if member not in self.epochs or kind < 0.5:
                request.rebalance_timeout_ms = self.REBALANCE_MS
            if member not in self.epochs or kind < 0.3:
                request.subscribed_topic_names = self.rng.choice([["a"], ["b"], ["a", "b"]])
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in self.owned.get(member, {}).items()
            ]
        answer = self.client.call(request, 1)
        self.note(member, request.member_epoch, answer.error_code)
        if answer.error_code or leaves:
            self.epochs.pop(member, None)
            self.owned.pop(member, None)
            return
        self.epochs[member] = answer.member_epoch
        if answer.assignment is not None:
            self.owned[member] = {row.topic_id: row.partitions for row in answer.assignment.topic_partitions}

    def do_classic(self) -> None:
        """A member of the classic protocol joins and syncs, or leaves."""
        group, instance = self.rng.choice(GROUPS), self.rng.choice([None, "j"])
        self.note(group, instance)
        if group in self.classic and self.is_likely(0.5):
            member_id, _, instance = self.classic.pop(group)
            identity = MemberIdentity(member_id=member_id, group_instance_id=instance)
            self.client.call(LeaveGroupRequest(group_id=group, members=[identity]), 5)
            return
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=self.SESSION_MS,
            rebalance_timeout_ms=3000,
            member_id="",
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )
        answer = self.join(request)
        if answer.error_code == MEMBER_ID_REQUIRED:
            request.member_id = answer.member_id
            answer = self.join(request)
        self.note(answer.error_code)
        if answer.error_code:
            return
        assignment = write_assignment({"a": (0, 1)}, 3)
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=each.member_id, assignment=assignment) for each in answer.members
            ],
        )
        if not self.client.call(sync, 5).error_code:
            self.classic[group] = answer.member_id, answer.generation_id, instance

    def join(self, request: JoinGroupRequest) -> Any:
        """The answer, which may wait until other members have joined, or are gone."""
        self.client.send(request, 9)
        self.world.run()
        replies = self.client.replies()
        if not replies:
            self.world.advance(3001)
            replies = self.client.replies()
        assert replies, "no reply to JoinGroup"
        return replies[-1]

    # -- share groups

    def do_share(self) -> None:
        """A member joins, leaves, says that it is there, or fetches and acknowledges."""
        member = group, member_id = self.rng.choice(SHARE_GROUPS), self.rng.choice(["m0", "m1"])
        kind = self.rng.random()
        if member in self.epochs and kind >= 0.3:
            self.share_fetch(member)
            return
        request = ShareGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=0)
        if member not in self.epochs:
            request.subscribed_topic_names = ["a", "b"]
        else:
            request.member_epoch = -1 if kind < 0.1 else self.epochs[member]
        answer = self.client.call(request, 1)
        self.note(member, request.member_epoch, answer.error_code)
        if answer.error_code or request.member_epoch == -1:
            self.epochs.pop(member, None)
        else:
            self.epochs[member] = answer.member_epoch

    def share_fetch(self, member: Member) -> None:
        epoch, acquired = self.sessions.get(member, (0, {}))
        acks: dict[Any, list[Any]] = {}
        if epoch and self.is_likely(0.8):
            acks, acquired = {place: [self.acknowledged(*row) for row in rows] for place, rows in acquired.items()}, {}
        topics: dict[bytes, list[Any]] = {}
        for topic_id, index in sorted({(self.ids[t], i) for t in TOPICS for i in range(TOPICS[t])} | set(acks)):
            batches = acks.get((topic_id, index), [])
            part = ShareFetchRequestFetchPartition(partition_index=index, acknowledgement_batches=batches)
            topics.setdefault(topic_id, []).append(part)
        request = ShareFetchRequest(
            group_id=member[0],
            member_id=member[1],
            share_session_epoch=epoch,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=self.rng.choice([2, 3, 500]),
            batch_size=self.rng.choice([1, 500]),
            share_acquire_mode=self.rng.choice([0, 1]),
            topics=[ShareFetchRequestFetchTopic(topic_id=t, partitions=p) for t, p in topics.items()],
        )
        answer = self.client.call(request, 2)
        self.note(member, epoch, answer.error_code)
        if answer.error_code:
            self.sessions.pop(member, None)
            return
        acquired = {place: list(rows) for place, rows in acquired.items()}
        for row in answer.responses:
            for part in row.partitions:
                for got in part.acquired_records:
                    place = row.topic_id, part.partition_index
                    acquired.setdefault(place, []).append((got.first_offset, got.last_offset))
        self.sessions[member] = epoch + 1, acquired

    def acknowledged(self, first: int, last: int) -> ShareFetchRequestAcknowledgementBatch:
        """One kind for all of a batch, or one for each of its records: accepted, released, rejected."""
        count = last - first + 1 if self.is_likely(0.25) else 1
        kinds = [self.rng.choice([1, 2, 3]) for _ in range(count)]
        return ShareFetchRequestAcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=kinds)

    def do_alter_share(self) -> None:
        group = self.rng.choice(SHARE_GROUPS)
        topic, index = self.place()
        rows = [AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=self.rng.randrange(10))]
        topics = [AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=rows)]
        self.note(group, self.client.call(AlterShareGroupOffsetsRequest(group_id=group, topics=topics), 0).error_code)

    def do_delete_share(self) -> None:
        group = self.rng.choice(SHARE_GROUPS)
        topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=self.rng.choice(list(TOPICS)))]
        self.note(group, self.client.call(DeleteShareGroupOffsetsRequest(group_id=group, topics=topics), 0).error_code)
