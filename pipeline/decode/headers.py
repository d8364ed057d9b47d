"""Columns from headers in `__consumer_offsets`: who made a commit, and which multi-batch commit a record belongs to."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from pipeline.decode.arrays import numbers, texts
from pipeline.decode.batches import Ints
from pipeline.decode.frame import Frame, Mask


class Names:
    """Finds headers by name: the first eight bytes of all names are compared as numbers."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.headers, self.bytes = frame, frame.headers, frame.bytes
        self.size = self.headers.name_size
        self.front = self.bytes.u64(self.headers.name)

    def find(self, name: bytes, among: Mask) -> Ints:
        """Indices of the headers with this name of at most 10 bytes, among those that the mask selects."""
        shift = np.uint64(64 - 8 * min(len(name), 8))
        same = (self.size == len(name)) & (self.front >> shift == np.uint64(int.from_bytes(name[:8], "big"))) & among
        found = np.flatnonzero(same)
        if len(name) > 8:
            found = found[self.bytes.i16(self.headers.name[found] + 8) == int.from_bytes(name[8:10], "big")]
        return found

    @cached_property
    def batch(self) -> Ints:
        """The batch of each header, as its index in the frame."""
        return self.frame.batch[self.headers.record]

    @cached_property
    def of_first(self) -> Mask:
        """Which headers belong to the first record of their batch and have a value."""
        found: Mask = (self.frame.first[self.batch] == self.headers.record) & (self.headers.value_size >= 0)
        return found


def made_by(frame: Frame, names: Names, name: bytes) -> pa.Array:
    """The column of a header of each batch's first record, repeated for all of its records."""
    headers, is_number = frame.headers, name == b"generation"
    found = names.find(name, names.of_first & (headers.value_size == 4) if is_number else names.of_first)
    if not found.size:
        return pa.nulls(len(frame), pa.int32() if is_number else pa.string())
    start, size = np.zeros(len(frame.position), np.int64), np.full(len(frame.position), -1)
    batch = names.batch[found]
    start[batch], size[batch] = headers.value[found], headers.value_size[found]
    if is_number:
        missing = size != 4
        column = numbers(frame.bytes.i32(start), pa.int32(), missing if missing.any() else None)
    else:
        column = texts(frame.bytes, np.maximum.accumulate(start), size)
    return column if frame.is_single else column.take(pa.array(frame.batch))


def spans(frame: Frame, names: Names) -> tuple[pa.Array, pa.Array]:
    """The columns commit_id and commit_size: both null unless both headers are there."""
    headers, count = frame.headers, len(frame)
    ids = names.find(b"txid", headers.value_size == 8)
    sizes = names.find(b"txsize", headers.value_size == 4)
    if not ids.size or not sizes.size:
        return pa.nulls(count, pa.int64()), pa.nulls(count, pa.int32())
    txid, txsize = np.zeros(count, np.int64), np.zeros(count, np.int64)
    has_id, has_size = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    txid[headers.record[ids]] = frame.bytes.i64(headers.value[ids])
    txsize[headers.record[sizes]] = frame.bytes.i32(headers.value[sizes])
    has_id[headers.record[ids]] = True
    has_size[headers.record[sizes]] = True
    missing = ~(has_id & has_size)
    return numbers(txid, pa.int64(), missing), numbers(txsize, pa.int32(), missing)
