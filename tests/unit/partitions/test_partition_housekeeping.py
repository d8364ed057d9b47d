"""Housekeeping of a partition: retention, idle producers, and when snapshots are taken and dropped."""

from __future__ import annotations

import pytest
from partition_life_kit import encode_snapshot, run, snapshots
from unit.partitions.data_path import NOW_MS, DataPath, batch

from broker.partitions import partition as partition_module
from broker.partitions.producer_snapshots import ProducerSnapshots
from protocol.errors import ErrorCode
from storage.files.sim_env import MemoryFiles

DAY_MS = 86_400_000


def test_retention_moves_the_start_and_drops_old_snapshots(latest: DataPath) -> None:
    topic = latest.topic(segment_bytes=str(1 << 20), retention_bytes=str(1 << 20))
    partition = latest.partition(topic, 0)
    for seq in range(4):
        latest.produce(batch(b"x" * 600_000, pid=1, epoch=0, seq=seq))
        partition.take_snapshot()
    partition.log.config = partition.log.config._replace(retention_bytes=700_000)
    run(latest)
    start = partition.log_start_offset
    assert start > 0
    assert all(offset >= start for offset in snapshots(latest))
    assert latest.fetch(0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_retention_keeps_what_is_not_yet_visible(latest: DataPath) -> None:
    topic = latest.topic()
    latest.produce(batch(b"old", ts=NOW_MS - 30 * DAY_MS), end_turn=False)
    run(latest)
    latest.end_turn()
    assert latest.partition(topic, 0).log_start_offset == 0


def test_idle_producers_are_forgotten(latest: DataPath) -> None:
    topic = latest.topic()
    latest.produce(batch(b"a", pid=1, epoch=0, seq=0))
    latest.advance(DAY_MS - 1)
    latest.produce(batch(b"a", pid=2, epoch=0, seq=0, ts=latest.now_ms))
    run(latest)
    assert sorted(latest.partition(topic, 0).producers.table) == [1, 2]
    latest.advance(1)
    run(latest)
    assert sorted(latest.partition(topic, 0).producers.table) == [2]
    assert latest.produce(batch(b"a", pid=1, epoch=0, seq=77)).error_code == 0


def test_snapshot_is_taken_after_enough_bytes(latest: DataPath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_module, "SNAPSHOT_EVERY_BYTES", 300)
    monkeypatch.setattr(partition_module, "SNAPSHOT_BYTES_A_PRODUCER", 1)
    latest.topic()
    latest.produce(batch(b"x" * 100, pid=1, epoch=0, seq=0))
    run(latest)
    assert snapshots(latest) == []
    latest.produce(batch(b"x" * 100, pid=1, epoch=0, seq=1))
    run(latest)
    assert snapshots(latest) == [2]
    run(latest)
    assert snapshots(latest) == [2]


def test_snapshot_waits_for_what_is_not_written(latest: DataPath) -> None:
    topic = latest.topic()
    assert not latest.partition(topic, 0).take_snapshot()
    latest.produce(batch(b"x", pid=1, epoch=0, seq=0), end_turn=False)
    assert not latest.partition(topic, 0).take_snapshot()
    latest.end_turn()
    assert latest.partition(topic, 0).take_snapshot()


def test_two_snapshots_are_kept() -> None:
    files = MemoryFiles()
    files.makedirs("data/t-0")
    kept = ProducerSnapshots(files, "data/t-0")
    for offset in (5, 9, 12, 20):
        kept.write(offset, encode_snapshot([]))
    assert kept.offsets == ProducerSnapshots(files, "data/t-0").offsets == [12, 20]
    assert kept.latest(19) == (12, ([], -1))
    assert len(files.listdir("data/t-0")) == 4
    assert kept.latest(11) is None


def test_deleted_partition_leaves_no_files(latest: DataPath) -> None:
    topic = latest.topic()
    latest.produce(batch(b"a", pid=1, epoch=0, seq=0))
    latest.partition(topic, 0).take_snapshot()
    latest.delete_topic(topic)
    assert latest.env.files.listdir("data/t-0") == []
    run_after = latest.topic("t", topic_id=b"another id of t.")
    assert latest.produce(batch(b"b")).base_offset == 0
    assert latest.partition(run_after, 0).high_watermark == 1
