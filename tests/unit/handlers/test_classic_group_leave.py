"""LeaveGroup of classic groups: one by one, at once, and what it does to a rebalance."""

from __future__ import annotations

import pytest
from classic_group_kit import REBALANCE, UNKNOWN, completing
from unit.coordinator.harness import ShardHarness

from protocol.errors import ErrorCode

# -- LeaveGroup -------------------------------------------------------------------------------------------------------


def test_leave_of_the_last_member_empties_the_group_at_once(h):
    """testValidLeaveGroup"""
    (member,) = h.stable()
    reply = h.leave(member)
    assert [(m.member_id, m.error_code) for m in reply.members] == [(member, 0)]
    assert h.state() == "Empty"
    assert h.group().generation_id == 2
    assert [name for name in h.timers if name[0] == "session"] == []


def test_leave_of_one_rebalances_the_others(h):
    leader, follower = h.stable(2)
    h.leave(leader)
    assert h.heartbeat(follower, 1).error_code == REBALANCE
    assert h.join(follower).leader == follower


def test_leave_while_preparing_completes_the_rebalance(h):
    first, second, third = h.stable(3)
    replies = [h.join(first), h.join(second)]
    h.leave(third)
    assert [r.generation_id for r in replies] == [2, 2]


def test_leave_of_unknown_group_answers_each_member(h):
    """testLeaveGroupUnknownGroup"""
    reply = h.leave("a", ("b", "i"))
    assert reply.error_code == 0
    assert [(m.member_id, m.group_instance_id, m.error_code) for m in reply.members] == [
        ("a", None, UNKNOWN),
        ("b", "i", UNKNOWN),
    ]


def test_leave_of_unknown_member_changes_nothing(h):
    """testLeaveGroupUnknownMemberIdExistingGroup"""
    h.stable()
    assert h.leave("x").members[0].error_code == UNKNOWN
    assert h.state() == "Stable"


def test_leave_answers_a_batch_one_by_one(h):
    """testStaticMembersFencedInstanceBatchLeaveGroup, testStaticMembersUnknownInstanceBatchLeaveGroup"""
    first, second, third = h.stable(instances=("i1", "i2", None))
    reply = h.leave(("", "i1"), (second, "i1"), ("", "i9"), ("x", None), (third, "i2"), third, third)
    assert [m.error_code for m in reply.members] == [
        0,
        UNKNOWN,  # i1 has just left
        UNKNOWN,
        UNKNOWN,
        ErrorCode.FENCED_INSTANCE_ID,
        0,
        UNKNOWN,  # it has left already
    ]
    assert list(h.group().members) == [second]
    assert first not in h.group().members


def test_leave_answers_what_the_member_has_parked(h):
    leader, _, third = completing(h, 3)
    waiting = h.sync(third, 1)
    h.leave(third)
    assert waiting.error_code == UNKNOWN
    again = h.join(leader)
    h.leave(leader)
    assert again.error_code == UNKNOWN
    assert again.member_id == ""


@pytest.mark.parametrize("version", range(6))
def test_leave_answers_in_every_version(h, version):
    (member,) = h.stable()
    refused, accepted = h.leave("x", version=version), h.leave(member, version=version)
    if version < 3:
        assert (refused.error_code, accepted.error_code) == (UNKNOWN, 0)
        assert h.leave(member, group="nowhere", version=version).error_code == UNKNOWN
    else:
        assert (refused.error_code, refused.members[0].error_code) == (0, UNKNOWN)
        assert accepted.members[0].error_code == 0


def test_leave_while_the_initial_delay_runs_lets_it_run(h):
    with ShardHarness(group_initial_rebalance_delay_ms=1_000) as slow:
        stays, leaves = slow.join(version=3), slow.join(version=3)
        member_id = next(m for m in slow.group().members.values() if m.join_token == leaves.token).member_id
        slow.leave(member_id)
        assert stays.parked
        slow.advance(2_000)
        assert stays.generation_id == 1


def test_group_of_pending_member_ids_empties_when_its_only_member_leaves(h):
    (member,) = h.stable()
    pending = h.new_id()
    h.leave(member)
    assert h.state() == "PreparingRebalance"  # the id that was given out may still come
    h.advance()
    assert h.state() == "Empty"
    late = h.join(pending)
    h.advance()
    assert late.generation_id == 3
