"""What the cleaner and retention leave for the archive, seen from outside: files, log lines, gauges."""

from __future__ import annotations

import logging

import pytest
from core_broker import DATA, Client, World, make_topic
from core_requests import TOPIC, alter_request, commit_request, committed, produce_request

from broker.base.placement import shard_index
from broker.coordinator.runtime import UNLOADED
from broker.shell.metrics.gauges import broker_gauges
from protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)

OFFSETS = "__consumer_offsets"
ARCHIVE = "archive"
GROUP = "g"
HOME = shard_index(GROUP, 5)  # where the group's commits lie
ROUND_MS = 300_000  # the cleaner's and retention's interval, the longer of the two
WEEK_MS = 7 * 86_400_000


def set_config(client: Client, topic: str, **configs: str) -> None:
    answer = client.call(alter_request(TOPIC, topic, {key.replace("_", "."): text for key, text in configs.items()}), 1)
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message


def world(**settings: str) -> tuple[World, Client]:
    world = World(archive_retain_group=ARCHIVE, log_cleaner_backoff_ms="15000", **settings)
    client = Client(world)
    make_topic(client, "t", 1)
    return world, client


def commits(client: Client, count: int = 40) -> None:
    """So many commits of one partition, over several segments of the offsets' log."""
    set_config(client, OFFSETS, internal_segment_bytes="1000", min_cleanable_dirty_ratio="0.01")
    for n in range(count):
        client.call(commit_request(GROUP, {0: n}), 8)


def archived(client: Client, topic: str, partition: int, offset: int) -> None:
    answer = client.call(commit_request(ARCHIVE, {partition: offset}, topic), 8)
    assert answer.topics[0].partitions[0].error_code == 0


def log(world: World, topic: str = OFFSETS, index: int = HOME):
    return world.broker.directory.logs[topic, index]


def kept(world: World) -> list[int]:
    """Offsets of the records in the offsets' log."""
    return [header.base_offset for header, _ in log(world).batches(0) if header.record_count]


def held(world: World) -> dict[tuple[str, str, int], float]:
    return {
        (tags["topic"], tags["by"], tags["partition"]): value
        for name, value, pairs in broker_gauges(world.broker)
        if name == "momus_archive_held_bytes"
        for tags in [dict(pairs)]
    }


def test_cleaner_without_the_setting_waits_for_nobody():
    world = World(log_cleaner_backoff_ms="15000")
    client = Client(world)
    make_topic(client, "t", 1)
    commits(client)
    world.advance(ROUND_MS)
    assert len(kept(world)) < 20
    assert held(world) == {}


def test_cleaner_removes_nothing_before_the_archive_has_begun():
    w, client = world()
    commits(client)
    closed = sum(segment.size for segment in log(w).segments[:-1])
    w.advance(ROUND_MS)
    assert kept(w) == list(range(40))
    assert held(w)[OFFSETS, "cleaner", HOME] == closed > 0


def test_cleaner_stops_at_the_segment_that_the_archive_has_not_finished():
    w, client = world()
    commits(client)
    bases = [segment.base_offset for segment in log(w).segments]
    archived(client, OFFSETS, HOME, bases[3] + 1)
    w.advance(ROUND_MS)
    # Of what lies before, only the last value of the key is left, though there are later ones.
    assert kept(w) == list(range(bases[3] - 1, log(w).end_offset))
    assert held(w)[OFFSETS, "cleaner", HOME] == sum(s.size for s in log(w).segments if s.base_offset >= bases[3]) - (
        log(w).segments[-1].size
    )


def test_position_survives_a_kill_and_a_restart_without_the_archive():
    w, client = world()
    commits(client)
    archived(client, OFFSETS, HOME, 40)
    w = w.crash()
    assert w.broker.archive.position(OFFSETS, HOME) == 40
    w.advance(ROUND_MS)
    assert len(kept(w)) < 20
    assert held(w)[OFFSETS, "cleaner", HOME] == 0


def test_position_does_not_expire():
    w, client = world(offsets_retention_minutes="1")
    archived(client, "t", 0, 3)
    client.call(commit_request(GROUP, {0: 1}), 8)
    w.advance(2 * 600_000)
    assert committed(w, GROUP) == {}
    assert committed(w, ARCHIVE) == {0: 3}


def produce(client: Client, count: int = 20) -> None:
    set_config(client, "t", internal_segment_bytes="500", retention_bytes="1000")
    for n in range(count):
        answer = client.call(produce_request("t", 0, b"%d" % n * 50), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def test_retention_of_a_topic_that_nobody_archives_waits_for_nobody():
    w, client = world()
    produce(client)
    w.advance(ROUND_MS)
    assert log(w, "t", 0).size_bytes < 1500
    assert held(w) == {}


def test_retention_waits_for_the_archive_and_goes_on_when_it_has_moved():
    w, client = world()
    archived(client, "t", 0, 0)
    produce(client)
    w.advance(ROUND_MS)
    before = log(w, "t", 0).size_bytes
    assert log(w, "t", 0).log_start_offset == 0
    assert 0 < held(w)["t", "retention", 0] < before
    archived(client, "t", 0, 20)
    w.advance(ROUND_MS)
    assert log(w, "t", 0).size_bytes < 1500
    assert held(w)["t", "retention", 0] == 0


def test_records_that_a_client_deletes_do_not_wait():
    w, client = world()
    archived(client, "t", 0, 0)
    produce(client)
    wanted = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=15)])
    answer = client.call(DeleteRecordsRequest(topics=[wanted], timeout_ms=1000), 2)
    assert answer.topics[0].partitions[0].low_watermark == 15
    w.advance(ROUND_MS)
    first = min(int(name[:20]) for name in w.files.listdir(f"{DATA}/t-0") if name.endswith(".log"))
    assert first > 0
    assert log(w, "t", 0).segments[1].base_offset > 15


def test_topic_that_is_deleted_holds_nothing_any_more():
    w, client = world()
    archived(client, "t", 0, 0)
    produce(client)
    w.advance(ROUND_MS)
    assert ("t", "retention", 0) in held(w)
    client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6)
    assert ("t", "retention", 0) not in held(w)


def test_position_on_an_earlier_topic_of_the_name_does_not_count_for_the_new_one():
    w, client = world()
    produce(client)
    archived(client, "t", 0, 20)
    assert w.broker.archive.position("t", 0) == 20
    shard = w.broker.groups.of(ARCHIVE)
    earlier = shard.machine.offsets.get(ARCHIVE, "t", 0)
    client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6)
    make_topic(client, "t", 1)
    assert w.broker.archive.position("t", 0) is None
    shard.machine.offsets.topic_or_new(ARCHIVE, "t").replay(0, earlier)  # not removed yet
    assert w.broker.archive.position("t", 0) == 0
    produce(client)
    w.advance(ROUND_MS)
    assert log(w, "t", 0).log_start_offset == 0
    archived(client, "t", 0, 20)
    assert w.broker.archive.position("t", 0) == 20


def test_wait_ends_with_a_log_line_when_too_much_is_held(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "momus.archive")
    w, client = world(archive_retain_max_bytes="500")
    commits(client)
    w.advance(ROUND_MS)
    assert len(kept(w)) < 20
    assert held(w)[OFFSETS, "cleaner", HOME] == 0
    [line] = caplog.messages
    assert line.startswith(f"{OFFSETS}-{HOME}: the cleaner no longer waits for group archive to archive ")
    assert "from offset 0 on" in line
    assert "archive.retain.max.bytes (500)" in line


def test_wait_goes_on_while_the_limit_is_not_reached(caplog: pytest.LogCaptureFixture):
    w, client = world(archive_retain_max_bytes="1000000")
    commits(client)
    w.advance(ROUND_MS)
    assert kept(w) == list(range(40))
    assert caplog.messages == []


@pytest.mark.parametrize("state", ["loading", "absent"])
def test_position_while_the_groups_shard_is_not_loaded_holds_what_it_may_know_of(state: str):
    w, client = world()
    if state == "loading":
        archived(client, "t", 0, 7)
    shard = w.broker.groups.of(ARCHIVE)
    shard.state = UNLOADED
    assert w.broker.archive.position(OFFSETS, HOME) == 0
    assert w.broker.archive.position("t", 0) == (0 if state == "loading" else None)
