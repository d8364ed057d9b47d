"""A reply leaves when all it has seen is durable; what a failed write or sync took back, nobody has seen."""

from __future__ import annotations

import errno

import pytest
from core_broker import FLUSHES, Client, World, make_topic
from core_requests import commit_request, committed, fetch_bytes, fetch_request, produce_request

from protocol.errors import ErrorCode
from protocol.messages.cluster import MetadataRequest
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest, DeleteTopicState
from protocol.messages.transactions import InitProducerIdRequest

NOT_COORDINATOR, STORAGE_ERROR = ErrorCode.NOT_COORDINATOR, ErrorCode.KAFKA_STORAGE_ERROR


def ready_world(flush: str, **settings: str) -> tuple[World, Client]:
    """A broker with topic t of 4 partitions, and one client whose group g has committed offset 1 everywhere."""
    world = World(flush, **settings)
    client = Client(world)
    make_topic(client, "t", 4)
    answer = client.call(commit_request("g", dict.fromkeys(range(4), 1)), 8)
    assert codes(answer) == {0}
    world.run()
    return world, client


def codes(answer) -> set[int]:
    return {p.error_code for topic in answer.topics for p in topic.partitions}


def manual(world: World) -> World:
    world.auto_sync = False
    return world


# -- when replies leave


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
    shard = world.broker.shard_of_group("g")
    index = world.broker.group_shards.index(shard)
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


# -- failed writes


@pytest.mark.parametrize("flush", ["os", "fsync"])
@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("short_bytes", [0, 50])
def test_failed_write_refuses_all_who_saw_it_and_leaves_no_trace(flush, shortcuts, short_bytes):
    world, client = ready_world(flush, shortcuts=shortcuts)
    shard = world.broker.shard_of_group("g")
    before, size, end = world.fingerprints(), shard.log.size_bytes, shard.log.end_offset
    reader = Client(world)
    question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    assert reader.call(question, 8).groups[0].topics[0].partitions[0].committed_offset == 1
    world.files.inject(1, error=errno.ENOSPC, short_bytes=short_bytes)
    client.send(commit_request("g", {0: 2}), 8)
    reader.send(question, 8)
    client.send(commit_request("g", dict.fromkeys(range(4), 3)), 8)
    world.run()
    assert [codes(answer) for answer in client.replies()] == [{NOT_COORDINATOR}, {NOT_COORDINATOR}]
    assert reader.replies()[0].groups[0].error_code == NOT_COORDINATOR
    assert world.fingerprints() == before
    assert (shard.log.size_bytes, shard.log.end_offset) == (size, end)
    assert codes(client.call(commit_request("g", {0: 4}), 8)) == {0}
    assert reader.call(question, 8).groups[0].topics[0].partitions[0].committed_offset == 4
    assert committed(world.crash(), "g") == {0: 4, 1: 1, 2: 1, 3: 1}


def test_failed_sync_refuses_all_who_saw_it_and_cuts_the_log():
    world, client = ready_world("fsync")
    shard = world.broker.shard_of_group("g")
    before, end = world.fingerprints(), shard.log.end_offset
    manual(world)
    client.send(commit_request("g", {0: 2}), 8)
    world.run()
    client.send(commit_request("g", {1: 2}), 8)  # written while the sync runs
    world.run()
    client.send(commit_request("g", {2: 2}), 8)  # not even written when it ends
    world.sync(fail=True)
    world.auto_sync = True
    world.run()
    assert [codes(answer) for answer in client.replies()] == [{NOT_COORDINATOR}] * 3
    assert world.fingerprints() == before
    assert shard.log.end_offset == end
    assert codes(client.call(commit_request("g", {3: 5}), 8)) == {0}
    assert committed(world.crash(lose_unsynced=True), "g") == {0: 1, 1: 1, 2: 1, 3: 5}


def test_write_that_fails_while_a_sync_runs_does_not_count_as_synced():
    world, client = ready_world("fsync")
    shard = world.broker.shard_of_group("g")
    end = shard.log.end_offset
    manual(world)
    client.send(commit_request("g", {0: 2}), 8)
    world.run()
    real_sync, (job,) = shard.log.sync, world.syncs
    assert job == [shard.log]

    def slow_sync() -> int:
        """The disk is busy with the first commit when the second one's write fails."""
        target = shard.log.flushed_offset
        files = world.files
        start, files.start = None, None
        original = shard.log.segments[-1].file.sync

        def sync_file() -> None:
            original()
            files.inject(1)
            client.send(commit_request("g", {1: 2}), 8)
            while world.turn():
                pass

        shard.log.segments[-1].file = Proxy(shard.log.segments[-1].file, sync=sync_file)
        try:
            return real_sync()
        finally:
            shard.log.segments[-1].file = shard.log.segments[-1].file._target
            assert target > end
            del start

    shard.log.sync = slow_sync  # type: ignore[method-assign]
    world.sync()
    del shard.log.sync  # type: ignore[method-assign]
    assert shard.log.synced_offset <= shard.log.end_offset == end
    world.auto_sync = True
    world.run()
    assert [codes(answer) for answer in client.replies()] == [{NOT_COORDINATOR}, {NOT_COORDINATOR}]
    assert codes(client.call(commit_request("g", {3: 5}), 8)) == {0}
    assert committed(world.crash(lose_unsynced=True), "g") == {0: 1, 1: 1, 2: 1, 3: 5}


class Proxy:
    """Another object, but for what is given."""

    def __init__(self, target: object, **given: object) -> None:
        self._target = target
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> object:
        return getattr(self._target, name)


@pytest.mark.parametrize(("flush", "lose_unsynced"), [("os", False), ("fsync", False), ("fsync", True)])
def test_failed_write_after_a_restart_takes_nothing_of_before_back(flush, lose_unsynced):
    world, client = ready_world(flush)
    assert client.call(produce_request("t", 0, b"v"), 9).responses[0].partition_responses[0].error_code == 0
    world = world.crash(lose_unsynced=lose_unsynced)
    client = Client(world)
    assert committed(world, "g") == {0: 1, 1: 1, 2: 1, 3: 1}
    world.files.inject(1)
    assert codes(client.call(commit_request("g", {0: 2}), 8)) == {NOT_COORDINATOR}
    world.files.inject(1)
    answer = client.call(produce_request("t", 0, b"w"), 9)
    assert answer.responses[0].partition_responses[0].error_code == STORAGE_ERROR
    world.files.inject(1)
    wanted = CreatableTopic(name="u", num_partitions=1, replication_factor=1)
    assert client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1), 7).topics[0].error_code
    assert committed(world, "g") == {0: 1, 1: 1, 2: 1, 3: 1}
    assert fetch_bytes(client.call(fetch_request("t", 0, 0), 12))
    assert codes(client.call(commit_request("g", {0: 2}), 8)) == {0}
    world = world.crash(lose_unsynced=lose_unsynced)
    assert committed(world, "g") == {0: 2, 1: 1, 2: 1, 3: 1}
    assert fetch_bytes(Client(world).call(fetch_request("t", 0, 0), 12))


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


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_failed_produce_is_refused_and_the_next_one_gets_its_offset(flush):
    world, client = ready_world(flush)
    for records in (b"a", b"b"):
        assert client.call(produce_request("t", 0, records), 9).responses[0].partition_responses[0].error_code == 0
    world.files.inject(1, short_bytes=30)
    answer = client.call(produce_request("t", 0, b"c"), 9).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (STORAGE_ERROR, -1)
    answer = client.call(produce_request("t", 0, b"d"), 9).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (0, 2)
    found = client.call(fetch_request("t", 0, 0), 12).responses[0].partitions[0]
    assert found.high_watermark == 3


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_disk_that_cannot_even_be_cut_back_is_an_error_reply_and_not_a_dead_broker(flush):
    world, client = ready_world(flush)
    other = Client(world)
    make_topic(other, "elsewhere")
    world.files.inject(1, kinds=("write", "truncate", "sync"), forever=True, short_bytes=10)
    client.send(commit_request("g", {0: 2}), 8)
    world.run()
    assert codes(client.replies()[0]) == {NOT_COORDINATOR}
    client.send(commit_request("g", {0: 2}), 8)
    client.send(MetadataRequest(topics=None), 12)
    client.send(produce_request("t", 0, b"x"), 9)
    world.run()
    first, second, third = client.replies()
    assert codes(first) < set(map(int, ErrorCode)) - {0}
    assert len(second.topics) == 3
    assert third.responses[0].partition_responses[0].error_code == STORAGE_ERROR
    assert not client.closed
    world.files.heal()
    assert codes(client.call(commit_request("g", {0: 3}), 8)) == {0}, "a disk that works again is used again"
    assert other.call(produce_request("elsewhere", 0, b"x"), 9).responses[0].partition_responses[0].error_code == 0
    assert client.call(produce_request("t", 0, b"x"), 9).responses[0].partition_responses[0].error_code == 0
    assert committed(world.crash(), "g") == {0: 3, 1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_topic_whose_creation_fails_is_not_there_and_nothing_produced_to_it_is_acknowledged(flush):
    world, client = ready_world(flush)
    wanted = CreatableTopic(name="u", num_partitions=2, replication_factor=1)
    world.files.inject(1)
    client.send(CreateTopicsRequest(topics=[wanted], timeout_ms=1), 7)
    client.send(produce_request("u", 0, b"x"), 9)
    client.send(MetadataRequest(topics=None), 12)
    world.run()
    created, produced, metadata = client.replies()
    assert created.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert produced.responses[0].partition_responses[0].error_code != 0
    assert all(topic.error_code == ErrorCode.LEADER_NOT_AVAILABLE or topic.name != "u" for topic in metadata.topics)
    assert "u" not in world.broker.metadata.topics
    make_topic(client, "u", 1)
    found = client.call(fetch_request("u", 0, 0), 12).responses[0].partitions[0]
    assert found.high_watermark == 0, "the new topic begins with nothing"


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_topic_deleted_and_made_again_at_once_begins_with_nothing(flush):
    world, client = ready_world(flush)
    assert client.call(produce_request("t", 0, b"old"), 9).responses[0].partition_responses[0].error_code == 0
    manual(world)
    client.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="t", topic_id=bytes(16))], timeout_ms=1), 6)
    wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    client.send(CreateTopicsRequest(topics=[wanted], timeout_ms=1), 7)
    client.send(produce_request("t", 0, b"new"), 9)
    client.send(fetch_request("t", 0, 0), 12)
    world.run()
    world.auto_sync = True
    world.run()
    _, created, produced, fetched = client.replies()
    assert created.topics[0].error_code == 0
    answer = produced.responses[0].partition_responses[0]
    kept = answer.error_code == 0
    assert (answer.base_offset, answer.error_code) in ((0, 0), (-1, answer.error_code))
    assert b"old" not in fetch_bytes(fetched)
    offset = client.call(produce_request("t", 0, b"next"), 9).responses[0].partition_responses[0].base_offset
    assert offset == int(kept)
    for again in (world.crash(), world.restart()):
        data = fetch_bytes(Client(again).call(fetch_request("t", 0, 0), 12))
        assert b"old" not in data
        assert b"next" in data


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_directory_of_a_deleted_topic_that_cannot_be_removed_stops_nobody(flush):
    world, client = ready_world(flush)
    client.call(produce_request("t", 0, b"old"), 9)
    other = Client(world)
    world.files.inject(1, kinds=("rename", "remove"), forever=True)
    client.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="t", topic_id=bytes(16))], timeout_ms=1), 6)
    other.send(commit_request("h", {0: 1}), 8)
    other.send(MetadataRequest(topics=None), 12)
    world.run()
    assert client.replies()[0].responses[0].error_code == 0
    assert len(other.replies()) == 2
    world.files.heal()
    assert "t" not in world.crash().broker.metadata.topics


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_producer_id_whose_block_was_not_written_is_not_told_and_none_comes_twice(flush):
    world, client = ready_world(flush)
    world.files.inject(1)
    assert client.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4).error_code
    ids = [
        client.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4).producer_id
        for _ in range(3)
    ]
    assert len(set(ids)) == 3
    assert min(ids) >= 0


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


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_topic_whose_deletion_fails_is_there_as_before(flush):
    world, client = ready_world(flush)
    assert produced(client.call(produce_request("t", 0, b"kept"), 9)) == 0
    world.files.inject(1)
    wanted = DeleteTopicState(name="t", topic_id=bytes(16))
    answer = client.call(DeleteTopicsRequest(topics=[wanted], timeout_ms=1), 6)
    assert answer.responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert b"kept" in fetch_bytes(client.call(fetch_request("t", 0, 0), 12))
    assert produced(client.call(produce_request("t", 1, b"other"), 9)) == 0, "a partition that had not been opened"
    assert codes(client.call(commit_request("g", {0: 5}), 8)) == {0}


def produced(answer) -> int:
    return answer.responses[0].partition_responses[0].error_code
