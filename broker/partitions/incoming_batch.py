"""Validates a client's batch and makes the bytes that are stored."""

from __future__ import annotations

from struct import Struct
from typing import Final

from fastcrc.crc32 import iscsi as crc32c

from broker.partitions.record_rules import (
    TopicRules,
    check_records,
    inflated,
    invalid_record,
    one_batch,
    refuse_records,
)
from broker.partitions.record_scan import Scan, scan_records
from protocol.errors import ErrorCode, KafkaError
from protocol.record_batch import (
    CODEC_MASK,
    CONTROL,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    assemble_batch,
)

Buffer = bytes | bytearray | memoryview
# (buffers, size, attributes, last offset delta, largest timestamp, log append time, producer id, epoch, base sequence)
Stamped = tuple[tuple[Buffer, ...], int, int, int, int, int, int, int, int]

ZSTD: Final = 4
_NOT_PRODUCERS_TIME: Final = "Producers may not set LogAppendTime"
_MAX_INT64: Final = 2**63 - 1
_PLACE: Final = Struct(">qii")  # base offset, length, leader epoch: the leader sets them, the CRC does not cover them
_PREFIX: Final = Struct(">qiibI")  # the same with magic and CRC
_HEADER_TAIL: Final = Struct(">hiqqqhii")  # the part of the header that the CRC covers


def stamp(
    batch: Buffer, rules: TopicRules, offset: int, leader_epoch: int, now_ms: int, zstd_allowed: bool, place: object
) -> Stamped:
    """Validate a client's batch and make the bytes to append at `offset`. `place`: the log's name in messages.

    Errors:  in Kafka's order: those of record_rules.one_batch, UNSUPPORTED_COMPRESSION_TYPE, INVALID_RECORD (base
             offset), MESSAGE_TOO_LARGE, CORRUPT_MESSAGE (CRC), INVALID_RECORD (counts, control),
             INVALID_TIMESTAMP, INVALID_RECORD (keys), RECORD_LIST_TOO_LARGE.
    Source:  Kafka's ProduceRequest.validateRecords, UnifiedLog.append, LogValidator.
    """
    size = len(batch)
    if size < HEADER_BYTES:
        raise _too_small(one_batch(batch, zstd_allowed))
    header = HEADER.unpack_from(batch)
    base_offset, length, _, magic, crc, attributes, last_delta, base_timestamp, max_timestamp = header[:9]
    producer_id, producer_epoch, base_sequence, count = header[9:]
    if magic != MAGIC or length + LOG_OVERHEAD_BYTES != size:
        return stamp(one_batch(batch, zstd_allowed), rules, offset, leader_epoch, now_ms, zstd_allowed, place)
    codec = attributes & CODEC_MASK
    if codec >= ZSTD and (codec > ZSTD or not zstd_allowed):
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Compression type {codec} is not supported")
    if base_offset:
        raise invalid_record(f"The base offset of a produced batch must be 0, not {base_offset}")
    if size > rules.max_message_bytes:
        raise _too_large(size, rules, place)
    view = memoryview(batch)
    if crc32c(view[21:]) != crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The batch's CRC is not the stored {crc:#010x}")
    if count != last_delta + 1 or count <= 0 or attributes & CONTROL or (producer_id >= 0 and base_sequence < 0):
        raise _wrong_header(header)

    records = view[HEADER_BYTES:]
    if codec:
        records = inflated(codec, records, rules.max_inflated_bytes)
    scan = scan_records(records, count, keys_wanted=rules.keys_required)
    stored, append_time = attributes, NO_TIMESTAMP
    if rules.log_append_time or attributes & LOG_APPEND_TIME:
        stored, largest, append_time = _stamped_time(rules, records, header, scan, now_ms)
    else:
        check_records(rules, records, count, base_timestamp, scan, now_ms)
        largest = min(max(base_timestamp + scan.max_timestamp_delta, NO_TIMESTAMP), _MAX_INT64)
    if rules.codec is not None and rules.codec != codec:
        stored = stored & ~CODEC_MASK | rules.codec
        whole = _recompressed(records, header, scan, offset, leader_epoch, stored, largest, rules.level)
        buffers: tuple[Buffer, ...] = (whole,)
        size = len(whole)
        if size > rules.max_message_bytes:
            raise _too_large(size, rules, place)
    elif stored != attributes or largest != max_timestamp:
        tail = _HEADER_TAIL.pack(stored, last_delta, base_timestamp, largest, *header[9:])
        payload = view[HEADER_BYTES:]
        crc = crc32c(payload, crc32c(tail))
        buffers = (_PREFIX.pack(offset, length, leader_epoch, MAGIC, crc) + tail, payload)
    else:
        buffers = (_PLACE.pack(offset, length, leader_epoch), view[16:])
    if size > rules.segment_bytes:
        raise _larger_than_a_segment(size, rules, place)
    return buffers, size, stored, last_delta, largest, append_time, producer_id, producer_epoch, base_sequence


def _too_small(batch: Buffer) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A batch of {len(batch)} bytes is smaller than its header")


def _wrong_header(header: tuple[int, ...]) -> KafkaError:
    """What is wrong with the counts, attributes or sequence of a header."""
    attributes, last_delta, producer_id, base_sequence, count = header[5], header[6], header[9], header[11], header[12]
    if count != last_delta + 1 or count <= 0:
        return invalid_record(f"The batch spans {last_delta + 1} offsets and declares {count} records")
    if attributes & CONTROL:
        return invalid_record("Clients are not allowed to write control records")
    return invalid_record(f"Sequence {base_sequence} is invalid with producer id {producer_id}")


def _stamped_time(
    rules: TopicRules, records: bytes | memoryview, header: tuple[int, ...], scan: Scan, now_ms: int
) -> tuple[int, int, int]:
    """Attributes to store, largest timestamp, log append time, if the topic or the batch has LogAppendTime."""
    attributes, max_timestamp, count = header[5], header[8], header[12]
    if rules.log_append_time:
        flagged = range(count if attributes & LOG_APPEND_TIME else 0)
        refuse_records(scan.without_key, [(index, _NOT_PRODUCERS_TIME) for index in flagged])
        return attributes | LOG_APPEND_TIME, now_ms, now_ms
    if max_timestamp == NO_TIMESTAMP:
        refuse_records(scan.without_key, [(index, _NOT_PRODUCERS_TIME) for index in range(count)])
    # the batch's time is that of every record; stored as CreateTime
    check_records(rules, records, count, max_timestamp, Scan(0, 0, scan.without_key), now_ms)
    return attributes & ~LOG_APPEND_TIME, max(max_timestamp, NO_TIMESTAMP), NO_TIMESTAMP


def _check_rewritable(header: tuple[int, ...], scan: Scan) -> None:
    """Refuse what Kafka's builder of batches cannot write again. Kafka answers UNKNOWN_SERVER_ERROR.

    Errors:  INVALID_RECORD: an epoch without a producer, or the reverse. INVALID_TIMESTAMP: below -1.
    """
    attributes, base_timestamp, producer_id, producer_epoch = header[5], header[7], header[9], header[10]
    if (producer_id >= 0 and producer_epoch < 0) or (attributes & TRANSACTIONAL and producer_id < 0):
        raise invalid_record(f"Producer id {producer_id} does not fit producer epoch {producer_epoch}")
    if base_timestamp + scan.min_timestamp_delta < NO_TIMESTAMP:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "A timestamp is negative")


def _recompressed(
    records: Buffer,
    header: tuple[int, ...],
    scan: Scan,
    offset: int,
    leader_epoch: int,
    attributes: int,
    largest: int,
    level: int | None,
) -> bytes:
    """The batch, compressed with the topic's codec and level."""
    _check_rewritable(header, scan)
    return assemble_batch(
        bytes(records),
        base_offset=offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=header[6],
        base_timestamp=header[7],
        max_timestamp=largest,
        producer_id=header[9],
        producer_epoch=header[10],
        base_sequence=header[11],
        record_count=header[12],
        level=level,
    )


def _larger_than_a_segment(size: int, rules: TopicRules, place: object) -> KafkaError:
    return KafkaError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"The batch has {size} bytes, a segment of {place} holds {rules.segment_bytes}",
    )


def _too_large(size: int, rules: TopicRules, place: object) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE, f"The batch has {size} bytes, {place} takes up to {rules.max_message_bytes}"
    )
