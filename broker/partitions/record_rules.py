"""The rules for the records of a client's batch, by the topic's configs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from broker.partitions.record_scan import Scan, scan_records
from protocol.compression import LZ4, ZSTD, decompress
from protocol.errors import ErrorCode, KafkaError
from protocol.record import Buffer, check_record_sizes
from protocol.record_batch import CODEC_MASK, LOG_OVERHEAD_BYTES, MAGIC, NO_TIMESTAMP, TRANSACTIONAL

RECORD_ERRORS_SHOWN: Final = 3  # in the message of the whole batch; the list of record errors is complete
ZSTD_SINCE: Final = 7  # the version of Produce that allows it
_MAGIC_AT: Final = 16
_ATTRIBUTES_AT: Final = 22  # low byte of a batch's attributes
_MIN_LEGACY_BYTES: Final = 14  # the smallest record any magic has: below it the length itself is corrupt


_LZ4_FLAGS_AT: Final = 4  # in a frame
_LZ4_INDEPENDENT: Final = 0x20  # each block can be read alone
_LZ4_FLAGS: Final = _LZ4_INDEPENDENT | 0x01  # a dictionary is needed

CODECS: Final[Mapping[str, int | None]] = {
    "producer": None,  # as the client chose
    "uncompressed": 0,
    "none": 0,
    "gzip": 1,
    "snappy": 2,
    "lz4": 3,
    "zstd": 4,
}


LEVELS: Final = ("gzip", "lz4", "zstd")  # codecs with a level


class RecordsRefusedError(KafkaError):
    """Some records of a batch are refused, and with them the batch; errors: (index in the batch, message)."""

    def __init__(self, code: ErrorCode, message: str, errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.errors = errors


class TopicRules:
    """The topic configs that an append needs, parsed once per change."""

    __slots__ = (
        "codec",
        "deletable",
        "keeps_batches",
        "keys_required",
        "level",
        "log_append_time",
        "looks_up",
        "max_inflated_bytes",
        "max_message_bytes",
        "max_record_bytes",
        "producer_id_expiration_ms",
        "segment_bytes",
        "timestamp_after_max_ms",
        "timestamp_before_max_ms",
    )

    def __init__(
        self,
        value: Callable[[str], Any],
        *,
        producer_id_expiration_ms: int,
        max_inflated_bytes: int,
        producer_state: str,
    ) -> None:
        policies = value("cleanup.policy")
        self.max_message_bytes: int = value("max.message.bytes")
        self.max_record_bytes: int = value("max.decompressed.message.bytes")
        self.segment_bytes: int = value("segment.bytes")
        self.keys_required = "compact" in policies
        self.deletable = "delete" in policies or not self.keys_required
        compression = value("compression.type")
        self.codec = CODECS[compression]  # None: as it came
        self.level: int | None = value(f"compression.{compression}.level") if compression in LEVELS else None
        self.log_append_time: bool = value("message.timestamp.type") == "LogAppendTime"
        self.timestamp_before_max_ms: int = value("message.timestamp.before.max.ms")
        self.timestamp_after_max_ms: int = value("message.timestamp.after.max.ms")
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.keeps_batches = producer_state == "batches"  # the last five of each producer, else the latest one
        self.looks_up = producer_state == "lookup"  # an older batch that comes again, in the log
        self.max_inflated_bytes = max_inflated_bytes  # above it MESSAGE_TOO_LARGE, and clients split their batch

    def check_deletion(self, partition: str, offset: int, high_watermark: int) -> None:
        """Errors: POLICY_VIOLATION, OFFSET_OUT_OF_RANGE: records of a partition cannot be deleted below an offset."""
        if not self.deletable:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"Records of {partition} cannot be deleted: its cleanup.policy is compact"
            )
        if not 0 <= offset <= high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"Offset {offset} is not within 0..{high_watermark} of {partition}"
            )


def next_batch(records: Buffer, at: int = 0) -> int:
    """The size of the whole batch that begins at `at`; 0: there is none, or not all of it.

    Errors:  CORRUPT_MESSAGE: the length or the magic is impossible.
    Source:  Kafka's ByteBufferLogInputStream.
    """
    left = len(records) - at
    if left < LOG_OVERHEAD_BYTES:
        return 0
    length = int.from_bytes(records[at + 8 : at + 12], "big", signed=True)
    if length < _MIN_LEGACY_BYTES:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A batch of {length} bytes is less than a header")
    if left <= _MAGIC_AT:
        return 0
    if records[at + _MAGIC_AT] > MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic {records[at + _MAGIC_AT]}")
    return length + LOG_OVERHEAD_BYTES if left >= length + LOG_OVERHEAD_BYTES else 0


def is_transactional(batch: Buffer) -> bool:
    """Whether records begin with a batch of magic 2 that has the transactional flag. The batch may be malformed."""
    return len(batch) > _ATTRIBUTES_AT and batch[_MAGIC_AT] == MAGIC and bool(batch[_ATTRIBUTES_AT] & TRANSACTIONAL)


def one_batch(records: Buffer, zstd_allowed: bool) -> Buffer:
    """The one batch of magic 2 that these records are. Like Kafka, it drops a partial batch at the end.

    What is wrong inside the batch is found by incoming_batch.stamp.
    Errors:  INVALID_RECORD: no whole batch, another magic, more than one batch. CORRUPT_MESSAGE: see next_batch.
             UNSUPPORTED_COMPRESSION_TYPE: zstd in a version of Produce that does not know it.
    Source:  Kafka's ProduceRequest.validateRecords.
    """
    size = next_batch(records)
    if not size:
        raise invalid_record("There is no whole record batch")
    if records[_MAGIC_AT] != MAGIC:
        raise invalid_record(f"Only magic 2 is accepted, not {records[_MAGIC_AT]}")
    if not zstd_allowed and size > _ATTRIBUTES_AT and records[_ATTRIBUTES_AT] & CODEC_MASK == ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce v7")
    if next_batch(records, size):
        raise invalid_record("Produce requests must have exactly one record batch per partition")
    return memoryview(records)[:size]


def inflated(codec: int, records: Buffer, count: int, rules: TopicRules) -> memoryview:
    """The record section of a compressed batch of `count` records.

    Errors:  MESSAGE_TOO_LARGE: it is above the limit, and the client may split its batch.
             INVALID_RECORD: a record is above max.decompressed.message.bytes, or the section cannot be inflated, here
             or by Java clients, which know no linked blocks and no dictionaries of lz4. The CRC was right, so a retry
             would not help.
    """
    if codec == LZ4 and len(records) > _LZ4_FLAGS_AT and records[_LZ4_FLAGS_AT] & _LZ4_FLAGS != _LZ4_INDEPENDENT:
        raise invalid_record("The lz4 frame has linked blocks or a dictionary, which Java clients cannot read")
    try:
        section = memoryview(decompress(codec, records, rules.max_inflated_bytes))
    except KafkaError as error:
        if error.code == ErrorCode.CORRUPT_MESSAGE:
            raise invalid_record(error.message or "The records of the batch cannot be inflated") from None
        raise
    check_record_sizes(section, count, rules.max_record_bytes)
    return section


def check_records(
    rules: TopicRules, data: bytes | memoryview, count: int, base_timestamp: int, scan: Scan, now_ms: int
) -> None:
    """Check that timestamps are within the topic's bounds around the broker's clock, and that no key is missing.

    A timestamp of -1 (none) is accepted. Errors: those of refuse_records.
    """
    earliest = now_ms - rules.timestamp_before_max_ms
    latest = now_ms + rules.timestamp_after_max_ms
    low, high = scan.min_timestamp_delta, scan.max_timestamp_delta
    if base_timestamp + high <= latest and base_timestamp + low >= earliest:
        if scan.without_key:
            refuse_records(scan.without_key, [])
        return
    deltas = [low] * count
    if low != high:
        deltas.clear()
        scan_records(data, count, each_timestamp=deltas)
    refuse_records(
        scan.without_key,
        [
            (index, f"Timestamp {base_timestamp + delta} is out of range. It should be within [{earliest}, {latest}]")
            for index, delta in enumerate(deltas)
            if not earliest <= base_timestamp + delta <= latest and base_timestamp + delta != NO_TIMESTAMP
        ],
    )


def refuse_records(without_key: list[int], wrong_times: list[tuple[int, str]]) -> None:
    """Refuse a batch that has records without the key they need, or with a timestamp they may not have.

    Errors:  INVALID_TIMESTAMP: a record that is not without its key has a wrong time. INVALID_RECORD: keys are missing.
             Both name all such records, a record without a key as that, as in Kafka's LogValidator.
    """
    missing = dict.fromkeys(without_key, "Compacted topic cannot accept message without key")
    errors = sorted({**dict(wrong_times), **missing}.items())
    if len(errors) > len(missing):
        why = "One or more records have been rejected due to invalid timestamp"
        raise RecordsRefusedError(ErrorCode.INVALID_TIMESTAMP, why, errors)
    if missing:
        shown = "; ".join(f"{index}: {message}" for index, message in errors[:RECORD_ERRORS_SHOWN])
        why = f"{len(errors)} records have been rejected, the first of them: {shown}"
        raise RecordsRefusedError(ErrorCode.INVALID_RECORD, why, errors)


def invalid_record(why: str) -> KafkaError:
    """INVALID_RECORD, and why in one sentence."""
    return KafkaError(ErrorCode.INVALID_RECORD, why)


class WrittenBeforeError(KafkaError):
    """A batch is known to be written, below an offset: DUPLICATE_SEQUENCE_NUMBER, unless it is looked up."""

    def __init__(self, message: str, end_offset: int) -> None:
        super().__init__(ErrorCode.DUPLICATE_SEQUENCE_NUMBER, message)
        self.end_offset = end_offset


def fenced(producer_id: int, producer_epoch: int, known_epoch: int) -> KafkaError:
    """INVALID_PRODUCER_EPOCH: a later epoch of the producer has written here."""
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Producer {producer_id} has epoch {producer_epoch}, the last one seen is {known_epoch}",
    )


def out_of_order(producer_id: int, base_sequence: int, last: int) -> KafkaError:
    """OUT_OF_ORDER_SEQUENCE_NUMBER: the batch does not follow the last one."""
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"Producer {producer_id} sent sequence {base_sequence} after {last}"
    )
