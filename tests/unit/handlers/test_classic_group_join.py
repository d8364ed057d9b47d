"""JoinGroup: who may join, when the answer comes, and what it says."""

from __future__ import annotations

import re

import pytest
from unit.coordinator.harness import RANGE, ShardHarness, subscription

from protocol.errors import ErrorCode

ROUND_ROBIN = (("roundrobin", subscription("t")),)


@pytest.fixture
def h():
    with ShardHarness() as harness:
        yield harness


def test_join_of_first_member_makes_it_leader_of_generation_one(h):
    member_id = h.new_id()
    reply = h.join(member_id)
    assert reply.parked
    h.advance()
    assert (reply.error_code, reply.generation_id, reply.leader) == (0, 1, member_id)
    assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")
    assert [(m.member_id, m.metadata) for m in reply.members] == [(member_id, RANGE[0][1])]
    assert h.state() == "CompletingRebalance"


def test_join_v3_needs_no_second_request(h):
    reply = h.join(version=3)
    h.advance()
    assert reply.error_code == 0
    assert reply.member_id.startswith("client-")


def test_join_v4_of_dynamic_member_answers_member_id_required_with_a_uuid(h):
    """KIP-394"""
    reply = h.join(version=4, client="my-app")
    assert reply.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert re.fullmatch(r"my-app-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", reply.member_id)
    assert h.state() == "Empty"


def test_join_of_static_member_needs_no_second_request_and_names_the_id_after_the_instance(h):
    reply = h.join(instance="i1")
    h.advance()
    assert reply.error_code == 0
    assert reply.member_id.startswith("i1-")
    assert reply.members[0].group_instance_id == "i1"


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, 0, -1])
def test_join_outside_the_session_range_is_refused(h, session_ms):
    """testJoinGroupSessionTimeoutTooSmall, testJoinGroupSessionTimeoutTooLarge"""
    reply = h.join("m", session_ms=session_ms)
    assert (reply.error_code, reply.member_id) == (ErrorCode.INVALID_SESSION_TIMEOUT, "m")


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_join_at_the_ends_of_the_session_range_is_accepted(h, session_ms):
    assert h.join(session_ms=session_ms).error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_join_with_member_id_to_unknown_group_is_unknown(h):
    """testJoinGroupUnknownMemberNewGroup"""
    reply = h.join("nobody")
    assert (reply.error_code, reply.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "nobody")
    assert h.state() == "Dead"


def test_join_with_unknown_member_id_to_known_group_is_unknown(h):
    """testJoinGroupUnknownConsumerExistingGroup"""
    h.stable()
    assert h.join("nobody").error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("protocols", "code"), [((), "INCONSISTENT_GROUP_PROTOCOL"), (RANGE, "UNKNOWN_MEMBER_ID")])
def test_join_with_unknown_member_id_to_a_simple_group_is_checked_for_its_protocols(h, protocols, code):
    """A group of offsets alone is an empty classic group to Kafka."""
    assert h.join("nobody", protocols=protocols).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    h.commit("t", 0, 5)
    assert h.join("nobody", protocols=protocols).error_code == ErrorCode[code]


@pytest.mark.parametrize(("kind", "protocols"), [("", RANGE), ("consumer", ())])
def test_join_of_empty_group_without_type_or_protocols_is_inconsistent(h, kind, protocols):
    """testJoinGroupWithEmptyProtocolType, testJoinGroupWithEmptyGroupProtocol"""
    reply = h.join(protocol_type=kind, protocols=protocols)
    assert reply.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(("kind", "protocols"), [("connect", RANGE), ("consumer", ROUND_ROBIN), ("consumer", ())])
def test_join_of_other_type_or_without_common_protocol_is_inconsistent(h, kind, protocols):
    """testJoinGroupInconsistentProtocolType, testJoinGroupSecondJoinInconsistentProtocol"""
    h.stable()
    reply = h.join(protocol_type=kind, protocols=protocols)
    assert reply.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_join_chooses_the_protocol_with_most_votes_among_the_common_ones(h):
    """ClassicGroupTest.testSelectProtocol"""
    a, b, c = (("a", b""), ("b", b"")), (("b", b""), ("a", b"")), (("x", b""), ("b", b""), ("a", b""))
    replies = [h.join(h.new_id(protocols=p), protocols=p) for p in (a, b, c)]
    h.advance()
    assert {r.protocol_name for r in replies} == {"b"}


def test_rebalance_timeout_of_a_group_is_the_longest_of_its_members(h):
    for ms in (30_000, 50_000, 40_000):
        h.join(version=3, rebalance_ms=ms)
    assert h.group().rebalance_timeout_ms() == 50_000


@pytest.mark.parametrize("order", [1, -1])
def test_even_vote_is_decided_whoever_votes_first(h, order):
    """As Kafka decides it: the first in the order of a java.util.HashMap (recorded from 4.3.1 for "a" and "b")"""
    votes = [(("b", b""), ("a", b"")), (("a", b""), ("b", b""))][::order]
    replies = [h.join(h.new_id(protocols=p), protocols=p) for p in votes]
    h.advance()
    assert {r.protocol_name for r in replies} == {"a"}


def test_join_tells_only_the_leader_about_the_members(h):
    replies = [h.join(h.new_id()) for _ in range(3)]
    h.advance()
    leader = replies[0].leader
    assert leader == replies[0].member_id
    assert [len(r.members) for r in replies] == [3, 0, 0]
    assert {r.leader for r in replies} == {leader}


def test_second_member_starts_a_rebalance_that_ends_when_the_first_rejoins(h):
    (first,) = h.stable()
    late = h.join(h.new_id())
    assert late.parked
    assert h.state() == "PreparingRebalance"
    again = h.join(first)
    assert (again.generation_id, late.generation_id) == (2, 2)
    assert again.leader == late.leader == first


def test_rebalance_timeout_drops_dynamic_members_that_do_not_rejoin(h):
    """testCompleteJoinRemoveNotYetRejoinedDynamicMembers, testRebalanceCompletesBeforeMemberJoins"""
    first, second = h.stable(2, rebalance_ms=20_000)
    again = h.join(second, protocols=(("range", b"changed"),), rebalance_ms=20_000)
    for _ in range(3):
        h.advance(6_000)
        assert h.heartbeat(first, 1).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert again.parked
    h.advance(2_000)
    assert (again.generation_id, again.leader) == (2, second)
    assert h.heartbeat(first, 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_leader_that_rejoins_stays_leader(h):
    ids = h.stable(3)
    replies = [h.join(m, protocols=(("range", b"new"),)) for m in reversed(ids)]
    assert {r.leader for r in replies} == {ids[0]}


def test_rejoin_of_stable_follower_with_same_metadata_repeats_the_generation(h):
    """testJoinGroupFromUnchangedFollowerDoesNotRebalance"""
    _, follower = h.stable(2)
    reply = h.join(follower)
    assert (reply.error_code, reply.generation_id, reply.members) == (0, 1, [])
    assert h.state() == "Stable"


def test_rejoin_of_stable_leader_rebalances_even_with_same_metadata(h):
    """testJoinGroupFromUnchangedLeaderShouldRebalance"""
    leader, _ = h.stable(2)
    assert h.join(leader).parked
    assert h.state() == "PreparingRebalance"


def test_rejoin_of_stable_follower_with_other_metadata_rebalances(h):
    """testJoinGroupAsExistingMemberWithUpdatedMetadataTriggersRebalanceInStableState"""
    _, follower = h.stable(2)
    assert h.join(follower, protocols=(("range", b"other"),)).parked
    assert h.state() == "PreparingRebalance"


def test_rejoin_while_completing_with_same_metadata_repeats_the_generation(h):
    replies = [h.join(h.new_id()) for _ in range(2)]
    h.advance()
    leader, follower = (r.member_id for r in replies)
    again = h.join(leader)
    assert (again.generation_id, len(again.members)) == (1, 2)
    assert h.join(follower).members == []
    assert h.state() == "CompletingRebalance"


def test_rejoin_while_completing_with_other_metadata_rebalances(h):
    """testJoinGroupExistingMemberUpdatedMetadataTriggersRebalance"""
    replies = [h.join(h.new_id()) for _ in range(2)]
    h.advance()
    waiting = h.sync(replies[1].member_id, 1)
    again = h.join(replies[0].member_id, protocols=(("range", b"other"),))
    assert again.parked
    assert waiting.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert h.state() == "PreparingRebalance"


def test_second_join_of_a_parked_member_answers_the_first(h):
    first, second = h.stable(2)
    lost = h.join(first)
    again = h.join(first)
    assert (lost.error_code, lost.member_id) == (ErrorCode.REBALANCE_IN_PROGRESS, "")
    h.join(second)
    assert again.generation_id == 2


def test_join_of_empty_group_with_a_member_id_of_before_is_unknown(h):
    """testJoinGroupExistingMemberInEmptyState"""
    (member,) = h.stable()
    h.leave(member)
    assert h.state() == "Empty"
    assert h.join(member).error_code == ErrorCode.UNKNOWN_MEMBER_ID


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


# -- versions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(10))
def test_join_answers_in_every_version(h, version):
    reply = h.join(h.new_id(version=version) if version >= 4 else "", version=version)
    h.advance()
    assert (reply.error_code, reply.generation_id) == (0, 1)
    member = h.group().members[reply.member_id]
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert member.rebalance_timeout_ms == (10_000 if version == 0 else 60_000)


@pytest.mark.parametrize("version", range(10))
def test_join_is_refused_in_every_version(h, version):
    assert h.join("x", version=version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
