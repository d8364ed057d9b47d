"""Random requests of all kinds of groups, of transactions and of topics, of clients that take what they are told."""

from __future__ import annotations

from typing import Any

from core_broker import make_topic
from core_requests import GROUP_RESOURCE, alter_request, commit_request, produce_request
from offsets_model_kit import delete_offsets
from stepped_kit import History
from txn_kit import Producer

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
from protocol.messages.group_admin import DeleteGroupsRequest
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
from protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
)
from protocol.messages.transactions import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

GROUPS, SHARE_GROUPS = ("g0", "g1", "g2"), ("s0", "s1")
TOPICS = {"a": 2, "b": 1}  # and their partitions
NAMES = ("x0", "x1", "x2")
MEMBER_ID_REQUIRED = 79
SUBSCRIPTION = b"\0\0" + b"\0\0\0\1" + b"\0\1a" + b"\xff\xff\xff\xff"  # of a classic member: topic a, no data
Member = tuple[str, str]  # group, member id


class MixedHistory(History):
    """What clients ask for; whoever adds a world calls `begin`."""

    WEIGHTS = (
        "init:3 produce:6 send_offsets:6 end:6 plain:2 commit:3 consumer:6 classic:3 share:8 advance:2 "
        "delete_group:1 delete_offsets:1 delete_records:1 remake_topic:1 markers:1 alter_share:1 delete_share:1 "
        "zombie:1 change_version:1"
    )
    PASSES_MS: tuple[int, ...] = (100, 3000, 6000, 31_000, 50_000, 70_000, 700_000, 1_400_000)
    SESSION_MS, REBALANCE_MS = 10_000, 5000

    def begin(self) -> None:
        """Make topics and producers."""
        self.connect()
        self.producers = {name: Producer(self.client, name) for name in NAMES}
        self.ids = {topic: make_topic(self.client, topic, partitions) for topic, partitions in TOPICS.items()}
        self.epochs: dict[Member, int] = {}
        self.owned: dict[Member, dict[bytes, list[int]]] = {}
        self.classic: dict[str, tuple[str, int, str | None]] = {}  # member id, generation, instance
        self.shortened: set[tuple[str, int]] = set()  # partitions with records deleted
        for group in SHARE_GROUPS:
            self.client.call(alter_request(GROUP_RESOURCE, group, {"share.auto.offset.reset": "earliest"}), 1)

    def connect(self) -> None:
        super().connect()
        self.sessions: dict[Member, tuple[int, dict[Any, Any]]] = {}  # epoch, and what is acquired by partition

    def step(self) -> None:
        """A request that gets no answer waits for something: its client goes."""
        try:
            super().step()
        except AssertionError as error:
            if "no reply to" not in str(error) or self.client.closed:
                raise
            self.note("no answer")
            self.client.leave()
            self.world.settle()
            self.connect()

    def producer(self) -> Producer | None:
        """One that has an id."""
        producer = self.producers[self.rng.choice(NAMES)]
        return producer if producer.id >= 0 else None

    def place(self) -> tuple[str, int]:
        topic = self.rng.choice(list(TOPICS))
        index = self.rng.randrange(TOPICS[topic])
        self.note(topic, index)
        return topic, index

    def member_of(self, group: str, probability: float) -> dict[str, Any]:
        """Member id and epoch for a commit in a group, if it has members."""
        if self.is_likely(probability):
            members = [member for member in self.epochs if member[0] == group]
            if members:
                member = self.rng.choice(members)
                return {"member_id": member[1], "epoch": self.epochs[member]}
            if group in self.classic:
                return {"member_id": self.classic[group][0], "epoch": self.classic[group][1]}
        return {}

    # -- transactions

    def do_init(self) -> None:
        producer = self.producers[self.rng.choice(NAMES)]
        producer.v2 = self.is_likely(0.6)
        version = 5 if producer.v2 else self.rng.choice([1, 3, 4])
        resume = version >= 3 and producer.id >= 0 and self.is_likely(0.3)
        code = producer.init(version, timeout_ms=self.rng.choice([5000, 60_000]), resume=resume)
        self.note(producer.name, version, code)

    def do_produce(self) -> None:
        producer = self.producer()
        if producer is not None:
            topic, index = self.place()
            if not producer.v2 and self.is_likely(0.8):
                producer.add({topic: [index]})
            values = [b"v%d" % self.rng.randrange(99)] * self.rng.randint(1, 3)
            self.note(producer.name, producer.produce(*values, topic=topic, index=index))

    def do_send_offsets(self) -> None:
        producer = self.producer()
        if producer is not None:
            group = self.rng.choice(GROUPS)
            topic, index = self.place()
            if not producer.v2 and self.is_likely(0.8):
                producer.add_offsets(group)
            member = self.member_of(group, 0.3)
            if member:
                member["generation_id_or_member_epoch"] = member.pop("epoch")
            offsets = {p: self.rng.randrange(50) for p in range(TOPICS[topic]) if p == index or self.is_likely(0.5)}
            self.note(producer.name, group, producer.send_offsets(offsets, group, topic, **member))

    def do_end(self) -> None:
        producer = self.producer()
        if producer is not None:
            self.note(producer.name, producer.end(commit=self.is_likely(0.6)))

    def do_zombie(self) -> None:
        """The instance before this one."""
        producer = self.producer()
        if producer is not None:
            zombie = Producer(self.client, producer.name, v2=producer.v2)
            zombie.id, zombie.epoch = producer.id, producer.epoch - 1
            self.note(zombie.name, zombie.end(commit=self.is_likely(0.5)))

    def do_change_version(self) -> None:
        producer = self.producer()
        if producer is not None:
            producer.v2 = not producer.v2

    def do_markers(self) -> None:
        """From outside, as an administrator's."""
        producer = self.producer()
        if producer is not None and self.is_likely(0.3):
            topic, index = self.place()
            marker = WritableTxnMarker(
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                transaction_result=self.is_likely(0.5),
                topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[index])],
                coordinator_epoch=0,
            )
            self.client.call(WriteTxnMarkersRequest(markers=[marker]), 1)

    # -- topics and offsets

    def do_plain(self) -> None:
        topic, index = self.place()
        self.client.call(produce_request(topic, index, *[b"p"] * self.rng.randint(1, 2)), 7)

    def do_commit(self) -> None:
        group = self.rng.choice(GROUPS)
        topic, index = self.place()
        member = self.member_of(group, 0.7)
        if member:
            member["generation_id_or_member_epoch"] = member.pop("epoch")
        metadata = self.rng.choice(["", "", "meta"])
        request = commit_request(group, {index: self.rng.randrange(60)}, topic, metadata, **member)
        answer = self.client.call(request, self.rng.choice([2, 8, 9]))
        self.note(group, answer.topics[0].partitions[0].error_code)

    def do_delete_offsets(self) -> None:
        topic, index = self.place()
        group = self.rng.choice(GROUPS)
        self.note(group, delete_offsets(self.client, group, topic, [index]))

    def do_delete_group(self) -> None:
        group = self.rng.choice(GROUPS + SHARE_GROUPS)
        self.note(group, self.client.call(DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code)

    def do_delete_records(self) -> None:
        topic, index = self.place()
        self.shortened.add((topic, index))
        rows = [DeleteRecordsPartition(partition_index=index, offset=self.rng.choice([-1, 1, 3, 5, 8, 20]))]
        topics = [DeleteRecordsTopic(name=topic, partitions=rows)]
        self.client.call(DeleteRecordsRequest(topics=topics, timeout_ms=100), 2)

    def do_remake_topic(self) -> None:
        if self.is_likely(0.5):
            topic = self.rng.choice(list(TOPICS))
            self.note(topic)
            self.client.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10), 5)
            for _ in range(self.rng.randrange(3) if self.is_likely(0.6) else 0):
                self.do_end()
            self.ids[topic] = make_topic(self.client, topic, TOPICS[topic])

    def do_advance(self) -> None:
        ms = self.rng.choice(self.PASSES_MS)
        self.note(ms)
        (self.world.advance if ms < 60_000 else self.world.leap)(ms)

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
