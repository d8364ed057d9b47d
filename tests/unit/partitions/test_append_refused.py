"""Batches that an append refuses: damaged, of another format, too large, or not what they say they are."""

from __future__ import annotations

import gzip
from struct import pack

import pytest
from append_kit import edited, refusal, stored
from unit.partitions.data_path import NOW_MS, DataPath, batch, values_of

from protocol.compression import compress
from protocol.errors import ErrorCode
from protocol.record_batch import (
    CONTROL,
    assemble_batch,
)

# ---------------------------------------------------------------- what is refused


def test_wrong_crc_is_corrupt(path: DataPath) -> None:
    path.topic()
    data = batch(b"value")
    for at in (21, 30, 57, len(data) - 1):
        assert refusal(path, edited(data, at, bytes([data[at] ^ 1]), crc=False)) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_older_magic_is_an_invalid_record(path: DataPath, magic: int) -> None:
    path.topic()
    assert refusal(path, edited(batch(b"v"), 16, bytes([magic]))) == ErrorCode.INVALID_RECORD
    legacy = pack(">qiIbb", 0, 22, 0, magic, 0) + b"\xff" * 16
    assert refusal(path, legacy) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("magic", [3, 255])
def test_unknown_magic_is_corrupt(path: DataPath, magic: int) -> None:
    path.topic()
    assert refusal(path, edited(batch(b"v"), 16, bytes([magic]))) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 14, 48])
def test_length_below_a_header_is_corrupt(path: DataPath, length: int) -> None:
    path.topic()
    assert refusal(path, edited(batch(b"v"), 8, pack(">i", length))) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("cut", [0, 1, 11, 12, 17, 60, 61, 65])
def test_partial_batch_is_no_batch(path: DataPath, cut: int) -> None:
    path.topic()
    data = batch(b"value")
    assert cut < len(data)
    assert refusal(path, data[:cut]) == ErrorCode.INVALID_RECORD


def test_huge_length_is_no_batch(path: DataPath) -> None:
    path.topic()
    assert refusal(path, edited(batch(b"v"), 8, pack(">i", 2**31 - 1))) == ErrorCode.INVALID_RECORD


def test_second_batch_is_refused(path: DataPath) -> None:
    path.topic()
    assert refusal(path, batch(b"a") + batch(b"b")) == ErrorCode.INVALID_RECORD


def test_partial_second_batch_is_dropped(path: DataPath) -> None:
    path.topic()
    for tail in (b"\0", batch(b"b")[:40]):
        _, whole = stored(path, batch(b"a") + tail)
        assert values_of(whole) == [b"a"]


def test_garbage_after_the_batch_is_corrupt(path: DataPath) -> None:
    path.topic()
    assert refusal(path, batch(b"a") + bytes(20)) == ErrorCode.CORRUPT_MESSAGE


def test_base_offset_must_be_zero(path: DataPath) -> None:
    path.topic()
    assert refusal(path, edited(batch(b"a"), 0, pack(">q", 5))) == ErrorCode.INVALID_RECORD


def test_batch_above_max_message_bytes_is_too_large(path: DataPath) -> None:
    data = batch(b"x" * 1000)
    path.topic(max_message_bytes=str(len(data)))
    path.topic("less", max_message_bytes=str(len(data) - 1))
    assert path.produce(data).error_code == 0
    assert refusal(path, data, "less") == ErrorCode.MESSAGE_TOO_LARGE


def test_batch_above_a_segment_is_too_large_a_list(path: DataPath) -> None:
    path.topic(segment_bytes=str(1 << 20), max_message_bytes=str(4 << 20))
    assert refusal(path, batch(b"x" * (1 << 20))) == ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize(("delta", "count"), [(1, 3), (2, 2), (-1, 0), (0, 0), (0, -1), (2**31 - 1, -(2**31))])
def test_count_that_disagrees_with_the_offsets_is_invalid(path: DataPath, delta: int, count: int) -> None:
    path.topic()
    data = edited(edited(batch(b"a"), 23, pack(">i", delta)), 57, pack(">i", count))
    assert refusal(path, data) == ErrorCode.INVALID_RECORD


def test_declared_count_that_the_records_do_not_keep_is_invalid(path: DataPath) -> None:
    path.topic()
    for more in (1, -1):
        data = edited(edited(batch(b"a", b"b"), 23, pack(">i", 1 + more)), 57, pack(">i", 2 + more))
        assert refusal(path, data) == ErrorCode.INVALID_RECORD


def test_control_batch_of_a_client_is_refused(path: DataPath) -> None:
    path.topic()
    assert refusal(path, batch((bytes(4), b""), attributes=CONTROL)) == ErrorCode.INVALID_RECORD


def test_producer_id_without_a_sequence_is_invalid(path: DataPath) -> None:
    path.topic()
    assert refusal(path, batch(b"a", pid=4, epoch=0, seq=-1)) == ErrorCode.INVALID_RECORD


def test_unknown_codec_is_unsupported(path: DataPath) -> None:
    path.topic()
    data = edited(batch(b"a"), 21, pack(">h", 5))
    assert refusal(path, data) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_zstd_before_version_7_is_unsupported(path: DataPath) -> None:
    path.topic()
    data = batch(b"a", attributes=4)
    assert path.produce(data, version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert path.produce(data, version=7).error_code == 0


def test_records_that_are_not_what_the_codec_says_are_refused(path: DataPath) -> None:
    path.topic()
    for codec in (1, 2, 3, 4):
        data = edited(batch(b"some value"), 21, pack(">h", codec))
        assert refusal(path, data) == ErrorCode.INVALID_RECORD


def test_batch_that_inflates_beyond_the_bound_is_too_large(path: DataPath) -> None:
    path = DataPath(decompression_max_bytes=str(1 << 20))
    path.topic()
    bomb = gzip.compress(bytes(64 << 20))
    data = _around(bomb, 1)
    assert len(data) < 100_000
    assert refusal(path, data) == ErrorCode.MESSAGE_TOO_LARGE


def test_compressed_records_are_looked_at(path: DataPath) -> None:
    path.topic()
    data = _around(compress(1, b"\x0e\0\0\0\x01\x04ab\0" + b"rest"), 1)
    assert refusal(path, data) == ErrorCode.INVALID_RECORD


def _around(section: bytes, codec: int) -> bytes:
    """A batch of one record around a section that is compressed already."""
    whole = assemble_batch(
        section,
        base_offset=0,
        leader_epoch=-1,
        attributes=0,
        last_offset_delta=0,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=1,
    )
    return edited(whole, 21, pack(">h", codec))
