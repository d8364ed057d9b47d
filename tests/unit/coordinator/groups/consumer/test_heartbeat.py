"""ConsumerGroupHeartbeat of dynamic members: joining, reconciliation, what moves epochs, time-outs, settings."""

from __future__ import annotations

from consumer_kit import SESSION_MS, Groups

from protocol.errors import ErrorCode as E
from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)


def set_group_config(groups: Groups, key: str, value: str, group_id: str = "g") -> None:
    change = IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=32, resource_name=group_id, configs=[change]
    )
    answer = groups.client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message


# -- joining -------------------------------------------------------------------------------------------------------


def test_first_member_is_at_epoch_2_and_has_everything(g):
    member = g.member()
    answer = member.join()
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m", 2, 5000)
    assert member.assigned == {"t": [0, 1, 2, 3]}
    assert g.group().state.value == "Stable"


def test_member_without_an_id_is_given_one_in_version_0(g):
    member = g.member("")
    assert member.join(version=0).error_code == 0
    assert len(member.member_id) == 22
    assert set(g.group().members) == {member.member_id}


def test_heartbeat_without_news_has_no_assignment_and_writes_nothing(g):
    (member,) = g.joined("m")
    end = g.world.broker.groups.of("g").log.end_offset
    assert member.send(member.epoch).assignment is None
    assert g.world.broker.groups.of("g").log.end_offset == end


def test_full_heartbeat_is_answered_with_the_assignment(g):
    (member,) = g.joined("m")
    answer = member.beat(rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=member.owned_now())
    assert answer.assignment is not None


def test_second_member_waits_for_what_the_first_gives_back(g):
    a = g.member("a")
    a.join()
    b = g.member("b")
    b.join()
    assert (b.epoch, b.assigned) == (3, {})
    a.beat()
    assert (a.epoch, a.count()) == (2, 2)
    b.beat()
    assert b.assigned == {}
    assert g.group().state.value == "Reconciling"
    a.beat()  # acknowledges
    assert a.epoch == 3
    b.beat()
    assert sorted(a.assigned["t"] + b.assigned["t"]) == [0, 1, 2, 3]
    assert g.group().state.value == "Stable"


def test_revocation_is_not_done_until_the_heartbeat_says_so(g):
    a = g.member("a")
    a.join()
    g.member("b").join()
    before = a.owned_now()
    a.beat(topic_partitions=None)
    assert a.epoch == 2
    a.beat(topic_partitions=None)  # says nothing: still owned
    a.beat(topic_partitions=before)  # still lists them
    assert a.epoch == 2
    a.beat(topic_partitions=a.owned_now())
    assert a.epoch == 3


def test_member_that_rejoins_with_epoch_0_keeps_its_place(g):
    a, _ = g.joined("a", "b")
    before = (a.epoch, a.assigned)
    assert a.join().error_code == 0
    assert (a.epoch, a.assigned) == before


def test_members_with_other_wishes_get_their_own_topics():
    with Groups({"t": 4, "u": 3, "v": 2}) as g:
        a, b = g.member("a", topics=["t", "u"]), g.member("b", topics=["u", "v"])
        a.join()
        b.join()
        g.settle([a, b])
        assert {**a.assigned, **b.assigned}.keys() == {"t", "u", "v"}
        assert (a.assigned["t"], b.assigned["v"]) == ([0, 1, 2, 3], [0, 1])
        assert sorted([a.count(), b.count()]) == [4, 5]


def test_range_is_taken_when_most_members_want_it():
    with Groups({"t": 3, "u": 3}) as g:
        members = [g.member(m, topics=["t", "u"], assignor="range") for m in ("a", "b")]
        for member in members:
            member.join()
        g.settle(members)
        assert [m.assigned for m in members] == [{"t": [0, 1], "u": [0, 1]}, {"t": [2], "u": [2]}]
        assert g.describe().assignor_name == "range"


# -- what bumps the group epoch ------------------------------------------------------------------------------------


def test_new_subscription_moves_the_group_epoch_and_takes_the_old_topic_away():
    with Groups({"t": 2, "u": 2}) as g:
        (member,) = g.joined("m", topics=["t"])
        epoch = g.group().group_epoch
        member.beat(subscribed_topic_names=["u"])
        assert g.group().group_epoch == epoch + 1
        g.settle([member])
        assert member.assigned == {"u": [0, 1]}


def test_other_news_of_a_member_are_logged_and_move_no_epoch(g):
    (member,) = g.joined("m")
    epoch = g.group().group_epoch
    member.beat(rack_id="r1", rebalance_timeout_ms=1234)
    member_metadata = g.group().members["m"].member_metadata
    assert (member_metadata.rack_id, member_metadata.rebalance_timeout_ms) == ("r1", 1234)
    assert g.group().group_epoch == epoch


def test_new_partitions_are_assigned_with_the_next_heartbeat(g):
    from protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic

    (member,) = g.joined("m")
    wanted = CreatePartitionsTopic(name="t", count=6, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=1000)
    assert g.client.call(request, 3).results[0].error_code == 0
    member.beat()
    assert member.assigned == {"t": [0, 1, 2, 3, 4, 5]}


def test_topic_that_comes_later_is_assigned_and_one_that_goes_is_not():
    from protocol.messages.topics import DeleteTopicsRequest

    with Groups({"t": 2}) as g:
        (member,) = g.joined("m", topics=["t", "later"])
        assert member.assigned == {"t": [0, 1]}
        g.make_topic("later", 1)
        member.beat()
        assert member.assigned == {"t": [0, 1], "later": [0]}
        g.client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        g.settle([member])
        assert member.assigned == {"later": [0]}


def test_topic_of_somebody_else_moves_nothing(g):
    (member,) = g.joined("m")
    epoch = g.group().group_epoch
    g.make_topic("other", 3)
    member.beat()
    assert g.group().group_epoch == epoch


# -- leaving and silence -------------------------------------------------------------------------------------------


def test_member_that_leaves_is_gone_at_once(g):
    a, b = g.joined("a", "b")
    answer = a.leave()
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "a", -1)
    b.beat()
    assert b.assigned == {"t": [0, 1, 2, 3]}


def test_last_member_leaves_an_empty_group(g):
    (a,) = g.joined("a")
    epoch = g.group().group_epoch
    a.leave()
    assert (g.group().state.value, g.group().group_epoch) == ("Empty", epoch + 1)
    g.restart()
    assert g.member("b").join().member_epoch == epoch + 2


def test_silent_member_is_removed_after_its_session(g):
    a, b = g.joined("a", "b")
    g.advance(SESSION_MS - 1)
    b.beat()
    assert set(g.group().members) == {"a", "b"}
    g.advance(1)
    assert set(g.group().members) == {"b"}
    assert a.send(a.epoch).error_code == E.UNKNOWN_MEMBER_ID


def test_member_that_does_not_give_back_is_removed_after_its_rebalance_time(g):
    a = g.member("a", rebalance_ms=10_000)
    a.join()
    b = g.member("b")
    b.join()
    for _ in range(3):
        a.beat(topic_partitions=None)
        g.advance(4_000)
    assert set(g.group().members) == {"b"}
    b.beat()
    assert b.assigned == {"t": [0, 1, 2, 3]}


def test_rebalance_time_ends_when_the_partitions_are_given_back(g):
    a = g.member("a", rebalance_ms=10_000)
    a.join()
    b = g.member("b")
    b.join()
    g.settle([a, b])
    g.advance(20_000)
    assert set(g.group().members) == {"a", "b"}


def test_sessions_and_rebalances_start_in_full_after_a_restart(g):
    a = g.member("a", rebalance_ms=50_000)
    a.join()
    g.member("b").join()
    a.beat(topic_partitions=None)
    g.advance(44_000)
    g.restart()
    g.world.broker.groups.of("g").require()
    g.advance(44_000)
    assert set(g.group().members) == {"a", "b"}
    g.advance(2_000)
    assert g.group().is_empty


# -- settings ------------------------------------------------------------------------------------------------------


def test_group_has_intervals_of_its_own(g):
    set_group_config(g, "consumer.heartbeat.interval.ms", "7000")
    set_group_config(g, "consumer.session.timeout.ms", "50000")
    member = g.member()
    assert member.join().heartbeat_interval_ms == 7000
    g.advance(49_999)
    assert not g.group().is_empty
    g.advance(1)
    assert g.group().is_empty


def test_target_is_not_computed_twice_within_the_assignment_interval():
    with Groups({"t": 4}, group_consumer_assignment_interval_ms="1000") as g:
        a = g.member("a")
        assert a.join().member_epoch == 2
        b = g.member("b")
        answer = b.join()
        assert (answer.error_code, answer.member_epoch, b.assigned) == (0, 2, {})
        assert g.group().state.value == "Assigning"
        a.beat()
        assert (a.epoch, a.count()) == (2, 4)
        g.advance(1000)
        b.beat()
        assert b.epoch == 3
        g.settle([a, b])
        assert (a.count(), b.count()) == (2, 2)


def test_large_group_is_assigned_between_the_turns(monkeypatch):
    from broker.coordinator.groups.consumer import target

    monkeypatch.setattr(target, "WORK_AT_ONCE", 0)
    monkeypatch.setattr(target, "MIXED_WORK_AT_ONCE", 0)
    with Groups({"t": 8, "u": 8}) as g:
        members = [g.member(f"m{i}", topics=["t", "u"] if i % 2 else ["t"]) for i in range(5)]
        for member in members:
            member.join()
        members.pop(0).leave()
        g.settle(members)
        assert sum(m.count() for m in members) == 16
        assert max(m.count() for m in members) - min(m.count() for m in members) <= 1
