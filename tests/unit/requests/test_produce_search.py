"""producer.state=lookup: a batch that is sent again is answered with the offset that it has in the log."""

from __future__ import annotations

import pytest
from unit.partitions.data_path import NOW_MS, DataPath, batch, values_of

import broker.requests.written_batch as written_batch
import storage.log.backwards as backwards
from broker.turn.decision import LATER
from protocol.errors import ErrorCode
from protocol.record_batch import TRANSACTIONAL

DUPLICATE = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


@pytest.fixture
def path() -> DataPath:
    path = DataPath()
    path.topic()
    return path


def write_large(path: DataPath, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Twenty batches, each of which has an entry in the index, and is a slice of its own. Returns the first."""
    sent = [batch(b"x" * 5000, pid=1, epoch=0, seq=seq) for seq in range(20)]
    for data in sent:
        assert path.produce(data).error_code == 0
    monkeypatch.setattr(backwards, "SLICE_BYTES", 1)
    monkeypatch.setattr(written_batch, "SLICE_BYTES", 1)
    return sent[0]


def one(seq: int, *, pid: int = 1, **more: int) -> bytes:
    return batch(b"%d/%d" % (pid, seq), pid=pid, epoch=0, seq=seq, ts=NOW_MS + seq, **more)


def answer(path: DataPath, data: bytes, **more: object) -> tuple[int, int, int]:
    got = path.produce(data, **more)
    return got.error_code, got.base_offset, got.log_append_time_ms


def write(path: DataPath, count: int, pids: tuple[int, ...] = (1,)) -> None:
    for seq in range(count):
        for pid in pids:
            assert path.produce(one(seq, pid=pid)).error_code == 0


def test_every_batch_of_a_hundred_is_answered_with_its_offset_and_time(path: DataPath) -> None:
    write(path, 100)
    for seq in range(100):
        assert answer(path, one(seq)) == (0, seq, NOW_MS + seq)
    assert path.partition(path.metadata.topics["t"], 0).log.end_offset == 100


def test_batches_of_interleaved_producers_are_told_apart(path: DataPath) -> None:
    write(path, 20, (1, 2, 3))
    for seq in range(20):
        for at, pid in enumerate((1, 2, 3)):
            assert answer(path, one(seq, pid=pid))[:2] == (0, 3 * seq + at)


@pytest.mark.parametrize("clean", [True, False])
def test_batch_from_before_a_start_is_found(path: DataPath, clean: bool) -> None:
    write(path, 10, (1, 2))
    again = path.reopened(clean=clean)
    assert answer(again, one(3)) == (0, 6, NOW_MS + 3)


def test_batch_is_found_over_the_wrap_of_sequences(path: DataPath) -> None:
    top = 2**31 - 1
    for seq in (top - 1, top, 0, 1):
        assert path.produce(batch(b"v", pid=1, epoch=0, seq=seq)).error_code == 0
    found = [answer(path, batch(b"v", pid=1, epoch=0, seq=seq))[:2] for seq in (top - 1, top, 0, 1)]
    assert found == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_batch_is_found_over_many_segments() -> None:
    path = DataPath()
    path.topic(segment_bytes="1048576")
    for seq in range(8):
        assert path.produce(batch(b"x" * 700_000, pid=1, epoch=0, seq=seq)).error_code == 0
    assert len(path.partition(path.metadata.topics["t"], 0).log.segments) == 8
    found = [answer(path, batch(b"x" * 700_000, pid=1, epoch=0, seq=seq))[:2] for seq in range(8)]
    assert found == [(0, seq) for seq in range(8)]


def test_batch_of_a_transaction_is_found_before_its_marker(path: DataPath) -> None:
    for seq in range(3):
        assert path.produce(one(seq, attributes=TRANSACTIONAL), transactional_id="x").error_code == 0
    path.mark(1, 0, commit=True, version=1)
    assert answer(path, one(3))[:2] == (0, 4)
    assert answer(path, one(0))[:2] == (0, 0)


def test_batch_sent_in_another_cut_is_a_duplicate_without_an_offset(path: DataPath) -> None:
    for seq in (0, 2, 4):
        path.produce(batch(b"a", b"b", pid=1, epoch=0, seq=seq))
    assert answer(path, batch(b"b", b"c", pid=1, epoch=0, seq=1)) == (DUPLICATE, -1, -1)
    assert answer(path, batch(b"a", pid=1, epoch=0, seq=0)) == (DUPLICATE, -1, -1)


@pytest.mark.parametrize(("found", "limit"), [(6, 3), (7, 2)])
def test_search_ends_after_so_many_batches(
    path: DataPath, monkeypatch: pytest.MonkeyPatch, found: int, limit: int
) -> None:
    write(path, 10)
    monkeypatch.setattr(written_batch, "MOST_BATCHES", limit)
    assert answer(path, one(found)) == (0, found, NOW_MS + found)
    assert answer(path, one(found - 1)) == (DUPLICATE, -1, -1)


def test_search_ends_after_so_many_bytes(path: DataPath, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, 10)
    monkeypatch.setattr(written_batch, "MOST_BYTES", 2 * len(one(0)))
    assert answer(path, one(7))[0] == 0
    assert answer(path, one(6))[0] == DUPLICATE


def test_bounds_are_eight_megabytes_and_ten_thousand_batches() -> None:
    assert (written_batch.MOST_BYTES, written_batch.MOST_BATCHES) == (8 << 20, 10_000)


def test_batch_that_retention_removed_is_a_duplicate_without_an_offset(path: DataPath) -> None:
    write(path, 10)
    partition = path.partition(path.metadata.topics["t"], 0)
    partition.log.roll()
    write_more = [path.produce(one(seq)).error_code for seq in range(10, 13)]
    assert write_more == [0, 0, 0]
    partition.delete_records(10)
    for _ in partition.maintenance(path.now_ms):
        pass
    assert answer(path, one(3)) == (DUPLICATE, -1, -1)
    assert answer(path, one(10))[:2] == (0, 10)


def test_long_search_goes_on_between_turns_and_holds_its_own_connection_alone(
    path: DataPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_large(path, monkeypatch)
    assert path.produce(first, end_turn=False) is LATER
    assert path.connection.throttled
    for _ in range(5):
        assert path.turn.jobs.step()
        path.end_turn()
        assert path.produce(batch(b"other")).error_code == 0
    assert path.answers == []
    while path.turn.jobs.step():
        path.end_turn()
    assert not path.connection.throttled
    ((_, response),) = path.answers
    got = response.responses[0].partition_responses[0]
    assert (got.error_code, got.base_offset) == (0, 0)


def test_search_that_passes_over_large_batches_reads_little_and_is_done_at_once(path: DataPath) -> None:
    sent = [batch(b"x" * 700_000, pid=1, epoch=0, seq=seq) for seq in range(3)]
    for data in sent:
        assert path.produce(data).error_code == 0
    got = path.produce(sent[0], end_turn=False)
    assert got is not LATER
    assert (got.error_code, got.base_offset) == (0, 0)


def test_search_ends_with_its_connection(path: DataPath, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_large(path, monkeypatch)
    assert path.produce(first, end_turn=False) is LATER
    path.parked.clear()
    path.turn.jobs.step()
    assert not path.turn.jobs
    assert path.answers == []


def test_batch_of_the_same_turn_is_found_once_it_is_in_the_file(path: DataPath) -> None:
    for seq in range(3):
        path.produce(one(seq), end_turn=False)
    assert answer(path, one(0)) == (0, 0, NOW_MS)


def test_batch_that_could_not_be_written_is_not_answered_as_written(path: DataPath) -> None:
    write(path, 1)
    for seq in (1, 2, 3):
        path.produce(one(seq), end_turn=False)
    assert path.produce(one(1), end_turn=False) is LATER
    path.env.files.inject(1, short_bytes=10)
    path.end_turn()
    path.env.files.heal()
    for _ in range(3):  # where the lost ones would have been
        path.produce(batch(b"other"))
    while path.turn.jobs.step():
        path.end_turn()
    ((_, response),) = path.answers
    code = response.responses[0].partition_responses[0].error_code
    assert ErrorCode(code).retriable
    assert answer(path, one(1))[:2] == (0, 4)


def test_search_in_a_log_that_cannot_be_read_is_an_error_that_clients_retry(
    path: DataPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_large(path, monkeypatch)
    assert path.produce(first, end_turn=False) is LATER
    path.partition(path.metadata.topics["t"], 0).log.broken = "it was deleted"
    while path.turn.jobs.step():
        pass
    ((_, response),) = path.answers
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_repetition_without_a_reply_needs_no_search(path: DataPath, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_large(path, monkeypatch)
    assert path.produce(first, acks=0) is None
    assert not path.turn.jobs
    assert not path.decided.close


@pytest.mark.parametrize("state", ["lookup", "latest"])
def test_repetition_of_what_is_not_durable_waits_for_it(state: str) -> None:
    path = DataPath(producer_state=state)
    path.topic()
    write(path, 3)
    path.produce(one(3), end_turn=False)
    path.produce(one(1), end_turn=False)
    flush_state = path.partition(path.metadata.topics["t"], 0).flush_state
    if state == "latest":
        assert flush_state in path.decided.reads
        assert len(flush_state.held) == 2
    path.end_turn()
    assert values_of(path.fetch().records) == [b"1/0", b"1/1", b"1/2", b"1/3"]
