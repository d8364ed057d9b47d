"""Idempotent producers on the way through an append: repetitions, gaps, and what a refusal leaves behind."""

from __future__ import annotations

import pytest
from unit.partitions.data_path import NOW_MS, DataPath, batch

from protocol.errors import ErrorCode
from protocol.record_batch import CONTROL


def broken(data: bytes) -> bytes:
    """The batch with a byte changed, so that its CRC is wrong."""
    return data[:-1] + bytes([data[-1] ^ 1])


def test_repeated_batch_answers_the_first_offset_and_writes_nothing() -> None:
    path = DataPath(producer_state="batches")
    topic = path.topic()
    first = batch(b"a", b"b", pid=3, epoch=0, seq=0, ts=NOW_MS - 9)
    assert path.produce(first).base_offset == 0
    assert path.produce(batch(b"c", pid=3, epoch=0, seq=2)).base_offset == 2
    again = path.produce(first)
    assert (again.error_code, again.base_offset, again.log_append_time_ms) == (0, 0, NOW_MS - 9)
    assert path.partition(topic, 0).log.end_offset == 3


def test_batch_behind_the_latest_is_a_duplicate_without_an_offset() -> None:
    path = DataPath(producer_state="latest")
    topic = path.topic()
    for seq in range(2):
        path.produce(batch(b"a", pid=3, epoch=0, seq=seq, ts=NOW_MS - seq))
    latest = path.produce(batch(b"a", pid=3, epoch=0, seq=1, ts=NOW_MS))
    assert (latest.error_code, latest.base_offset, latest.log_append_time_ms) == (0, 1, NOW_MS - 1)
    before = path.produce(batch(b"a", pid=3, epoch=0, seq=0))
    assert (before.error_code, before.base_offset) == (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1)
    assert before.log_append_time_ms == -1
    assert path.partition(topic, 0).log.end_offset == 2


@pytest.mark.parametrize("state", ["lookup", "latest", "batches"])
def test_refused_first_batch_that_comes_again_holds_back_those_behind_it(state: str) -> None:
    path = DataPath(producer_state=state)
    path.topic()
    assert path.produce(broken(batch(b"a", pid=3, epoch=0, seq=0))).error_code == ErrorCode.CORRUPT_MESSAGE
    second = path.produce(batch(b"b", pid=3, epoch=0, seq=1))
    assert second.error_code == (ErrorCode.NONE if state == "batches" else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    if state != "batches":
        assert [path.produce(batch(b"b", pid=3, epoch=0, seq=seq)).base_offset for seq in (0, 1)] == [0, 1]


WILL_NOT_COME_AGAIN = {
    ErrorCode.MESSAGE_TOO_LARGE: batch(b"x" * 2000, pid=3, epoch=0, seq=0),
    ErrorCode.INVALID_RECORD: batch(b"x", b"y", pid=3, epoch=0, seq=0, attributes=CONTROL),
    ErrorCode.INVALID_TIMESTAMP: batch(b"x", pid=3, epoch=0, seq=0, ts=NOW_MS + 10**10),
}


@pytest.mark.parametrize("code", WILL_NOT_COME_AGAIN)
@pytest.mark.parametrize("before", [True, False], ids=["awaited", "first"])
def test_refused_first_batch_that_does_not_come_again_holds_back_nothing(code: ErrorCode, before: bool) -> None:
    """aiokafka gives up a record that is too large, and counts on behind it."""
    path = DataPath()
    path.topic(max_message_bytes="1000")
    data = WILL_NOT_COME_AGAIN[code]
    if before:
        assert path.produce(broken(batch(b"a", pid=3, epoch=0, seq=0))).error_code == ErrorCode.CORRUPT_MESSAGE
    assert path.produce(data).error_code == code
    assert [path.produce(batch(b"b", pid=3, epoch=0, seq=seq)).base_offset for seq in (1, 2)] == [0, 1]


def test_sequence_errors_reach_the_client_with_the_log_start_offset(path: DataPath) -> None:
    path.topic()
    path.produce(batch(b"a", pid=3, epoch=1, seq=0))
    gap = path.produce(batch(b"b", pid=3, epoch=1, seq=5))
    assert (gap.error_code, gap.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
    assert path.produce(batch(b"b", pid=3, epoch=0, seq=1)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert path.produce(batch(b"b", pid=3, epoch=1, seq=1)).base_offset == 1


def test_refused_batch_leaves_its_producer_as_it_was(path: DataPath) -> None:
    topic = path.topic(segment_bytes=str(1 << 20), max_message_bytes=str(4 << 20))
    path.produce(batch(b"a", pid=3, epoch=0, seq=0))
    before = path.partition(topic, 0).producers.fingerprint()
    path.produce(batch(b"x" * (1 << 20), pid=3, epoch=0, seq=1))
    path.produce(broken(batch(b"b", pid=3, epoch=0, seq=1)))
    assert path.partition(topic, 0).producers.fingerprint() == before
