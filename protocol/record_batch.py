"""RecordBatch v2: the one format of records, on the wire and on disk.

Layout of the 61-byte header (offset | size | meaning):
0 8 base offset | 8 4 length of what follows | 12 4 partition leader epoch | 16 1 magic 2 | 17 4 CRC-32C of
all from 21 on | 21 2 attributes | 23 4 last offset delta | 27 8 base timestamp | 35 8 max timestamp |
43 8 producer id | 51 2 producer epoch | 53 4 base sequence | 57 4 record count | 61 records.
The base offset and the leader epoch come before the CRC: a leader stamps both without touching it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from protocol.compression import compress, decompress
from protocol.errors import ErrorCode, KafkaError
from protocol.record import Buffer, Record, RecordTuple, check_record_sizes, decode_records, encode_records

HEADER_BYTES: Final = 61
LOG_OVERHEAD_BYTES: Final = 12  # base offset and length: what the length field does not count
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
MAGIC: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

ABORT: Final = 0
COMMIT: Final = 1

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
MAX_INFLATED_BYTES: Final = 100 * 1024 * 1024
MAX_RECORD_BYTES: Final = (1 << 31) - 9  # the highest limit of max.decompressed.message.bytes, and its default

HEADER: Final = Struct(">qiibIhiqqqhii")
_PREFIX: Final = Struct(">qiibI")  # up to and with the CRC
_BODY: Final = Struct(">hiqqqhii")  # what the CRC covers, before the records
_CONTROL_KEY: Final = Struct(">hh")
# all that the CRC covers of a control batch: the header's end; its record's length, attributes, time, offset and length
# of the key; the key; the length of the value; the value; no headers
_CONTROL: Final = Struct(">hiqqqh13shhBhiB")
# no sequence, one record; its size, attributes, time, offset, and the length of its key
_CONTROL_RECORD: Final = b"\xff\xff\xff\xff\0\0\0\1\x20\0\0\0\x08"
_CONTROL_VALUE_LENGTH: Final = 12
_OF_CONTROL: Final = TRANSACTIONAL | CONTROL
CONTROL_BATCH_BYTES: Final = _PREFIX.size + _CONTROL.size


class BatchHeader(NamedTuple):
    """One batch's header, field by field in wire order."""

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @staticmethod
    def from_buffer(buffer: Buffer, pos: int = 0) -> BatchHeader:
        """Unpack the header at a byte position; does not check it. Errors: struct.error: the buffer is too short."""
        return _new(BatchHeader, HEADER.unpack_from(buffer, pos))

    @property
    def size(self) -> int:
        """Bytes of the whole batch, with base offset and length."""
        return self.length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        """The offset of the last record that the batch had before any cleaning."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        """The number of the compression codec; 0: none."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker's time at the append is every record's timestamp."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a control batch, such as a transaction's marker."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """Unix milliseconds after which cleaning may drop tombstones (KIP-534); None: not set yet."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


_new: Final = tuple.__new__


# ---------------------------------------------------------------- writing


def build_batch(
    records: Sequence[RecordTuple],
    *,
    base_offset: int = 0,
    leader_epoch: int = 0,
    timestamp_ms: int,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    attributes: int = 0,
) -> bytes:
    """A whole batch of records that are all new; a record without a time takes timestamp_ms."""
    base_timestamp = timestamp_ms
    if records and len(records[0]) > 3 and records[0][3] is not None:
        base_timestamp = records[0][3]
    section, max_timestamp = encode_records(records, base_timestamp, timestamp_ms)
    count = len(records)
    return assemble_batch(
        section,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=count,
    )


def assemble_batch(
    records: bytes,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
    level: int | None = None,
) -> bytes:
    """Header, CRC and already encoded records, compressed as the attributes and the level say."""
    if attributes & CODEC_MASK and record_count:
        records = compress(attributes & CODEC_MASK, records, level)
    body = (
        _BODY.pack(
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        )
        + records
    )
    return _PREFIX.pack(base_offset, len(body) + CRC_POSITION + 4 - 12, leader_epoch, MAGIC, crc32c(body)) + body


def control_batch(
    kind: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = 0,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int = 0,
) -> bytes:
    """A transaction marker: one record, ABORT or COMMIT, of the producer it ends a transaction of."""
    body = _CONTROL.pack(
        _OF_CONTROL,
        0,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        _CONTROL_RECORD,
        0,
        kind,
        _CONTROL_VALUE_LENGTH,
        0,
        coordinator_epoch,
        0,
    )
    return _PREFIX.pack(base_offset, CONTROL_BATCH_BYTES - LOG_OVERHEAD_BYTES, leader_epoch, MAGIC, crc32c(body)) + body


def control_type(key: bytes | memoryview) -> int:
    """ABORT or COMMIT (or a later kind) of a control record's key."""
    return int(_CONTROL_KEY.unpack_from(key)[1])


# ---------------------------------------------------------------- reading


def iter_batches(buffer: Buffer, pos: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch from pos on; stops silently at a partial one at the end."""
    end = len(buffer)
    unpack = HEADER.unpack_from
    while pos + HEADER_BYTES <= end:
        header = _new(BatchHeader, unpack(buffer, pos))
        after = pos + header[1] + LOG_OVERHEAD_BYTES
        if after > end or header[1] < HEADER_BYTES - LOG_OVERHEAD_BYTES:
            return
        yield pos, header
        pos = after


def records_of(
    batch: Buffer,
    header: BatchHeader,
    max_inflated_bytes: int = MAX_INFLATED_BYTES,
    most_bytes: int = MAX_RECORD_BYTES,
) -> bytes | memoryview:
    """The uncompressed record section of one batch.

    Errors:  those of decompress; KafkaError(INVALID_RECORD): it is compressed, a record is larger than `most_bytes`.
    """
    view = memoryview(batch)[HEADER_BYTES : header.size]
    codec = header.attributes & CODEC_MASK
    if not codec or not header.record_count:
        return view
    section = decompress(codec, view, max_inflated_bytes)
    check_record_sizes(section, header.record_count, most_bytes)
    return section


def iter_records(
    batch: Buffer, max_inflated_bytes: int = MAX_INFLATED_BYTES, most_bytes: int = MAX_RECORD_BYTES
) -> Iterator[Record]:
    """Every record of one batch, decompressed. Errors: as records_of; KafkaError(INVALID_RECORD): it is not whole."""
    header = BatchHeader.from_buffer(batch)
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    data = bytes(records_of(batch, header, max_inflated_bytes, most_bytes))
    try:
        yield from decode_records(data, header.record_count, header.base_offset, header.base_timestamp, append_time)
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"Record batch cannot be read: {error}") from None
