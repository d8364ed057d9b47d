"""What an append stamps, rewrites and leaves alone, and which records it names when it refuses them."""

from __future__ import annotations

from struct import pack

import cramjam
import pytest
from append_kit import edited, refusal, stored
from unit.partitions.data_path import NOW_MS, DataPath, append_batch, batch, payload, values_of

from broker.partitions.record_rules import RecordsRefusedError
from protocol.compression import compress
from protocol.errors import ErrorCode
from protocol.record_batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    assemble_batch,
    build_batch,
    iter_records,
)

HOUR_MS = 3_600_000


# ---------------------------------------------------------------- what lies in the log


def test_batch_passes_through_but_for_offset_and_leader_epoch(path: DataPath) -> None:
    topic = path.topic()
    path.move_leader(topic, 0, 0)
    stored(path, batch(b"first", b"second"))
    sent = batch((b"k", b"v", [("h", b"1"), ("n", None)]), (None, None), ts=NOW_MS - 5)
    header, whole = stored(path, sent)
    assert header.base_offset == 2
    assert header.partition_leader_epoch == 1
    assert whole[16:] == sent[16:]
    assert whole[8:12] == sent[8:12]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_compressed_batch_passes_through_untouched(path: DataPath, codec: int) -> None:
    path.topic()
    sent = batch(*[b"x" * 50] * 20, attributes=codec)
    header, whole = stored(path, sent)
    assert whole[16:] == sent[16:]
    assert header.codec == codec


def test_offsets_of_batches_follow_on_each_other(path: DataPath) -> None:
    path.topic()
    offsets = [path.produce(batch(*[b"v"] * n)).base_offset for n in (1, 3, 2)]
    assert offsets == [0, 1, 4]


def test_log_append_time_rewrites_time_attribute_and_crc(path: DataPath) -> None:
    path.topic(message_timestamp_type="LogAppendTime")
    path.advance(77)
    sent = batch(b"a", b"b", ts=5)
    header, whole = stored(path, sent)
    assert header.max_timestamp == NOW_MS + 77
    assert header.base_timestamp == 5
    assert header.is_log_append_time
    assert payload(whole) == payload(sent)
    assert [record.timestamp for record in iter_records(whole)] == [NOW_MS + 77] * 2


def test_log_append_time_is_answered(path: DataPath) -> None:
    path.topic(message_timestamp_type="LogAppendTime")
    assert path.produce(batch(b"a")).log_append_time_ms == NOW_MS
    path.topic("create-time")
    assert path.produce(batch(b"a"), "create-time").log_append_time_ms == -1


def test_batch_that_claims_log_append_time_is_stored_as_create_time(path: DataPath) -> None:
    path.topic()
    header, _ = stored(path, batch(b"a", attributes=LOG_APPEND_TIME))
    assert not header.is_log_append_time


def test_batch_that_claims_log_append_time_is_refused_where_the_broker_sets_it(path: DataPath) -> None:
    path.topic(message_timestamp_type="LogAppendTime")
    assert refusal(path, batch(b"a", attributes=LOG_APPEND_TIME)) == ErrorCode.INVALID_TIMESTAMP


def test_wrong_max_timestamp_of_a_client_is_put_right(path: DataPath) -> None:
    path.topic()
    sent = edited(batch((None, b"a", (), NOW_MS), (None, b"b", (), NOW_MS + 9)), 35, pack(">q", 3))
    header, _ = stored(path, sent)
    assert header.max_timestamp == NOW_MS + 9


@pytest.mark.parametrize(
    ("topic_codec", "sent_codec", "stored_codec"),
    [("gzip", 0, 1), ("snappy", 1, 2), ("lz4", 2, 3), ("zstd", 3, 4), ("uncompressed", 4, 0), ("gzip", 1, 1)],
)
def test_topic_codec_recompresses(path: DataPath, topic_codec: str, sent_codec: int, stored_codec: int) -> None:
    path.topic(compression_type=topic_codec)
    values = [b"x" * 40 + bytes([i]) for i in range(30)]
    header, whole = stored(path, batch(*values, pid=5, epoch=1, seq=0, attributes=sent_codec))
    assert header.codec == stored_codec
    assert values_of(whole) == values
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 0)
    assert (header.last_offset_delta, header.record_count) == (29, 30)


def test_recompressed_batch_counts_with_its_new_size(path: DataPath) -> None:
    path.topic(compression_type="uncompressed", max_message_bytes="2000")
    assert refusal(path, batch(b"x" * 5000, attributes=1)) == ErrorCode.MESSAGE_TOO_LARGE


def test_keyless_records_on_a_compacted_topic_are_named(path: DataPath) -> None:
    for policy in ("compact", "compact,delete"):
        topic = path.topic(policy.replace(",", "-"), cleanup_policy=policy)
        partition = path.partition(topic, 0)
        for codec in (0, 1):
            with pytest.raises(RecordsRefusedError) as refused:
                append_batch(
                    partition, batch((b"k", b"v"), (None, b"v"), (b"", b"v"), (None, b"v"), attributes=codec), NOW_MS
                )
            assert refused.value.code == ErrorCode.INVALID_RECORD
            assert [index for index, _ in refused.value.errors] == [1, 3]
        assert append_batch(partition, batch((b"k", b"v"), (b"", None)), NOW_MS) == (0, -1)


def test_timestamp_limits_name_the_records_outside(path: DataPath) -> None:
    topic = path.topic(message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="500")
    partition = path.partition(topic, 0)
    times = [NOW_MS, NOW_MS - 1000, NOW_MS - 1001, -1, NOW_MS + 500, NOW_MS + 501]
    for codec in (0, 3):
        with pytest.raises(RecordsRefusedError) as refused:
            append_batch(partition, batch(*[(None, b"v", (), ts) for ts in times], attributes=codec), NOW_MS)
        assert refused.value.code == ErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in refused.value.errors] == [2, 5]
    assert append_batch(partition, batch(*[(None, b"v", (), times[i]) for i in (0, 1, 3, 4)]), NOW_MS) == (0, -1)


def test_timestamps_more_than_an_hour_ahead_are_refused_by_default(path: DataPath) -> None:
    path.topic()
    assert path.produce(batch(b"v", ts=NOW_MS + HOUR_MS)).error_code == 0
    assert path.produce(batch(b"v", ts=NOW_MS + HOUR_MS + 1)).error_code == ErrorCode.INVALID_TIMESTAMP
    assert path.produce(batch(b"v", ts=0)).error_code == 0
    assert path.produce(batch(b"v", ts=-1)).error_code == 0
    assert path.produce(batch(b"v", ts=-5)).error_code == 0


def test_timestamp_beyond_64_bits_is_refused_or_kept_within(path: DataPath) -> None:
    topic = path.topic(message_timestamp_after_max_ms=str(2**63 - 1))
    section = build_batch([(None, b"a", (), NOW_MS)], timestamp_ms=NOW_MS)[HEADER_BYTES:]
    late = bytearray(section)
    assert late[2] == 0  # the timestamp delta
    late[2] = 100
    data = assemble_batch(
        bytes(late),
        base_offset=0,
        leader_epoch=-1,
        attributes=0,
        last_offset_delta=0,
        base_timestamp=2**63 - 2,
        max_timestamp=2**63 - 1,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=1,
    )
    header, _ = stored(path, data, topic.name)
    assert header.max_timestamp == 2**63 - 1


def with_codec(codec: int, compressed: bytes) -> bytes:
    """A batch of one record whose compressed part is given."""
    plain = batch(b"v" * 100)
    data = plain[:HEADER_BYTES] + compressed
    data = edited(data, 8, pack(">i", len(data) - 12), crc=False)
    return edited(data, 21, pack(">h", codec))


RECORDS = batch(b"v" * 100)[HEADER_BYTES:]


def test_lz4_that_java_cannot_read_is_refused(path: DataPath) -> None:
    """lz4 libraries link the blocks of a frame by default; Java's reader of Kafka's batches refuses those."""
    path.topic()
    linked = bytes(cramjam.lz4.compress(RECORDS))
    assert not linked[4] & 0x20
    assert refusal(path, with_codec(3, linked)) == ErrorCode.INVALID_RECORD
    assert path.produce(with_codec(3, compress(3, RECORDS))).error_code == ErrorCode.NONE


def test_snappy_without_frames_is_taken(path: DataPath) -> None:
    """librdkafka writes one raw block, and Java reads it."""
    path.topic()
    assert path.produce(with_codec(2, bytes(cramjam.snappy.compress_raw(RECORDS)))).error_code == ErrorCode.NONE
    assert refusal(path, with_codec(2, bytes(cramjam.snappy.compress(RECORDS)))) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"pid": 7, "epoch": -1, "seq": 0}, ErrorCode.INVALID_RECORD),
        ({"attributes": TRANSACTIONAL}, ErrorCode.INVALID_RECORD),
        ({"ts": -2}, ErrorCode.INVALID_TIMESTAMP),
    ],
)
def test_what_kafka_cannot_write_again_is_refused_where_it_would_have_to(
    path: DataPath, fields: dict[str, int], code: ErrorCode
) -> None:
    old = str(2**62)
    path.topic("plain", message_timestamp_before_max_ms=old)
    path.topic("rewritten", compression_type="lz4", message_timestamp_before_max_ms=old)
    data = batch(b"a", **fields)
    assert refusal(path, data, "rewritten") == code
    append_batch(path.partition(path.metadata.topics["plain"], 0), data, path.now_ms)


@pytest.mark.parametrize(
    ("records", "code", "named"),
    [
        ([(None, b"no key"), (b"k", b"late", (), NOW_MS - HOUR_MS), (b"k", b"v")], ErrorCode.INVALID_TIMESTAMP, [0, 1]),
        ([(None, b"both", (), NOW_MS - HOUR_MS), (b"k", b"v")], ErrorCode.INVALID_RECORD, [0]),
        ([(b"k", b"v"), (None, b"no key")], ErrorCode.INVALID_RECORD, [1]),
    ],
)
def test_wrong_timestamps_are_named_before_missing_keys(
    path: DataPath, records: list[tuple[object, ...]], code: ErrorCode, named: list[int]
) -> None:
    topic = path.topic(cleanup_policy="compact", message_timestamp_before_max_ms="1000")
    with pytest.raises(RecordsRefusedError) as refused:
        append_batch(path.partition(topic, 0), batch(*records), path.now_ms)
    assert refused.value.code == code
    assert [index for index, _ in refused.value.errors] == named


def test_wrong_time_of_a_batch_is_that_of_each_record(path: DataPath) -> None:
    topic = path.topic(message_timestamp_before_max_ms="1000")
    data = batch((None, b"a"), (None, b"b", (), NOW_MS - 5), ts=NOW_MS - HOUR_MS)
    late = edited(edited(data, 21, pack(">h", LOG_APPEND_TIME)), 35, pack(">q", NOW_MS - HOUR_MS))
    with pytest.raises(RecordsRefusedError) as refused:
        append_batch(path.partition(topic, 0), late, path.now_ms)
    assert [index for index, _ in refused.value.errors] == [0, 1]
