"""Random requests of all kinds of groups, of transactions and of topics, of clients that take what they are told."""

from __future__ import annotations

from typing import Any

from core_broker import make_topic
from core_requests import GROUP_RESOURCE, alter_request, commit_request, produce_request
from mixed_groups_kit import GROUPS, SHARE_GROUPS, TOPICS, Member, MixedGroups
from offsets_model_kit import delete_offsets
from txn_kit import Producer

from protocol.messages.group_admin import DeleteGroupsRequest
from protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
)
from protocol.messages.transactions import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

NAMES = ("x0", "x1", "x2")


class MixedHistory(MixedGroups):
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
