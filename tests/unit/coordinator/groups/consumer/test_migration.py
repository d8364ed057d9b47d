"""A group in use changes its protocol, in both directions; members of both in one group."""

from __future__ import annotations

import pytest
from consumer_kit import SESSION_MS, Groups
from core_broker import Client
from unit.coordinator.groups.consumer.classic_kit import Classic, alone, join_request, settle, subscription

from broker.coordinator.groups.consumer.embedded_protocol import read_assignment, read_subscription, write_assignment
from protocol.errors import ErrorCode as E
from protocol.messages.classic_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.group_admin import DeleteGroupsRequest


def test_consumer_member_makes_a_classic_group_a_consumer_group(g):
    c = alone(g)
    a = g.member("a")
    assert (a.join().error_code, a.epoch, a.assigned) == (0, c.generation + 1, {})
    found = g.describe()
    assert [(m.member_id, m.member_type, m.member_epoch) for m in found.members] == [
        (c.member_id, 0, c.generation),
        ("a", 1, c.generation + 1),
    ]
    settle(g, [c], [a])
    assert sorted([*c.assigned["t"], *a.assigned["t"]]) == [0, 1, 2, 3]
    assert (c.beat(), c.generation) == (0, a.epoch)
    g.restart()
    assert c.beat() == 0
    assert c.beat(c.generation - 1) == E.ILLEGAL_GENERATION


def test_classic_member_is_told_once_to_rejoin_and_removed_when_it_does_not(g):
    c = alone(g)
    a = g.member("a")
    a.join()
    for _ in range(11):
        c.beat()
        a.beat()
        g.advance(5_500)
    assert set(g.group().members) == {"a"}
    assert c.beat() == E.UNKNOWN_MEMBER_ID


def test_classic_member_that_never_syncs_is_removed(g):
    c = alone(g)
    a = g.member("a")
    a.join()
    c.join()
    for _ in range(11):
        c.beat()
        a.beat()
        g.advance(5_500)
    assert set(g.group().members) == {"a"}


def test_silent_classic_member_is_removed_after_its_own_session(g):
    alone(g)
    a = g.member("a")
    a.join()
    g.advance(10_000)
    assert set(g.group().members) == {"a"}
    a.beat()
    assert a.assigned == {"t": [0, 1, 2, 3]}


def test_classic_member_joins_a_consumer_group(g):
    (a,) = g.joined("a")
    c = Classic(g)
    answer = c.join()
    assert (answer.error_code, answer.leader, answer.members) == (0, "", [])
    assert (answer.protocol_name, answer.generation_id) == ("range", a.epoch + 1)
    settle(g, [c], [a])
    assert (len(c.assigned["t"]), a.count()) == (2, 2)


@pytest.mark.parametrize(("policy", "code"), [("disabled", E.INCONSISTENT_GROUP_PROTOCOL), ("upgrade", 0)])
def test_classic_member_joins_a_consumer_group_unless_migration_is_disabled(policy, code):
    with Groups({"t": 4}, group_consumer_migration_policy=policy) as g:
        g.joined("a")
        assert Classic(g).join().error_code == code


@pytest.mark.parametrize(
    ("policy", "code"),
    [("bidirectional", 0), ("upgrade", 0), ("downgrade", E.GROUP_ID_NOT_FOUND), ("disabled", E.GROUP_ID_NOT_FOUND)],
)
def test_policy_decides_over_the_upgrade(policy, code):
    with Groups({"t": 4}, group_consumer_migration_policy=policy) as g:
        c = alone(g)
        answer = g.member("a").join()
        assert answer.error_code == code
        assert c.beat() == (0 if code else E.REBALANCE_IN_PROGRESS)


def test_group_that_is_no_group_of_consumers_is_not_upgraded(g):
    g.client.call(join_request({"x": b"x"}, instance="i", protocol_type="connect"), 9)
    answer = g.member("a").join()
    assert (answer.error_code, "embedded protocol" in answer.error_message) == (E.GROUP_ID_NOT_FOUND, True)


def test_subscription_that_cannot_be_read_is_not_upgraded(g):
    g.client.call(join_request({"range": b"\0\0\0"}, instance="i"), 9)
    answer = g.member("a").join()
    assert (answer.error_code, "malformed" in answer.error_message) == (E.GROUP_ID_NOT_FOUND, True)


def test_join_that_waits_for_a_rebalance_is_told_of_another_one(g):
    c = alone(g)
    late = Classic(g)
    wants = {"range": subscription("t")}
    late.member_id = g.client.call(join_request(wants), 9).member_id
    other = Client(g.world)
    other.send(join_request(wants, late.member_id), 9)
    g.world.run()
    assert other.replies() == []
    a = g.member("a")
    assert a.join().error_code == 0
    assert [r.error_code for r in other.replies()] == [E.REBALANCE_IN_PROGRESS]
    settle(g, [c, late], [a])
    assert sorted([*c.assigned["t"], *late.assigned["t"], *a.assigned["t"]]) == [0, 1, 2, 3]


def test_last_consumer_member_that_leaves_makes_the_group_classic_again(g):
    c = alone(g)
    a = g.member("a")
    a.join()
    settle(g, [c], [a])
    epoch = g.group().group_epoch
    a.leave()
    assert g.group().group_type == "classic"
    assert (g.group().generation_id, g.group().state.value) == (epoch, "PreparingRebalance")
    assert (c.beat(), c.beat(epoch - 1)) == (E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION)
    answer = c.join()
    assert (answer.generation_id, answer.leader) == (epoch + 1, c.member_id)
    assert c.sync(**{c.member_id.replace("-", "_"): {"t": (0, 1, 2, 3)}}).error_code == 0
    g.restart()
    assert c.beat() == 0


def test_silent_consumer_member_makes_the_group_classic_again_too(g):
    c = alone(g)
    a = g.member("a")
    a.join()
    settle(g, [c], [a])
    for _ in range(10):
        g.advance(SESSION_MS // 10)
        if g.group().group_type == "consumer":
            assert c.beat() == 0
    assert g.group().group_type == "classic"
    c.join()
    c.sync(**{c.member_id.replace("-", "_"): {"t": (0, 1, 2, 3)}})


def test_group_stays_a_consumer_group_where_downgrades_are_not_allowed():
    with Groups({"t": 4}, group_consumer_migration_policy="upgrade") as g:
        c = alone(g)
        a = g.member("a")
        a.join()
        settle(g, [c], [a])
        a.leave()
        assert g.group().group_type == "consumer"
        settle(g, [c], [])
        assert c.assigned == {"t": (0, 1, 2, 3)}


def test_classic_static_member_takes_the_place_of_the_last_consumer_member(g):
    c = alone(g)
    s = g.member("s", instance="i")
    s.join()
    settle(g, [c], [s])
    had = s.assigned["t"]
    old = Classic(g, instance="i")
    answer = old.join()
    assert (answer.error_code, answer.generation_id) == (0, g.group().generation_id)
    assert (g.group().group_type, g.group().state.value) == ("classic", "Stable")
    assert old.sync().error_code == 0
    assert list(old.assigned["t"]) == had
    assert c.beat() == 0
    assert s.send(s.epoch).error_code == E.GROUP_ID_NOT_FOUND


def test_consumer_static_member_takes_the_place_of_a_classic_one(g):
    c, s = alone(g), Classic(g, instance="i")
    g.member("a").join()
    s.join()
    assert s.sync().error_code in (0, E.REBALANCE_IN_PROGRESS)
    new = g.member("s2", instance="i")
    assert new.join().error_code == 0
    assert s.beat() == E.FENCED_INSTANCE_ID
    a = g.member("a")
    a.join()
    settle(g, [c], [a, new])


def test_empty_groups_make_room_for_the_other_protocol(g):
    c = alone(g)
    assert c.leave() == 0
    (a,) = g.joined("a")
    assert (g.group().group_type, a.epoch) == ("consumer", 2)
    a.leave()
    again = alone(g)
    assert (g.group().group_type, again.generation) == ("classic", 1)
    g.restart()
    assert again.beat() == 0


def test_unknown_static_member_is_told_so_before_its_subscription_is_read(g):
    g.joined("a")
    c = Classic(g, instance="i")
    wrong = join_request({"range": b""}, "stranger", "i")
    assert c.call(wrong, 9).error_code == E.UNKNOWN_MEMBER_ID
    assert c.call(join_request({"range": b""}, "stranger"), 9).error_code == E.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("restarts", [False, True])
def test_refused_join_leaves_an_empty_consumer_group_as_it_is(g, restarts):
    """Kafka goes on listing and describing the group, but no later change finds it: it cannot even be deleted."""
    (a,) = g.joined("a")
    a.leave()
    c = Classic(g)
    c.member_id = "stranger"
    assert c.join().error_code == E.UNKNOWN_MEMBER_ID
    if restarts:
        g.restart()
    assert g.describe().group_state == "Empty"
    assert a.send(1).error_code == E.UNKNOWN_MEMBER_ID  # GROUP_ID_NOT_FOUND would say that there is no group
    deleted = g.client.call(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert [row.error_code for row in deleted.results] == [0]


def test_admin_removes_members_of_a_consumer_group_by_instance_id(g):
    g.joined("a", instance="i")
    rows = [MemberIdentity(member_id="", group_instance_id=i) for i in ("i", "j")]
    answer = g.client.call(LeaveGroupRequest(group_id="g", members=rows), 5)
    assert [m.error_code for m in answer.members] == [0, E.UNKNOWN_MEMBER_ID]
    assert g.group().is_empty


def test_classic_requests_of_a_consumer_protocol_member_are_refused(g):
    (a,) = g.joined("a")
    c = Classic(g)
    c.member_id, c.generation = "a", a.epoch
    assert c.beat() == E.UNKNOWN_MEMBER_ID
    assert c.sync().error_code == E.UNKNOWN_MEMBER_ID


def test_classic_member_with_other_protocols_does_not_fit(g):
    c = alone(g)
    a = g.member("a")
    a.join()
    other = Classic(g)
    other.protocol = "other"
    assert other.join().error_code == E.INCONSISTENT_GROUP_PROTOCOL
    settle(g, [c], [a])


def test_subscriptions_and_assignments_are_read_as_written():
    data = subscription("t", "u", owned={"t": (0, 2)}, rack="r")
    found = read_subscription(data)
    assert found == (3, {"t", "u"}, {"t": (0, 2)}, "r")
    assert read_subscription(b"\0\7" + data[2:] + b"more") == found
    assert read_assignment(write_assignment({"t": (1, 2)}, 1)) == ({"t": (1, 2)}, b"")
    for cut in range(len(data)):
        with pytest.raises(ValueError, match="bytes at"):
            read_subscription(data[:cut])
