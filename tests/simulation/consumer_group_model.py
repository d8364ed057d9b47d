"""A model of consumer groups with a client's eye on each member: what it was given, and what it may commit."""

from __future__ import annotations

from typing import Any

from consumer_kit import GROUP, Groups
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.coordinator.groups.consumer import target
from broker.coordinator.groups.machine import GroupMachine
from protocol.errors import ErrorCode as E
from protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.record_batch import iter_records

# The last one: an empty group without offsets does not live on forever.
REFUSALS = (E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.UNRELEASED_INSTANCE_ID, E.GROUP_ID_NOT_FOUND)
WISHES = (("t",), ("u",), ("t", "u"), ("t", "later"))
SLOTS = 6
AT_ONCE = target.WORK_AT_ONCE, target.MIXED_WORK_AT_ONCE

Partition = tuple[str, int]


class Consumer:
    """One client process: what it believes. `tenures`: the tenure of each partition when it was told that it has it."""

    def __init__(self, slot: int, number: int, wishes: tuple[str, ...], instance: str | None) -> None:
        self.slot = slot
        self.member_id = f"c{slot}-{number}"
        self.wishes = wishes
        self.instance = instance
        self.epoch = 0
        self.owned: frozenset[Partition] = frozenset()
        self.tenures: dict[Partition, int] = {}
        self.told: frozenset[Partition] = frozenset()  # what the last heartbeat said
        self.must_tell = True  # everything, after a lost answer
        self.is_member = False


class Group(RuleBasedStateMachine):
    """The model; `fencing` is the rule that the broker goes by."""

    fencing = "assignment-epoch"
    zombies_accepted = 0

    @initialize(members=st.integers(0, SLOTS), is_large=st.booleans())
    def start(self, members: int, is_large: bool) -> None:
        """`is_large`: every target is made between the turns."""
        target.WORK_AT_ONCE, target.MIXED_WORK_AT_ONCE = (0, 0) if is_large else AT_ONCE
        self.groups = Groups({"t": 4, "u": 3}, group_commit_fencing=self.fencing)
        self.numbers = 0
        self.consumers: dict[int, Consumer] = {}
        self.past: list[tuple[Consumer, int, Partition, int]] = []  # consumer, epoch, partition, tenure
        self.holder: dict[Partition, str] = {}  # who had a partition last
        self.tenure: dict[Partition, int] = {}
        self.partitions = {"t": 4, "u": 3}
        for slot in range(members):
            self.join(slot, ("t", "u"), lost=False)
            self.everybody(1)

    # -- looking at the broker

    @property
    def shard(self) -> Any:
        shard = self.groups.world.broker.groups.of(GROUP)
        shard.require()
        return shard

    @property
    def group(self) -> Any:
        return self.shard.machine.groups.get(GROUP)

    def topic_id(self, name: str) -> bytes:
        return self.groups.ids[name]

    def note_owners(self) -> None:
        """A partition that goes to another member begins a new tenure."""
        group = self.group
        if group is None:
            return
        for name, id_ in self.groups.ids.items():
            for index, member_id in group.owners.get(id_, {}).items():
                if self.holder.get((name, index)) != member_id:
                    self.holder[name, index] = member_id
                    self.tenure[name, index] = self.tenure.get((name, index), 0) + 1

    # -- what clients do

    def send(self, consumer: Consumer, epoch: int, *, lost: bool = False, **fields: Any) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=consumer.member_id, member_epoch=epoch, instance_id=consumer.instance, **fields
        )
        answer = self.groups.client.call(request, 1)
        self.note_owners()
        if epoch < 0:
            return
        if lost:
            consumer.must_tell = True
            return
        if answer.error_code:
            assert answer.error_code in REFUSALS
            consumer.epoch, consumer.owned, consumer.is_member = 0, frozenset(), False
            consumer.must_tell = True
            return
        consumer.is_member = True
        consumer.epoch = answer.member_epoch
        consumer.must_tell = False
        if answer.assignment is not None:
            consumer.owned = frozenset(
                (self.groups.name(t.topic_id), p) for t in answer.assignment.topic_partitions for p in t.partitions
            )
            consumer.tenures = {p: self.tenure[p] for p in consumer.owned}
        self.past += [(consumer, consumer.epoch, p, consumer.tenures[p]) for p in consumer.owned]

    def as_request(self, owned: frozenset[Partition]) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
        return [
            ConsumerGroupHeartbeatRequestTopicPartitions(
                topic_id=self.topic_id(name), partitions=[p for n, p in sorted(owned) if n == name]
            )
            for name in sorted({name for name, _ in owned})
        ]

    @rule(slot=st.integers(0, SLOTS - 1), wishes=st.sampled_from(WISHES), lost=st.booleans())
    def join(self, slot: int, wishes: tuple[str, ...], lost: bool) -> None:
        consumer = self.consumers.get(slot)
        if consumer is None:
            self.numbers += 1
            instance = f"i{slot}" if slot == 0 else None
            consumer = self.consumers[slot] = Consumer(slot, self.numbers, wishes, instance)
        elif consumer.is_member:
            return
        consumer.owned, consumer.told = frozenset(), frozenset()
        self.send(
            consumer,
            0,
            lost=lost,
            rebalance_timeout_ms=20_000,
            subscribed_topic_names=list(consumer.wishes),
            topic_partitions=[],
        )

    def beat(self, consumer: Consumer, *, lost: bool = False, quiet: bool = False, **fields: Any) -> None:
        """A heartbeat; a quiet one says nothing of what is owned. After a lost answer everything is said again."""
        if consumer.must_tell:
            fields = {"rebalance_timeout_ms": 20_000, "subscribed_topic_names": list(consumer.wishes), **fields}
        if consumer.must_tell or (not quiet and consumer.told != consumer.owned):
            fields["topic_partitions"] = self.as_request(consumer.owned)
            consumer.told = consumer.owned
        self.send(consumer, consumer.epoch, lost=lost, **fields)

    @rule(slot=st.integers(0, SLOTS - 1), lost=st.booleans(), quiet=st.booleans())
    def heartbeat(self, slot: int, lost: bool, quiet: bool) -> None:
        consumer = self.consumers.get(slot)
        if consumer is not None and consumer.is_member:
            self.beat(consumer, lost=lost, quiet=quiet)

    @rule(slot=st.integers(0, SLOTS - 1), wishes=st.sampled_from(WISHES))
    def subscribe(self, slot: int, wishes: tuple[str, ...]) -> None:
        consumer = self.consumers.get(slot)
        if consumer is not None and consumer.is_member:
            consumer.wishes = wishes
            self.beat(consumer, subscribed_topic_names=list(wishes))

    @rule(rounds=st.integers(1, 3))
    def everybody(self, rounds: int) -> None:
        for _ in range(rounds):
            for consumer in self.consumers.values():
                if consumer.is_member:
                    self.beat(consumer)

    @rule(slot=st.integers(0, SLOTS - 1), how=st.sampled_from(["leave", "leave unheard", "die"]))
    def end(self, slot: int, how: str) -> None:
        """A client stops, in order or not; what it had sent before may still arrive."""
        consumer = self.consumers.pop(slot, None)
        if consumer is not None and consumer.is_member and how != "die":
            self.send(consumer, -2 if consumer.instance else -1, lost=how != "leave")

    # -- what happens around them

    @rule(ms=st.sampled_from([1_000, 10_000, 30_000, 46_000]))
    def time_passes(self, ms: int) -> None:
        self.groups.advance(ms)
        self.note_owners()

    @rule()
    def coordinator_is_killed(self) -> None:
        self.groups.world = self.groups.world.crash()
        self.groups.client = type(self.groups.client)(self.groups.world)
        self.note_owners()

    @rule(name=st.sampled_from(["t", "u", "later"]))
    def topic_grows(self, name: str) -> None:
        if name not in self.partitions:
            self.groups.make_topic(name, 2)
            self.partitions[name] = 2
        elif self.partitions[name] < 7:
            self.partitions[name] += 1
            topic = CreatePartitionsTopic(name=name, count=self.partitions[name], assignments=None)
            request = CreatePartitionsRequest(topics=[topic], timeout_ms=1000)
            assert self.groups.client.call(request, 3).results[0].error_code == 0

    # -- commits

    def commit(self, consumer: Consumer, epoch: int, partition: Partition) -> int:
        name, index = partition
        code: int = self.groups.commit(consumer.member_id, epoch, index, topic=name, instance=consumer.instance)
        return code

    def broker_epochs(self, consumer: Consumer, partition: Partition) -> tuple[int, bool] | None:
        """Member epoch and whether the broker counts the partition as the member's; None: no member."""
        member = self.group.members.get(consumer.member_id) if self.group is not None else None
        if member is None:
            return None
        name, index = partition
        return member.current.member_epoch, self.group.owner(self.topic_id(name), index) == consumer.member_id

    @rule(data=st.data())
    def commit_late(self, data: st.DataObject) -> None:
        """A commit that was on its way for a while: with an epoch and a partition that the client had once."""
        if not self.past:
            return
        consumer, epoch, partition, tenure = data.draw(st.sampled_from(self.past[-60:]))
        known = self.broker_epochs(consumer, partition)
        code = self.commit(consumer, epoch, partition)
        if known is None:
            assert code in (E.UNKNOWN_MEMBER_ID, E.GROUP_ID_NOT_FOUND)
            return
        member_epoch, is_owner = known
        if is_owner and self.tenure[partition] == tenure and epoch <= member_epoch:
            if code:  # given back and granted again, with nobody in between
                granted = self.group.members[consumer.member_id].current
                at = granted.assignment_epoch(self.topic_id(partition[0]), partition[1])
                assert at is not None
                assert at > epoch
        elif self.tenure[partition] != tenure and code == 0:
            self.on_zombie(epoch, member_epoch)

    def on_zombie(self, epoch: int, member_epoch: int) -> None:
        """A zombie was accepted."""
        assert epoch == member_epoch, "a zombie behind its member's epoch was accepted"
        type(self).zombies_accepted += 1

    @rule(data=st.data())
    def commit_what_is_gone(self, data: st.DataObject) -> None:
        """A client commits a partition that it had once, with the epoch that it has now."""
        past = [row for row in self.past[-60:] if row[0].is_member]
        if not past:
            return
        consumer, _, partition, _ = data.draw(st.sampled_from(past))
        known = self.broker_epochs(consumer, partition)
        code = self.commit(consumer, consumer.epoch, partition)
        if known is not None and self.holder[partition] != consumer.member_id and code == 0:
            self.on_zombie(consumer.epoch, known[0])

    @rule(slot=st.integers(0, SLOTS - 1))
    def commit_owned(self, slot: int) -> None:
        """Whoever owns a partition, in its own eyes and in the broker's, may commit it with the epoch it knows."""
        consumer = self.consumers.get(slot)
        if consumer is None or not consumer.is_member:
            return
        for partition in consumer.owned:
            known = self.broker_epochs(consumer, partition)
            if known is not None and known[1] and self.tenure[partition] == consumer.tenures[partition]:
                assert self.commit(consumer, consumer.epoch, partition) == 0

    # -- always

    @invariant()
    def nothing_is_owned_twice_at_one_epoch(self) -> None:
        if self.group is not None:
            assert self.group.inconsistencies() == []
        seen: dict[tuple[Partition, int], str] = {}
        for consumer in self.consumers.values():
            for partition in consumer.owned:
                assert seen.setdefault((partition, consumer.epoch), consumer.member_id) == consumer.member_id

    @invariant()
    def replayed_state_is_live_state(self) -> None:
        live = self.shard
        again = GroupMachine(live.machine.index, live.machine.config, self.groups.world.broker)
        for _, batch in live.log.batches(0):
            for record in iter_records(batch):
                again.replay(record.key, record.value, record.offset)
        assert again.fingerprint() == live.machine.fingerprint()

    def teardown(self) -> None:
        """Left alone, the members that are there come to share all partitions."""
        try:
            self.settle()
        finally:
            target.WORK_AT_ONCE, target.MIXED_WORK_AT_ONCE = AT_ONCE

    def settle(self) -> None:
        if not hasattr(self, "groups"):
            return
        living = [c for c in self.consumers.values() if c.is_member]
        for _ in range(20):
            self.groups.advance(4_500)
            for consumer in living:
                if consumer.is_member:
                    self.beat(consumer)
        living = [c for c in living if c.is_member]
        if living:
            owned = [p for c in living for p in c.owned]
            wanted = {t for c in living for t in c.wishes if t in self.partitions}
            assert sorted(owned) == sorted((t, p) for t in wanted for p in range(self.partitions[t]))
