"""The rules for the records of a client's batch, by the topic's configs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from broker.partitions.record_scan import Scan, scan_records
from protocol.compression import decompress
from protocol.errors import ErrorCode, KafkaError
from protocol.record import Buffer
from protocol.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, TRANSACTIONAL

RECORD_ERRORS_SHOWN: Final = 3  # in the message of the whole batch; the list of record errors is complete
ZSTD_SINCE: Final = 7  # the version of Produce that allows it
_ATTRIBUTES_AT: Final = 22  # low byte of a batch's attributes
_MIN_LEGACY_BYTES: Final = 14  # the smallest record any magic has: below it the length itself is corrupt


CODECS: Final[Mapping[str, int | None]] = {
    "producer": None,  # as the client chose
    "uncompressed": 0,
    "none": 0,
    "gzip": 1,
    "snappy": 2,
    "lz4": 3,
    "zstd": 4,
}


class RecordsRefusedError(KafkaError):
    """Some records of a batch are refused, and with them the batch; errors: (index in the batch, message)."""

    def __init__(self, code: ErrorCode, message: str, errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.errors = errors


class NotOneBatchError(KafkaError):
    """The records are not one whole batch of magic 2: refused before the partition is looked up, as in Kafka."""


class TopicRules:
    """The topic configs that an append needs, parsed once per change."""

    __slots__ = (
        "codec",
        "deletable",
        "keeps_batches",
        "keys_required",
        "log_append_time",
        "max_inflated_bytes",
        "max_message_bytes",
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
        keeps_batches: bool,
    ) -> None:
        policies = value("cleanup.policy")
        self.max_message_bytes: int = value("max.message.bytes")
        self.segment_bytes: int = value("segment.bytes")
        self.keys_required = "compact" in policies
        self.deletable = "delete" in policies or not self.keys_required
        self.codec = CODECS[value("compression.type")]  # None: as it came
        self.log_append_time: bool = value("message.timestamp.type") == "LogAppendTime"
        self.timestamp_before_max_ms: int = value("message.timestamp.before.max.ms")
        self.timestamp_after_max_ms: int = value("message.timestamp.after.max.ms")
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.keeps_batches = keeps_batches  # producer.state: the last five of each producer, or the latest one
        self.max_inflated_bytes = max_inflated_bytes  # above it MESSAGE_TOO_LARGE, and clients split their batch


def is_transactional(batch: Buffer) -> bool:
    """Whether a batch has the transactional flag. The batch may be malformed."""
    return len(batch) > _ATTRIBUTES_AT and bool(batch[_ATTRIBUTES_AT] & TRANSACTIONAL)


def inflated(codec: int, records: Buffer, max_inflated_bytes: int) -> memoryview:
    """The record section of a compressed batch.

    Errors:  MESSAGE_TOO_LARGE: it is above the limit, and the client may split its batch.
             INVALID_RECORD: it cannot be inflated. The CRC was right, so a retry would not help.
    """
    try:
        return memoryview(decompress(codec, records, max_inflated_bytes))
    except KafkaError as error:
        if error.code == ErrorCode.CORRUPT_MESSAGE:
            raise invalid_record(error.message or "The records of the batch cannot be inflated") from None
        raise


def check_timestamps(
    rules: TopicRules, data: bytes | memoryview, count: int, base_timestamp: int, scan: Scan, now_ms: int
) -> None:
    """Check that timestamps are within the topic's bounds around the broker's clock; -1 (none) is accepted.

    Errors:  INVALID_TIMESTAMP, naming each record that is out of range.
    """
    earliest = now_ms - rules.timestamp_before_max_ms
    latest = now_ms + rules.timestamp_after_max_ms
    if base_timestamp + scan.max_timestamp_delta <= latest and base_timestamp + scan.min_timestamp_delta >= earliest:
        return
    deltas: list[int] = []
    scan_records(data, count, each_timestamp=deltas)
    errors = [
        (
            index,
            f"Timestamp {base_timestamp + delta} is out of range. It should be within [{earliest}, {latest}]",
        )
        for index, delta in enumerate(deltas)
        if not earliest <= base_timestamp + delta <= latest and base_timestamp + delta != -1
    ]
    if errors:
        raise timestamps_refused(errors)


def timestamps_refused(errors: list[tuple[int, str]]) -> RecordsRefusedError:
    return RecordsRefusedError(
        ErrorCode.INVALID_TIMESTAMP,
        "One or more records have been rejected due to invalid timestamp",
        errors,
    )


def keys_refused(indices: list[int]) -> RecordsRefusedError:
    errors = [(index, "Compacted topic cannot accept message without key") for index in indices]
    shown = "; ".join(f"{index}: {message}" for index, message in errors[:RECORD_ERRORS_SHOWN])
    return RecordsRefusedError(
        ErrorCode.INVALID_RECORD,
        f"{len(errors)} records have been rejected, the first of them: {shown}",
        errors,
    )


def invalid_record(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, why)


def one_batch(batch: Buffer) -> Buffer:
    """The first batch of records that are not exactly one batch of magic 2, if Kafka accepts the rest.

    Like Kafka it drops a partial batch at the end and refuses a second whole one.
    """
    length = int.from_bytes(batch[8:12], "big", signed=True)
    size = length + LOG_OVERHEAD_BYTES
    if batch[16] != MAGIC or length < HEADER_BYTES - LOG_OVERHEAD_BYTES or size > len(batch):
        raise not_a_batch(batch)
    rest = memoryview(batch)[size:]
    if len(rest) >= LOG_OVERHEAD_BYTES:
        rest_length = int.from_bytes(rest[8:12], "big", signed=True)
        if rest_length < _MIN_LEGACY_BYTES:
            raise NotOneBatchError(ErrorCode.CORRUPT_MESSAGE, f"A batch of {rest_length} bytes follows the first one")
        if len(rest) >= rest_length + LOG_OVERHEAD_BYTES:
            raise NotOneBatchError(
                ErrorCode.INVALID_RECORD, "Produce requests must have exactly one record batch per partition"
            )
    return memoryview(batch)[:size]


def not_a_batch(batch: Buffer) -> NotOneBatchError:
    """The error for bytes that are not a whole batch of magic 2."""
    if len(batch) >= LOG_OVERHEAD_BYTES:
        length = int.from_bytes(batch[8:12], "big", signed=True)
        if length < _MIN_LEGACY_BYTES:
            return NotOneBatchError(ErrorCode.CORRUPT_MESSAGE, f"A batch of {length} bytes is less than a header")
        if len(batch) > 16 and len(batch) >= length + LOG_OVERHEAD_BYTES:
            magic = batch[16]
            if magic > MAGIC:
                return NotOneBatchError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic {magic}")
            if magic != MAGIC:
                return NotOneBatchError(ErrorCode.INVALID_RECORD, f"Only magic 2 is accepted, not {magic}")
            return NotOneBatchError(ErrorCode.CORRUPT_MESSAGE, f"A batch of {length} bytes is less than a header")
    return NotOneBatchError(ErrorCode.INVALID_RECORD, "There is no whole record batch")
