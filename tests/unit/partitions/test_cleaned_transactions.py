"""What a start makes of producer snapshots and transaction indexes after the cleaner was at work behind them."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import pytest
from unit.partitions.data_path import DataPath, batch
from unit.partitions.txn_path import committed, read_committed, stable

from protocol.record_batch import TRANSACTIONAL
from storage.files.sim_faults import SimulatedCrash
from storage.segments.transaction_index import SUFFIX, decode_index

RETENTION_MS = 1000
EXPIRATION_MS = 5000


def compacted_path() -> DataPath:
    path = DataPath(producer_id_expiration_ms=str(EXPIRATION_MS))
    path.topic(**{"cleanup.policy": "compact", "delete.retention.ms": str(RETENTION_MS)})
    return path


def partition_of(path: DataPath) -> Any:
    return path.partition(path.metadata.topics["t"], 0)


def write(path: DataPath, key: bytes, value: bytes, pid: int, seq: int = 0) -> None:
    data = batch((key, value), pid=pid, epoch=0, seq=seq, attributes=TRANSACTIONAL, ts=path.now_ms)
    assert path.produce(data, version=12, transactional_id=f"tx-{pid}").error_code == 0


def clean(path: DataPath, passes: int = 1, ms: int = RETENTION_MS) -> None:
    """Seal the log and clean it; time passes after each pass."""
    partition = partition_of(path)
    for _ in range(passes):
        partition.log.roll()
        for _ in partition.clean(path.now_ms, partition.last_stable_offset):
            pass
        partition.log.cleaned_offset = 0
        path.advance(ms)


def housekeeping(path: DataPath) -> None:
    for _ in partition_of(path).maintenance(path.now_ms):
        pass


def index_lines(path: DataPath) -> list[int]:
    """Offsets of the markers in all index files, by file."""
    directory = partition_of(path).log.directory
    files = path.env.files
    names = [name for name in files.listdir(directory) if name.endswith(SUFFIX)]
    return [line.last_offset for name in names for line in decode_index(files.read_file(f"{directory}/{name}"))]


def markers(path: DataPath) -> list[int]:
    return [header.base_offset for header, _ in partition_of(path).log.batches(0) if header.is_control]


@pytest.mark.parametrize("commit", [True, False])
def test_transaction_of_an_old_snapshot_whose_marker_was_cleaned_is_not_open(commit):
    path = compacted_path()
    write(path, b"k", b"old", 1)
    partition_of(path).take_snapshot()
    path.mark(1, 0, commit=commit, version=1)
    path.produce(batch((b"k", b"new")))
    path.advance(EXPIRATION_MS + 1)
    housekeeping(path)
    clean(path, 4)
    assert markers(path) == []
    again = path.reopened(clean=False)
    assert stable(again) == 3
    assert read_committed(again) == [b"new"]


def test_transaction_of_an_old_snapshot_that_is_still_open_stays_open():
    path = compacted_path()
    path.produce(batch((b"k", b"old")))
    path.produce(batch((b"k", b"old")))
    write(path, b"k", b"open", 1)
    partition_of(path).take_snapshot()
    path.produce(batch((b"k", b"new")))
    clean(path, 3)
    assert stable(path.reopened(clean=False)) == 2


def test_snapshot_whose_last_aborting_marker_was_cleaned_is_still_used(caplog):
    path = compacted_path()
    write(path, b"k", b"aborted", 1)
    path.mark(1, 0, commit=False, version=1)
    path.produce(batch((b"k", b"new")))
    partition_of(path).take_snapshot()
    path.advance(EXPIRATION_MS + 1)
    housekeeping(path)
    clean(path, 4)
    assert (markers(path), index_lines(path)) == ([], [])
    again = path.reopened(clean=False)
    with caplog.at_level(logging.WARNING):
        assert read_committed(again) == [b"new"]
    assert not caplog.records


def test_snapshot_whose_index_is_lost_is_not_used():
    path = compacted_path()
    write(path, b"k", b"aborted", 1)
    path.mark(1, 0, commit=False, version=1)
    partition_of(path).take_snapshot()
    directory = partition_of(path).log.directory
    for name in path.env.files.listdir(directory):
        if name.endswith(SUFFIX):
            path.env.files.remove(f"{directory}/{name}")
    assert read_committed(path.reopened(clean=False)) == []


def merged_path(nth: int) -> DataPath:
    """Four aborted transactions in three segments, which a pass makes one; it ends before the last transaction.

    kill -9 in the nth change of the disk.
    """
    path = compacted_path()
    for seq in range(4):
        write(path, b"k%d" % seq, b"aborted", 1, seq)
        path.mark(1, 0, commit=False, version=1)
        if seq != 2:
            partition_of(path).log.roll()
    path.produce(batch((b"x", b"y")))
    partition_of(path).log.roll()
    partition_of(path).take_snapshot()
    assert index_lines(path) == [1, 3, 5, 7]
    files = path.env.files
    files.kill_at(nth)
    with suppress(SimulatedCrash):
        for _ in partition_of(path).clean(path.now_ms, 6):
            pass
    files.heal()
    return path.reopened(clean=False, files=files.crash())


def test_merged_segments_keep_the_lines_of_all_of_them():
    path = merged_path(1000)
    assert [segment.base_offset for segment in partition_of(path).log.segments] == [0, 8]
    assert index_lines(path) == [1, 3, 5, 7]
    assert read_committed(path) == [b"y"]
    assert [each.first_offset for each in committed(path).aborted_transactions] == [0, 2, 4, 6]


@pytest.mark.parametrize("nth", range(1, 20))
def test_kill_while_segments_are_merged_keeps_the_lines_of_all_of_them(nth):
    path = merged_path(nth)
    assert read_committed(path) == [b"y"]
    assert index_lines(path) == [1, 3, 5, 7]


def test_emptied_transactional_batch_keeps_its_marker():
    """Kafka takes such a batch for an open transaction where its marker is gone."""
    path = compacted_path()
    write(path, b"k", b"aborted", 1)
    path.mark(1, 0, commit=False, version=1)
    path.produce(batch((b"k", b"new")))
    clean(path, 4)
    found = [(h.base_offset, h.record_count) for h, _ in partition_of(path).log.batches(0)]
    assert found[:2] == [(0, 0), (1, 1)]


def test_batches_of_expired_producers_go():
    path = compacted_path()
    for pid in range(300):
        assert path.produce(batch((b"k", b"v"), pid=pid, epoch=0, seq=0, ts=path.now_ms)).error_code == 0
    clean(path)
    assert sum(h.producer_id >= 0 for h, _ in partition_of(path).log.batches(0)) == 300
    path.advance(EXPIRATION_MS + 1)
    housekeeping(path)
    path.produce(batch((b"k", b"new")))
    clean(path, 2)
    assert sum(h.producer_id >= 0 for h, _ in partition_of(path).log.batches(0)) == 0


def test_only_the_last_batch_of_an_active_producer_is_kept_empty():
    path = compacted_path()
    for seq in range(3):
        path.produce(batch((b"k", b"v"), pid=7, epoch=0, seq=seq, ts=path.now_ms))
    clean(path)
    path.produce(batch((b"k", b"v"), pid=7, epoch=0, seq=3, ts=path.now_ms))
    path.produce(batch((b"k", b"new")))
    clean(path)
    kept = [(h.base_offset, h.record_count) for h, _ in partition_of(path).log.batches(0) if h.producer_id == 7]
    assert kept == [(3, 0)]
    again = path.reopened(clean=False)
    assert again.produce(batch((b"k", b"v"), pid=7, epoch=0, seq=4)).error_code == 0
    assert again.produce(batch((b"k", b"v"), pid=7, epoch=0, seq=6)).error_code == 45


def test_marker_with_the_last_epoch_of_an_active_producer_stays():
    """After transactions v2 the marker alone holds the epoch that fences the producer's older instances."""
    path = compacted_path()
    write(path, b"k", b"old", 1)
    path.mark(1, 1, commit=True)
    path.produce(batch((b"k", b"new")))
    clean(path, 4, ms=1000)
    assert markers(path) == [1]
    data = batch((b"k", b"zombie"), pid=1, epoch=0, seq=1, attributes=TRANSACTIONAL)
    assert path.reopened(clean=False).produce(data, version=12, transactional_id="tx-1").error_code == 47
