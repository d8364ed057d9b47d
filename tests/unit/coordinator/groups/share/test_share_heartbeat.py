"""ShareGroupHeartbeat from outside: joining, assignments, leaving, and what is refused."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from share_group_kit import describe
from unit.coordinator.share.kit import GROUP, ShareWorld

from broker.coordinator.groups.share.records import state_partitions_record
from broker.coordinator.groups.share.state_partitions import minus
from broker.coordinator.share.state import snapshot_record
from protocol.errors import ErrorCode
from protocol.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from protocol.messages.share_group import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
from protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic

JOIN = ShareGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=0, subscribed_topic_names=["t"])


def partitions(member, topic="t"):
    return sorted(member.assigned.get(member.owner.topic_id(topic), []))


def test_first_heartbeat_makes_the_state_and_gets_the_assignment(world):
    m = world.member()
    reply = m.join()
    assert (reply.error_code, reply.member_epoch, reply.heartbeat_interval_ms) == (0, 3, 5000)
    assert partitions(m) == [0, 1, 2, 3]
    assert world.state(3).start_offset == -1


def test_first_heartbeat_makes_the_state_and_the_next_one_assigns_as_in_kafka():
    with ShareWorld({"t": 4}, group_share_first_assignment="next-heartbeat") as world:
        m = world.member()
        reply = m.join()
        assert (reply.error_code, reply.member_epoch, reply.heartbeat_interval_ms) == (0, 2, 5000)
        assert reply.assignment.topic_partitions == []
        assert world.state(3).start_offset == -1
        assert m.beat().member_epoch == 3
        assert partitions(m) == [0, 1, 2, 3]


def grow(world, count):
    topics = [CreatePartitionsTopic(name="t", count=count, assignments=None)]
    world.client.call(CreatePartitionsRequest(topics=topics, timeout_ms=1000))


def test_added_partitions_come_with_the_heartbeat_that_finds_them(world):
    m = world.reader()
    grow(world, 6)
    m.beat()
    assert partitions(m) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("release", "start", "delivered"), [("", 0, [(0, 1, 1)]), ("4.3", -1, [])])
def test_added_partition_begins_at_its_first_record_whatever_the_reset_says(release, start, delivered):
    with ShareWorld({"t": 2}, reset="latest", as_version=release) as world:
        m = world.reader()
        grow(world, 3)
        world.produce(2, partition=2)
        m.beat()
        assert [world.state(index).start_offset for index in range(3)] == [-1, -1, start]
        assert m.acquired(0, 1, 2) == delivered


@pytest.mark.parametrize("known", [1, 0])
def test_added_partition_whose_state_was_lost_begins_at_zero_when_it_is_asked_for_again(known):
    """Unless no partition of the topic is known to have its state: then all of them are as new as the topic."""
    with ShareWorld({"t": known + 1}, group_share_initialize_retry_interval_ms="1000") as world:
        m = world.reader()
        group = world.world.broker.groups.of(GROUP).machine.groups[GROUP]
        t, all_of = world.topic_id(), group.state_partitions.initialized
        asked = {t: ("t", frozenset([known]))}
        lost = group.state_partitions._replace(initialized=minus(all_of, asked), initializing=asked)
        world.world.broker.groups.of(GROUP).append([state_partitions_record(GROUP, lost)])
        world.world.advance(1001)
        m.beat()
        assert group.state_partitions.initialized == all_of
        assert world.state(known).start_offset == (0 if known else -1)


def test_assignment_waits_for_the_state_to_be_durable():
    with ShareWorld({"t": 2}, flush="fsync") as world:
        m = world.member()
        world.world.auto_sync = False
        m.client.send(JOIN, 1)
        world.world.run()
        assert m.client.replies() == [], "the state may be lost"
        world.world.auto_sync = True
        world.world.run()
        (reply,) = m.client.replies()
        assert sum(len(t.partitions) for t in reply.assignment.topic_partitions) == 2


def test_state_that_cannot_be_made_durable_is_told():
    world = ShareWorld({"t": 2}, flush="fsync")
    world.world.auto_sync = False
    client = Client(world.world)
    client.send(JOIN, 1)
    world.world.run()
    while world.world.syncs:
        world.world.sync(fail=True)
        world.world.run()
    (reply,) = client.replies()
    assert reply.error_code or not reply.assignment.topic_partitions


def test_connection_closed_while_its_heartbeat_waits(world):
    m, other = world.member("m"), world.member("other")
    m.client.send(JOIN, 1)
    m.client.leave()
    world.world.run()
    other.join()
    assert sorted(partitions(other)) in ([0, 1, 2, 3], [0, 1], [2, 3], [0, 2], [1, 3])


def test_heartbeat_that_changes_nothing_writes_nothing_and_sends_no_assignment(world):
    m = world.reader()
    log = world.world.broker.groups.of(GROUP).log
    before = log.end_offset
    assert m.beat().assignment is None
    assert log.end_offset == before


def test_members_share_the_partitions_evenly(world):
    a, b = world.reader("a"), world.reader("b")
    a.beat()
    assert sorted(partitions(a) + partitions(b)) == [0, 1, 2, 3]
    assert len(partitions(a)) == len(partitions(b)) == 2


def test_more_members_than_partitions_share_a_partition(world):
    members = [world.reader(f"m{number}", "u") for number in range(5)]
    for member in members:
        member.beat()
    assert sorted(p for m in members for p in partitions(m, "u")) == [0, 0, 0, 1, 1, 1]


def test_subscription_to_another_topic_changes_the_assignment(world):
    m = world.reader()
    m.heartbeat(m.epoch, ["u"])
    m.beat()
    assert (partitions(m), partitions(m, "u")) == ([], [0, 1])


def test_member_that_leaves_gives_its_partitions_to_the_others(world):
    a, b = world.reader("a"), world.reader("b")
    assert b.leave().member_epoch == -1
    a.beat()
    assert partitions(a) == [0, 1, 2, 3]
    assert b.leave().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_member_without_heartbeats_is_removed_after_its_session(world):
    a, b = world.reader("a"), world.reader("b")
    for _ in range(3):
        world.world.advance(20_000)
        a.beat()
    assert b.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    a.beat()
    assert partitions(a) == [0, 1, 2, 3]


def test_group_goes_on_after_a_restart(world):
    m = world.reader()
    world.restart()
    m.client = world.client
    assert (m.beat().error_code, m.epoch) == (0, 3)


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(3, ErrorCode.NONE), (2, ErrorCode.NONE), (1, ErrorCode.FENCED_MEMBER_EPOCH), (4, ErrorCode.FENCED_MEMBER_EPOCH)],
)
def test_only_the_present_and_the_previous_epoch_are_accepted(world, epoch, code):
    assert world.reader().heartbeat(epoch).error_code == code


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "x" * 37}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 0, "subscribed_topic_names": []}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 0, "subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_heartbeat_is_refused_with_kafkas_code(world, fields, code):
    request = {"group_id": "new", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"], **fields}
    assert world.client.call(ShareGroupHeartbeatRequest(**request), 1).error_code == code


def test_full_group_takes_nobody_else():
    with ShareWorld(group_share_max_size="1") as world:
        a = world.reader("a")
        assert world.member("b").join().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert a.join().error_code == 0


def test_new_partitions_are_assigned_after_their_state_is_made(world):
    m = world.reader()
    grow(world, 5)
    m.beat()
    m.beat()
    assert partitions(m) == [0, 1, 2, 3, 4]


def lose_confirmation(world):
    """The group's log has lost that the state was made."""
    group = world.world.broker.groups.of(GROUP).machine.groups[GROUP]
    lost = group.state_partitions._replace(initialized={}, initializing={world.topic_id(): ("t", frozenset([0]))})
    world.world.broker.groups.of(GROUP).append([state_partitions_record(GROUP, lost)])
    group.initializing_since[world.topic_id()] = world.world.broker.turn.now_ms
    return group


def test_state_that_was_not_confirmed_is_asked_for_again_after_the_interval():
    with ShareWorld(group_share_initialize_retry_interval_ms="1000") as world:
        m = world.reader()
        group = lose_confirmation(world)
        m.beat()
        assert group.state_partitions.initialized == {}
        world.world.advance(1001)
        m.beat()
        assert group.state_partitions.initialized == {world.topic_id(): ("t", frozenset([0]))}


@pytest.mark.parametrize(("epochs_lost", "start"), [(0, -1), (1, 0)])
def test_state_that_is_made_again_forgets_unless_it_is_of_a_later_epoch(epochs_lost, start):
    with ShareWorld(group_share_initialize_retry_interval_ms="1000") as world:
        world.produce(3)
        m = world.reader()
        assert m.acquired(max_records=3) == [(0, 2, 1)]
        assert m.ack_error((0, 1, [1])) == 0
        state = world.state()
        group = lose_confirmation(world)
        later = state._replace(state_epoch=group.group_epoch + epochs_lost)
        shard = world.world.broker.share.coordinator.shard(world.key())
        shard.append([snapshot_record(world.key(), later)])
        world.world.advance(1001)
        m.beat()
        assert world.state().start_offset == start
        fetched = world.reader("n").acquired()
        assert fetched == ([(2, 2, 1)] if epochs_lost else [(0, 2, 1)])


# -- switched off ------------------------------------------------------------------------------------------------------


def test_feature_level_0_turns_share_groups_off():
    world = World()
    client = Client(world)
    make_topic(client, "t")
    off = FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
    assert client.call(UpdateFeaturesRequest(timeout_ms=1000, feature_updates=[off]), 1).error_code == 0
    request = ShareGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=0, subscribed_topic_names=["t"])
    assert client.call(request, 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    answer = client.call(ShareGroupDescribeRequest(group_ids=[GROUP]), 1)
    assert answer.groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION
    for read in (
        ShareFetchRequest(group_id=GROUP, member_id="m"),
        ShareAcknowledgeRequest(group_id=GROUP, member_id="m"),
    ):
        assert client.call(read, 2).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_group_without_members_has_an_assignment_of_its_epoch(world):
    a, b = world.member("a"), world.member("b")
    a.join()
    b.join()
    a.leave()
    b.leave()
    found = describe(world)
    assert (found.group_state, found.assignment_epoch) == ("Empty", found.group_epoch)
    world.restart()
    assert describe(world).assignment_epoch == found.group_epoch
