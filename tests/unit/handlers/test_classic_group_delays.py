"""JoinGroup over time: the initial delay, member ids that were given out, joins that wait long, and full groups."""

from __future__ import annotations

from unit.coordinator.harness import ShardHarness

from protocol.errors import ErrorCode

# -- initial delay (KIP-134) ------------------------------------------------------------------------------------------


def test_initial_delay_is_prolonged_by_each_new_member():
    """testResetRebalanceDelayWhenNewMemberJoinsGroupDuringRebalance"""
    with ShardHarness(group_initial_rebalance_delay_ms=1_000) as h:
        first = h.join(version=3, rebalance_ms=10_000)
        h.advance(900)
        second = h.join(version=3, rebalance_ms=10_000)
        h.advance(100)  # somebody came: another round
        assert first.parked
        h.advance(999)
        assert first.parked
        h.advance(1)
        assert first.generation_id == second.generation_id == 1


def test_initial_delay_ends_at_the_rebalance_timeout():
    """testDelayRebalanceUptoRebalanceTimeout"""
    with ShardHarness(group_initial_rebalance_delay_ms=1_000) as h:
        replies = []
        for _ in range(3):
            replies.append(h.join(version=3, rebalance_ms=3_000))
            h.advance(900)
        replies.append(h.join(version=3, rebalance_ms=3_000))
        assert replies[0].parked
        h.advance(300)  # 3 s in all: two rounds more, whoever comes at 2.7 s
        assert {r.generation_id for r in replies} == {1}


def test_initial_delay_without_new_members_runs_once():
    """testDelayInitialRebalanceByGroupInitialRebalanceDelayOnEmptyGroup"""
    with ShardHarness(group_initial_rebalance_delay_ms=3_000) as h:
        reply = h.join(version=3)
        h.advance(2_999)
        assert reply.parked
        h.advance(1)
        assert reply.generation_id == 1


def test_initial_delay_does_not_hold_up_a_later_rebalance():
    with ShardHarness(group_initial_rebalance_delay_ms=3_000) as h:
        (leader,) = h.stable()
        again = h.join(leader)
        assert again.generation_id == 2


# -- member ids given out first (KIP-394) ----------------------------------------------------------------------------


def test_member_id_not_used_within_the_session_timeout_is_taken_back(h):
    """testHeartbeatExpirationShouldRemovePendingMember"""
    member_id = h.new_id(session_ms=10_000)
    h.advance(9_999)
    assert h.group().pending_joins == {member_id}
    h.advance(1)
    assert h.join(member_id).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_rebalance_waits_for_member_ids_that_were_given_out(h):
    """testJoinGroupCompletionWhenPendingMemberJoins"""
    (first,) = h.stable()
    pending = h.new_id()
    again = h.join(first)
    assert again.parked
    late = h.join(pending)
    assert again.generation_id == late.generation_id == 2


def test_rebalance_goes_on_when_a_pending_member_id_expires(h):
    """testJoinGroupCompletionWhenPendingMemberTimesOut"""
    (first,) = h.stable()
    h.new_id(session_ms=6_000)
    again = h.join(first)
    h.advance(6_000)
    assert again.generation_id == 2


def test_rebalance_goes_on_when_a_pending_member_leaves(h):
    """testPendingMembersLeaveGroup"""
    (first,) = h.stable()
    pending = h.new_id()
    again = h.join(first)
    assert h.leave(pending).members[0].error_code == 0
    assert again.generation_id == 2


# -- new members that are never answered -----------------------------------------------------------------------------


def test_new_member_is_dropped_when_its_join_is_parked_for_five_minutes(h):
    """testNewMemberJoinExpiration"""
    (first,) = h.stable(rebalance_ms=600_000)
    late = h.join(h.new_id(rebalance_ms=600_000), rebalance_ms=600_000)
    for _ in range(60):
        h.advance(5_000)
        h.heartbeat(first, 1)
    assert late.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert list(h.group().members) == [first]


def test_known_member_is_not_dropped_while_its_join_is_parked(h):
    first, second = h.stable(2, rebalance_ms=600_000)
    again = h.join(first, rebalance_ms=600_000)
    for _ in range(100):
        h.advance(5_000)
        h.heartbeat(second, 1)
    assert again.parked


# -- group.max.size ---------------------------------------------------------------------------------------------------


def test_full_group_turns_new_members_away():
    """testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember, testStaticMembersJoinGroupWithMaxSize"""
    with ShardHarness(group_max_size=2) as h:
        h.stable(2)
        assert h.join().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert h.join(instance="i").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert h.state() == "Stable"


def test_full_group_lets_its_members_rejoin():
    """testDynamicMembersCanRejoinGroupWithMaxSizeWhileRebalancing"""
    with ShardHarness(group_max_size=2) as h:
        leader, follower = h.stable(2)
        again = h.join(leader)
        h.join(follower)
        assert again.generation_id == 2


def test_full_group_counts_parked_members_while_preparing():
    """testDynamicMembersJoinGroupWithMaxSizeAndNotRequiredKnownMember"""
    with ShardHarness(group_max_size=2) as h:
        replies = [h.join(version=3) for _ in range(3)]
        assert [r.parked for r in replies] == [True, True, False]
        assert replies[2].error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert replies[2].member_id == ""
        h.advance()
        assert replies[0].generation_id == 1


def test_group_above_a_lowered_maximum_shrinks_at_the_next_rebalance():
    """testLastJoiningMembersAreKickedOutWhenRejoiningGroupWithMaxSize"""
    with ShardHarness() as h:
        ids = h.stable(3)
        h.config.group_max_size = 2
        h.restart()
        assert h.state() == "PreparingRebalance"
        replies = [h.join(m) for m in ids]
        assert replies[2].error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert replies[0].generation_id == replies[1].generation_id == 2
