"""Share offsets and groups that are to change while their state cannot be written: no answer says that they have."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from core_requests import produce_request
from unit.coordinator.share.kit import GROUP, ShareWorld
from unit.coordinator.share.test_share_offsets import alter, delete, describe

from broker.coordinator.runtime import CLOSED
from protocol.errors import ErrorCode
from protocol.messages.group_admin import DeleteGroupsRequest
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
from storage.files.errors import StorageError

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
        assert member.ack_error((0, 2, [1])) == FAILED
        assert world.reader("n").acquired() == [(0, 3, 1)]


def world_of_two_logs(flush):
    """A world in which `m` holds all records of t-0 to t-3, whose states lie in two logs; those in the first log."""
    world = ShareWorld({"t": 4}, flush=flush)
    for index in range(4):
        world.produce(4, partition=index)
    member = world.reader("m")
    assert member.acquired(0, 1, 2, 3) == [(0, 3, 1)] * 4
    coordinator = world.world.broker.share.coordinator
    first = {index for index in range(4) if coordinator.index_of(world.key(index)) == 0}
    assert 0 < len(first) < 4
    return world, member, first


def break_log(world, monkeypatch, error):
    """The first log cannot be used from now on."""
    shard = world.world.broker.share.coordinator.shards[0]
    monkeypatch.setattr(shard, "state", CLOSED)
    monkeypatch.setattr(shard.log, "reopen", Mock(side_effect=error))


@pytest.mark.parametrize("error", [StorageError("it stays out of use"), OSError(2, "No such file or directory")])
def test_share_fetch_with_one_log_out_of_use_reads_and_acknowledges_what_is_in_the_other(error, monkeypatch):
    world, member, bad = world_of_two_logs("os")
    for index in range(4):
        world.produce(2, partition=index)
    break_log(world, monkeypatch, error)
    world.world.broker.share.drop({world.key(index) for index in bad})
    reply = member.fetch(acks={index: [(0, 3, [1])] for index in range(4)})
    found = {p.partition_index: p for p in reply.responses[0].partitions}
    assert (reply.error_code, set(found)) == (0, set(range(4)))
    for index, answer in found.items():
        assert (answer.acknowledge_error_code != 0) == (answer.error_code != 0) == (index in bad)
        assert bool(answer.acquired_records) == bool(answer.records) == (index not in bad)
    # Java's consumer asks again after this code, and gives up after COORDINATOR_NOT_AVAILABLE
    assert {found[index].error_code for index in bad} == {ErrorCode.KAFKA_STORAGE_ERROR}
    sound = set(range(4)) - bad
    assert all(world.world.broker.share.known(*world.key(index)).state.start_offset == 4 for index in sound)


def test_share_acknowledge_with_one_log_out_of_use_ends_the_session_and_refuses_its_partitions_alone(monkeypatch):
    world, member, bad = world_of_two_logs("os")
    broken, sound = min(bad), min(set(range(4)) - bad)
    break_log(world, monkeypatch, StorageError("it stays out of use"))
    assert member.ack_error((0, 1, [1]), partition=broken) == FAILED
    assert member.ack_error((0, 1, [1]), partition=sound) == 0
    assert member.acknowledge(epoch=-1).error_code == 0
    again = world.reader("n").acquired(*range(4))
    assert again == [(2 if index == sound else 0, 3, 2) for index in range(4)]


@pytest.mark.parametrize("records", [2, 300], ids=["in one piece", "as a slice"])
def test_share_fetch_of_which_one_log_could_not_be_written_tells_what_is_in_the_other(disk, records):
    flush, kind = disk
    world, member, bad = world_of_two_logs(flush)
    with world:
        large = [b"v" * 300] * records
        for index in range(4):
            world.client.call(produce_request("t", index, *large), 7)
        world.world.broker.faults.add({"fault": kind, "topic": "__share_group_state", "partition": 0})
        reply = member.fetch(acks={index: [(0, 3, [1])] for index in range(4)}, max_records=5000)
        found = {p.partition_index: p for p in reply.responses[0].partitions}
        assert (reply.error_code, set(found)) == (0, set(range(4)))
        assert {index for index, answer in found.items() if answer.acknowledge_error_code} == bad
        assert {found[index].acknowledge_error_code for index in bad} == {FAILED}
        taken = {index for index, answer in found.items() if answer.acquired_records}
        assert taken == {index for index, answer in found.items() if answer.records} == set(range(4)) - bad
        assert sorted(member.acquired(max_records=5000)) == [(0, 3 + records, 1)] * len(bad)


def test_share_acknowledge_whose_log_and_the_metadata_could_not_be_written_is_refused_whole():
    world, member, bad = world_of_two_logs("os")
    failing(world, "fail_write")
    world.world.files.inject(1)
    topic = CreatableTopic(name="u", num_partitions=1, replication_factor=1)
    world.client.send(CreateTopicsRequest(topics=[topic], timeout_ms=1), 7)
    member.client.send(member.acknowledge_request((0, 1, [1]), partition=min(bad)), 2)
    world.world.run()
    (reply,) = member.client.replies()
    assert reply.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.world.broker.turn.durability.failures == 2
