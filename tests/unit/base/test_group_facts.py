"""What a fingerprint compares: every slot of every kind of group and member, but those declared VOLATILE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from consumer_kit import Groups
from unit.coordinator.groups.consumer.classic_kit import Classic
from unit.coordinator.groups.streams.kit import StreamsWorld, subtopology, topic_info, topology
from unit.coordinator.harness import ShardHarness

from broker.base.facts import facts, slots
from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.groups.classic.member import Member
from broker.coordinator.groups.classic.states import STABLE
from broker.coordinator.groups.classic.states import State as ClassicState
from broker.coordinator.groups.consumer.group import ConsumerGroup
from broker.coordinator.groups.consumer.member import ConsumerMember
from broker.coordinator.groups.machine import GroupMachine
from broker.coordinator.groups.streams.group import StreamsGroup
from broker.coordinator.groups.streams.member import StreamsMember

CLASSES = [ClassicGroup, Member, ConsumerGroup, ConsumerMember, StreamsGroup, StreamsMember, GroupMachine]


def classic() -> GroupMachine:
    harness = ShardHarness()
    harness.stable(instances=("i", "j"))
    return harness.shard


def consumer() -> GroupMachine:
    pytest.importorskip("re2")
    groups = Groups({"t": 4}, group_consumer_migration_policy="bidirectional")
    groups.joined("m", instance="i", assignor="range")
    groups.member("r", regex="t.*", topics=None).join()
    groups.advance(1)
    Classic(groups).join()
    machine: GroupMachine = groups.world.broker.groups.of("g").machine
    return machine


def streams() -> GroupMachine:
    world = StreamsWorld({"t": 4}, group_streams_num_standby_replicas="1")
    shape = topology(subtopology("0", "t", changelogs=(topic_info("log"),)))
    members = [world.member(name, shape=shape) for name in ("a", "b")]
    for member in members:
        member.join()
    for _ in range(4):
        for member in members:
            member.ack()
    machine: GroupMachine = world.world.broker.groups.of("g").machine
    return machine


KINDS: list[tuple[type, Callable[[], GroupMachine]]] = [
    (ClassicGroup, classic),
    (ConsumerGroup, consumer),
    (StreamsGroup, streams),
]


def other(value: Any) -> Any:
    """Another value of the same type, that facts() can read."""
    if isinstance(value, ClassicState):
        return ClassicState.EMPTY if value is STABLE else STABLE
    if isinstance(value, dict) and value:
        return dict(list(value.items())[1:])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, (str, bytes, tuple, list)):
        return value[:-1] if value else type(value)((b"x",)) if isinstance(value, (tuple, list)) else value * 2 or None
    return {"other": 1} if isinstance(value, dict) else "other"


def hard_slots(thing: Any) -> Iterator[str]:
    return (name for name in slots(type(thing)) if name not in thing.VOLATILE)


@pytest.mark.parametrize("kind", CLASSES)
def test_volatile_slots_exist_and_say_why(kind):
    assert set(kind.VOLATILE) <= set(slots(kind))
    assert all(kind.VOLATILE.values())


def test_machine_has_no_state_that_its_fingerprint_leaves_out():
    assert set(slots(GroupMachine)) - set(GroupMachine.VOLATILE) == set(classic().fingerprint())


@pytest.mark.parametrize(("kind", "make"), KINDS)
def test_change_of_a_hard_slot_changes_the_fingerprint(kind, make):
    machine = make()
    (group,) = machine.groups.values()
    assert isinstance(group, kind)
    before = machine.fingerprint()
    unnoticed = []
    for thing in (group, *group.members.values()):
        for name in hard_slots(thing):
            value = getattr(thing, name)
            setattr(thing, name, other(value))
            if machine.fingerprint() == before:
                unnoticed.append((type(thing).__name__, name))
            setattr(thing, name, value)
    assert machine.fingerprint() == before
    assert not unnoticed


@pytest.mark.parametrize(("kind", "make"), KINDS)
def test_container_that_is_changed_later_does_not_change_facts_taken_before(kind, make):
    (group,) = make().groups.values()
    for name in hard_slots(group):
        value = getattr(group, name)
        before = facts(group)
        if isinstance(value, dict):
            value["other"] = next(iter(value.values()), 1)
            assert facts(group) != before, name
            del value["other"]
        assert facts(group) == before, name


def test_counts_over_volatile_state_are_compared_with_what_they_count():
    machine = classic()
    (group,) = machine.groups.values()
    before = machine.fingerprint()
    group._support["range"] += 1
    assert machine.fingerprint() != before
    group._support["range"] -= 1
    group.joined += 1
    assert machine.fingerprint() != before
    group.joined -= 1
    group._subscribed = frozenset({"another"})
    assert machine.fingerprint() != before
