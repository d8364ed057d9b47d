"""What the broker does of its own accord, seen by clients."""

from __future__ import annotations

import pytest
from core_broker import FLUSHES, Client, World, make_topic
from core_requests import TOPIC, alter_request, commit_request, committed, produce_request

from broker.upkeep import maintenance
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from protocol.record_batch import build_batch


def delete(client: Client, name: str) -> None:
    answer = client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)]), 6)
    assert answer.responses[0].error_code == 0


@pytest.mark.parametrize("flush", FLUSHES)
def test_topic_deleted_takes_the_offsets_that_groups_committed_on_it(flush):
    world = World(flush)
    client = Client(world)
    for topic in ("t", "kept"):
        make_topic(client, topic, 2)
        for group in ("a", "b", "c"):
            client.call(commit_request(group, {0: 1, 1: 2}, topic), 8)
    delete(client, "t")
    assert [committed(world, group, "t") for group in "abc"] == [{}] * 3
    assert [committed(world, group, "kept") for group in "abc"] == [{0: 1, 1: 2}] * 3


def set_segment_bytes(client: Client, topic: str, size: int) -> None:
    answer = client.call(alter_request(TOPIC, topic, {"internal.segment.bytes": str(size)}), 1)
    assert answer.responses[0].error_code == 0


@pytest.mark.parametrize("topic", ["t", "__consumer_offsets"])
def test_topic_whose_settings_change_rolls_its_open_logs_by_the_new_ones(topic):
    world = World(offsets_topic_num_partitions="1")
    client = Client(world)
    make_topic(client, "t", 1)

    def write() -> int:
        for n in range(20):
            client.call(commit_request("g", {0: n}), 8)
            client.call(produce_request("t", 0, b"%d" % n * 50), 9)
        return len(world.broker.directory.logs[topic, 0].segments)

    before = write()
    set_segment_bytes(client, topic, 500)
    assert (before, write() > 4) == (1, True)


def test_topic_made_anew_keeps_what_is_committed_on_it():
    world = World()
    client = Client(world)
    make_topic(client, "t", 1)
    client.call(commit_request("g", {0: 1}), 8)
    delete(client, "t")
    make_topic(client, "t", 1)
    assert committed(world, "g") == {}
    client.call(commit_request("g", {0: 5}), 8)
    assert committed(world, "g") == {0: 5}


def test_offsets_log_stays_below_twice_its_live_bytes_while_commits_go_on(monkeypatch):
    """500 keys, each overwritten again and again; a segment is larger than all of them together."""
    monkeypatch.setattr(maintenance, "LEAST_DIRTY_BYTES", 4000)
    world = World(offsets_topic_num_partitions="1")
    client = Client(world)
    make_topic(client, "t", 50)
    for n in range(10):
        client.call(commit_request(f"g{n}", dict.fromkeys(range(50), 0)), 8)
    log = world.broker.directory.logs["__consumer_offsets", 0]
    live_bytes = log.size_bytes
    largest = 0
    for n in range(1, 101):
        client.call(commit_request(f"g{n % 10}", dict.fromkeys(range(50), n)), 8)
        world.advance(500)
        largest = max(largest, log.size_bytes)
    assert live_bytes > 20_000
    assert largest < 2 * live_bytes
    again = world.crash()
    for n in range(10):
        assert committed(again, f"g{n}") == dict.fromkeys(range(50), 90 + n if n else 100)


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_offsets_log_is_not_sealed_in_the_middle_of_a_turn(flush, monkeypatch):
    """What a request has appended is written with its reply, and refused if that fails, whatever the cleaner does."""
    monkeypatch.setattr(maintenance, "LEAST_DIRTY_BYTES", 1000)
    world = World(flush, offsets_topic_num_partitions="1")
    client = Client(world)
    make_topic(client, "t", 50)
    for n in range(5):
        client.call(commit_request("g", dict.fromkeys(range(50), n)), 8)
    world.clock.advance(2000)
    world.broker.turn.ring()
    client.send(commit_request("g", dict.fromkeys(range(50), 9)), 8)
    world.files.inject(1, kinds=("write",))
    for _ in range(20):
        world.broker.turn.jobs.step()
    world.run()
    assert client.replies()[0].topics[0].partitions[0].error_code != 0
    assert committed(world, "g") == dict.fromkeys(range(50), 4)
    assert len(world.broker.directory.logs["__consumer_offsets", 0].segments) > 1


def test_log_that_was_cleaned_is_not_cleaned_anew_after_a_restart():
    world = World(offsets_topic_num_partitions="1")
    client = Client(world)
    make_topic(client, "t", 50)
    set_segment_bytes(client, "__consumer_offsets", 2000)
    for n in range(20):
        client.call(commit_request("g", dict.fromkeys(range(50), n)), 8)
    world.advance(60_000)
    log = world.broker.directory.logs["__consumer_offsets", 0]
    assert log.cleaned_offset > 0
    for again in (world.crash(), world.restart()):
        assert committed(again, "g") == dict.fromkeys(range(50), 19)
        assert again.broker.directory.logs["__consumer_offsets", 0].cleaned_offset == log.cleaned_offset
        assert "__consumer_offsets 0 " in again.files.read_file("/data/cleaner-offset-checkpoint").decode()


def test_note_of_the_cleaner_about_a_log_that_was_cut_counts_no_further_than_its_end():
    world = World(offsets_topic_num_partitions="1")
    client = Client(world)
    make_topic(client, "t", 1)
    client.call(commit_request("g", {0: 7}), 8)
    files = world.files.crash()
    files.write_file_atomic("/data/cleaner-offset-checkpoint", b"0\n1\n__consumer_offsets 0 1000\n")
    again = world.again(files)
    assert committed(again, "g") == {0: 7}
    assert again.broker.directory.logs["__consumer_offsets", 0].cleaned_offset == 1


def test_cleaner_looks_at_so_many_logs_a_step_and_at_none_of_a_topic_deleted_meanwhile(monkeypatch):
    """100,000 open logs of which none is dirty took a step of 115 ms."""
    monkeypatch.setattr(maintenance, "LOGS_A_STEP", 5)
    world = World()
    client = Client(world)
    for topic in ("t", "gone"):
        make_topic(client, topic, 10)
        for index in range(10):
            client.call(produce_request(topic, index, b"x"), 9)
    looked: list[str] = []
    monkeypatch.setattr(
        maintenance.Maintenance, "_clean_log", lambda _self, topic, *_args, **_options: looked.append(topic) or ()
    )
    jobs = world.broker.turn.jobs
    world.clock.advance(world.broker.config.log_cleaner_backoff_ms)
    world.broker.turn.ring()
    seen = []
    while jobs:
        before = len(looked)
        jobs.step()
        seen.append(len(looked) - before)
        if len(looked) >= 10 and "gone" in world.broker.metadata.topics:
            delete(client, "gone")
    assert max(seen) == 5
    assert looked.count("t") == 10
    assert looked.count("gone") < 10


@pytest.mark.parametrize("steps", range(6))
def test_pass_of_the_cleaner_says_nothing_about_a_topic_that_is_made_anew_meanwhile(steps):
    """After a restart the first records of the new topic were taken for clean, and were never cleaned."""
    world = World()
    client = Client(world)
    configs = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
    rows = [CreatableTopicConfig(name=name, value=value) for name, value in configs.items()]
    wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=rows)
    batch = build_batch([(b"k", b"v" * 300_000)], timestamp_ms=world.clock.now_ms())
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])
    create = CreateTopicsRequest(topics=[wanted], timeout_ms=1000)
    produce = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])
    client.call(create, 7)
    for _ in range(2):  # the first pass ends
        world.run()
        for _ in range(20):
            client.call(produce, 9)
        world.clock.advance(world.broker.config.log_cleaner_backoff_ms)
        world.broker.turn.ring()
    for _ in range(steps):
        world.broker.turn.jobs.step()
    for request, version in ((DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6), (create, 7)):
        client.send(request, version)
        world.turn()
    for _ in range(10):
        client.send(produce, 9)
        world.turn()
    world.run()  # the pass ends
    cleaned_offset = world.broker.directory.logs["t", 0].cleaned_offset
    again = world.restart()
    assert again.broker.partitions.get(again.broker.metadata.topics["t"], 0).log.cleaned_offset == cleaned_offset
