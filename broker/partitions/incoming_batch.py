"""What is written to a partition (turn/write.py): a client's batch, which is validated here, and markers."""

from __future__ import annotations

from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from fastcrc.crc32 import iscsi as crc32c

from broker.base.marker import EndMarker
from broker.partitions.record_rules import (
    TopicRules,
    check_records,
    inflated,
    invalid_record,
    one_batch,
    refuse_records,
)
from broker.partitions.record_scan import Scan, scan_records
from broker.turn.write import Batch, Write
from protocol.errors import ErrorCode, KafkaError
from protocol.record_batch import (
    CODEC_MASK,
    CONTROL,
    CONTROL_BATCH_BYTES,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    assemble_batch,
)
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.partitions.producers import Producers
    from storage.log.log import Log

Buffer = bytes | bytearray | memoryview

ZSTD: Final = 4
_NOT_PRODUCERS_TIME: Final = "Producers may not set LogAppendTime"
_MAX_INT64: Final = 2**63 - 1
_PLACE: Final = Struct(">qii")  # base offset, length, leader epoch: the leader sets them, the CRC does not cover them
_SENT_AGAIN: Final = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER})  # though it is not retriable
_AFTER_PLACE: Final = _PLACE.size
_MAGIC_AND_CRC: Final = Struct(">bI")
_HEADER_TAIL: Final = Struct(">hiqqqhii")  # the part of the header that the CRC covers


class ClientBatch(Write):
    """One batch of records as a client has sent it. Timestamps are Unix milliseconds.

    records .. begins_at_zero   what is asked. begins_at_zero: a producer that is not known begins with sequence 0.
    stored .. transactional     what Partition.decide has found: the batch after its place in the log, and so on.
                                producers: those of the partition, if the batch has one that the log tells of.
    base_offset, append_ms      what is answered: of the first one, if the batch is a repetition. append_ms: -1 on
                                topics with CreateTime.
    error                       why it is not in the log.
    """

    __slots__ = (
        "append_ms",
        "base_offset",
        "base_sequence",
        "begins_at_zero",
        "error",
        "largest_ms",
        "last_delta",
        "last_sequence",
        "producer_epoch",
        "producer_id",
        "producers",
        "records",
        "size",
        "stored",
        "transactional",
        "zstd_allowed",
    )

    def __init__(self, records: Buffer, *, zstd_allowed: bool = True, begins_at_zero: bool = False) -> None:
        self.records = records
        self.zstd_allowed = zstd_allowed
        self.begins_at_zero = begins_at_zero
        self.stored: tuple[Buffer, ...] = ()
        self.size = self.last_delta = 0
        self.largest_ms = self.producer_id = self.producer_epoch = self.base_sequence = self.last_sequence = -1
        self.producers: Producers | None = None
        self.transactional = False
        self.base_offset = self.append_ms = -1
        self.error: KafkaError | StorageError | None = None

    def build(self, log: Log, base_offset: int, _now_ms: int) -> Batch:
        """The batch in its place."""
        place = _PLACE.pack(base_offset, self.size - LOG_OVERHEAD_BYTES, log.epochs.latest)
        return (place, *self.stored), base_offset + self.last_delta, self.largest_ms, self.size

    def replay(self, partition: Any, base_offset: int, _now_ms: int) -> None:
        """Its producer has written these sequences."""
        self.base_offset = base_offset
        partition.appended_bytes += self.size
        if self.producers is not None:
            self.producers.replay(
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                self.last_sequence,
                base_offset,
                base_offset + self.last_delta,
                self.largest_ms,
                transactional=self.transactional,
            )

    def not_appended(self, log: Log) -> None:
        """It is a repetition, or its producer may not append it: see LogWriter.not_appended."""
        log.not_appended(log.end_offset + self.last_delta, self.largest_ms, self.size)

    def refused(self, partition: Any, error: KafkaError | StorageError) -> None:
        """If it may come again, later batches of its producer must not be appended before it.

        In a transaction every refused batch holds back the later ones, as in Kafka.
        """
        self.error = error
        if len(self.records) < HEADER_BYTES:
            return
        header = HEADER.unpack_from(self.records)
        attributes, (producer_id, producer_epoch, base_sequence) = header[5], header[9:12]
        if producer_id < 0 or base_sequence < 0:
            return
        again = isinstance(error, StorageError) or error.code.retriable or error.code in _SENT_AGAIN
        with suppress(KafkaError, OSError, StorageError):  # the log may be out of use
            if again or attributes & TRANSACTIONAL:
                partition.producers.refused(producer_id, producer_epoch, base_sequence)
            else:
                partition.producers.given_up(producer_id, producer_epoch, base_sequence)

    def let_go(self) -> None:
        """Keep none of its bytes: it will be used for another batch."""
        self.records, self.stored, self.producers = b"", (), None


class Marker(EndMarker):
    """The marker that ends a producer's transaction on a partition. Without one, it is written too."""

    __slots__ = ()

    def replay(self, partition: Any, base_offset: int, now_ms: int) -> None:
        """See turn/write.py."""
        partition.appended_bytes += CONTROL_BATCH_BYTES
        partition.producers.replay_marker(
            self.producer_id, self.producer_epoch, self.coordinator_epoch, now_ms, base_offset, commit=self.commit
        )


def stamp(batch: ClientBatch, rules: TopicRules, now_ms: int, place: object) -> None:
    """Validate a client's batch and make the bytes to append. `place`: the log's name in messages.

    Errors:  in Kafka's order: those of record_rules.one_batch, UNSUPPORTED_COMPRESSION_TYPE, INVALID_RECORD (base
             offset), MESSAGE_TOO_LARGE, CORRUPT_MESSAGE (CRC), INVALID_RECORD (counts, control),
             INVALID_TIMESTAMP, INVALID_RECORD (keys), RECORD_LIST_TOO_LARGE.
    Source:  Kafka's ProduceRequest.validateRecords, UnifiedLog.append, LogValidator.
    """
    data, zstd_allowed = batch.records, batch.zstd_allowed
    size = len(data)
    if size < HEADER_BYTES:
        raise _too_small(one_batch(data, zstd_allowed))
    header = HEADER.unpack_from(data)
    base_offset, length, _, magic, crc, attributes, last_delta, base_timestamp, max_timestamp = header[:9]
    producer_id, producer_epoch, base_sequence, count = header[9:]
    if magic != MAGIC or length + LOG_OVERHEAD_BYTES != size:
        batch.records = one_batch(data, zstd_allowed)
        stamp(batch, rules, now_ms, place)
        return
    codec = attributes & CODEC_MASK
    if codec >= ZSTD and (codec > ZSTD or not zstd_allowed):
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Compression type {codec} is not supported")
    if base_offset:
        raise invalid_record(f"The base offset of a produced batch must be 0, not {base_offset}")
    if size > rules.max_message_bytes:
        raise _too_large(size, rules, place)
    view = memoryview(data)
    if crc32c(view[21:]) != crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The batch's CRC is not the stored {crc:#010x}")
    if count != last_delta + 1 or count <= 0 or attributes & CONTROL or (producer_id >= 0 and base_sequence < 0):
        raise _wrong_header(header)

    payload = records = view[HEADER_BYTES:]
    if codec:
        records = inflated(codec, records, count, rules)
    scan = scan_records(records, count, keys_wanted=rules.keys_required)
    stored, append_ms = attributes, NO_TIMESTAMP
    if rules.log_append_time or attributes & LOG_APPEND_TIME:
        stored, largest, append_ms = _stamped_time(rules, records, header, scan, now_ms)
    else:
        check_records(rules, records, count, base_timestamp, scan, now_ms)
        largest = min(max(base_timestamp + scan.max_timestamp_delta, NO_TIMESTAMP), _MAX_INT64)
    if rules.codec is not None and rules.codec != codec:
        stored = stored & ~CODEC_MASK | rules.codec
        whole = memoryview(_recompressed(records, header, scan, stored, largest, rules.level))
        batch.stored = (whole[_AFTER_PLACE:],)
        size = len(whole)
        if size > rules.max_message_bytes:
            raise _too_large(size, rules, place)
    elif stored != attributes or largest != max_timestamp:
        tail = _HEADER_TAIL.pack(stored, last_delta, base_timestamp, largest, *header[9:])
        crc = crc32c(payload, crc32c(tail))
        batch.stored = (_MAGIC_AND_CRC.pack(MAGIC, crc) + tail, payload)
    else:
        batch.stored = (view[_AFTER_PLACE:],)
    if size > rules.segment_bytes:
        raise _larger_than_a_segment(size, rules, place)
    batch.size, batch.last_delta, batch.largest_ms, batch.append_ms = size, last_delta, largest, append_ms
    batch.producer_id, batch.producer_epoch, batch.base_sequence = producer_id, producer_epoch, base_sequence
    batch.transactional = bool(attributes & TRANSACTIONAL)


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
    attributes: int,
    largest: int,
    level: int | None,
) -> bytes:
    """The batch, compressed with the topic's codec and level."""
    _check_rewritable(header, scan)
    return assemble_batch(
        bytes(records),
        base_offset=0,
        leader_epoch=0,
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
