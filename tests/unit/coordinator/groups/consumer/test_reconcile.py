"""One member's way to its target, step by step: the table of reconcile.py."""

from __future__ import annotations

import pytest
from consumer_kit import Groups

from broker.coordinator.groups.common.member import note_revocation
from broker.coordinator.groups.consumer import target as group_target
from broker.coordinator.groups.consumer.member import (
    STABLE,
    UNKNOWN,
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    CurrentAssignment,
)
from broker.coordinator.groups.consumer.reconcile import reconcile
from broker.coordinator.groups.consumer.records import current_record
from protocol.errors import ErrorCode, KafkaError

T, U = b"t" * 16, b"u" * 16


def step(current, target, epoch=9, *, taken=(), owned=None, wants=(T, U), changed=False):
    """`taken`: partitions of T that others have; `owned`: partitions of T that the heartbeat lists."""
    return reconcile(
        current,
        epoch,
        {T: tuple(target)} if target else {},
        lambda topic, partition: not (topic == T and partition in taken),
        lambda topic: topic in wants,
        None if owned is None else {T: frozenset(owned)},
        subscription_changed=changed,
        wants_nothing=not wants,
    )


@pytest.mark.parametrize("owned", [None, []])
def test_member_that_wants_nothing_and_has_nothing_is_written_again(owned):
    """Its previous epoch is no longer accepted, as in Kafka 4.3.1."""
    current = CurrentAssignment(9, 8, STABLE, {})
    assert step(current, [], wants=(), changed=True, owned=owned) == CurrentAssignment(9, 9, STABLE, {})
    assert step(current, [], wants=(T,), changed=True, owned=owned) is current
    assert step(current, [], wants=(), changed=False, owned=owned) is current


def test_member_at_its_target_stays_as_it_is():
    current = CurrentAssignment(9, 8, STABLE, {T: {0: 5}})
    assert step(current, [0]) is current


def test_member_below_gets_what_is_free_at_the_target_epoch():
    assert step(CurrentAssignment(5, 4, STABLE, {T: {0: 5}}), [0, 1]) == CurrentAssignment(
        9, 5, STABLE, {T: {0: 5, 1: 9}}
    )


def test_member_waits_for_what_others_have():
    waiting = step(CurrentAssignment(5, 4, STABLE, {T: {0: 5}}), [0, 1, 2], taken=[2])
    assert waiting == CurrentAssignment(9, 5, UNRELEASED_PARTITIONS, {T: {0: 5, 1: 9}})
    again = step(waiting, [0, 1, 2], taken=[2])
    assert again == waiting._replace(previous_member_epoch=9)
    assert step(again, [0, 1, 2]) == CurrentAssignment(9, 9, STABLE, {T: {0: 5, 1: 9, 2: 9}})


@pytest.mark.parametrize("owned", [None, [0, 1], [1]])
def test_member_gives_back_first_and_stays_at_its_epoch(owned):
    after = step(CurrentAssignment(5, 4, STABLE, {T: {0: 3, 1: 5}}), [0, 2], owned=owned)
    assert after == CurrentAssignment(5, 5, UNREVOKED_PARTITIONS, {T: {0: 3}}, {T: {1: 5}})


def test_member_that_has_given_back_already_goes_on_at_once():
    after = step(CurrentAssignment(5, 4, STABLE, {T: {0: 3, 1: 5}}), [0, 2], owned=[0])
    assert after == CurrentAssignment(9, 5, STABLE, {T: {0: 3, 2: 9}})


@pytest.mark.parametrize("owned", [None, [0, 1]])
def test_unrevoked_member_waits_to_be_told(owned):
    current = CurrentAssignment(5, 5, UNREVOKED_PARTITIONS, {T: {0: 3}}, {T: {1: 5}})
    assert step(current, [0, 2], owned=owned) is current


def test_unrevoked_member_goes_on_once_it_says_so():
    current = CurrentAssignment(5, 5, UNREVOKED_PARTITIONS, {T: {0: 3}}, {T: {1: 5}})
    assert step(current, [0, 2], owned=[0]) == CurrentAssignment(9, 5, STABLE, {T: {0: 3, 2: 9}})


def test_partition_that_comes_back_before_it_was_given_up_has_the_new_epoch():
    current = CurrentAssignment(5, 5, UNREVOKED_PARTITIONS, {T: {0: 3}}, {T: {1: 5}})
    assert step(current, [0, 1], owned=[0]) == CurrentAssignment(9, 5, STABLE, {T: {0: 3, 1: 9}})


def test_unrevoked_member_may_have_to_give_back_more():
    current = CurrentAssignment(5, 5, UNREVOKED_PARTITIONS, {T: {0: 3, 2: 4}}, {T: {1: 5}})
    after = step(current, [0], owned=[0, 2])
    assert after == CurrentAssignment(5, 5, UNREVOKED_PARTITIONS, {T: {0: 3}}, {T: {2: 4}})


def test_topic_unsubscribed_from_is_taken_away_at_once():
    current = CurrentAssignment(9, 8, STABLE, {T: {0: 5}, U: {0: 6}})
    after = step(current, [0], wants=[T], changed=True)
    assert after == CurrentAssignment(9, 9, UNREVOKED_PARTITIONS, {T: {0: 5}}, {U: {0: 6}})
    assert step(current, [0], wants=[T], changed=True, owned=[0]) == CurrentAssignment(9, 9, STABLE, {T: {0: 5}})
    pending = CurrentAssignment(9, 9, UNREVOKED_PARTITIONS, {T: {0: 5}, U: {0: 6}}, {U: {1: 4}})
    after = step(pending, [0], wants=[T], changed=True)
    assert after == CurrentAssignment(9, 9, UNREVOKED_PARTITIONS, {T: {0: 5}}, {U: {1: 4, 0: 6}})


def test_target_of_a_topic_that_is_not_wanted_counts_as_nothing():
    assert step(CurrentAssignment(5, 4, STABLE, {T: {0: 5}}), [0, 1], wants=[U], owned=[]) == CurrentAssignment(
        9, 5, STABLE
    )


def test_state_of_a_broker_to_come_is_left_by_giving_up_everything():
    current = CurrentAssignment(5, 4, UNKNOWN, {T: {0: 3}})
    for owned in (None, [0]):
        with pytest.raises(KafkaError) as refused:
            step(current, [1], owned=owned)
        assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    after = reconcile(current, 9, {T: (1,)}, lambda *_: True, lambda _: True, {}, subscription_changed=False)
    assert after == CurrentAssignment(9, 5, STABLE, {T: {1: 9}})


def test_epoch_of_the_last_revocation_is_the_one_left_by_it():
    before = CurrentAssignment(5, 4, UNREVOKED_PARTITIONS, {T: {0: 3}}, {T: {1: 5}})
    assert note_revocation(before, CurrentAssignment(9, 5, STABLE, {T: {0: 3}})).revocation_epoch == 5
    before = CurrentAssignment(5, 4, STABLE, {T: {0: 3}}, revocation_epoch=2)
    after = CurrentAssignment(9, 5, STABLE, {T: {0: 3, 1: 9}}, revocation_epoch=2)
    assert note_revocation(before, after) == after


def test_group_is_assigned_after_a_member_in_a_state_of_a_newer_broker_was_refused(monkeypatch):
    """Also a group so large that its target is made between the turns: what a refused request begins never ends."""
    monkeypatch.setattr(group_target, "WORK_AT_ONCE", 0)
    with Groups({"t": 4}) as g:
        (a,) = g.joined("a")
        newer = g.group().members["a"].current._replace(state=50)
        g.world.broker.groups.of("g").append([current_record("g", "a", newer)])
        g.advance(2000)
        g.make_topic("u", 2)
        assert a.beat(subscribed_topic_names=["t", "u"]).error_code == ErrorCode.FENCED_MEMBER_EPOCH
        a.topics = ("t", "u")
        assert a.join().error_code == 0
        b = g.member("b", topics=a.topics)
        b.join()
        for _ in range(6):
            g.advance(2000)
            a.beat()
            b.beat()
        assert (a.count(), b.count()) == (3, 3)
