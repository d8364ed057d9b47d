"""A reply leaves when all it has seen is durable."""

from __future__ import annotations

import pytest
from core_broker import FLUSHES, Client, make_topic
from core_requests import commit_request, committed, fetch_bytes, fetch_request, produce_request
from unit.turn.durability_kit import codes, manual, produced, ready_world

from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest, DeleteTopicState


@pytest.mark.parametrize("flush", FLUSHES)
def test_commit_is_answered_only_after_the_turn_has_written_it(flush):
    world, client = ready_world(flush)
    before = len(client.transport.received)
    client.send(commit_request("g", {0: 2}), 8)
    assert len(client.transport.received) == before, "a reply left within the turn"
    world.run()
    assert codes(client.replies()[0]) == {0}
    assert committed(world, "g") == {0: 2, 1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize("shortcuts", [True, False])
def test_commit_at_fsync_is_answered_only_after_its_sync(shortcuts):
    world, client = ready_world("fsync", shortcuts=shortcuts)
    manual(world)
    client.send(commit_request("g", {0: 2}), 8)
    world.run()
    assert len(world.syncs) == 1
    assert client.replies() == []
    world.sync()
    world.run()
    assert codes(client.replies()[0]) == {0}


def test_commits_of_turns_during_a_sync_share_the_next_one():
    world, client = ready_world("fsync")
    manual(world)
    for offset in range(2, 7):
        client.send(commit_request("g", {0: offset}), 8)
        world.run()  # a turn each
    assert len(world.syncs) == 1
    world.sync()
    world.run()
    assert len(client.replies()) == 1
    assert len(world.syncs) == 1, "group commit: all that came meanwhile"
    world.sync()
    world.run()
    assert len(client.replies()) == 4
    assert not world.syncs


@pytest.mark.parametrize("shortcuts", [True, False])
def test_reply_of_a_turn_that_has_not_ended_does_not_leave_with_the_sync_of_another(shortcuts):
    """The sync ends between a client's bytes and the end of their turn."""
    world, client = ready_world("fsync", shortcuts=shortcuts)
    manual(world)
    client.send(commit_request("g", {0: 2}), 8)
    world.run()
    client.send(commit_request("g", {0: 3}), 8)  # its turn is open
    world.sync()  # of the first commit
    assert len(client.replies()) == 1
    world.run()
    assert client.replies() == [], "an answer left before its sync"
    world.sync()
    world.run()
    assert len(client.replies()) == 1


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("other", [True, False])
def test_offset_fetch_does_not_tell_what_is_not_synced(shortcuts, other):
    world, client = ready_world("fsync", shortcuts=shortcuts)
    reader = Client(world) if other else client
    question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    reader.call(question, 8)
    reader.call(question, 8)  # kept by now
    manual(world)
    client.send(commit_request("g", {0: 2}), 8)
    world.turn()
    reader.send(question, 8)
    world.run()
    if reader is not client:
        assert reader.replies() == []
    world.sync()
    world.run()
    while world.syncs:
        world.sync()
        world.run()
    assert reader.replies()[-1].groups[0].topics[0].partitions[0].committed_offset == 2


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_fetch_does_not_return_records_that_are_not_durable(flush):
    world, client = ready_world(flush)
    reader = Client(world)
    manual(world)
    client.send(produce_request("t", 0, b"v"), 9)
    reader.send(fetch_request("t", 0, 0), 12)  # in the same turn
    if flush == "fsync":
        world.run()
        assert client.replies() == []
    else:
        world.turn()
    before = reader.replies()
    assert not before or fetch_bytes(before[0]) == b""
    world.auto_sync = True
    world.run()
    assert client.replies()[-1].responses[0].partition_responses[0].error_code == 0
    assert fetch_bytes(reader.call(fetch_request("t", 0, 0), 12))


def test_fetch_of_the_offsets_topic_does_not_return_records_that_are_not_synced():
    world, client = ready_world("fsync")
    shard = world.broker.groups.of("g")
    index = world.broker.groups.shards.index(shard)
    end = shard.log.end_offset
    manual(world)
    client.send(commit_request("g", {0: 2}), 8)
    world.run()
    reader = Client(world)
    reader.send(fetch_request("__consumer_offsets", index, end), 12)  # the first one to open this partition
    world.run()
    for reply in reader.replies():
        answer = reply.responses[0].partitions[0]
        assert answer.high_watermark <= end
        assert not answer.records
    world.auto_sync = True
    world.run()
    assert fetch_bytes(reader.call(fetch_request("__consumer_offsets", index, end), 12))


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_reload_at_fsync_or_os_shows_only_what_a_power_cut_cannot_take(flush):
    """After kill -9 the page cache may hold what no sync has seen: it is synced before it is shown."""
    world, client = ready_world(flush)
    manual(world)
    client.send(commit_request("g", {0: 2}), 8)
    world.run()
    world = world.crash()  # the process alone: what was written is there
    assert committed(world, "g")[0] == 2
    if flush == "fsync":
        assert committed(world.crash(lose_unsynced=True), "g")[0] == 2


def test_connection_that_saw_nothing_unsynced_is_not_held_back():
    world, client = ready_world("fsync")
    manual(world)
    client.send(commit_request("g", {0: 2}), 8)
    world.run()
    # its shard and partition have nothing to do with the group's log
    other = Client(world)
    other.send(produce_request("t", 0, b"x"), 9)
    world.run()
    assert len(world.syncs) == 1, "its sync waits for the one that runs"
    world.sync()
    world.run()
    world.sync()
    world.run()
    assert len(other.replies()) == len(client.replies()) == 1


def test_step_behind_a_log_is_taken_within_the_turn_that_writes_it():
    world, client = ready_world("os")
    partition = world.broker.partitions.get(world.broker.metadata.topics["t"], 0)
    steps = []
    client.send(produce_request("t", 0, b"v"), 9)
    partition.flush_state.then(lambda durable: steps.append((durable, partition.high_watermark)))
    assert not steps
    world.run()
    assert steps == [(True, 1)]


def test_files_of_a_deleted_topic_stay_until_its_deletion_is_synced():
    world, client = ready_world("fsync")
    assert produced(client.call(produce_request("t", 0, b"kept"), 9)) == 0
    make_topic(client, "gone")
    assert produced(client.call(produce_request("gone", 0, b"kept"), 9)) == 0
    manual(world).quick_sync = True
    wanted = CreatableTopic(name="u", num_partitions=1, replication_factor=1)
    client.send(CreateTopicsRequest(topics=[wanted], timeout_ms=1), 7)
    world.run()  # its sync runs
    client.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="gone", topic_id=bytes(16))], timeout_ms=1), 6)
    world.run()  # written, and waits for the next sync
    world.quick_sync = False
    world.sync()
    world.run()
    again = world.crash(lose_unsynced=True)
    assert b"kept" in fetch_bytes(Client(again).call(fetch_request("gone", 0, 0), 12))
    world.auto_sync = True
    world.run()
    assert not world.files.exists("/data/gone-0")
