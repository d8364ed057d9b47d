"""DescribeShareGroupOffsets, AlterShareGroupOffsets and DeleteShareGroupOffsets from outside."""

from __future__ import annotations

import pytest
from unit.coordinator.share.kit import GROUP, ShareWorld

from protocol.errors import ErrorCode
from protocol.messages.share_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)


@pytest.fixture(params=["os", "fsync"])
def world(request):
    with ShareWorld({"t": 2}, flush=request.param) as made:
        yield made


def describe(world, topics=None, group=GROUP):
    """(start offset, lag) by topic and partition."""
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)
    (found,) = world.client.call(DescribeShareGroupOffsetsRequest(groups=[asked]), 1).groups
    assert found.error_code == 0
    return {
        (topic.topic_name, p.partition_index): (p.start_offset, p.lag)
        for topic in found.topics
        for p in topic.partitions
    }


def alter(world, group=GROUP, topic="t", **offsets):
    rows = [
        AlterShareGroupOffsetsRequestPartition(partition_index=int(p[1:]), start_offset=o) for p, o in offsets.items()
    ]
    topics = [AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=rows)]
    return world.client.call(AlterShareGroupOffsetsRequest(group_id=group, topics=topics), 0)


def delete(world, *topics, group=GROUP):
    names = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    return world.client.call(DeleteShareGroupOffsetsRequest(group_id=group, topics=names), 0)


def test_describe_tells_start_offset_and_lag(world):
    world.produce(10)
    m = world.reader()
    assert describe(world) == {("t", 0): (-1, -1), ("t", 1): (-1, -1)}
    m.acquired()
    m.acknowledge((0, 3, [1]))
    assert describe(world)["t", 0] == (0, 6)
    m.acknowledge((5, 5, [1]))
    assert describe(world)["t", 0] == (4, 5)


def test_describe_answers_minus_one_for_what_is_not_there(world):
    asked = [DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0, 7]) for name in ("t", "none")]
    assert set(describe(world, asked).values()) == {(-1, -1)}
    assert describe(world, None, "none") == {}


def test_alter_sets_where_the_next_member_reads(world):
    world.produce(10)
    reply = alter(world, p0=4)
    assert [(p.partition_index, p.error_code) for p in reply.responses[0].partitions] == [(0, 0)]
    assert describe(world) == {("t", 0): (4, 6)}
    m = world.reader()
    assert m.acquired() == [(4, 9, 1)]
    assert sorted(m.assigned[world.topic_id()]) == [0, 1]


def test_alter_begins_again_after_what_was_read(world):
    world.produce(10)
    m = world.reader()
    m.acquired()
    m.acknowledge((0, 9, [1]))
    assert alter(world, p0=0).error_code == ErrorCode.NON_EMPTY_GROUP
    m.leave()
    assert alter(world, p0=0).error_code == 0
    assert world.state().snapshot_epoch == 1
    n = world.reader("n")
    assert n.acquired() == [(0, 9, 1)]


def test_alter_answers_for_what_does_not_exist(world):
    reply = alter(world, p7=0)
    assert reply.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    reply = alter(world, topic="none", p0=0)
    assert reply.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(world, group="", p0=0).error_code == ErrorCode.INVALID_GROUP_ID


def test_altered_offset_survives_a_crash_at_once(world):
    world.produce(10)
    alter(world, p0=4)
    world.restart()
    assert describe(world) == {("t", 0): (4, 6)}
    assert world.reader().acquired() == [(4, 9, 1)]


def test_delete_forgets_what_was_read(world):
    world.produce(3)
    m = world.reader()
    m.acquired()
    m.acknowledge((0, 2, [1]))
    assert delete(world, "t").error_code == ErrorCode.NON_EMPTY_GROUP
    m.leave()
    assert delete(world, "t").responses[0].error_code == 0
    assert describe(world) == {}
    group = world.world.broker.groups.of(GROUP).machine.groups[GROUP]
    assert group.state_partitions == ({}, {}, {})
    assert world.reader("n").acquired() == [(0, 2, 1)]


def test_delete_answers_for_what_is_not_there(world):
    world.reader().leave()
    codes = {r.topic_name: r.error_code for r in delete(world, "t", "none").responses}
    assert codes == {"t": 0, "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert delete(world, "t").responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(world, "t", group="new").error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("group", "indexes", "code"),
    [("", [0], ErrorCode.INVALID_GROUP_ID), (GROUP, [-1], ErrorCode.INVALID_REQUEST), (GROUP, [], 42)],
)
def test_describe_refuses_what_names_no_share_partition(group, indexes, code):
    with ShareWorld() as world:
        topics = [DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=indexes)]
        asked = [DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)]
        answer = world.client.call(DescribeShareGroupOffsetsRequest(groups=asked), 1)
        assert (answer.groups[0].error_code, answer.groups[0].topics) == (code, [])


def test_acknowledge_says_nothing_of_partitions_without_acknowledgements():
    with ShareWorld() as world:
        m = world.reader()
        m.fetch()
        assert m.acknowledge().responses == []
        assert m.ack_error(partition=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
