"""A group whose members speak the classic and the consumer protocol, joining and going at random, as a model.

The group becomes a consumer group with the first consumer, and classic again when the last one goes. After every step
the replayed state is the live one, no partition is two members' at one epoch or generation, and in a consumer group
every commit of an owner is accepted, whichever protocol it speaks. Left alone, all who are there share everything.
"""

from __future__ import annotations

from typing import Any

import pytest
from budget import budget
from consumer_kit import GROUP, Groups, Member
from core_broker import Client
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from unit.coordinator.harness_parts import subscription

from broker.coordinator.groups.consumer.embedded_protocol import read_assignment, read_subscription, write_assignment
from broker.coordinator.groups.consumer.group import ConsumerGroup
from broker.coordinator.groups.machine import GroupMachine
from protocol.errors import ErrorCode as E
from protocol.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from protocol.record_batch import iter_records

PARTITIONS = {"t": 4, "u": 3}
WISHES = (("t",), ("t", "u"))
SLOTS = 3  # of each protocol
SESSION_MS, REBALANCE_MS = 10_000, 20_000
JOIN, SYNC, BEAT = "join", "sync", "beat"
Partition = tuple[str, int]


class Eager:
    """A client of the classic protocol that gives everything up before it joins; as leader it deals in turn."""

    def __init__(self, groups: Groups, topics: tuple[str, ...]) -> None:
        self.groups = groups
        self.topics = topics
        self.member_id = ""
        self.generation = -1
        self.plan: list[SyncGroupRequestAssignment] = []
        self.owned: frozenset[Partition] = frozenset()
        self.wants = JOIN
        self.connect()

    def connect(self) -> None:
        """A connection to a broker that knows nothing of what was asked before: who was about to join begins again."""
        self.client = Client(self.groups.world)
        self.wants = BEAT if self.wants == BEAT else JOIN
        self.is_waiting = False

    def step(self) -> None:
        """Take what was answered, or else ask the next thing."""
        if not self.is_waiting:
            self.client.send(*self.question())
            self.is_waiting = True
            self.groups.world.run()
        for answer in self.client.replies():
            self.is_waiting = False
            getattr(self, "on_" + self.wants)(answer)

    def question(self) -> tuple[Any, int]:
        if self.wants == JOIN:
            self.owned = frozenset()
            protocols = [JoinGroupRequestProtocol(name="range", metadata=subscription(*self.topics))]
            return JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=protocols,
            ), 9
        me = {"group_id": GROUP, "generation_id": self.generation, "member_id": self.member_id}
        if self.wants == SYNC:
            return SyncGroupRequest(
                **me,
                protocol_type="consumer",
                protocol_name="range",
                assignments=self.plan,
            ), 5
        return HeartbeatRequest(**me), 4

    def on_join(self, answer: Any) -> None:
        if answer.error_code in (0, E.MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
        if answer.error_code == 0:
            self.generation, self.wants = answer.generation_id, SYNC
            self.plan = deal(answer.members) if answer.leader == self.member_id else []
        else:
            self.start_over(answer.error_code)

    def on_sync(self, answer: Any) -> None:
        if answer.error_code == 0:
            partitions, _ = read_assignment(answer.assignment)
            self.owned = frozenset((topic, p) for topic, indexes in partitions.items() for p in indexes)
            self.wants = BEAT
        else:
            self.start_over(answer.error_code)

    def on_beat(self, answer: Any) -> None:
        if answer.error_code:
            self.start_over(answer.error_code)

    def start_over(self, code: int) -> None:
        """Whatever was refused, the client joins anew; with a new id if the old one means nothing."""
        assert code in (E.MEMBER_ID_REQUIRED, E.UNKNOWN_MEMBER_ID, E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION)
        if code == E.UNKNOWN_MEMBER_ID:
            self.member_id, self.generation = "", -1
        self.wants, self.owned = JOIN, frozenset()

    def leave(self) -> None:
        request = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=self.member_id)])
        self.groups.client.call(request, 5)


def deal(members: list[Any]) -> list[SyncGroupRequestAssignment]:
    """A leader's plan: of each topic one partition after the other to those who want it."""
    plan: dict[str, dict[str, tuple[int, ...]]] = {m.member_id: {} for m in members}
    for topic, count in PARTITIONS.items():
        takers = [m.member_id for m in members if topic in read_subscription(m.metadata).topics]
        for n, member_id in enumerate(takers):
            plan[member_id][topic] = tuple(range(n, count, len(takers)))
    return [SyncGroupRequestAssignment(member_id=m, assignment=write_assignment(p, 1)) for m, p in plan.items()]


class Migration(RuleBasedStateMachine):
    """Three clients of each protocol."""

    @initialize()
    def start(self) -> None:
        self.groups = Groups(PARTITIONS)
        self.classics: dict[int, Eager] = {}
        self.consumers: dict[int, Member] = {}
        self.numbers = 0

    @property
    def group(self) -> Any:
        return self.groups.group()

    # -- what clients do

    @rule(slot=st.integers(0, SLOTS - 1), topics=st.sampled_from(WISHES), steps=st.integers(1, 6))
    def classic_goes_on(self, slot: int, topics: tuple[str, ...], steps: int) -> None:
        client = self.classics.setdefault(slot, Eager(self.groups, topics))
        for _ in range(steps):
            client.step()

    @rule(slot=st.integers(0, SLOTS - 1), topics=st.sampled_from(WISHES))
    def consumer_goes_on(self, slot: int, topics: tuple[str, ...]) -> None:
        if slot not in self.consumers:
            self.numbers += 1
            self.consumers[slot] = self.groups.member(f"k{self.numbers}", topics=topics, rebalance_ms=REBALANCE_MS)
        self.beat(self.consumers[slot])

    def beat(self, member: Member) -> None:
        answer = member.beat() if member.epoch else member.join()
        if answer.error_code:  # the last: nobody is left, and an empty group without offsets goes
            assert answer.error_code in (E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND)
            member.epoch, member.owned = 0, {}

    @rule(rounds=st.integers(1, 4))
    def everybody_goes_on(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.classics.values():
                client.step()
            for member in self.consumers.values():
                self.beat(member)

    @rule(slot=st.integers(0, SLOTS - 1), dies=st.booleans())
    def classic_ends(self, slot: int, dies: bool) -> None:
        client = self.classics.pop(slot, None)
        if client is not None and client.member_id and not dies:
            client.leave()

    @rule(slot=st.integers(0, SLOTS - 1), dies=st.booleans())
    def consumer_ends(self, slot: int, dies: bool) -> None:
        member = self.consumers.pop(slot, None)
        if member is not None and member.epoch and not dies:
            member.leave()

    # -- what happens around them

    @rule(ms=st.sampled_from([1_000, 9_000, 21_000, 46_000]))
    def time_passes(self, ms: int) -> None:
        self.groups.advance(ms)

    @rule()
    def coordinator_is_killed(self) -> None:
        self.groups.world = self.groups.world.crash()
        self.groups.client = Client(self.groups.world)
        for client in self.classics.values():
            client.connect()

    @rule()
    def owners_commit(self) -> None:
        """Whoever owns a partition, in its own eyes and in the broker's, may commit it with the epoch it knows."""
        if not isinstance(self.group, ConsumerGroup):
            return
        for member_id, epoch, owned in self.owners():
            for topic, index in owned:
                current = self.group.members.get(member_id)
                at = current and current.current.assignment_epoch(self.groups.ids[topic], index)
                if at is not None and at <= epoch:
                    assert self.groups.commit(member_id, epoch, index, topic=topic) == 0

    def owners(self) -> list[tuple[str, int, frozenset[Partition]]]:
        """Everybody's member id, epoch or generation, and partitions, in the client's eyes."""
        found = [(c.member_id, c.generation, c.owned) for c in self.classics.values()]
        for member in self.consumers.values():
            owned = frozenset((topic, p) for topic, indexes in member.assigned.items() for p in indexes)
            found.append((member.member_id, member.epoch, owned))
        return found

    # -- always

    @invariant()
    def nothing_is_owned_twice_at_one_epoch(self) -> None:
        if isinstance(self.group, ConsumerGroup):
            assert self.group.inconsistencies() == []
        seen: dict[tuple[Partition, int], str] = {}
        members = self.group.members if self.group is not None else ()
        for member_id, epoch, owned in self.owners():
            for partition in owned if member_id in members else ():  # a group that was empty begins its epochs anew
                assert seen.setdefault((partition, epoch), member_id) == member_id, (partition, epoch)

    @invariant()
    def replayed_state_is_live_state(self) -> None:
        live = self.groups.world.broker.groups.of(GROUP)
        live.require()
        again = GroupMachine(live.machine.index, live.machine.config, self.groups.world.broker)
        for _, batch in live.log.batches(0):
            for record in iter_records(batch):
                again.replay(record.key, record.value, record.offset)
        known = live.machine.fingerprint()
        rebuilt = again.fingerprint()
        assert {g: rebuilt["groups"].get(g) for g in known["groups"]} == known["groups"]
        assert rebuilt["offsets"] == known["offsets"]

    def teardown(self) -> None:
        """Left alone, those who are there share all partitions, and without the consumers the others do."""
        if not hasattr(self, "groups"):
            return
        self.settle()
        if self.consumers and self.classics:
            for slot in range(SLOTS):
                self.consumer_ends(slot, dies=slot == 0)
            self.settle()

    def settle(self) -> None:
        """Time for all that may have to run out; then the group is of the right type, and everything is shared."""
        for _ in range(90):
            self.groups.advance(1_000)
            self.everybody_goes_on(1)
        if not (self.classics or self.consumers):
            return
        assert self.group.group_type == ("consumer" if self.consumers else "classic")
        wanted = {t for who in (*self.classics.values(), *self.consumers.values()) for t in who.topics or ()}
        owned = [partition for _, _, owned in self.owners() for partition in owned]
        assert sorted(owned) == sorted((t, p) for t in wanted for p in range(PARTITIONS[t]))


Migration.TestCase.settings = budget(
    15,
    stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
TestMigration = pytest.mark.heavy(Migration.TestCase)
