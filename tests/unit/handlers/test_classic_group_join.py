"""JoinGroup: who may join, when the answer comes, and what it says."""

from __future__ import annotations

import re

import pytest
from unit.coordinator.harness_parts import RANGE, subscription

from protocol.errors import ErrorCode

ROUND_ROBIN = (("roundrobin", subscription("t")),)


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
