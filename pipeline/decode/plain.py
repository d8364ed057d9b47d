"""The reference decoder: decodes record by record in plain Python. The columnar decoder must give equal rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from pipeline.decode.batches import Chunk
from pipeline.decode.records import (
    COMMIT,
    LEGACY_COMMIT,
    MARKERS,
    TXN_STATES,
    as_json,
    control_name,
    decode,
    i16,
    uuid_text,
)
from pipeline.schema import LOCATION_COLUMNS, VIEWS
from protocol.compression import CODEC_NAMES
from protocol.messages.coordinator_records import TransactionLogKey, TransactionLogValue
from protocol.record import Record, decode_records, read_varint
from protocol.record_batch import BatchHeader, records_of

_US: Final = 1000
_TIME_LIMIT_MS: Final = (1 << 63) // _US
_ZERO_ID: Final = bytes(16)
Row = dict[str, Any]


def decode_plain(chunk: Chunk, records: str) -> pa.RecordBatch:
    """The rows of a view, with all columns."""
    rows = []
    for start in chunk.starts.tolist():
        header = BatchHeader.from_buffer(chunk.data, start)
        batch = memoryview(chunk.data)[start : start + header.size]
        place = _batch_columns(chunk, start, header)
        inflated = bytes(records_of(batch, header))
        made_by: Row | None = None
        for record, size in _records(inflated, header):
            row = {**place, **_record_columns(record, header), "record_size": size}
            if records == "raw":
                row |= {"key": record.key, "value": record.value}
                row["headers"] = [{"key": _text(k), "value": v} for k, v in _named(record)]
            elif records == "offsets":
                made_by = _made_by(record) if made_by is None else made_by
                row |= made_by | _span(record) | _offset_columns(record, header)
            else:
                row |= transaction_columns(record.key, record.value, is_control=header.is_control)
            rows.append(row)
    return pa.RecordBatch.from_pylist(rows, schema=VIEWS[records])


def _records(data: bytes, header: BatchHeader) -> Iterator[tuple[Record, int]]:
    """Each record, and its size in bytes with the length field."""
    append_time = header.max_timestamp if header.is_log_append_time else None
    position = 0
    for record in decode_records(data, header.record_count, header.base_offset, header.base_timestamp, append_time):
        length, after = read_varint(data, position)
        yield record, after + length - position
        position = after + length


def _batch_columns(chunk: Chunk, start: int, header: BatchHeader) -> Row:
    source = chunk.source
    values = (
        source.log,
        source.topic,
        source.partition,
        source.topic_id,
        source.segment,
        chunk.position + start,
        header.base_offset,
        header.last_offset,
        header.size,
        header.record_count,
    )
    return dict(zip(LOCATION_COLUMNS, values, strict=False)) | {
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
        "leader_epoch": header.partition_leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "transactional": header.is_transactional,
        "compression": CODEC_NAMES[header.codec],
    }


def _record_columns(record: Record, header: BatchHeader) -> Row:
    sequence = -1
    if header.base_sequence >= 0:
        sequence = (header.base_sequence + record.offset - header.base_offset) % (1 << 31)
    row: Row = {"offset": record.offset, "timestamp": _time(record.timestamp), "sequence": sequence}
    if header.is_control:
        kind = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
        row["control"] = control_name(kind)
        if 0 <= kind < MARKERS and record.value is not None and len(record.value) >= 6:
            row["coordinator_epoch"] = int.from_bytes(record.value[2:6], "big", signed=True)
    return row


def _time(milliseconds: int) -> int | None:
    return milliseconds * _US if 0 <= milliseconds < _TIME_LIMIT_MS else None


def _named(record: Record) -> Iterator[tuple[bytes, bytes | None]]:
    for name, value in record.headers:
        yield name.encode("utf-8", "surrogateescape"), value


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _made_by(record: Record) -> Row:
    """The columns from headers of a batch's first record: who made the commit."""
    row: Row = {}
    for name, value in _named(record):
        if value is None:
            continue
        if name in (b"member", b"instance", b"client"):
            row[f"{name.decode()}_id"] = _text(value)
        elif name == b"generation" and len(value) == 4:
            row["generation"] = int.from_bytes(value, "big", signed=True)
    return row


def _span(record: Record) -> Row:
    """The columns from headers of a multi-batch commit."""
    row: Row = {}
    for name, value in _named(record):
        if name == b"txid" and value is not None and len(value) == 8:
            row["commit_id"] = int.from_bytes(value, "big", signed=True)
        elif name == b"txsize" and value is not None and len(value) == 4:
            row["commit_size"] = int.from_bytes(value, "big", signed=True)
    return row if len(row) == 2 else {}


def _kind_columns(key: bytes | None, value: bytes | None) -> Row:
    return {"key_version": i16(key), "value_version": i16(value), "tombstone": value is None}


def _offset_columns(record: Record, header: BatchHeader) -> Row:
    if header.is_control:
        return {"tombstone": False}
    row = _kind_columns(record.key, record.value)
    decoded = decode("offsets", record.key or b"", record.value)
    row["kind"] = decoded.kind
    key: Any = decoded.key
    value: Any = decoded.value
    if key is not None and type(key).API_KEY in (LEGACY_COMMIT, COMMIT):
        row |= {"group": key.group, "commit_topic": key.topic, "commit_partition": key.partition}
        if value is not None:
            topic_id = getattr(value, "topic_id", _ZERO_ID)
            row |= {
                "commit_offset": value.offset,
                "commit_leader_epoch": getattr(value, "leader_epoch", -1),
                "commit_metadata": value.metadata,
                "commit_timestamp": _time(value.commit_timestamp),
                "expire_timestamp": _time(getattr(value, "expire_timestamp", -1)),
                "commit_topic_id": None if topic_id == _ZERO_ID else uuid_text(topic_id),
            }
    else:
        if key is not None:
            row["group"] = key.group if hasattr(key, "group") else key.group_id
        row |= {"key_json": as_json(decoded.key), "value_json": as_json(decoded.value)}
    return row


def transaction_columns(raw_key: bytes | None, raw_value: bytes | None, *, is_control: bool) -> Row:
    """The columns of a record of `__transaction_state` after the location columns."""
    if is_control:
        return {"tombstone": False}
    row = _kind_columns(raw_key, raw_value)
    row["kind"], key, value = decode("transactions", raw_key or b"", raw_value)
    row |= {"key_json": as_json(key), "value_json": as_json(value)}
    row["transactional_id"] = getattr(key, "transactional_id", None)
    if isinstance(key, TransactionLogKey) and isinstance(value, TransactionLogValue):
        status = value.transaction_status
        row |= {
            "txn_producer_id": value.producer_id,
            "txn_producer_epoch": value.producer_epoch,
            "txn_state": TXN_STATES[status] if 0 <= status < len(TXN_STATES) else f"unknown-{status}",
            "txn_timeout_ms": value.transaction_timeout_ms,
            "txn_partitions": [
                {"topic": each.topic, "partition": partition}
                for each in value.transaction_partitions or ()
                for partition in each.partition_ids
            ],
            "txn_start": _time(value.transaction_start_timestamp_ms),
            "txn_update": _time(value.transaction_last_update_timestamp_ms),
        }
    return row
