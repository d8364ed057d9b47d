"""DescribeGroups, ListGroups, DeleteGroups and OffsetDelete."""

from __future__ import annotations

import pytest
from unit.coordinator.harness_parts import RANGE, subscription

from protocol.errors import ErrorCode

# -- DescribeGroups ---------------------------------------------------------------------------------------------------


def test_describe_of_stable_group_shows_what_members_said(h):
    """testDescribeGroupStable"""
    ids = h.stable(instances=("i1", None))
    (group,) = h.describe("g")
    assert (group.error_code, group.group_state) == (0, "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    assert [(m.member_id, m.group_instance_id) for m in group.members] == [(ids[0], "i1"), (ids[1], None)]
    assert [m.member_metadata for m in group.members] == [RANGE[0][1]] * 2
    assert [m.member_assignment for m in group.members] == [b"a0", b"a1"]
    assert {(m.client_id, m.client_host) for m in group.members} == {("client", "/127.0.0.1")}


def test_describe_while_rebalancing_hides_what_members_said(h):
    """testDescribeGroupRebalancing"""
    h.stable(2)
    h.join(next(iter(h.group().members)))
    (group,) = h.describe("g")
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert [m.member_metadata for m in group.members] == [b"", b""]
    assert [m.member_assignment for m in group.members] == [b"a0", b"a1"]


def test_describe_shows_no_assignment_once_a_rebalance_was_cut_short(h):
    leader, _ = h.stable(2)
    h.join(leader)
    h.leave(next(m for m in h.group().members if m != leader))
    assert h.state() == "CompletingRebalance"
    assert [m.member_assignment for m in h.describe("g")[0].members] == [b"a0"]
    h.join(instance="i")
    assert (h.state(), [m.member_assignment for m in h.describe("g")[0].members]) == ("PreparingRebalance", [b"", b""])


@pytest.mark.parametrize("version", range(7))
def test_describe_of_unknown_group_is_dead_and_from_v6_an_error(h, version):
    """testDescribeGroupsGroupIdNotFoundException"""
    (group,) = h.describe("x", version=version)
    code = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0
    assert (group.group_id, group.group_state, group.error_code) == ("x", "Dead", code)
    assert (group.error_message is None) == (version < 6)


def test_describe_of_simple_group_is_empty(h):
    h.commit("t", 0, 1, group="")
    (group,) = h.describe("")
    assert (group.group_state, group.protocol_type, group.error_code) == ("Empty", "", 0)


def test_describe_answers_each_group_for_itself(h):
    h.stable()
    first, second = h.describe("elsewhere", "g", operations=True)
    assert first.error_code == ErrorCode.NOT_COORDINATOR
    assert first.authorized_operations == -(2**31)
    assert second.authorized_operations == 0b110101001000


def test_describe_does_not_show_operations_unasked(h):
    h.stable()
    assert h.describe("g")[0].authorized_operations == -(2**31)


# -- ListGroups -------------------------------------------------------------------------------------------------------


def names(groups):
    return sorted(g.group_id for g in groups)


def test_list_shows_groups_of_all_states_and_simple_ones(h):
    """testListGroups"""
    h.stable(group="stable")
    h.new_id(group="empty")
    h.join(group="preparing", version=3)
    h.commit("t", 0, 1, group="simple")
    groups = {g.group_id: (g.protocol_type, g.group_state, g.group_type) for g in h.list_groups()}
    assert groups == {
        "stable": ("consumer", "Stable", "classic"),
        "empty": ("", "Empty", "classic"),
        "preparing": ("consumer", "PreparingRebalance", "classic"),
        "simple": ("", "Empty", "classic"),
    }


def test_list_filters_by_state_whatever_the_case(h):
    h.stable(group="stable")
    h.commit("t", 0, 1, group="simple")
    assert names(h.list_groups(("sTaBle",))) == ["stable"]
    assert names(h.list_groups((" empty ", "dead"))) == ["simple"]
    assert names(h.list_groups(("Stable", "Empty"))) == ["simple", "stable"]
    assert names(h.list_groups(("nonsense",))) == []


def test_list_filters_by_type_whatever_the_case(h):
    h.stable()
    assert names(h.list_groups(types=("CLASSIC", "share"))) == ["g"]
    assert names(h.list_groups(types=("consumer",))) == []
    assert names(h.list_groups(types=("nonsense",))) == []


@pytest.mark.parametrize("version", range(6))
def test_list_answers_in_every_version(h, version):
    h.stable()
    assert names(h.list_groups(version=version)) == ["g"]


# -- DeleteGroups -----------------------------------------------------------------------------------------------------


def test_delete_of_empty_group_takes_its_offsets_with_it(h):
    """testClassicGroupDelete, testDeleteGroupAllOffsets"""
    (member,) = h.stable()
    h.commit("t", 0, 1)
    h.commit("u", 7, 1)
    h.leave(member)
    assert h.delete("g") == [("g", 0)]
    assert h.state() == "Dead"
    assert not h.shard.has_group("g")
    assert len(h.log[-3:]) == 3
    assert all(value is None for _, value in h.log[-3:])
    h.restart()
    assert not h.shard.has_group("g")


def test_delete_of_simple_group_deletes_its_offsets(h):
    h.commit("t", 0, 1)
    assert h.delete("g", "g") == [("g", 0)]
    assert h.offset("t", 0) is None


def test_delete_of_group_with_members_is_refused_in_every_state(h):
    """ClassicGroupTest.testValidateDeleteGroup"""
    h.stable(group="stable")
    h.join(group="preparing", version=3)
    h.join(group="completing", version=3)
    h.advance()
    h.join(group="preparing", version=3)
    groups = ("stable", "preparing", "completing")
    assert h.delete(*groups) == [(group, ErrorCode.NON_EMPTY_GROUP) for group in groups]


def test_delete_answers_each_group_for_itself(h):
    h.commit("t", 0, 1)
    assert h.delete("x", "elsewhere", "g") == [
        ("x", ErrorCode.GROUP_ID_NOT_FOUND),
        ("elsewhere", ErrorCode.NOT_COORDINATOR),
        ("g", 0),
    ]


def test_delete_forgets_member_ids_that_were_given_out(h):
    pending = h.new_id()
    assert h.delete("g") == [("g", 0)]
    assert ("session", "g", pending) not in h.timers
    assert h.join(pending).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(3))
def test_delete_answers_in_every_version(h, version):
    assert h.delete("x", version=version) == [("x", ErrorCode.GROUP_ID_NOT_FOUND)]


# -- OffsetDelete -----------------------------------------------------------------------------------------------------


def codes(reply):
    return {(t.name, p.partition_index): p.error_code for t in reply.topics for p in t.partitions}


def test_delete_offsets_of_a_group_that_is_empty(h):
    """testGenericGroupOffsetDelete"""
    h.add_topic("t", 4)
    h.commit("t", 0, 1)
    h.commit("t", 1, 2)
    before = len(h.log)
    reply = h.delete_offsets({"t": [0, 3, 0]})
    assert reply.error_code == 0
    assert codes(reply) == {("t", 0): 0, ("t", 3): 0}
    assert (h.offset("t", 0), h.offset("t", 1)) == (None, 2)
    assert len(h.log) == before + 1  # no tombstone where nothing was


def test_delete_offsets_of_a_topic_that_is_named_twice_deletes_both_times(h):
    h.add_topic("t", 3)
    for partition in range(3):
        h.commit("t", partition, 1)
    before = len(h.log)
    reply = h.delete_offsets([("t", [0, 1]), ("t", [1, 2]), ("t", [])])
    assert [len(topic.partitions) for topic in reply.topics] == [2, 2, 0]
    assert [h.offset("t", partition) for partition in range(3)] == [None, None, None]
    assert len(h.log) == before + 3


def test_delete_offsets_of_unknown_partitions_is_refused_for_them(h):
    h.add_topic("t", 1)
    h.commit("t", 0, 1)
    h.commit("gone", 0, 1)
    reply = h.delete_offsets({"t": [0, 1, -1], "gone": [0]})
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(reply) == {("t", 0): 0, ("t", 1): unknown, ("t", -1): unknown, ("gone", 0): unknown}
    assert h.offset("gone", 0) == 1


def test_delete_offsets_of_subscribed_topics_is_refused_for_them(h):
    """KIP-496"""
    h.add_topic("mine", 1)
    h.add_topic("other", 1)
    h.stable(protocols=(("range", subscription("mine")),))
    h.commit("mine", 0, 1)
    h.commit("other", 0, 1)
    reply = h.delete_offsets({"mine": [0], "other": [0]})
    assert codes(reply) == {("mine", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("other", 0): 0}
    assert (h.offset("mine", 0), h.offset("other", 0)) == (1, None)


def test_delete_offsets_of_consumers_that_cannot_be_understood_is_refused(h):
    h.add_topic("t", 1)
    h.stable(protocols=(("range", b"?"),))
    assert codes(h.delete_offsets({"t": [0]})) == {("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}


def test_delete_offsets_of_a_group_of_other_kind_with_members_is_refused(h):
    """testGenericGroupOffsetDeleteWithErrors"""
    h.add_topic("t", 1)
    (member,) = h.stable(protocol_type="connect")
    assert h.delete_offsets({"t": [0]}).error_code == ErrorCode.NON_EMPTY_GROUP
    h.leave(member)
    assert codes(h.delete_offsets({"t": [0]})) == {("t", 0): 0}


def test_delete_offsets_of_unknown_group_is_refused(h):
    h.add_topic("t", 1)
    assert h.delete_offsets({"t": [0]}, "x").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert h.delete_offsets({"t": [0]}, "").error_code == ErrorCode.INVALID_GROUP_ID
    assert h.delete_offsets({"t": [0]}, "elsewhere").error_code == ErrorCode.NOT_COORDINATOR
