"""ConsumerGroupHeartbeat that is refused: what a request may not say, and epochs that are not those of the member."""

from __future__ import annotations

import pytest
from consumer_kit import Groups

from protocol.errors import ErrorCode as E

# -- checks --------------------------------------------------------------------------------------------------------

BAD = [
    ({"member_id": ""}, 1),
    ({"member_id": "", "member_epoch": 5}, 0),
    ({"member_id": "", "member_epoch": -1}, 0),
    ({"group_id": ""}, 1),
    ({"instance_id": ""}, 1),
    ({"instance_id": "  "}, 1),
    ({"rack_id": ""}, 1),
    ({"rebalance_timeout_ms": -1}, 1),
    ({"topic_partitions": None}, 1),
    ({"subscribed_topic_names": None}, 1),
    ({"member_epoch": -2}, 1),
    ({"member_epoch": -3}, 1),
]


@pytest.mark.parametrize(("fields", "version"), BAD)
def test_request_that_cannot_be_is_invalid(g, fields, version):
    assert g.member().join(version=version, **fields).error_code == E.INVALID_REQUEST
    assert g.group() is None


def test_unknown_assignor_is_unsupported(g):
    answer = g.member(assignor="sticky").join()
    assert (answer.error_code, "uniform, range" in answer.error_message) == (E.UNSUPPORTED_ASSIGNOR, True)


def test_empty_names_are_a_subscription_to_nothing(g):
    member = g.member(topics=())
    assert (member.join().error_code, member.epoch, member.assigned) == (0, 1, {})


@pytest.mark.parametrize("epoch", [1, -1])
def test_unknown_group_is_not_found_but_for_a_joining_member(g, epoch):
    assert g.member().send(epoch).error_code == E.GROUP_ID_NOT_FOUND


def test_unknown_member_is_unknown(g):
    g.joined("a")
    assert g.member("b").send(2).error_code == E.UNKNOWN_MEMBER_ID
    assert g.member("b").leave().error_code == E.UNKNOWN_MEMBER_ID


def test_full_group_takes_nobody_else():
    with Groups({"t": 4}, group_consumer_max_size="2") as g:
        a, _ = g.joined("a", "b")
        assert g.member("c").join().error_code == E.GROUP_MAX_SIZE_REACHED
        assert a.join().error_code == 0


# -- epochs --------------------------------------------------------------------------------------------------------


def test_epoch_above_the_members_is_fenced(g):
    (member,) = g.joined("m")
    assert member.send(member.epoch + 1).error_code == E.FENCED_MEMBER_EPOCH


def test_lost_answer_is_made_good_by_the_previous_epoch_and_its_partitions(g):
    a, b = g.joined("a", "b")
    old, owned = a.epoch, a.owned_now()
    b.leave()
    assert a.beat().member_epoch == old + 1
    assert a.send(old, topic_partitions=None).error_code == E.FENCED_MEMBER_EPOCH
    answer = a.send(old, topic_partitions=owned)
    assert (answer.error_code, answer.member_epoch) == (0, old + 1)
    assert a.send(old - 1, topic_partitions=owned).error_code == E.FENCED_MEMBER_EPOCH


def test_previous_epoch_with_a_partition_that_is_not_assigned_is_fenced(g):
    (a,) = g.joined("a")
    old, everything = a.epoch, a.owned_now()
    g.member("b").join()
    a.beat()
    a.beat()
    assert a.epoch == old + 1
    assert a.send(old, topic_partitions=everything).error_code == E.FENCED_MEMBER_EPOCH


def test_retry_is_fenced_once_an_unreleased_member_has_gone_round_again(g):
    (a,) = g.joined("a")
    b = g.member("b")
    b.join()
    assert b.epoch == 3
    b.beat(topic_partitions=[])
    assert b.send(2, topic_partitions=[]).error_code == E.FENCED_MEMBER_EPOCH
    g.settle([a, b])
