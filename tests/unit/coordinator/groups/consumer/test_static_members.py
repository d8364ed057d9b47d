"""Static members: away for a moment with -2, back under another id; who may not take whose place."""

from __future__ import annotations

import pytest
from consumer_kit import SESSION_MS, Groups
from unit.coordinator.groups.consumer.classic_kit import Classic

from protocol.errors import ErrorCode as E


def test_instance_in_use_is_unreleased_even_for_its_own_member(g):
    (s,) = g.joined("s", instance="i")
    assert s.join().error_code == E.UNRELEASED_INSTANCE_ID
    assert g.member("s2", instance="i").join().error_code == E.UNRELEASED_INSTANCE_ID


def test_member_away_keeps_its_partitions_and_moves_no_epoch(g):
    s, d = g.joined("s", instance="i") + g.joined("d")
    g.settle([s, d])
    epoch = g.group().group_epoch
    answer = s.leave(-2)
    assert (answer.error_code, answer.member_epoch) == (0, -2)
    assert g.group().group_epoch == epoch
    d.beat()
    assert d.count() == 2
    current = g.group().members["s"].current
    assert current.member_epoch == -2
    assert {e for epochs in current.assigned.values() for e in epochs.values()} == {0}


@pytest.mark.parametrize("again", ["s", "s2"])
def test_member_back_has_what_it_had_at_the_same_group_epoch(g, again):
    s, d = g.joined("s", instance="i") + g.joined("d")
    g.settle([s, d])
    had, epoch = s.assigned, g.group().group_epoch
    s.leave(-2)
    back = g.member(again, instance="i")
    assert back.join().error_code == 0
    assert (back.assigned, back.epoch, g.group().group_epoch) == (had, epoch, epoch)
    assert set(g.group().members) == {again, "d"}
    if again != "s":
        assert s.send(epoch).error_code == E.FENCED_INSTANCE_ID
        assert s.leave().error_code == E.FENCED_INSTANCE_ID
    g.restart()
    assert back.beat().error_code == 0


def test_member_back_with_another_subscription_is_assigned_anew():
    with Groups({"t": 4, "u": 2}) as g:
        s, d = g.joined("s", instance="i") + g.joined("d")
        g.settle([s, d])
        s.leave(-2)
        back = g.member("s2", instance="i", topics=["u"])
        back.join()
        g.settle([back, d])
        assert (back.assigned, d.assigned) == ({"u": [0, 1]}, {"t": [0, 1, 2, 3]})


def test_member_away_too_long_is_removed(g):
    s, d = g.joined("s", instance="i") + g.joined("d")
    g.settle([s, d])
    s.leave(-2)
    g.advance(SESSION_MS - 1)
    d.beat()
    assert set(g.group().members) == {"s", "d"}
    g.advance(1)
    assert set(g.group().members) == {"d"}


def test_member_away_while_it_has_to_give_back_is_not_fenced_for_that(g):
    s = g.member("s", instance="i", rebalance_ms=5_000)
    s.join()
    g.member("d").join()
    s.beat(topic_partitions=None)
    s.leave(-2)
    g.advance(6_000)
    assert set(g.group().members) == {"s", "d"}


def test_unknown_instance_is_unknown(g):
    g.joined("s", instance="i")
    assert g.member("s", instance="j").send(2).error_code == E.UNKNOWN_MEMBER_ID
    assert g.member("s", instance="j").leave(-2).error_code == E.UNKNOWN_MEMBER_ID


def test_static_member_may_leave_for_good(g):
    (s,) = g.joined("s", instance="i")
    s.leave(-1)
    assert g.group().is_empty
    assert g.member("s2", instance="i").join().error_code == 0


def test_full_group_takes_a_static_member_back_under_another_id_of_either_protocol():
    with Groups({"t": 4}, group_consumer_max_size="1") as g:
        (s,) = g.joined("s", instance="i")
        assert g.member("s2", instance="j").join().error_code == E.GROUP_MAX_SIZE_REACHED
        s.leave(-2)
        assert g.member("s2", instance="i").join().error_code == 0
        classic = Classic(g, instance="i")
        assert classic.join().error_code == 0, "it takes the place of the one that consumes"
        assert len(g.group().members) == 1
