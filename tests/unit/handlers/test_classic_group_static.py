"""Static members (KIP-345): an instance id that outlives the process behind it."""

from __future__ import annotations

import pytest
from unit.coordinator.harness_parts import RANGE

from protocol.errors import ErrorCode

FENCED = ErrorCode.FENCED_INSTANCE_ID
BOTH = (*RANGE, ("roundrobin", b""))


def test_static_follower_that_comes_back_gets_the_same_generation_without_a_rebalance(h):
    """testReplaceStaticMemberInStableStateNoError"""
    leader, old = h.stable(instances=("i1", "i2"))
    before = len(h.log)
    reply = h.join(instance="i2")
    assert (reply.error_code, reply.generation_id, reply.leader) == (0, 1, leader)
    assert (reply.members, reply.skip_assignment) == ([], False)
    assert {name[2] for name in h.timers if name[0] == "session"} == {leader, reply.member_id}
    assert reply.member_id not in (old, leader)
    assert h.state() == "Stable"
    assert len(h.log) == before + 1
    assert h.sync(reply.member_id, 1, instance="i2").assignment == b"a1"


def test_static_leader_that_comes_back_v9_is_told_to_skip_the_assignment(h):
    """testStaticMemberRejoinWithLeaderIdAndUnknownMemberId (KIP-814)"""
    h.stable(instances=("i1", "i2"))
    reply = h.join(instance="i1", version=9)
    assert reply.leader == reply.member_id
    assert reply.skip_assignment
    assert len(reply.members) == 2


@pytest.mark.parametrize("version", [5, 8])
def test_static_leader_that_comes_back_before_v9_is_told_that_its_old_id_leads(h, version):
    old, _ = h.stable(instances=("i1", "i2"))
    reply = h.join(instance="i1", version=version)
    assert (reply.leader, reply.members, reply.skip_assignment) == (old, [], False)
    assert h.group().leader == reply.member_id


def test_old_member_id_of_a_replaced_static_member_is_fenced(h):
    """testStaticMemberFenceDuplicateRejoinedFollower"""
    _, old = h.stable(instances=("i1", "i2"))
    h.join(instance="i2")
    assert h.heartbeat(old, 1, instance="i2").error_code == FENCED
    assert h.sync(old, 1, instance="i2").error_code == FENCED
    assert h.join(old, instance="i2").error_code == FENCED
    assert h.leave((old, "i2")).members[0].error_code == FENCED
    assert h.commit_check(1, old, "i2") == FENCED
    assert h.heartbeat(old, 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID  # without the instance nobody knows it


def test_replaced_static_member_survives_a_restart(h):
    _, old = h.stable(instances=("i1", "i2"))
    new = h.join(instance="i2").member_id
    h.restart()
    assert h.heartbeat(new, 1, instance="i2").error_code == 0
    assert h.heartbeat(old, 1, instance="i2").error_code == FENCED
    assert h.sync(new, 1, instance="i2").assignment == b"a1"


def test_static_member_that_comes_back_with_a_protocol_that_changes_the_vote_rebalances(h):
    """testReplaceStaticMemberInStableStateWithUpdatedProtocolTriggersRebalance"""
    h.stable(instances=("i1", "i2"), protocols=BOTH)
    reply = h.join(instance="i2", protocols=BOTH[1:])
    assert reply.parked
    assert h.state() == "PreparingRebalance"


def test_static_member_that_comes_back_with_the_same_choice_may_change_the_rest(h):
    h.stable(instances=("i1", "i2"), protocols=BOTH)
    reply = h.join(instance="i2", protocols=(("range", b"other"), ("third", b"")), session_ms=20_000)
    assert reply.generation_id == 1
    member = h.group().members[reply.member_id]
    assert (member.metadata("range"), member.session_timeout_ms) == (b"other", 20_000)
    h.check()


def test_static_member_that_comes_back_while_completing_rebalances(h):
    """testStaticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged"""
    replies = [h.join(instance=i) for i in ("i1", "i2")]
    h.advance()
    waiting = h.sync(replies[1].member_id, 1, instance="i2")
    again = h.join(instance="i2")
    assert waiting.error_code == FENCED
    assert again.parked
    assert h.state() == "PreparingRebalance"


def test_static_member_that_comes_back_while_preparing_fences_the_parked_join(h):
    """testStaticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged"""
    leader, old = h.stable(instances=("i1", "i2"))
    lost = h.join(old, instance="i2", protocols=(("range", b"new"),))
    assert lost.parked
    again = h.join(instance="i2", protocols=(("range", b"new"),))
    assert (lost.error_code, lost.member_id) == (FENCED, old)
    assert again.parked
    h.join(leader, instance="i1")
    assert again.generation_id == 2


def test_static_member_that_comes_back_last_completes_the_rebalance(h):
    leader, _ = h.stable(instances=("i1", "i2"))
    first = h.join(leader, instance="i1")
    last = h.join(instance="i2")
    assert first.generation_id == last.generation_id == 2


def test_static_member_that_comes_back_during_the_first_rebalance_is_in_it(h):
    first = h.join(instance="i1")
    second = h.join(instance="i1")
    assert first.error_code == FENCED
    h.advance()
    assert (second.generation_id, second.leader) == (1, second.member_id)
    assert len(second.members) == 1


def test_static_member_with_known_id_rejoins_like_any_member(h):
    """testStaticMemberRejoinWithFollowerIdAndChangeOfProtocol"""
    _, follower = h.stable(instances=("i1", "i2"))
    assert h.join(follower, instance="i2").generation_id == 1
    assert h.join(follower, instance="i2", protocols=(("range", b"new"),)).parked


def test_join_with_unknown_instance_and_known_member_id_is_unknown(h):
    """testStaticMemberJoinWithUnknownInstanceIdAndKnownMemberId"""
    member, _ = h.stable(instances=("i1", "i2"))
    assert h.join(member, instance="i9").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.join(member, instance="i2").error_code == FENCED


def test_static_members_that_do_not_rejoin_stay_with_their_place(h):
    """testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout"""
    leader, absent = h.stable(instances=("i1", "i2"), session_ms=100_000, rebalance_ms=20_000)
    reply = h.join(leader, instance="i1", session_ms=100_000, rebalance_ms=20_000)
    h.advance(20_000)
    assert reply.generation_id == 2
    assert {m.member_id for m in reply.members} == {leader, absent}


def test_rebalance_without_anybody_present_waits_for_static_members(h):
    """testCompleteJoinPhaseNoMembersRejoinedExtendsJoinPhase"""
    leader, other, dynamic = h.stable(instances=("i1", "i2", None), session_ms=60_000, rebalance_ms=20_000)
    h.leave(dynamic)
    h.advance(20_000)
    assert h.state() == "PreparingRebalance"
    h.advance(10_000)
    assert set(h.group().members) == {leader, other}
    reply = h.join(other, instance="i2", session_ms=60_000, rebalance_ms=20_000)
    h.advance(10_000)
    assert (reply.generation_id, reply.leader) == (2, other)


def test_leader_that_took_over_from_an_absent_static_member_stays_leader(h):
    """testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout"""
    first, second = h.stable(instances=("i1", "i2"), session_ms=100_000, rebalance_ms=20_000)
    how = {"session_ms": 100_000, "rebalance_ms": 20_000, "protocols": (("range", b"new"),)}
    reply = h.join(second, instance="i2", **how)
    h.advance(20_000)
    assert (reply.generation_id, reply.leader) == (2, second)
    replies = [h.join(first, instance="i1", **how), h.join(second, instance="i2", **how)]
    assert {r.leader for r in replies} == {second}


def test_absent_static_members_go_with_their_session(h):
    h.stable(instances=("i1", "i2"), session_ms=30_000)
    h.advance(30_000)
    assert h.state() == "PreparingRebalance" or h.state() == "Empty"
    h.advance(60_000)
    assert h.state() == "Empty"


def test_static_member_removed_by_its_instance_frees_the_instance(h):
    h.stable(instances=("i1", "i2"))
    h.leave(("", "i2"))
    assert h.group().static_members.keys() == {"i1"}
    assert h.join(instance="i2").parked


def test_replaced_member_that_owed_a_sync_owes_it_under_its_new_id(h):
    replies = [h.join(instance=i, rebalance_ms=20_000) for i in ("i1", "i2")]
    h.advance()
    leader = replies[0].member_id
    h.sync(leader, 1, {replies[1].member_id: b"B"}, instance="i1")
    new = h.join(instance="i2", rebalance_ms=20_000).member_id
    assert h.group().pending_syncs == {new}
    assert h.sync(new, 1, instance="i2").assignment == b"B"
    assert ("sync", "g") not in h.timers
