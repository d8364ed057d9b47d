"""Record batches of every kind there is, at random; and directories of segments made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from broker.coordinator.offsets.provenance import provenance
from pipeline.decode.batches import Chunk, Source
from pipeline.decode.records import classes_of
from protocol.messages import coordinator_records as records
from protocol.messages.own_records import TransactionGroupKey, TransactionGroupValue
from protocol.record import encode_record
from protocol.record_batch import DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL, assemble_batch, control_batch
from storage.segments.spans import span_headers

NOW_MS = 1_790_000_000_000
Made = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]


def batch_of(
    made: Sequence[Made],
    *,
    base_offset: int = 0,
    deltas: Sequence[int] | None = None,
    times: Sequence[int] | None = None,
    last_delta: int | None = None,
    **fields: int,
) -> bytes:
    """One batch, each record at its offset and time; whatever is not said is as a coordinator would have it."""
    deltas = deltas or range(len(made))
    times = times or [NOW_MS] * len(made)
    base_time = times[0] if times else NOW_MS
    section = b"".join(
        encode_record(delta, time - base_time, key, value, headers)
        for delta, time, (key, value, headers) in zip(deltas, times, made, strict=True)
    )
    said: dict[str, int] = {
        "leader_epoch": 0,
        "attributes": 0,
        "last_offset_delta": (max(deltas) if made else 0) if last_delta is None else last_delta,
        "base_timestamp": base_time,
        "max_timestamp": max(times, default=-1),
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "record_count": len(made),
    }
    return assemble_batch(section, base_offset=base_offset, **{**said, **fields})


def chunk_of(batches: Iterable[bytes], log: str = "orders-3", segment: int = 7, position: int = 100) -> Chunk:
    """Batches as they are read from a file."""
    data, starts = b"", []
    for each in batches:
        starts.append(len(data))
        data += each
    return Chunk(Source(log, segment), position, data, np.array(starts, np.int64))


def write_segment(directory: Path, log: str, base_offset: int, *batches: bytes) -> Path:
    (directory / log).mkdir(parents=True, exist_ok=True)
    path = directory / log / f"{base_offset:020d}.log"
    path.write_bytes(b"".join(batches))
    return path


def commit_key(group: str = "g", topic: str = "orders", partition: int = 0) -> bytes:
    return records.encode_key(records.OffsetCommitKey(group=group, topic=topic, partition=partition))


def commit_value(offset: int, version: int = 4, **fields: Any) -> bytes:
    return records.encode_record(records.OffsetCommitValue(offset=offset, commit_timestamp=NOW_MS, **fields), version)


def rows(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    """With times after the year 9999, which Python's datetime does not know, as numbers."""
    found = []
    for batch in batches:
        try:
            found += batch.to_pylist()
        except OverflowError:
            for at, column in enumerate(batch.columns):
                if pa.types.is_timestamp(column.type):
                    batch = batch.set_column(at, batch.schema.names[at], column.cast(pa.int64()))
            found += batch.to_pylist()
    return found


# ---------------------------------------------------------------- at random

BYTES = st.none() | st.binary(max_size=12) | st.binary(min_size=60, max_size=70)
TEXT = st.text(max_size=6)
HEADERS = st.lists(st.tuples(TEXT, BYTES), max_size=3)
INT64 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.one_of(st.just(NOW_MS), st.integers(NOW_MS - 100, NOW_MS + 10**7), st.sampled_from([-1, 0, 2**55]))


@st.composite
def provenances(draw: st.DrawFn) -> tuple[tuple[str, bytes | None], ...]:
    """What a coordinator writes on the first record of a commit, or somebody else anywhere."""
    made: tuple[tuple[str, bytes | None], ...] = provenance(
        draw(TEXT), draw(st.none() | TEXT), draw(st.integers(-1, 99)), draw(st.none() | TEXT)
    )
    if draw(st.booleans()):
        made += span_headers(draw(st.integers(0, 2**40)), draw(st.integers(1, 3)))
    return made + tuple(
        draw(st.lists(st.tuples(st.sampled_from(["generation", "generatiox", "txid", ""]), BYTES), max_size=1))
    )


@st.composite
def commits(draw: st.DrawFn) -> tuple[bytes, bytes | None]:
    key = commit_key(draw(TEXT), draw(TEXT), draw(st.integers(0, 2**31 - 1)))
    if draw(st.integers(0, 4)) == 0:
        return key, None
    value = records.OffsetCommitValue(
        offset=draw(INT64),
        leader_epoch=draw(st.integers(-1, 9)),
        metadata=draw(TEXT),
        commit_timestamp=draw(TIMES),
        expire_timestamp=draw(TIMES),
        topic_id=draw(st.just(bytes(16)) | st.binary(min_size=16, max_size=16)),
    )
    return key, records.encode_record(value, draw(st.integers(0, 4)))


@st.composite
def group_records(draw: st.DrawFn) -> tuple[bytes, bytes | None]:
    """Keys and values of all other record types, with a few fields filled."""
    classes = classes_of("offsets", draw(st.sampled_from([*range(2, 9), *range(10, 18), *range(19, 24)])))
    assert classes is not None
    key_class, value_class = classes
    named = {each.name for each in key_class.FIELDS}
    key = key_class(**{name: draw(TEXT) for name in named})
    if draw(st.integers(0, 4)) == 0:
        return records.encode_key(key), None
    value = value_class()
    for name in ("epoch", "member_epoch", "assignment_epoch", "generation"):
        if hasattr(value, name):
            setattr(value, name, draw(st.integers(0, 99)))
    version = draw(st.integers(value_class.MIN_VERSION, value_class.MAX_VERSION))
    return records.encode_key(key), records.encode_record(value, version)


@st.composite
def transaction_records(draw: st.DrawFn) -> tuple[bytes, bytes | None]:
    if draw(st.booleans()):
        own = TransactionGroupValue(producer_id=draw(INT64), member_id=draw(TEXT))
        key = TransactionGroupKey(transactional_id=draw(TEXT), group_id=draw(TEXT))
        return records.encode_key(key), draw(st.sampled_from([None, records.encode_record(own, 0)]))
    partitions = [
        records.PartitionsSchema(topic=topic, partition_ids=ids)
        for topic, ids in draw(st.lists(st.tuples(TEXT, st.lists(st.integers(0, 9), max_size=3)), max_size=2))
    ]
    value = records.TransactionLogValue(
        producer_id=draw(INT64),
        producer_epoch=draw(st.integers(0, 2**15 - 1)),
        transaction_status=draw(st.integers(-1, 9)),
        transaction_partitions=draw(st.sampled_from([None, partitions])),
        transaction_last_update_timestamp_ms=draw(TIMES),
    )
    key = records.encode_key(records.TransactionLogKey(transactional_id=draw(TEXT)))
    return key, draw(st.sampled_from([None, records.encode_record(value, draw(st.integers(0, 1)))]))


@st.composite
def batches(
    draw: st.DrawFn, pairs: st.SearchStrategy[tuple[bytes | None, bytes | None]], headers: Any = HEADERS
) -> bytes:
    """One batch as a broker or its cleaner may leave it."""
    fields = {
        "base_offset": draw(st.integers(0, 2**40)),
        "leader_epoch": draw(st.integers(-1, 99)),
        "producer_id": draw(st.sampled_from([-1, 0, 2**40])),
        "producer_epoch": draw(st.sampled_from([-1, 0, 2**15 - 1])),
        "base_sequence": draw(st.sampled_from([-1, 0, 2**31 - 1, 2**31 - 3])),
    }
    if draw(st.integers(0, 5)) == 0:
        kind = draw(st.sampled_from([0, 1, 1, 4, 99]))
        position = {name: fields[name] for name in ("base_offset", "leader_epoch", "producer_id", "producer_epoch")}
        return control_batch(kind, timestamp_ms=NOW_MS, coordinator_epoch=draw(st.integers(0, 9)), **position)
    made = [(*draw(pairs), draw(headers)) for _ in range(draw(st.integers(0, 6)))]
    deltas = sorted(draw(st.sets(st.integers(0, 300), min_size=len(made), max_size=len(made))))
    flags = draw(st.sampled_from([0, LOG_APPEND_TIME, TRANSACTIONAL, DELETE_HORIZON, TRANSACTIONAL | LOG_APPEND_TIME]))
    times = [draw(TIMES) for _ in made]
    codec = draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4])) if made else 0
    return batch_of(
        made, deltas=deltas, times=times, last_delta=draw(st.integers(300, 400)), attributes=codec | flags, **fields
    )
