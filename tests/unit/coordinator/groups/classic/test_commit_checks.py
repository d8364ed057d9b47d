"""Who may commit: every row of the truth tables in groups/classic/commit_checks.py, on real groups."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from unit.coordinator.harness import ShardHarness

from broker.coordinator.groups.classic.commit_checks import (
    check_offset_commit,
    check_txn_offset_commit,
    on_offset_commit_accepted,
)
from broker.coordinator.groups.classic.states import COMPLETING_REBALANCE, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from protocol.errors import ErrorCode

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
FENCED = ErrorCode.FENCED_INSTANCE_ID
ILLEGAL = ErrorCode.ILLEGAL_GENERATION


@pytest.fixture
def h():
    with ShardHarness() as harness:
        yield harness


def txn(h, generation, member_id="", instance=None, group="g", version=6):
    return h.shard.check_txn_offset_commit(group, version, generation, member_id, instance)


# -- no such group ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(2, 11))
def test_commit_to_unknown_group_without_generation_is_accepted(h, version):
    """testSimpleGroupOffsetCommit"""
    assert h.commit_check(-1, version=version) is NONE
    assert h.commit_check(-1, "anybody", "anything", version=version) is NONE


@pytest.mark.parametrize(
    ("version", "code"), [(v, ILLEGAL) for v in range(2, 9)] + [(9, ErrorCode.GROUP_ID_NOT_FOUND)] * 2
)
def test_commit_to_unknown_group_with_generation_is_refused(h, version, code):
    """testOffsetCommitWithUnknownGroup"""
    assert h.commit_check(10, "m", version=version) is code


@pytest.mark.parametrize("version", [8, 9])
def test_commit_with_generation_to_a_simple_group_is_an_unknown_member(h, version):
    h.commit("t", 0, 1)
    assert h.commit_check(10, "m", version=version) is UNKNOWN
    assert h.commit_check(-1, version=version) is NONE
    assert txn(h, 10, "m") is UNKNOWN


def test_txn_commit_to_unknown_group_goes_by_the_generation(h):
    """testTransactionalOffsetCommitWithUnknownGroupId"""
    for version in (5, 6):
        assert txn(h, -1, version=version) is NONE
    assert txn(h, 0, "m", version=5) is ILLEGAL
    assert txn(h, 0, "m") is ErrorCode.GROUP_ID_NOT_FOUND


# -- states -----------------------------------------------------------------------------------------------------------


def test_commit_to_dead_group_is_told_to_look_elsewhere(h):
    h.stable()
    group = h.group()
    group.state = DEAD
    assert check_offset_commit(group, 9, 1, "m", None) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert check_txn_offset_commit(group, 6, -1, "", None) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    h.shard.groups.clear()
    h.log.clear()


def test_commit_to_empty_group_without_generation_is_accepted_whoever_it_is(h):
    """testGenericGroupOffsetCommitWithoutMemberIdAndGeneration"""
    (member,) = h.stable()
    h.leave(member)
    assert h.commit_check(-1) is NONE
    assert h.commit_check(-1, "anybody", "anything") is NONE
    assert h.commit_check(2, "anybody") is UNKNOWN
    assert txn(h, -1, "anybody", "anything") is NONE
    assert txn(h, 2, "anybody") is UNKNOWN


def test_commit_of_a_member_is_accepted_in_its_generation_only(h):
    """testGenericGroupOffsetCommitWithIllegalGeneration"""
    (member,) = h.stable()
    assert h.commit_check(1, member) is NONE
    assert h.commit_check(0, member) is ILLEGAL
    assert h.commit_check(2, member) is ILLEGAL
    assert h.commit_check(-1, member) is ILLEGAL
    assert txn(h, 1, member) is NONE
    assert txn(h, 2, member) is ILLEGAL
    assert txn(h, -1, member) is ILLEGAL


def test_commit_of_a_stranger_is_refused(h):
    """testGenericGroupOffsetCommitWithUnknownMemberId"""
    h.stable()
    assert h.commit_check(1, "x") is UNKNOWN
    assert h.commit_check(1) is UNKNOWN
    assert h.commit_check(-1) is UNKNOWN  # not while the group is in use
    assert txn(h, 1, "x") is UNKNOWN
    assert txn(h, 1) is UNKNOWN


def test_txn_commit_that_says_nothing_of_the_group_is_accepted_in_any_state(h):
    (member,) = h.stable()
    assert txn(h, -1) is NONE
    h.join(member)
    h.new_id()
    assert txn(h, -1) is NONE


def test_commit_of_a_static_member_goes_by_its_instance(h):
    """testGenericGroupOffsetCommitWithFencedInstanceId"""
    first, second = h.stable(instances=("i1", "i2"))
    for check in (h.commit_check, lambda *how: txn(h, *how)):
        assert check(1, first, "i1") is NONE
        assert check(1, first) is NONE
        assert check(1, first, "i2") is FENCED
        assert check(1, first, "i3") is UNKNOWN
        assert check(2, second, "i1") is FENCED  # before the generation is looked at
        assert check(-1, "", "i1") is FENCED


def test_commit_while_preparing_is_accepted(h):
    """The last chance before the partitions move."""
    leader, follower = h.stable(2)
    h.join(leader)
    assert h.state() == "PreparingRebalance"
    assert h.commit_check(1, follower) is NONE


def test_commit_while_completing_is_told_to_rejoin_but_a_txn_commit_is_accepted(h):
    """testGenericGroupOffsetCommitWhileInCompletingRebalanceState"""
    member = h.join(version=3)
    h.advance()
    assert h.commit_check(1, member.member_id) is ErrorCode.REBALANCE_IN_PROGRESS
    assert h.commit_check(0, member.member_id) is ILLEGAL
    assert h.commit_check(1, "x") is UNKNOWN
    assert txn(h, 1, member.member_id) is NONE


# -- sessions ---------------------------------------------------------------------------------------------------------


def test_accepted_commit_keeps_a_member_in_the_group(h):
    """testGenericGroupOffsetCommitMaintainsSession"""
    leader, follower = h.stable(2)
    for _ in range(3):
        h.advance(9_000)
        assert h.commit_check(1, leader) is NONE
        assert h.commit_check(1, follower) is NONE
    h.join(leader)
    for _ in range(3):
        h.advance(9_000)
        assert h.commit_check(1, follower) is NONE


def test_refused_commit_and_txn_commit_do_not_keep_a_member(h):
    (member,) = h.stable()
    h.advance(9_000)
    h.commit_check(2, member)
    txn(h, 1, member)
    h.advance(1_000)
    assert h.state() == "Empty"


@pytest.mark.parametrize("state", [EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD])
def test_accepted_commit_starts_the_members_session_again(state):
    member = SimpleNamespace(session_timer=("session", "m"), session_timeout_ms=500)
    group = SimpleNamespace(group_type="classic", state=state, members={"m": member})
    timers = ((("session", "m"), 1_500),) if state in (STABLE, PREPARING_REBALANCE) else ()
    assert on_offset_commit_accepted(group, "m", 1_000) == timers
