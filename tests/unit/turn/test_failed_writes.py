"""What a failed write or sync took back, nobody has seen; the broker goes on."""

from __future__ import annotations

import errno

import pytest
from core_broker import Client, make_topic
from core_requests import commit_request, committed, fetch_bytes, fetch_request, produce_request
from unit.turn.durability_kit import codes, manual, produced, ready_world

from protocol.errors import ErrorCode
from protocol.messages.cluster import MetadataRequest
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest, DeleteTopicState
from protocol.messages.transactions import InitProducerIdRequest

NOT_COORDINATOR, STORAGE_ERROR = ErrorCode.NOT_COORDINATOR, ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("flush", ["os", "fsync"])
@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("short_bytes", [0, 50])
def test_failed_write_refuses_all_who_saw_it_and_leaves_no_trace(flush, shortcuts, short_bytes):
    world, client = ready_world(flush, shortcuts=shortcuts)
    shard = world.broker.groups.of("g")
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
    shard = world.broker.groups.of("g")
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
    shard = world.broker.groups.of("g")
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

    shard.log.sync = slow_sync
    world.sync()
    del shard.log.sync
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
