"""RecordBatch v2 against bytes and decoders that are not ours."""

from __future__ import annotations

import gzip
import zlib

import pytest
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from protocol import compression
from protocol.errors import ErrorCode, KafkaError
from protocol.record import decode_records, encode_record, read_varint, varint
from protocol.record_batch import (
    COMMIT,
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    build_batch,
    control_batch,
    control_type,
    crc32c,
    iter_batches,
    iter_records,
)

RECORDS = [
    (b"key", b"value"),
    (None, b"only value"),
    (b"gone", None),
    (b"", b"", [("h", b"1"), ("none", None), ("ü", b"")]),
    (b"k" * 100, b"v" * 20_000, (), 1_600_000_000_123),
]


def test_batch_of_one_record_is_these_bytes():
    batch = build_batch([(b"k", b"v")], base_offset=5, leader_epoch=3, timestamp_ms=1000)
    assert batch[:17].hex() == "0000000000000005" + "0000003a" + "00000003" + "02"
    assert batch[21:].hex() == (
        "0000"
        + "00000000"
        + "00000000000003e8" * 2
        + "ff" * 8
        + "ffff"
        + "ffffffff"
        + "00000001"
        + "1000000002 6b02760 0".replace(" ", "")
    )
    assert int.from_bytes(batch[17:21], "big") == crc32c(batch[21:])


@pytest.mark.parametrize("codec", range(5), ids=compression.CODEC_NAMES)
def test_another_decoder_reads_our_batch(codec):
    batch = build_batch(
        RECORDS,
        base_offset=70,
        timestamp_ms=1_600_000_000_000,
        producer_id=9,
        producer_epoch=1,
        base_sequence=4,
        attributes=codec,
    )
    theirs = DefaultRecordBatch(batch)
    assert theirs.validate_crc()
    assert (theirs.base_offset, theirs.producer_id, theirs.compression_type) == (70, 9, codec)
    assert theirs.max_timestamp == 1_600_000_000_123
    found = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in theirs]
    ours = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in iter_records(batch)]
    assert found == ours
    assert [record[2:4] for record in ours] == [record[:2] for record in RECORDS]
    assert ours[3][4] == [("h", b"1"), ("none", None), ("ü", b"")]


@pytest.mark.parametrize("codec", range(5), ids=compression.CODEC_NAMES)
def test_we_read_what_another_builder_writes(codec):
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=1,
        producer_id=3,
        producer_epoch=2,
        base_sequence=1,
        batch_size=1 << 20,
    )
    for n in range(50):
        assert builder.append(n, timestamp=5000 + n, key=b"k%d" % n, value=b"v" * n, headers=[("n", b"%d" % n)])
    batch = bytes(builder.build())
    header = BatchHeader.from_buffer(batch)
    assert (header.size, header.codec, header.is_transactional, header.record_count) == (len(batch), codec, True, 50)
    records = list(iter_records(batch))
    assert [(r.offset, r.timestamp, r.key, r.value) for r in records] == [
        (n, 5000 + n, b"k%d" % n, b"v" * n) for n in range(50)
    ]
    assert records[7].headers == (("n", b"7"),)


def test_control_batch_says_which_marker_it_is():
    batch = control_batch(COMMIT, base_offset=8, timestamp_ms=1, producer_id=4, producer_epoch=2, coordinator_epoch=6)
    header = BatchHeader.from_buffer(batch)
    assert header.attributes == TRANSACTIONAL | CONTROL
    assert (header.is_control, header.base_sequence, header.next_offset) == (True, -1, 9)
    (record,) = iter_records(batch)
    assert control_type(record.key) == COMMIT
    assert record.value.hex() == "000000000006"


def test_log_append_time_replaces_every_records_time():
    batch = build_batch([(b"a", b"1", (), 5), (b"b", b"2", (), 9)], timestamp_ms=5, attributes=LOG_APPEND_TIME)
    assert [r.timestamp for r in iter_records(batch)] == [9, 9]


def test_batches_end_at_a_partial_one():
    one = build_batch([(b"a", b"1")], timestamp_ms=1)
    two = build_batch([(b"a", b"1")] * 3, timestamp_ms=1)
    for cut in range(len(two)):
        found = [(at, header.record_count) for at, header in iter_batches(one + two[:cut])]
        assert found == [(0, 1)]
    assert [at for at, _ in iter_batches(b"xx" + one + two, 2)] == [2, 2 + len(one)]


@pytest.mark.parametrize("value", [0, -1, 1, 63, 64, -64, -65, 8191, 2**31 - 1, -(2**31), 2**62, -(2**63)])
def test_varint_round_trip(value):
    data = varint(value)
    assert read_varint(b"x" + data, 1, 10) == (value, 1 + len(data))
    assert len(data) == max(1, -(-((value << 1) ^ (value >> 63)).bit_length() // 7))


def test_varint_that_does_not_end_is_refused():
    with pytest.raises(ValueError, match="longer than 5 bytes"):
        read_varint(b"\xff" * 20, 0)


def test_record_cut_or_mutated_anywhere_never_does_more_than_fail():
    section = b"".join(encode_record(n, n, b"key", b"value", [("h", b"x")]) for n in range(3))
    whole = list(decode_records(section, 3, 0, 0))
    assert len(whole) == 3
    for at in range(len(section)):
        with pytest.raises(ValueError, match=r"."):
            list(decode_records(section[:at], 3, 0, 0))
        for mutation in (0x80, 0x01, 0xFF):
            data = section[:at] + bytes([section[at] ^ mutation]) + section[at + 1 :]
            try:
                assert len(list(decode_records(data, 3, 0, 0))) == 3
            except ValueError:
                continue


def test_count_that_disagrees_with_the_records_is_refused():
    batch = bytearray(build_batch([(b"a", b"1")] * 3, timestamp_ms=1))
    for count in (2, 4):
        batch[57:61] = count.to_bytes(4, "big")
        with pytest.raises(KafkaError) as raised:
            list(iter_records(bytes(batch)))
        assert raised.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", range(1, 5), ids=compression.CODEC_NAMES[1:])
def test_data_that_inflates_beyond_the_limit_is_refused(codec):
    bomb = compression.compress(codec, bytes(3_000_000))
    assert len(bytes(compression.decompress(codec, bomb, 3_000_000))) == 3_000_000
    with pytest.raises(KafkaError) as raised:
        compression.decompress(codec, bomb, 2_999_999)
    assert raised.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", range(1, 5), ids=compression.CODEC_NAMES[1:])
def test_damaged_data_is_corrupt(codec):
    data = bytearray(compression.compress(codec, bytes(range(256)) * 50))
    for damaged in (bytes(data[: len(data) // 2]), b"\xff\xff\xff\xff" + bytes(data[4:]), b"\x07"):
        with pytest.raises(KafkaError) as raised:
            compression.decompress(codec, damaged, 1 << 20)
        assert raised.value.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


def test_raw_snappy_and_joined_gzip_members_are_read():
    import cramjam

    raw = bytes(cramjam.snappy.compress_raw(b"abc" * 1000))
    assert compression.decompress(compression.SNAPPY, raw, 5000) == b"abc" * 1000
    two = gzip.compress(b"one ") + gzip.compress(b"two")
    assert compression.decompress(compression.GZIP, two, 100) == b"one two"
    with pytest.raises(KafkaError):
        compression.decompress(compression.GZIP, zlib.compress(b"not gzip"), 100)


def test_unknown_codec_is_unsupported():
    for use in (lambda: compression.compress(6, b""), lambda: compression.decompress(6, b"", 10)):
        with pytest.raises(KafkaError) as raised:
            use()
        assert raised.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
