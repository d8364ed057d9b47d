"""Consumer groups over the whole broker in memory: members that heartbeat as clients do, and what must always hold.

`Groups.check` is for the end of every test: the log alone makes the same groups, and no epoch is out of order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core_broker import Client, World, make_topic

from broker.coordinator.groups.consumer.group import ConsumerGroup
from protocol.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)

GROUP = "g"
NO_ACK = object()
SESSION_MS = 45_000


class Groups:
    """A broker, its topics, and the members that tests make."""

    def __init__(self, topics: Mapping[str, int] | None = None, **settings: str) -> None:
        self.world = World(**settings)
        self.client = Client(self.world)
        self.ids: dict[str, bytes] = {}
        for name, partitions in (topics or {}).items():
            self.make_topic(name, partitions)

    def __enter__(self) -> Groups:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.check()

    def make_topic(self, name: str, partitions: int) -> bytes:
        self.ids[name] = make_topic(self.client, name, partitions)
        return self.ids[name]

    def name(self, topic_id: bytes) -> str:
        return next((name for name, id_ in self.ids.items() if id_ == topic_id), "?")

    def member(self, member_id: str = "m", **how: Any) -> Member:
        return Member(self, member_id, **how)

    def joined(self, *member_ids: str, **how: Any) -> list[Member]:
        """Members that have what they shall have."""
        members = [self.member(m, **how) for m in member_ids]
        for member in members:
            member.join()
        self.settle(members)
        return members

    def settle(self, members: Sequence[Member], rounds: int = 20) -> int:
        """Heartbeats until nothing changes any more; how many rounds it took."""
        for n in range(rounds):
            before = [(m.epoch, m.assigned) for m in members]
            for member in members:
                member.beat()
            if [(m.epoch, m.assigned) for m in members] == before and all(
                m.epoch == self.group(m.group_id).group_epoch for m in members
            ):
                return n
        raise AssertionError(f"not settled: {[(m.member_id, m.epoch, m.assigned) for m in members]}")

    def group(self, group_id: str = GROUP) -> Any:
        return self.world.broker.groups.of(group_id).machine.groups.get(group_id)

    def describe(self, group_id: str = GROUP, version: int = 1) -> Any:
        return self.client.call(ConsumerGroupDescribeRequest(group_ids=[group_id]), version).groups[0]

    def advance(self, ms: int) -> None:
        self.world.advance(ms)

    def restart(self) -> None:
        """A new process over the same log."""
        self.check()
        self.world = self.world.crash()
        self.client = Client(self.world)

    def check(self) -> None:
        """Replayed state equals live state, and the order of the epochs holds."""
        for shard in self.world.broker.groups.shards:
            for group in shard.machine.groups.values():
                if isinstance(group, ConsumerGroup):
                    assert group.inconsistencies() == []
        live = self.world.fingerprints()
        again = self.world.again(self.world.files.crash())
        for shard in again.broker.groups.shards:
            shard.require()
        rebuilt = again.fingerprints()
        for name, facts in live.items():
            if name.startswith("__consumer_offsets"):
                for group_id, group_facts in facts["groups"].items():
                    assert rebuilt[name]["groups"][group_id] == group_facts
                machines = [w.broker.groups.shards[int(name[19:])].machine for w in (self.world, again)]
                assert set(machines[0].groups) == set(machines[1].groups)
                assert rebuilt[name]["offsets"] == facts["offsets"]

    # -- offsets

    def commit(
        self,
        member_id: str,
        epoch: int,
        *partitions: int,
        topic: str = "t",
        instance: str | None = None,
        version: int = 9,
        group_id: str = GROUP,
        metadata: Mapping[int, str] | None = None,
        offset: int = 1,
    ) -> Any:
        """The error of each partition; a single one as a number."""
        rows = [
            OffsetCommitRequestPartition(
                partition_index=p, committed_offset=offset, committed_metadata=(metadata or {}).get(p, "")
            )
            for p in partitions
        ]
        row = OffsetCommitRequestTopic(name=topic, topic_id=self.ids.get(topic, bytes(16)), partitions=rows)
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            group_instance_id=instance,
            topics=[row],
        )
        codes = [p.error_code for t in self.client.call(request, version).topics for p in t.partitions]
        return codes[0] if len(codes) == 1 else codes

    def committed(self, topic: str = "t", group_id: str = GROUP) -> dict[int, int]:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)])
        answer = self.client.call(request, 8).groups[0]
        return {p.partition_index: p.committed_offset for t in answer.topics if t.name == topic for p in t.partitions}

    def fetch_error(self, member_id: str | None, epoch: int, group_id: str = GROUP) -> int:
        asked = OffsetFetchRequestGroup(group_id=group_id, member_id=member_id, member_epoch=epoch, topics=None)
        code: int = self.client.call(OffsetFetchRequest(groups=[asked]), 9).groups[0].error_code
        return code


class Member:
    """A member as its client sees it: it acknowledges at once what it has to give back, unless told otherwise."""

    def __init__(
        self,
        groups: Groups,
        member_id: str = "m",
        *,
        group_id: str = GROUP,
        topics: Sequence[str] | None = ("t",),
        regex: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
        rack: str | None = None,
        rebalance_ms: int = 60_000,
    ) -> None:
        self.groups = groups
        self.member_id = member_id
        self.group_id = group_id
        self.topics = topics
        self.regex = regex
        self.instance = instance
        self.assignor = assignor
        self.rack = rack
        self.rebalance_ms = rebalance_ms
        self.epoch = 0
        self.owned: dict[bytes, list[int]] = {}
        self.last: Any = None
        self._acknowledged: dict[bytes, list[int]] = {}

    @property
    def assigned(self) -> dict[str, list[int]]:
        """What it was told that it has, by topic name."""
        return {self.groups.name(t): sorted(p) for t, p in sorted(self.owned.items()) if p}

    def count(self) -> int:
        return sum(map(len, self.owned.values()))

    def join(self, version: int = 1, **fields: Any) -> Any:
        """A heartbeat with epoch 0; what it had it has given up."""
        self.owned, self._acknowledged = {}, {}
        return self.send(
            0,
            version=version,
            **{
                "rebalance_timeout_ms": self.rebalance_ms,
                "subscribed_topic_names": None if self.topics is None else list(self.topics),
                "subscribed_topic_regex": self.regex,
                "server_assignor": self.assignor,
                "rack_id": self.rack,
                "topic_partitions": [],
                **fields,
            },
        )

    def beat(self, **fields: Any) -> Any:
        """A heartbeat; the owned partitions are in it when they have changed since they were last told."""
        if "topic_partitions" not in fields and self.owned != self._acknowledged:
            fields["topic_partitions"] = self.owned_now()
            self._acknowledged = self.owned
        return self.send(fields.pop("epoch", self.epoch), **fields)

    def owned_now(self) -> list[Any]:
        return [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=t, partitions=list(p)) for t, p in self.owned.items()
        ]

    def leave(self, epoch: int = -1) -> Any:
        return self.send(epoch)

    def send(self, epoch: int, version: int = 1, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            **{
                "group_id": self.group_id,
                "member_id": self.member_id,
                "member_epoch": epoch,
                "instance_id": self.instance,
                **fields,
            }
        )
        answer = self.groups.client.call(request, version)
        self.last = answer
        if answer.error_code == 0:
            self.member_id = answer.member_id
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = {t.topic_id: list(t.partitions) for t in answer.assignment.topic_partitions}
        return answer

    def commit(self, *partitions: int, epoch: int | None = None, **how: Any) -> Any:
        return self.groups.commit(
            self.member_id, self.epoch if epoch is None else epoch, *partitions, group_id=self.group_id, **how
        )
