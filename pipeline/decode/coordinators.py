"""The columns of `__consumer_offsets` and `__transaction_state`: commits of offsets at once, all else one by one."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.decode import plain
from pipeline.decode.arrays import Columns, binaries, named, numbers, texts, times
from pipeline.decode.batches import Ints
from pipeline.decode.frame import Frame, IrregularError, Mask
from pipeline.decode.records import COMMIT, LEGACY_COMMIT, as_json, decode, kind_name, uuid_text
from pipeline.schema import OFFSETS_FIELDS, PLACE_NAMES, TRANSACTIONS_FIELDS

_MEMBER: Final = OFFSETS_FIELDS.get_field_index("member_id")
_ZERO_ID: Final = bytes(16)


# ---------------------------------------------------------------- transactions


def transactions(frame: Frame) -> Columns:
    """The columns behind the place, of `__transaction_state`."""
    rows = []
    for marker, key, value in zip(frame.is_control().tolist(), *_keys_and_values(frame), strict=True):
        rows.append(plain.transaction_columns(key, value, is_control=marker))
    kept = pa.schema(list(TRANSACTIONS_FIELDS)[len(PLACE_NAMES) :])
    return list(pa.RecordBatch.from_pylist(rows, schema=kept).columns)


def _keys_and_values(frame: Frame) -> tuple[list[bytes | None], list[bytes | None]]:
    data = frame.bytes
    return (
        binaries(data, frame.key, frame.key_size).to_pylist(),
        binaries(data, frame.value, frame.value_size).to_pylist(),
    )


# ---------------------------------------------------------------- offsets


class _Commits(NamedTuple):
    """Fields of the records that set or delete an offset, in the order of `rows`."""

    rows: Ints
    group: Ints
    group_size: Ints
    topic: Ints
    topic_size: Ints
    partition: Ints
    is_set: Mask  # the following are of these only
    offset: Ints
    leader_epoch: Ints
    metadata: Ints
    metadata_size: Ints
    time: Ints
    expiry: Ints
    topic_id: NDArray[np.void]


def offsets(frame: Frame) -> Columns:
    """The columns behind the place, of `__consumer_offsets`."""
    data, count = frame.bytes, len(frame)
    markers = frame.is_control()
    key_type = np.where(frame.key_size >= 2, data.i16(frame.key), -1)
    if (~markers & (frame.key_size < 2)).any() or (~markers & (key_type == LEGACY_COMMIT)).any():
        raise IrregularError("a key without a type, or of Kafka 0.8")
    commits = _commits(frame, np.flatnonzero(~markers & (key_type == COMMIT)))
    rare = np.flatnonzero(~markers & (key_type != COMMIT))
    types = sorted({int(each) for each in key_type[rare]} | {COMMIT})
    kind = np.where(markers, -1, np.searchsorted(types, key_type)).astype(np.int32)

    group, group_size = frame.key.copy(), np.full(count, -1)
    group[commits.rows], group_size[commits.rows] = commits.group, commits.group_size
    key_json, value_json = pa.nulls(count, pa.string()), pa.nulls(count, pa.string())
    if rare.size:
        key_json, value_json = _one_by_one(frame, rare, group, group_size)
    spread = _Spread(commits.rows, count)
    set_spread = _Spread(commits.rows[commits.is_set], count)
    value_version = data.i16(frame.value)
    return [
        named(kind, [kind_name("offsets", each) for each in types]),
        numbers(key_type, pa.int16(), _some(markers)),
        numbers(value_version, pa.int16(), _some(markers | (frame.value_size < 2))),
        pa.array(~markers & (frame.value_size < 0)),
        texts(data, group, group_size),
        texts(data, *spread.strings(frame.key, commits.topic, commits.topic_size)),
        spread.numbers(commits.partition, pa.int32()),
        set_spread.numbers(commits.offset, pa.int64()),
        set_spread.numbers(commits.leader_epoch, pa.int32()),
        texts(data, *set_spread.strings(frame.value, commits.metadata, commits.metadata_size)),
        set_spread.times(commits.time),
        set_spread.times(commits.expiry),
        _topic_ids(commits, set_spread),
        *_headers(frame),
        key_json,
        value_json,
    ]


def _some(mask: Mask) -> Mask | None:
    return mask if mask.any() else None


class _Spread:
    """Puts columns of some rows into columns of all."""

    def __init__(self, rows: Ints, count: int) -> None:
        self.rows, self.count = rows, count
        self.missing: Mask | None = None
        if len(rows) < count:
            self.missing = np.ones(count, np.bool_)
            self.missing[rows] = False

    def _full(self, values: Ints, rest: Ints | int = 0) -> Ints:
        if self.missing is None:
            return values
        full = rest.copy() if isinstance(rest, np.ndarray) else np.full(self.count, rest)
        full[self.rows] = values
        return full

    def numbers(self, values: Ints, kind: pa.DataType) -> pa.Array:
        return numbers(self._full(values), kind, self.missing)

    def times(self, values: Ints) -> pa.Array:
        return times(self._full(values), self.missing)

    def strings(self, elsewhere: Ints, start: Ints, size: Ints) -> tuple[Ints, Ints]:
        """`elsewhere`: positions for the rows that have none, so that all of them rise."""
        return self._full(start, elsewhere), self._full(size, -1)


def _commits(frame: Frame, rows: Ints) -> _Commits:
    """OffsetCommitKey and OffsetCommitValue of these rows."""
    data, limit = frame.bytes, frame.bytes.size
    end = frame.key[rows] + frame.key_size[rows]
    at = frame.key[rows] + 2
    group, group_size = at + 2, data.i16(at)
    at = np.clip(group + group_size, 0, limit)
    topic, topic_size = at + 2, data.i16(at)
    at = np.clip(topic + topic_size, 0, limit)
    if ((group_size < 0) | (topic_size < 0) | (at + 4 != end)).any():
        raise IrregularError("a key of a committed offset that is not as its schema says")
    partition = data.i32(at)

    is_set = frame.value_size[rows] >= 0
    rows_set = rows if is_set.all() else rows[is_set]
    return _Commits(rows, group, group_size, topic, topic_size, partition, is_set, *_commit_values(frame, rows_set))


def _commit_values(frame: Frame, rows: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, NDArray[np.void]]:
    data, limit = frame.bytes, frame.bytes.size
    start = frame.value[rows]
    end = start + frame.value_size[rows]
    version = data.i16(start)
    if ((frame.value_size[rows] < 2) | (version < 0) | (version > 4)).any():
        raise IrregularError("a committed offset of a version not known")
    offset = data.i64(np.minimum(start + 2, limit))
    at = start + 10
    has_epoch = version >= 3
    leader_epoch = np.where(has_epoch, data.i32(np.minimum(at, limit)), -1)
    at = np.minimum(at + 4 * has_epoch, limit)
    is_flexible = version >= 4
    # the length of the metadata: i16, or a varint that is one more
    short = data.byte(at).astype(np.int64)
    if (is_flexible & (short >= 0x80)).any():
        raise IrregularError("long metadata")
    size = np.where(is_flexible, short - 1, data.i16(at))
    metadata = at + np.where(is_flexible, 1, 2)
    at = np.clip(metadata + size, 0, limit)
    time = data.i64(at)
    at = np.minimum(at + 8, limit)
    has_expiry = version == 1
    expiry = np.where(has_expiry, data.i64(at), -1)
    at = np.minimum(at + 8 * has_expiry, limit)
    # tagged fields: none, or tag 0 with the 16 bytes of the topic id
    tags = np.where(is_flexible, data.byte(at), 0)
    has_id = tags == 1
    head = data.u64(at) >> np.uint64(40)
    topic_id = data.raw(np.minimum(at + 3, limit), 16)
    if (~has_id).any():
        topic_id[~has_id] = np.void(_ZERO_ID)
    regular = (size >= 0) & ((tags == 0) | (has_id & (head == 0x010010))) & (at + is_flexible + 18 * has_id == end)
    if not regular.all():
        raise IrregularError("a committed offset that is not as its schema says")
    return offset, leader_epoch, metadata, size, time, expiry, topic_id


def _topic_ids(commits: _Commits, spread: _Spread) -> pa.Array:
    """Ids as text: few different ones, each written once."""
    ids = np.ascontiguousarray(commits.topic_id)
    found = pa.Array.from_buffers(pa.binary(16), len(ids), [None, pa.py_buffer(ids)]).dictionary_encode()
    names = [None if each == _ZERO_ID else uuid_text(each) for each in found.dictionary.to_pylist()]
    index = found.indices.to_numpy(zero_copy_only=False)
    return named(spread._full(index, -1), names)


def _one_by_one(frame: Frame, rows: Ints, group: Ints, group_size: Ints) -> tuple[pa.Array, pa.Array]:
    """Key and value as JSON; where a key names a group, it does so first."""
    keys: list[str | None] = [None] * len(frame)
    values: list[str | None] = [None] * len(frame)
    data = frame.bytes.data
    starts, sizes = frame.key[rows].tolist(), frame.key_size[rows].tolist()
    value_starts, value_sizes = frame.value[rows].tolist(), frame.value_size[rows].tolist()
    for row, at, size, value_at, value_size in zip(
        rows.tolist(), starts, sizes, value_starts, value_sizes, strict=True
    ):
        value = None if value_size < 0 else data[value_at : value_at + value_size]
        decoded = decode("offsets", data[at : at + size], value)
        keys[row], values[row] = as_json(decoded.key), as_json(decoded.value)
        if decoded.key is not None:
            group[row], group_size[row] = at + 4, int.from_bytes(data[at + 2 : at + 4], "big")
    return pa.array(keys, pa.string()), pa.array(values, pa.string())


# ---------------------------------------------------------------- headers


class _Names:
    """Which headers have which name: the first eight bytes of all names are compared as numbers."""

    def __init__(self, frame: Frame) -> None:
        self.headers, self.bytes = frame.headers, frame.bytes
        self.size = self.headers.name_size
        self.front = self.bytes.u64(self.headers.name)

    def find(self, name: bytes, among: Mask) -> Ints:
        shift = np.uint64(64 - 8 * min(len(name), 8))
        same = (self.size == len(name)) & (self.front >> shift == np.uint64(int.from_bytes(name[:8], "big"))) & among
        found = np.flatnonzero(same)
        if len(name) > 8:
            found = found[self.bytes.i16(self.headers.name[found] + 8) == int.from_bytes(name[8:10], "big")]
        return found


def _headers(frame: Frame) -> Columns:
    """Member, instance, generation and client, commit id and size."""
    if len(frame.headers.record):
        names = _Names(frame)
        return [*_made_by(frame, names), *_spans(frame, names)]
    return [pa.nulls(len(frame), kind) for kind in OFFSETS_FIELDS.types[_MEMBER : _MEMBER + 6]]


def _made_by(frame: Frame, names: _Names) -> Columns:
    """From the headers of the first record of each batch, for all of its records."""
    headers = frame.headers
    batch = frame.batch[headers.record]
    of_first = (frame.first[batch] == headers.record) & (headers.value_size >= 0)
    rows = None if frame.is_single else pa.array(frame.batch)
    columns = []
    for name in (b"member", b"instance", b"generation", b"client"):
        found = names.find(name, of_first & (headers.value_size == 4) if name == b"generation" else of_first)
        start, size = np.zeros(len(frame.position), np.int64), np.full(len(frame.position), -1)
        start[batch[found]], size[batch[found]] = headers.value[found], headers.value_size[found]
        if name == b"generation":
            column = numbers(frame.bytes.i32(start), pa.int32(), _some(size != 4))
        elif found.size:
            column = texts(frame.bytes, np.maximum.accumulate(start), size)
        else:
            column = pa.nulls(len(size), pa.string())
        columns.append(column if rows is None else column.take(rows))
    return columns


def _spans(frame: Frame, names: _Names) -> Columns:
    """Id and size of a commit over several batches; both or none."""
    headers, count = frame.headers, len(frame)
    ids = names.find(b"txid", headers.value_size == 8)
    sizes = names.find(b"txsize", headers.value_size == 4)
    if not ids.size or not sizes.size:
        return [pa.nulls(count, pa.int64()), pa.nulls(count, pa.int32())]
    txid, txsize = np.zeros(count, np.int64), np.zeros(count, np.int64)
    has_id, has_size = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    txid[headers.record[ids]] = frame.bytes.i64(headers.value[ids])
    txsize[headers.record[sizes]] = frame.bytes.i32(headers.value[sizes])
    has_id[headers.record[ids]] = True
    has_size[headers.record[sizes]] = True
    missing = ~(has_id & has_size)
    return [numbers(txid, pa.int64(), missing), numbers(txsize, pa.int32(), missing)]
