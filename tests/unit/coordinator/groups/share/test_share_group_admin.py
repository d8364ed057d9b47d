"""Share groups as an admin client sees them: described, listed, deleted, and kept apart from other groups."""

from __future__ import annotations

from share_group_kit import describe
from unit.coordinator.share.kit import GROUP

from protocol.errors import ErrorCode
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from protocol.messages.group_admin import DeleteGroupsRequest, ListGroupsRequest
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from protocol.messages.topics import DeleteTopicsRequest

# -- describing, listing, deleting -----------------------------------------------------------------------------------


def test_describe_tells_epochs_and_members(world):
    world.reader()
    group = describe(world)
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == (
        "Stable",
        3,
        3,
        "simple",
    )
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.subscribed_topic_names) == ("m", 3, ["t"])
    assert [(t.topic_name, t.partitions) for t in member.assignment.topic_partitions] == [("t", [0, 1, 2, 3])]


def test_describe_knows_share_groups_only(world):
    assert describe(world, "none").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert describe(world, "").error_code == ErrorCode.INVALID_GROUP_ID


def test_list_names_the_type(world):
    m = world.reader()
    (listed,) = world.client.call(ListGroupsRequest(types_filter=["Share"]), 5).groups
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        GROUP,
        "share",
        "Stable",
        "share",
    )
    m.leave()
    (listed,) = world.client.call(ListGroupsRequest(states_filter=["Empty"]), 5).groups
    assert listed.group_id == GROUP


def delete(world):
    return world.client.call(DeleteGroupsRequest(groups_names=[GROUP]), 2).results[0].error_code


def test_deleted_group_is_gone_with_its_state(world):
    m = world.reader()
    assert delete(world) == ErrorCode.NON_EMPTY_GROUP
    m.leave()
    assert delete(world) == 0
    assert world.state() is None
    assert describe(world).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert delete(world) == ErrorCode.GROUP_ID_NOT_FOUND


def test_deleted_topic_is_gone_from_group_and_state(world):
    m = world.reader("m", "t", "u")
    gone = world.topic_id("u")
    world.client.call(DeleteTopicsRequest(topic_names=["u"], timeout_ms=1000), 5)
    world.world.run()
    group = world.world.broker.groups.of(GROUP).machine.groups[GROUP]
    assert list(group.state_partitions.initialized) == [world.topic_id()]
    assert all(key.topic_id != gone for s in world.world.broker.share.coordinator.shards for key in s.machine.states)
    m.beat()
    assert list(m.assigned) == [world.topic_id()]


# -- mixing ----------------------------------------------------------------------------------------------------------


def commit_request():
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    return OffsetCommitRequest(
        group_id=GROUP,
        member_id="",
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[row])],
    )


def test_share_group_takes_no_members_and_offsets_of_other_protocols(world):
    world.reader()
    join = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    assert world.client.call(join, 3).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    modern = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="c",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert world.client.call(modern, 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    answer = world.client.call(commit_request(), 8)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)])
    assert world.client.call(fetch, 8).groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_group_of_offsets_does_not_become_a_share_group(world):
    assert world.client.call(commit_request(), 8).topics[0].partitions[0].error_code == 0
    assert world.member().join().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_empty_share_group_does_not_expire(world):
    world.reader().leave()
    world.world.leap(30 * 86_400_000)
    assert describe(world).group_state == "Empty"
