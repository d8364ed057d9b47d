"""Transactions over restarts: what a partition still knows of them, from snapshot, index files and log."""

from __future__ import annotations

from unittest.mock import Mock, patch

import pytest
from unit.partitions.data_path import DataPath, batch
from unit.partitions.txn_path import read_committed, send, stable

from storage.segments.transaction_index import decode_index


@pytest.fixture
def path() -> DataPath:
    path = DataPath()
    path.topic()
    return path


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_survive_a_restart(path: DataPath, clean: bool) -> None:
    for number in range(3):
        send(path, b"%d" % number, epoch=number)
        path.mark(1, number + 1, commit=number == 1)
    send(path, b"open", pid=2)
    path.produce(batch(b"later"))
    path = path.reopened(clean=clean)
    assert stable(path) == 6
    assert read_committed(path) == [b"1"]
    assert path.partition(path.metadata.topics["t"], 0).has_open_transaction(2, 0)
    path.mark(2, 1, commit=True)
    assert read_committed(path) == [b"1", b"open", b"later"]
    names = [n for n in path.env.files.listdir("data/t-0") if n.endswith(".txnindex")]
    assert names == ([f"{0:020d}.txnindex"] if clean else [])


def test_index_lies_with_the_segments_of_the_markers() -> None:
    path = DataPath()
    topic = path.topic(segment_bytes=str(1 << 20))
    partition = path.partition(topic, 0)
    for number in range(4):
        send(path, b"x" * 600_000, epoch=number)
        path.mark(1, number + 1, commit=False)
        if number == 1:
            assert partition.take_snapshot()
    path = path.reopened()
    partition = path.partition(path.metadata.topics["t"], 0)
    files = path.env.files
    sizes = {int(n[:20]): len(files.read_file(f"data/t-0/{n}")) for n in files.listdir("data/t-0") if "txnindex" in n}
    bases = [segment.base_offset for segment in partition.log.segments]
    assert sizes == dict.fromkeys(bases, 34)
    assert partition.aborted_transactions(0, 8) == []
    assert read_committed(path) == []
    assert partition.aborted_transactions(0, 8) == [(1, 0), (1, 2), (1, 4), (1, 6)]


def test_lines_of_lost_markers_are_not_believed() -> None:
    """A marker whose index line was synced, and which a power cut took from the log."""
    path = DataPath()
    topic = path.topic()
    send(path, b"a")
    path.partition(topic, 0).log.sync()
    path.mark(1, 1, commit=False)
    path.partition(topic, 0).take_snapshot()
    path = path.reopened(clean=False, files=path.env.files.crash(lose_unsynced=True))
    assert stable(path) == 0
    path.mark(1, 1, commit=True)
    for _ in range(3):
        path.produce(batch(b"x"))
    path = path.reopened()
    assert read_committed(path) == [b"a", b"x", b"x", b"x"]
    assert not any("txnindex" in name for name in path.env.files.listdir("data/t-0"))


def test_lost_index_is_made_again_from_the_log(path: DataPath) -> None:
    send(path, b"a")
    path.mark(1, 1, commit=False)
    path.produce(batch(b"x"))
    path = path.reopened()
    path.env.files.remove(f"data/t-0/{0:020d}.txnindex")
    assert read_committed(path) == [b"x"]


def test_retention_forgets_what_was_aborted_before_the_start(path: DataPath) -> None:
    for number in range(3):
        send(path, b"a", epoch=number)
        path.mark(1, number + 1, commit=False)
    partition = path.partition(path.metadata.topics["t"], 0)
    partition.delete_records(4)
    assert partition.aborted_transactions(0, 9) == [(1, 4)]


def index_lines(path: DataPath) -> list[int]:
    """Offsets of the markers in the index of the first segment."""
    name = f"data/t-0/{0:020d}.txnindex"
    return [line.last_offset for line in decode_index(path.env.files.read_file(name))]


def abort_one(path: DataPath, number: int) -> None:
    send(path, b"a", epoch=number)
    path.mark(1, number + 1, commit=False)


@pytest.mark.parametrize("restarts", [False, True])
def test_index_is_written_again_when_as_many_transactions_were_aborted_as_were_deleted(
    path: DataPath, restarts: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path.produce(batch(b"x", pid=9, epoch=0, seq=0))
    for number in range(2):
        abort_one(path, number)
    partition = path.partition(path.metadata.topics["t"], 0)
    partition.take_snapshot()
    assert index_lines(path) == [2, 4]
    if restarts:
        path = path.reopened()
        partition = path.partition(path.metadata.topics["t"], 0)
    partition.delete_records(3)
    abort_one(path, 2)
    again = path.reopened()
    assert index_lines(again) == [4, 6]
    assert again.produce(batch(b"x", pid=9, epoch=0, seq=0)).base_offset == 0  # it is known: not appended again
    assert "unusable" not in caplog.text


def test_index_goes_when_all_that_was_aborted_is_deleted(path: DataPath) -> None:
    abort_one(path, 0)
    partition = path.partition(path.metadata.topics["t"], 0)
    partition.take_snapshot()
    assert index_lines(path) == [1]
    partition.delete_records(2)
    path.produce(batch(b"x"))
    partition.take_snapshot()
    assert not any("txnindex" in name for name in path.env.files.listdir("data/t-0"))


def test_index_that_says_what_it_should_is_not_written_again(path: DataPath) -> None:
    abort_one(path, 0)
    path = path.reopened()
    path.produce(batch(b"x"))
    writes = Mock(wraps=path.env.files.write_file_atomic)
    with patch.object(path.env.files, "write_file_atomic", writes):
        assert path.partition(path.metadata.topics["t"], 0).take_snapshot()
    assert not any("txnindex" in call.args[0] for call in writes.call_args_list)
