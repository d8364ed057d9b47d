"""A share consumer without a client library: heartbeats, reads and acknowledgements, and a broker to send them to."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from core_broker import Client, World, make_topic
from core_requests import GROUP_RESOURCE, alter_request, produce_request

from broker.coordinator.share.state import Key
from protocol.messages.share_fetch import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeRequestAcknowledgementBatch,
    ShareAcknowledgeRequestAcknowledgePartition,
    ShareAcknowledgeRequestAcknowledgeTopic,
    ShareFetchRequest,
    ShareFetchRequestAcknowledgementBatch,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
    ShareFetchRequestForgottenTopic,
)
from protocol.messages.share_group import ShareGroupHeartbeatRequest

GROUP = "g"
Acks = dict[int, list[tuple[int, int, list[int]]]]  # partition -> (first, last, types)


class ShareWorld:
    """One broker with topics. When it is left, its logs must say what it knows."""

    def __init__(self, topics: dict[str, int] | None = None, *, reset: str = "earliest", **settings: Any) -> None:
        self.world = World(**{"share_coordinator_state_topic_num_partitions": "2", **settings})
        self.client = Client(self.world)
        for name, partitions in (topics or {"t": 1}).items():
            make_topic(self.client, name, partitions)
        self.set(**{"share.auto.offset.reset": reset})

    def __enter__(self) -> ShareWorld:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if kind is None:
            self.check_replay()

    def check_replay(self) -> None:
        """A start makes the same state of the logs."""
        before = self.world.fingerprints()
        again = self.world.crash()
        for shards in (again.broker.groups.shards, again.broker.share.coordinator.shards):
            for shard in shards:
                shard.require()
        after = again.fingerprints()
        assert {name: after[name] for name in before if name.startswith("__")} == {
            name: found for name, found in before.items() if name.startswith("__")
        }

    def restart(self) -> None:
        """kill -9, and a new start."""
        self.world = self.world.crash()
        self.client = Client(self.world)

    def set(self, **configs: str | None) -> int:
        """Settings of the group; the error code."""
        return int(self.client.call(alter_request(GROUP_RESOURCE, GROUP, configs), 1).responses[0].error_code)

    def topic_id(self, name: str = "t") -> bytes:
        return self.world.broker.metadata.topics[name].topic_id

    def produce(self, *batches: int, topic: str = "t", partition: int = 0) -> None:
        """Batches of so many records each."""
        for count in batches:
            values = [b"%d" % number for number in range(count)]
            self.client.call(produce_request(topic, partition, *values), 7)

    def member(self, member_id: str = "m", *, group: str = GROUP) -> Member:
        """A member with a connection of its own, that has not joined."""
        return Member(self, member_id, group)

    def reader(self, member_id: str = "m", *topics: str) -> Member:
        """A member that has joined and has its partitions."""
        member = self.member(member_id)
        member.join(*topics)
        member.beat()
        return member

    def state(self, partition: int = 0, topic: str = "t") -> Any:
        """What is stored of a share partition."""
        return self.world.broker.share.coordinator.state(self.key(partition, topic))

    def key(self, partition: int = 0, topic: str = "t") -> Key:
        """The name of a share partition."""
        return Key(GROUP, self.topic_id(topic), partition)

    def log(self) -> Any:
        """The log that stores the share partition t-0."""
        return self.world.broker.share.coordinator.shard(self.key()).log


class Member:
    """One share consumer."""

    def __init__(self, world: ShareWorld, member_id: str, group: str) -> None:
        self.owner = world
        self.client = Client(world.world)
        self.member_id = member_id
        self.group = group
        self.epoch = 0
        self.session = 0
        self.assigned: dict[bytes, list[int]] = {}

    # -- the group

    def heartbeat(self, epoch: int, topics: list[str] | None = None, **fields: Any) -> Any:
        reply = self.client.call(
            ShareGroupHeartbeatRequest(
                **{
                    "group_id": self.group,
                    "member_id": self.member_id,
                    "member_epoch": epoch,
                    "subscribed_topic_names": topics,
                    **fields,
                }
            ),
            1,
        )
        if not reply.error_code and epoch >= 0:
            self.epoch = reply.member_epoch
            if reply.assignment is not None:
                self.assigned = {t.topic_id: t.partitions for t in reply.assignment.topic_partitions}
        return reply

    def join(self, *topics: str) -> Any:
        return self.heartbeat(0, list(topics or ("t",)))

    def beat(self) -> Any:
        return self.heartbeat(self.epoch)

    def leave(self) -> Any:
        return self.heartbeat(-1)

    # -- reading

    def fetch_request(
        self, *partitions: int, acks: Acks | None = None, epoch: int | None = None, topic: str = "t", **fields: Any
    ) -> ShareFetchRequest:
        """The next ShareFetch of the session."""
        topic_id = fields.pop("topic_id", None) or self.owner.topic_id(topic)
        forget = fields.pop("forget", ())
        named = dict.fromkeys([*partitions, *(acks or {})])
        found = [
            ShareFetchRequestFetchPartition(
                partition_index=index,
                acknowledgement_batches=[
                    ShareFetchRequestAcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=types)
                    for a, b, types in (acks or {}).get(index, ())
                ],
            )
            for index in named
        ]
        request = ShareFetchRequest(
            **{
                "group_id": self.group,
                "member_id": self.member_id,
                "share_session_epoch": self.session if epoch is None else epoch,
                "max_wait_ms": 0,
                "min_bytes": 1,
                "max_bytes": 1 << 20,
                "max_records": 500,
                "batch_size": 500,
                **fields,
            },
            topics=[ShareFetchRequestFetchTopic(topic_id=topic_id, partitions=found)] if found else [],
            forgotten_topics_data=[ShareFetchRequestForgottenTopic(topic_id=topic_id, partitions=list(forget))]
            if forget
            else [],
        )
        if epoch is None:
            self.session += 1
        return request

    def fetch(self, *partitions: int, version: int = 2, **how: Any) -> Any:
        """The reply to a ShareFetch; partition 0 is named in the first one."""
        if self.session == 0 and not partitions and "epoch" not in how:
            partitions = (0,)
        return self.client.call(self.fetch_request(*partitions, **how), version)

    def acquired(self, *partitions: int, **how: Any) -> list[tuple[int, int, int]]:
        """What a ShareFetch acquires: (first, last, delivery count), of all partitions."""
        reply = self.fetch(*partitions, **how)
        assert reply.error_code == 0, reply
        return acquired(reply)

    def acknowledge(self, *batches: tuple[int, int, list[int]], version: int = 2, **fields: Any) -> Any:
        """The reply to a ShareAcknowledge of partition 0 of topic t."""
        return self.client.call(self.acknowledge_request(*batches, **fields), version)

    def acknowledge_request(self, *batches: tuple[int, int, list[int]], **fields: Any) -> ShareAcknowledgeRequest:
        """The next ShareAcknowledge of the session."""
        epoch = fields.pop("epoch", None)
        topic_id = fields.pop("topic_id", None) or self.owner.topic_id()
        partition = ShareAcknowledgeRequestAcknowledgePartition(
            partition_index=fields.pop("partition", 0),
            acknowledgement_batches=[
                ShareAcknowledgeRequestAcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=types)
                for a, b, types in batches
            ],
        )
        request = ShareAcknowledgeRequest(
            **{
                "group_id": self.group,
                "member_id": self.member_id,
                "share_session_epoch": self.session if epoch is None else epoch,
                **fields,
            },
            topics=[ShareAcknowledgeRequestAcknowledgeTopic(topic_id=topic_id, partitions=[partition])],
        )
        if epoch is None:
            self.session += 1
        return request

    def ack_error(self, *batches: tuple[int, int, list[int]], **fields: Any) -> int:
        """The partition's error code."""
        reply = self.acknowledge(*batches, **fields)
        assert reply.error_code == 0, reply
        return int(reply.responses[0].partitions[0].error_code)


def acquired(reply: Any) -> list[tuple[int, int, int]]:
    """(first, last, delivery count) of what a reply to ShareFetch says."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in reply.responses
        for partition in topic.partitions
        for each in partition.acquired_records
    ]
