"""Share offsets and groups that are to change while their state cannot be written: no answer says that they have."""

from __future__ import annotations

import pytest
from unit.share_groups.kit import GROUP, ShareWorld
from unit.share_groups.test_share_offsets import alter, delete, describe

from protocol.errors import ErrorCode
from protocol.messages.group_admin import DeleteGroupsRequest
from protocol.messages.topics import DeleteTopicsRequest

FAILED = ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.fixture(params=[("os", "fail_write"), ("fsync", "fail_write"), ("fsync", "fail_fsync")], ids="-".join)
def disk(request):
    """(durability, fault): each way in which a write can fail before its answer."""
    return request.param


def read_world(flush, topics=None):
    """A world in which a member has read and acknowledged the first three records, and left."""
    world = ShareWorld(topics, flush=flush)
    world.produce(4)
    m = world.reader("m", *(topics or ()))
    m.acquired()
    assert m.ack_error((0, 2, [1])) == 0
    m.acknowledge(epoch=-1)
    m.leave()
    assert describe(world)["t", 0] == (3, 1)
    return world


def failing(world, kind, trigger="once"):
    """The next write of the state fails, or each of them."""
    return world.world.broker.faults.add({"fault": kind, "topic": "__share_group_state", "trigger": trigger})


def delete_group(world):
    return world.client.call(DeleteGroupsRequest(groups_names=[GROUP]), 2).results[0].error_code


def lists(world):
    return world.world.broker.groups.of(GROUP).machine.groups[GROUP].state_partitions


def test_alteration_that_could_not_be_written_is_refused_and_the_offset_stays(disk):
    flush, kind = disk
    with read_world(flush) as world:
        fault = failing(world, kind)
        codes = [(p.partition_index, p.error_code) for p in alter(world, p0=1, p7=0).responses[0].partitions]
        assert codes == [(0, FAILED), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
        assert fault.hits == 1
        assert describe(world) == {("t", 0): (3, 1)}
        assert alter(world, p0=1).responses[0].partitions[0].error_code == 0
        world.restart()
        assert describe(world) == {("t", 0): (1, 3)}


def test_deletion_of_offsets_that_could_not_be_written_is_refused_and_the_next_try_deletes_them(disk):
    flush, kind = disk
    with read_world(flush) as world:
        failing(world, kind)
        codes = {r.topic_name: r.error_code for r in delete(world, "t", "none").responses}
        assert codes == {"t": FAILED, "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert world.state().start_offset == 3
        assert lists(world) == ({}, {}, {world.topic_id(): "t"})
        assert delete(world, "t").responses[0].error_code == 0
        assert world.state() is None
        assert lists(world) == ({}, {}, {})


def test_deletion_of_a_group_that_could_not_be_written_is_refused_and_the_group_stays(disk):
    flush, kind = disk
    with read_world(flush) as world:
        failing(world, kind)
        assert delete_group(world) == FAILED
        assert describe(world) == {("t", 0): (3, 1)}
        world.restart()
        assert describe(world) == {("t", 0): (3, 1)}
        assert delete_group(world) == 0
        assert world.state() is None


@pytest.mark.parametrize("restarts", [False, True])
def test_deleted_group_takes_along_the_offsets_whose_deletion_could_not_be_written(disk, restarts):
    flush, kind = disk
    with read_world(flush, {"t": 1, "u": 2}) as world:
        fault = failing(world, kind, "every_time")
        assert {r.error_code for r in delete(world, "t", "u").responses} == {FAILED}
        world.world.broker.faults.remove(fault.name)
        assert None not in (world.state(), world.state(0, "u"), world.state(1, "u"))
        if restarts:
            world.restart()
        assert delete_group(world) == 0
        states = [world.state(), world.state(0, "u"), world.state(1, "u")]
        assert states == [None] * 3
        assert world.reader("n").acquired() == [(0, 3, 1)]


def test_group_whose_offsets_could_not_be_deleted_is_deleted_after_their_topic():
    with read_world("os") as world:
        failing(world, "fail_write")
        assert delete(world, "t").responses[0].error_code == FAILED
        world.client.send(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        assert delete_group(world) == 0


@pytest.mark.parametrize("at_once_bytes", [1 << 20, 0], ids=["loaded at once", "loaded in slices"])
def test_records_whose_acknowledgement_could_not_be_written_are_delivered_again(at_once_bytes):
    with ShareWorld(None, flush="os") as world:
        world.produce(4)
        member = world.reader("m")
        assert member.acquired() == [(0, 3, 1)]
        for shard in world.world.broker.share.coordinator.shards:
            shard.load_at_once_bytes = at_once_bytes
        failing(world, "fail_write")
        assert member.acknowledge((0, 2, [1])).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert world.reader("n").acquired() == [(0, 3, 1)]
