"""Makes Arrow arrays from numpy arrays of positions and numbers, without copying bytes in Python.

For byte strings, an Arrow array is laid over the whole buffer, whose values are in turn a field and the bytes between
it and the next field; Arrow then takes every second value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.decode.batches import Ints
from pipeline.decode.frame import Bytes, IrregularError, Mask
from pipeline.schema import TIME

_TIME_LIMIT_MS: Final = (1 << 63) // 1000
_MAX_BYTES: Final = (1 << 31) - 64  # Arrow's offsets are i32
Makers = dict[str, Callable[[Any], pa.Array]]  # column -> the function that makes it


def binaries(data: Bytes, start: Ints, size: Ints) -> pa.Array:
    """Byte strings at rising positions of the buffer; size -1 is null.

    Errors:  IrregularError: the buffer is too large for one Arrow array.
    """
    count = len(start)
    if not count:
        return pa.array([], pa.binary())
    if len(data.data) > _MAX_BYTES:
        raise IrregularError("too many bytes for one array")
    is_null = size < 0
    has_nulls = bool(is_null.any())
    edges = np.empty(2 * count, np.int32)
    edges[::2] = start
    edges[1::2] = start + (np.maximum(size, 0) if has_nulls else size)
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(data.data)]
    woven = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
    wanted = np.arange(0, 2 * count, 2, dtype=np.int32)
    return woven.take(pa.array(wanted, mask=is_null if has_nulls else None))


def texts(data: Bytes, start: Ints, size: Ints) -> pa.Array:
    """Strings at rising positions of the buffer; size -1 is null. Errors: ArrowInvalid: not UTF-8; see binaries."""
    return binaries(data, start, size).cast(pa.string())


def times(milliseconds: Ints, missing: Mask | None = None) -> pa.Array:
    """Timestamps; null where missing, before 1970, or too late for microseconds in 64 bits."""
    outside = (milliseconds < 0) | (milliseconds >= _TIME_LIMIT_MS)
    if missing is not None:
        outside |= missing
    mask = outside if outside.any() else None
    values = milliseconds if mask is None else np.where(outside, 0, milliseconds)
    return pa.array(values * 1000, mask=mask).cast(TIME)


def numbers(values: Ints, kind: pa.DataType, missing: Mask | None = None) -> pa.Array:
    """Integers of an Arrow type; null where missing."""
    return pa.array(values.astype(kind.to_pandas_dtype()), mask=missing)


def named(index: NDArray[Any], names: Sequence[str | None]) -> pa.Array:
    """For each row the string names[index]; index -1 is null."""
    if len(index) and index.min() == index.max() >= 0:
        return pa.repeat(pa.scalar(names[int(index[0])], pa.string()), len(index))
    missing = index < 0
    indices = pa.array(index, mask=missing if missing.any() else None)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string())).dictionary_decode()
