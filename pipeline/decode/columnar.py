"""The columnar decoder: a chunk of batches to Arrow record batches of one view, without a Python object a record.

What is out of the ordinary goes to the reference decoder (plain.py) as a whole chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.decode import coordinators
from pipeline.decode.arrays import Columns, binaries, named, texts, times
from pipeline.decode.batches import Chunk, Source
from pipeline.decode.frame import Bytes, Frame, Headers, IrregularError, frames
from pipeline.decode.plain import decode_plain
from pipeline.decode.records import MARKERS, control_name
from pipeline.schema import HEADERS, VIEWS
from protocol.compression import CODEC_NAMES
from protocol.record_batch import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL

_TIME_TYPES: Final = ("CreateTime", "LogAppendTime")


def decode_columns(chunk: Chunk, records: str) -> Iterator[pa.RecordBatch]:
    """One view of the chunk's records."""
    try:
        made = []
        for frame in frames(chunk):
            columns = [*_place(frame, chunk.source), *_VIEWS[records](frame)]
            made.append(pa.RecordBatch.from_arrays(columns, schema=VIEWS[records]))
    except (IrregularError, pa.ArrowInvalid):
        made = [decode_plain(chunk, records)]
    yield from (each for each in made if each.num_rows)


# ---------------------------------------------------------------- of every view


def _place(frame: Frame, source: Source) -> Columns:
    count = len(frame)
    header = frame.header
    base = frame.of_batch("base_offset")
    attributes = frame.of_batch("attributes")
    control, coordinator_epoch = _control(frame, attributes)
    sequence = frame.of_batch("base_sequence").astype(np.int64)
    sequence = np.where(sequence < 0, -1, (sequence + frame.offset_delta) & 0x7FFFFFFF)
    time = frame.of_batch("base_time") + frame.time_delta
    is_append_time = attributes & LOG_APPEND_TIME != 0
    if is_append_time.any():
        time = np.where(is_append_time, frame.of_batch("max_time"), time)
    last = header["base_offset"].astype(np.int64) + header["last_delta"]
    return [
        pa.repeat(pa.scalar(source.log), count),
        pa.repeat(pa.scalar(source.topic), count),
        pa.repeat(pa.scalar(source.partition, pa.int32()), count),
        pa.repeat(pa.scalar(source.segment, pa.int64()), count),
        pa.array(frame.position[frame.batch]),
        pa.array(base),
        pa.array(last[frame.batch]),
        pa.array(frame.of_batch("length") + np.int32(12)),
        pa.array(frame.of_batch("count")),
        pa.array(base + frame.offset_delta),
        times(time),
        named(is_append_time.astype(np.int8), _TIME_TYPES),
        pa.array(frame.of_batch("leader_epoch")),
        pa.array(frame.of_batch("producer_id")),
        pa.array(frame.of_batch("producer_epoch")),
        pa.array(sequence.astype(np.int32)),
        pa.array(attributes & TRANSACTIONAL != 0),
        control,
        coordinator_epoch,
        named((attributes & 7).astype(np.int8), CODEC_NAMES),
        pa.array(frame.size.astype(np.int32)),
    ]


def _control(frame: Frame, attributes: NDArray[Any]) -> tuple[pa.Array, pa.Array]:
    """Kind of marker, and the epoch of the coordinator that wrote it."""
    rows = np.flatnonzero(attributes & CONTROL)
    if not rows.size:
        return pa.nulls(len(frame), pa.string()), pa.nulls(len(frame), pa.int32())
    if (frame.key_size[rows] < 4).any():
        raise IrregularError("a marker without a kind")
    kinds = frame.bytes.i16(frame.key[rows] + 2)
    names = sorted({int(kind) for kind in kinds})
    index = np.full(len(frame), -1)
    index[rows] = np.searchsorted(names, kinds)
    has_epoch = rows[(kinds >= 0) & (kinds < MARKERS) & (frame.value_size[rows] >= 6)]
    epochs = np.zeros(len(frame), np.int32)
    epochs[has_epoch] = frame.bytes.i32(frame.value[has_epoch] + 2)
    missing = np.ones(len(frame), np.bool_)
    missing[has_epoch] = False
    return named(index, [control_name(kind) for kind in names]), pa.array(epochs, mask=missing)


# ---------------------------------------------------------------- raw


def _raw(frame: Frame) -> Columns:
    return [
        binaries(frame.bytes, frame.key, frame.key_size),
        binaries(frame.bytes, frame.value, frame.value_size),
        _header_lists(frame.bytes, frame.headers),
    ]


def _header_lists(data: Bytes, headers: Headers) -> pa.Array:
    offsets = np.zeros(len(headers.count) + 1, np.int32)
    np.cumsum(headers.count, out=offsets[1:])
    pairs = pa.StructArray.from_arrays(
        [texts(data, headers.name, headers.name_size), binaries(data, headers.value, headers.value_size)],
        fields=list(HEADERS.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(offsets), pairs, type=HEADERS)


_VIEWS: Final[dict[str, Callable[[Frame], Columns]]] = {
    "raw": _raw,
    "offsets": coordinators.offsets,
    "transactions": coordinators.transactions,
}
