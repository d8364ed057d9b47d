"""What the records inside a client's batch must satisfy before the batch may enter a log.

Every record is looked at, as Kafka does: its fields fill its length, offset deltas count 0, 1, 2 …, their number is the
declared one. Most batches hold runs of records that differ only in timestamp delta, offset delta and content; such
a run is proven column by column (a strided slice is one C call), which costs a tenth of parsing it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.record import Buffer, read_varint
from protocol.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC

RECORD_ERRORS_SHOWN: Final = 3  # in the message of the whole batch; the list of record errors is complete
_MIN_LEGACY_BYTES: Final = 14  # the smallest record any magic has: below it the length itself is corrupt
_RUN_MIN: Final = 4  # a shorter run is parsed as fast as it is proven
_RUN_RETRY: Final = 16  # records to parse before another run is tried where one has just failed

_ONE_BYTE_DELTAS: Final = bytes(range(0, 128, 2))  # zigzag of 0..63
_BAND_ENDS: Final = (64, 8192)  # from these offset deltas on the varint is one byte longer

CODECS: Final[Mapping[str, int | None]] = {
    "producer": None,  # whatever the client chose
    "uncompressed": 0,
    "none": 0,
    "gzip": 1,
    "snappy": 2,
    "lz4": 3,
    "zstd": 4,
}


class RecordsRefusedError(KafkaError):
    """Some records of a batch are refused, and so the whole batch; errors holds (index in the batch, message)."""

    def __init__(self, code: ErrorCode, message: str, errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.errors = errors


class TopicRules:
    """The topic configs that decide over an append, parsed once per change."""

    __slots__ = (
        "codec",
        "deletable",
        "keys_required",
        "log_append_time",
        "max_inflated_bytes",
        "max_message_bytes",
        "producer_id_expiration_ms",
        "segment_bytes",
        "timestamp_after_max_ms",
        "timestamp_before_max_ms",
    )

    def __init__(self, value: Callable[[str], Any], *, producer_id_expiration_ms: int, max_inflated_bytes: int) -> None:
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
        self.max_inflated_bytes = max_inflated_bytes  # beyond it MESSAGE_TOO_LARGE, and clients split their batch


class Scan(NamedTuple):
    """What the records of a batch say of themselves. Deltas are against the batch's base timestamp, in ms."""

    min_timestamp_delta: int
    max_timestamp_delta: int
    without_key: list[int]  # indices, asked for by keys_wanted


def scan_records(
    data: bytes | memoryview, count: int, *, keys_wanted: bool = False, each_timestamp: list[int] | None = None
) -> Scan:
    """Prove an uncompressed record section whole; each_timestamp, if given, collects every timestamp delta.

    Errors:  INVALID_RECORD: a field reaches over its record, a delta is out of order, records are missing or left over.
    """
    try:
        return _scan(data, count, keys_wanted, each_timestamp)
    except IndexError:
        raise invalid_record("The records of the batch end too early") from None
    except ValueError as error:
        raise invalid_record(f"The records of the batch cannot be read: {error}") from None


def _scan(data: bytes | memoryview, count: int, keys_wanted: bool, each_timestamp: list[int] | None) -> Scan:
    end = len(data)
    if count > 1 and type(data) is not bytes:
        data = bytes(data)  # indexing bytes costs half of indexing a view
    without_key: list[int] = []
    low = high = 0
    pos = index = 0
    next_run = 0 if each_timestamp is None else count
    while index < count:
        start = pos
        size = data[pos]
        pos += 1
        if size < 0x80:
            size = (size >> 1) ^ -(size & 1)
        else:
            size, pos = read_varint(data, pos - 1)
        body = pos
        stop = pos + size
        if size < 6 or stop > end:
            raise ValueError(f"record {index} has {size} bytes where {end - pos} are left")
        delta = data[pos + 1]  # the attributes before it carry nothing
        pos += 2
        if delta < 0x80:
            delta = (delta >> 1) ^ -(delta & 1)
        else:
            delta, pos = read_varint(data, pos - 1, 10)
        after_timestamp = pos
        if index:
            if delta < low:
                low = delta
            elif delta > high:
                high = delta
        else:
            low = high = delta
        if each_timestamp is not None:
            each_timestamp.append(delta)
        offset_delta = data[pos]
        pos += 1
        if offset_delta < 0x80:
            offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
        else:
            offset_delta, pos = read_varint(data, pos - 1)
        if offset_delta != index:
            raise ValueError(f"record {index} has offset delta {offset_delta}")
        after_offset = pos
        key_size = data[pos]
        pos += 1
        if key_size < 0x80:
            key_size = (key_size >> 1) ^ -(key_size & 1)
        else:
            key_size, pos = read_varint(data, pos - 1)
        after_key_size = pos
        if key_size > 0:
            pos += key_size
        elif key_size < 0:
            if key_size != -1:
                raise ValueError(f"record {index} has a key of {key_size} bytes")
            if keys_wanted:
                without_key.append(index)
        value_at = pos
        value_size = data[pos]
        pos += 1
        if value_size < 0x80:
            value_size = (value_size >> 1) ^ -(value_size & 1)
        else:
            value_size, pos = read_varint(data, pos - 1)
        value_start = pos
        if value_size > 0:
            pos += value_size
        elif value_size < -1:
            raise ValueError(f"record {index} has a value of {value_size} bytes")
        if pos >= stop:
            raise ValueError(f"the fields of record {index} reach over its end")
        if data[pos]:
            pos = _skip_headers(data, pos, stop)
            plain = False
        else:
            pos += 1
            plain = True
        if pos != stop:
            raise ValueError(f"the fields of record {index} do not fill its {size} bytes")
        index += 1
        if plain and index >= next_run and count - index >= _RUN_MIN and type(data) is bytes:
            stride = stop - start
            fixed = (
                *range(body - start),
                *range(after_offset - start, after_key_size - start),
                *range(value_at - start, value_start - start),
                stride - 1,
            )
            times = range(body + 1 - start, after_timestamp - start)
            run = _run(data, start, index - 1, min(count - index, (end - stop) // stride), stride, fixed, times)
            if run is None:
                next_run = index + _RUN_RETRY
            else:
                rows, run_low, run_high = run
                low = min(low, run_low)
                high = max(high, run_high)
                if keys_wanted and key_size < 0:
                    without_key.extend(range(index, index + rows))
                index += rows
                pos += rows * stride
    if pos != end:
        raise ValueError("bytes are left after the last record")
    return Scan(low, high, without_key)


def _run(
    data: bytes,
    start: int,
    first: int,
    rows: int,
    stride: int,
    fixed: tuple[int, ...],
    times: range,
) -> tuple[int, int, int] | None:
    """How many records after record `first` (at start) look like it, and their least and greatest timestamp delta.

    None: they do not, or it cannot be shown column by column.
    """
    for band_end in _BAND_ENDS:
        if first < band_end:
            rows = min(rows, band_end - 1 - first)
            break
    else:
        return None
    if rows < _RUN_MIN:
        return None
    at = start + stride
    stop = at + rows * stride
    for column in fixed:
        if data[at + column : stop : stride] != data[start + column : start + column + 1] * rows:
            return None
    column = times[-1] + 1
    if band_end == 64:
        if data[at + column : stop : stride] != _ONE_BYTE_DELTAS[first + 1 : first + 1 + rows]:
            return None
    else:
        ones, twos = _two_byte_deltas()
        if data[at + column : stop : stride] != ones[first + 1 : first + 1 + rows]:
            return None
        if data[at + column + 1 : stop : stride] != twos[first + 1 : first + 1 + rows]:
            return None
    if len(times) == 1:
        deltas = set(data[at + times[0] : stop : stride])
        if max(deltas) >= 0x80:
            return None
        values = [(byte >> 1) ^ -(byte & 1) for byte in deltas]
    elif len(times) == 2:
        pairs = set(zip(data[at + times[0] : stop : stride], data[at + times[1] : stop : stride], strict=True))
        if min(pairs)[0] < 0x80 or max(high for _, high in pairs) >= 0x80:
            return None
        values = [(zigzag >> 1) ^ -(zigzag & 1) for zigzag in ((byte & 0x7F) | high << 7 for byte, high in pairs)]
    else:
        for column in times:
            if data[at + column : stop : stride] != data[start + column : start + column + 1] * rows:
                return None
        values = [read_varint(data, start + times[0], 10)[0]]
    return rows, min(values), max(values)


_two_bytes: list[bytes] = []


def _two_byte_deltas() -> tuple[bytes, bytes]:
    """First and second varint byte of the zigzag of 0..8191 (of use from 64 on), made when first needed."""
    if not _two_bytes:
        _two_bytes.append(bytes(2 * delta & 0x7F | 0x80 for delta in range(8192)))
        _two_bytes.append(bytes(2 * delta >> 7 for delta in range(8192)))
    return _two_bytes[0], _two_bytes[1]


def _skip_headers(data: bytes | memoryview, pos: int, stop: int) -> int:
    count, pos = read_varint(data, pos)
    if count < 0 or count > stop - pos:
        raise ValueError(f"{count} headers in {stop - pos} bytes")
    for _ in range(count):
        size, pos = read_varint(data, pos)
        if size < 0:
            raise ValueError("a header has no name")
        pos += size
        size, pos = read_varint(data, pos)
        if size > 0:
            pos += size
        elif size < -1:
            raise ValueError(f"a header's value has {size} bytes")
        if pos > stop:
            raise ValueError("a header reaches over the end of its record")
    return pos


def check_timestamps(
    rules: TopicRules, data: bytes | memoryview, count: int, base_timestamp: int, scan: Scan, now_ms: int
) -> None:
    """CreateTime topics bound how far from the broker's clock a record may be; one without a time (-1) may stay.

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
    """The first batch of records that are not exactly one batch of magic 2, if Kafka lets what follows pass.

    It drops a partial batch at the end, as the rest of a fetched slice would be, and refuses a second whole one.
    """
    length = int.from_bytes(batch[8:12], "big", signed=True)
    size = length + LOG_OVERHEAD_BYTES
    if batch[16] != MAGIC or length < HEADER_BYTES - LOG_OVERHEAD_BYTES or size > len(batch):
        raise not_a_batch(batch)
    rest = memoryview(batch)[size:]
    if len(rest) >= LOG_OVERHEAD_BYTES:
        rest_length = int.from_bytes(rest[8:12], "big", signed=True)
        if rest_length < _MIN_LEGACY_BYTES:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A batch of {rest_length} bytes follows the first one")
        if len(rest) >= rest_length + LOG_OVERHEAD_BYTES:
            raise invalid_record("Produce requests must have exactly one record batch per partition")
    return memoryview(batch)[:size]


def not_a_batch(batch: Buffer) -> KafkaError:
    """Why these bytes hold no whole batch of magic 2."""
    if len(batch) >= LOG_OVERHEAD_BYTES:
        length = int.from_bytes(batch[8:12], "big", signed=True)
        if length < _MIN_LEGACY_BYTES:
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A record batch of {length} bytes is less than a header")
        if len(batch) > 16 and len(batch) >= length + LOG_OVERHEAD_BYTES:
            magic = batch[16]
            if magic > MAGIC:
                return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic {magic} in a record batch")
            if magic != MAGIC:
                return invalid_record(f"Only record batches of magic 2 are accepted, not {magic}")
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A record batch of {length} bytes is less than a header")
    return invalid_record("Produce requests must have at least one whole record batch per partition")
