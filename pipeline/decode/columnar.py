"""The columnar decoder: turns a chunk of batches into Arrow record batches of a view, without a Python object a record.

A chunk with anything irregular is decoded by the reference decoder (plain.py) instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.decode import coordinators
from pipeline.decode.arrays import Makers, binaries, named, texts, times
from pipeline.decode.batches import Chunk, Source
from pipeline.decode.frame import Frame, IrregularError, Mask, frames
from pipeline.decode.plain import decode_plain
from pipeline.decode.records import MARKERS, control_name
from pipeline.schema import HEADERS, view_fields
from protocol.compression import CODEC_NAMES
from protocol.record_batch import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL

_TIME_TYPES: Final = ("CreateTime", "LogAppendTime")


def decode_columns(chunk: Chunk, records: str, columns: Collection[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a view, with all columns or only the named ones; the others are not computed.

    Errors:  ValueError: the view has no such column.
    """
    fields = view_fields(records, columns)
    makers = {**_LOCATION, **_VIEWS[records][1]}
    try:
        made = []
        for frame in frames(chunk):
            location, view = Location(frame, chunk.source), _VIEWS[records][0](frame)
            arrays = [makers[name](location if name in _LOCATION else view) for name in fields.names]
            made.append(pa.RecordBatch.from_arrays(arrays, schema=fields))
    except (IrregularError, pa.ArrowInvalid):
        made = [decode_plain(chunk, records).select(fields.names)]
    yield from (each for each in made if each.num_rows)


# ---------------------------------------------------------------- columns of every view


class Location:
    """Location and batch fields of a frame's records; what several columns need is computed once."""

    def __init__(self, frame: Frame, source: Source) -> None:
        self.frame, self.source = frame, source

    def same(self, value: str | int, kind: pa.DataType) -> pa.Array:
        """A column that has one value in every row."""
        return pa.repeat(pa.scalar(value, kind), len(self.frame))

    def of_batch(self, name: str) -> pa.Array:
        """A column with a batch header's field, in the row of each of its records."""
        return pa.array(self.frame.of_batch(name))

    @cached_property
    def base(self) -> NDArray[Any]:
        """The base offset of each record's batch."""
        return self.frame.of_batch("base_offset")

    @cached_property
    def attributes(self) -> NDArray[Any]:
        """The attributes of each record's batch, as bits."""
        return self.frame.of_batch("attributes")

    @cached_property
    def is_append_time(self) -> Mask:
        """Which records' batches have log append time."""
        flags: Mask = self.attributes & LOG_APPEND_TIME != 0
        return flags

    def last(self) -> pa.Array:
        """The column of each batch's last offset."""
        header = self.frame.header
        last = header["base_offset"].astype(np.int64) + header["last_delta"]
        return pa.array(last[self.frame.batch])

    def time(self) -> pa.Array:
        """The column of timestamps: that of the record, or of its batch with log append time."""
        time = self.frame.of_batch("base_time") + self.frame.time_delta
        if self.is_append_time.any():
            time = np.where(self.is_append_time, self.frame.of_batch("max_time"), time)
        return times(time)

    def sequence(self) -> pa.Array:
        """The column of sequences, which wrap after 2^31 - 1; -1: the producer is not idempotent."""
        sequence = self.frame.of_batch("base_sequence").astype(np.int64)
        sequence = np.where(sequence < 0, -1, (sequence + self.frame.offset_delta) & 0x7FFFFFFF)
        return pa.array(sequence.astype(np.int32))

    @cached_property
    def control(self) -> tuple[pa.Array, pa.Array]:
        """The columns `control` and `coordinator_epoch` of markers."""
        frame, rows = self.frame, np.flatnonzero(self.attributes & CONTROL)
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


_LOCATION: Final[Makers] = {
    "log": lambda location: location.same(location.source.log, pa.string()),
    "topic": lambda location: location.same(location.source.topic, pa.string()),
    "partition": lambda location: location.same(location.source.partition, pa.int32()),
    "topic_id": lambda location: location.same(location.source.topic_id, pa.string()),
    "segment": lambda location: location.same(location.source.segment, pa.int64()),
    "position": lambda location: pa.array(location.frame.position[location.frame.batch]),
    "batch_base_offset": lambda location: pa.array(location.base),
    "batch_last_offset": Location.last,
    "batch_size": lambda location: pa.array(location.frame.of_batch("length") + np.int32(12)),
    "batch_records": lambda location: location.of_batch("count"),
    "offset": lambda location: pa.array(location.base + location.frame.offset_delta),
    "timestamp": Location.time,
    "timestamp_type": lambda location: named(location.is_append_time.astype(np.int8), _TIME_TYPES),
    "leader_epoch": lambda location: location.of_batch("leader_epoch"),
    "producer_id": lambda location: location.of_batch("producer_id"),
    "producer_epoch": lambda location: location.of_batch("producer_epoch"),
    "sequence": Location.sequence,
    "transactional": lambda location: pa.array(location.attributes & TRANSACTIONAL != 0),
    "control": lambda location: location.control[0],
    "coordinator_epoch": lambda location: location.control[1],
    "compression": lambda location: named((location.attributes & 7).astype(np.int8), CODEC_NAMES),
    "record_size": lambda location: pa.array(location.frame.size.astype(np.int32)),
}


# ---------------------------------------------------------------- raw


def _header_lists(frame: Frame) -> pa.Array:
    data, headers = frame.bytes, frame.headers
    offsets = np.zeros(len(headers.count) + 1, np.int32)
    np.cumsum(headers.count, out=offsets[1:])
    pairs = pa.StructArray.from_arrays(
        [texts(data, headers.name, headers.name_size), binaries(data, headers.value, headers.value_size)],
        fields=list(HEADERS.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(offsets), pairs, type=HEADERS)


_RAW: Final[Makers] = {
    "key": lambda frame: binaries(frame.bytes, frame.key, frame.key_size),
    "value": lambda frame: binaries(frame.bytes, frame.value, frame.value_size),
    "headers": _header_lists,
}
# For each view: the object its own columns are made of, and the functions that make them.
_VIEWS: Final[dict[str, tuple[Callable[[Frame], Any], Makers]]] = {
    "raw": (lambda frame: frame, _RAW),
    "offsets": (coordinators.Offsets, coordinators.OFFSETS),
    "transactions": (coordinators.Transactions, coordinators.TRANSACTIONS),
}
