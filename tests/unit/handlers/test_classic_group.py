"""SyncGroup and Heartbeat of classic groups, and the timers behind them."""

from __future__ import annotations

import pytest
from classic_group_kit import REBALANCE, UNKNOWN, completing

from protocol.errors import ErrorCode

# -- SyncGroup --------------------------------------------------------------------------------------------------------


def test_sync_of_follower_waits_for_the_leader_and_both_get_their_assignment(h):
    """testSyncGroupFollowerAfterLeader, testSyncGroupLeaderAfterFollower"""
    leader, follower = completing(h)
    waiting = h.sync(follower, 1)
    assert waiting.parked
    own = h.sync(leader, 1, {leader: b"A", follower: b"B"})
    assert (own.error_code, own.assignment) == (0, b"A")
    assert (waiting.error_code, waiting.assignment) == (0, b"B")
    assert (waiting.protocol_type, waiting.protocol_name) == ("consumer", "range")
    assert h.state() == "Stable"


def test_sync_writes_one_record_that_survives_a_restart(h):
    leader, follower = completing(h)
    before = len(h.log)
    h.sync(leader, 1, {leader: b"A", follower: b"B"})
    assert len(h.log) == before + 1
    h.restart()
    assert h.state() == "Stable"
    assert h.sync(follower, 1).assignment == b"B"


def test_sync_when_stable_repeats_the_assignment(h):
    leader, follower = h.stable(2)
    assert h.sync(follower, 1).assignment == b"a1"
    assert h.sync(leader, 1, {follower: b"ignored"}).assignment == b"a0"
    assert h.sync(follower, 1).assignment == b"a1"


def test_sync_of_leader_without_assignment_for_a_member_gives_it_empty_bytes(h):
    """testSyncGroupEmptyAssignment"""
    leader, follower = completing(h)
    waiting = h.sync(follower, 1)
    h.sync(leader, 1, {leader: b"A", "stranger": b"X"})
    assert (waiting.error_code, waiting.assignment) == (0, b"")
    assert set(h.group().members) == {leader, follower}


def test_sync_of_unknown_group_is_unknown_member(h):
    """testSyncGroupFromUnknownGroup"""
    assert h.sync("m", 1).error_code == UNKNOWN


def test_sync_of_empty_group_is_unknown_member(h):
    h.new_id()
    assert h.sync("m", 0).error_code == UNKNOWN


def test_sync_of_unknown_member_is_refused(h):
    """testSyncGroupFromUnknownMember"""
    h.stable()
    assert h.sync("m", 1).error_code == UNKNOWN


def test_sync_with_instance_of_another_member_is_fenced(h):
    first, _ = h.stable(instances=("i1", "i2"))
    assert h.sync(first, 1, instance="i2").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert h.sync(first, 1, instance="i3").error_code == UNKNOWN


@pytest.mark.parametrize("generation", [0, 2, -1])
def test_sync_of_another_generation_is_refused(h, generation):
    """testSyncGroupFromIllegalGeneration"""
    (member,) = h.stable()
    assert h.sync(member, generation).error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    "protocol", [(None, "range"), ("consumer", None), (None, None), ("connect", "range"), ("consumer", "other")]
)
def test_sync_v5_with_missing_or_other_protocol_is_inconsistent(h, protocol):
    """testSyncGroupReturnsAnErrorWhenProtocolTypeIsInconsistent, ...ProtocolNameIsInconsistent (KIP-559)"""
    (member,) = h.stable()
    reply = h.sync(member, 1, protocol=protocol)
    assert reply.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(6))
def test_sync_answers_in_every_version(h, version):
    (leader,) = completing(h, 1)
    assert h.sync(leader, 1, {leader: b"A"}, version=version).assignment == b"A"


def test_sync_while_preparing_is_told_to_rejoin(h):
    leader, follower = h.stable(2)
    h.join(leader)
    assert h.sync(follower, 1).error_code == REBALANCE


def test_sync_that_is_parked_is_told_to_rejoin_when_a_rebalance_begins(h):
    _, follower = completing(h)
    waiting = h.sync(follower, 1)
    h.join(h.new_id())
    assert (waiting.error_code, waiting.assignment) == (REBALANCE, b"")


def test_second_sync_of_a_parked_member_answers_the_first(h):
    leader, follower = completing(h)
    lost, again = h.sync(follower, 1), h.sync(follower, 1)
    assert lost.error_code == REBALANCE
    h.sync(leader, 1, {follower: b"B"})
    assert again.assignment == b"B"


def test_sync_timer_removes_who_did_not_sync_and_rebalances(h):
    """testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeader"""
    leader, follower = completing(h, rebalance_ms=20_000)
    waiting = h.sync(follower, 1)
    for _ in range(2):
        h.advance(9_000)
        assert h.heartbeat(leader, 1).error_code == 0
    h.advance(2_000)
    assert waiting.error_code == REBALANCE
    assert h.heartbeat(leader, 1).error_code == UNKNOWN
    assert h.state() == "PreparingRebalance"
    assert h.join(follower).leader == follower


def test_sync_timer_removes_followers_that_did_not_sync_although_stable(h):
    """testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromFollowers"""
    leader, follower = completing(h, rebalance_ms=20_000)
    h.sync(leader, 1, {})
    for _ in range(2):
        h.advance(9_000)
        h.heartbeat(leader, 1)
        h.heartbeat(follower, 1)
    h.advance(2_000)
    assert h.heartbeat(leader, 1).error_code == REBALANCE
    assert h.heartbeat(follower, 1).error_code == UNKNOWN


def test_sync_timer_stops_when_all_have_synced(h):
    """testRebalanceDoesNotTimeOutWhenAllSyncAreReceived"""
    h.stable(2)
    assert ("sync", "g") not in h.timers


# -- Heartbeat --------------------------------------------------------------------------------------------------------


def test_heartbeat_keeps_a_member_in_the_group(h):
    """testClassicGroupMemberHeartbeatMaintainsSession"""
    (member,) = h.stable()
    for _ in range(10):
        h.advance(9_999)
        assert h.heartbeat(member, 1).error_code == 0


def test_heartbeat_while_completing_is_accepted(h):
    """testHeartbeatDuringCompletingRebalance"""
    leader, follower = completing(h)
    for _ in range(5):
        h.advance(9_000)
        assert h.heartbeat(leader, 1).error_code == 0
        assert h.heartbeat(follower, 1).error_code == 0


def test_heartbeat_while_preparing_says_rejoin_and_keeps_the_session(h):
    """testHeartbeatDuringPreparingRebalance"""
    leader, follower = h.stable(2)
    h.join(leader)
    for _ in range(5):
        h.advance(9_000)
        assert h.heartbeat(follower, 1).error_code == REBALANCE


def test_heartbeat_of_unknown_group_is_unknown_member(h):
    """testHeartbeatUnknownGroup"""
    assert h.heartbeat("m", 1).error_code == UNKNOWN


def test_heartbeat_of_empty_group_is_unknown_member(h):
    """testHeartbeatEmptyGroup"""
    h.new_id()
    assert h.heartbeat("m", 0).error_code == UNKNOWN


def test_heartbeat_of_unknown_member_is_refused(h):
    """testHeartbeatUnknownMemberExistingGroup"""
    h.stable()
    assert h.heartbeat("m", 1).error_code == UNKNOWN


@pytest.mark.parametrize("generation", [0, 2])
def test_heartbeat_of_another_generation_is_refused(h, generation):
    """testHeartbeatIllegalGeneration"""
    (member,) = h.stable()
    assert h.heartbeat(member, generation).error_code == ErrorCode.ILLEGAL_GENERATION


def test_heartbeat_sets_one_timer_and_writes_nothing(h):
    (member,) = h.stable()
    before = len(h.log), dict(h.timers)
    h.advance(100)
    h.heartbeat(member, 1)
    assert len(h.log) == before[0]
    assert {k for k in h.timers if h.timers[k] != before[1].get(k)} == {("session", "g", member)}


@pytest.mark.parametrize("version", range(5))
def test_heartbeat_answers_in_every_version(h, version):
    (member,) = h.stable()
    assert h.heartbeat(member, 1, version=version).error_code == 0
    assert h.heartbeat("x", 1, version=version).error_code == UNKNOWN


# -- session time-out -------------------------------------------------------------------------------------------------


def test_session_timeout_of_the_only_member_empties_the_group_with_a_record(h):
    """testHeartbeatExpirationShouldRemoveMember"""
    h.stable()
    h.advance(10_000)
    assert h.state() == "Empty"
    assert h.group().generation_id == 2
    h.restart()
    assert h.state() == "Empty"


def test_session_timeout_of_one_member_rebalances_the_others(h):
    """testClassicGroupMemberSessionTimeoutDuringRebalance"""
    leader, follower = h.stable(2)
    h.advance(5_000)
    h.heartbeat(follower, 1)
    h.advance(5_000)
    assert h.heartbeat(follower, 1).error_code == REBALANCE
    reply = h.join(follower)
    assert (reply.generation_id, reply.leader) == (2, follower)
    assert h.heartbeat(leader, 2).error_code == UNKNOWN


def test_session_does_not_run_out_while_a_sync_is_parked(h):
    leader, follower = completing(h)
    waiting = h.sync(follower, 1)
    for _ in range(5):
        h.advance(9_000)
        h.heartbeat(leader, 1)
    assert waiting.parked
    h.sync(leader, 1, {follower: b"B"})
    assert waiting.assignment == b"B"
    h.advance(9_000)  # the session starts afresh with the answer
    h.heartbeat(leader, 1)
    h.advance(999)
    assert h.state() == "Stable"
    h.advance(1)
    assert h.heartbeat(follower, 1).error_code == UNKNOWN


def test_session_timers_start_in_full_after_a_restart(h):
    (member,) = h.stable()
    h.advance(9_000)
    h.restart()
    h.advance(9_999)
    assert h.heartbeat(member, 1).error_code == 0
    h.restart()
    h.advance(10_000)
    assert h.state() == "Empty"
