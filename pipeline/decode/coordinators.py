"""The columns of `__consumer_offsets` and `__transaction_state`: offset commits by numpy, other records one by one."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.decode import plain
from pipeline.decode.arrays import Makers, binaries, named, numbers, texts, times
from pipeline.decode.batches import Ints
from pipeline.decode.frame import Frame, IrregularError, Mask
from pipeline.decode.headers import Names, made_by, spans
from pipeline.decode.records import COMMIT, LEGACY_COMMIT, as_json, decode, kind_name, uuid_text
from pipeline.schema import LOCATION_COLUMNS, TRANSACTIONS_FIELDS

_ZERO_ID: Final = bytes(16)


# ---------------------------------------------------------------- transactions


class Transactions:
    """The records of `__transaction_state`, decoded one by one."""

    def __init__(self, frame: Frame) -> None:
        data = frame.bytes
        keys = binaries(data, frame.key, frame.key_size).to_pylist()
        values = binaries(data, frame.value, frame.value_size).to_pylist()
        self.rows = [
            plain.transaction_columns(key, value, is_control=marker)
            for marker, key, value in zip(frame.is_control().tolist(), keys, values, strict=True)
        ]

    def column(self, field: pa.Field) -> pa.Array:
        """One column of the view, null where a kind of record does not have it."""
        return pa.array([row.get(field.name) for row in self.rows], field.type)


TRANSACTIONS: Final[Makers] = {
    field.name: partial(Transactions.column, field=field)
    for field in TRANSACTIONS_FIELDS
    if field.name not in LOCATION_COLUMNS
}


# ---------------------------------------------------------------- offsets


class _Keys(NamedTuple):
    """Fields of OffsetCommitKey, of the records that set or delete an offset."""

    rows: Ints
    group: Ints
    group_size: Ints
    topic: Ints
    topic_size: Ints
    partition: Ints


class _Values(NamedTuple):
    """Fields of OffsetCommitValue, of the records that set an offset."""

    rows: Ints
    offset: Ints
    leader_epoch: Ints
    metadata: Ints
    metadata_size: Ints
    time: Ints
    expiry: Ints
    topic_id: NDArray[np.void]


class _Rare(NamedTuple):
    """Columns of records of other kinds."""

    keys: pa.Array  # as JSON, null in the rows of commits and markers
    values: pa.Array
    group: Ints  # of the rare rows only
    group_size: Ints


class Offsets:
    """The records of `__consumer_offsets`; what several columns need is computed once."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.markers = frame, frame.is_control()

    @cached_property
    def key_type(self) -> Ints:
        """The record type of each key; -1 for a marker."""
        frame = self.frame
        key_type = np.where(frame.key_size >= 2, frame.bytes.i16(frame.key), -1)
        if (~self.markers & (frame.key_size < 2)).any() or (~self.markers & (key_type == LEGACY_COMMIT)).any():
            raise IrregularError("a key without a type, or of Kafka 0.8")
        return key_type

    @cached_property
    def commits(self) -> _Keys:
        """The keys of commits and of their tombstones."""
        return _keys(self.frame, np.flatnonzero(~self.markers & (self.key_type == COMMIT)))

    @cached_property
    def values(self) -> _Values:
        """The values of commits, without tombstones."""
        rows = self.commits.rows
        is_set = self.frame.value_size[rows] >= 0
        return _values(self.frame, rows if is_set.all() else rows[is_set])

    @cached_property
    def rare(self) -> Ints:
        """Row numbers of records that are neither commits nor markers."""
        missing = self.of_commits.missing
        return np.empty(0, np.int64) if missing is None else np.flatnonzero(missing & ~self.markers)

    @cached_property
    def of_commits(self) -> _Spread:
        """Spreads values of `commits` over all rows."""
        return _Spread(self.commits.rows, len(self.frame))

    @cached_property
    def of_values(self) -> _Spread:
        """Spreads values of `values` over all rows."""
        return _Spread(self.values.rows, len(self.frame))

    @cached_property
    def one_by_one(self) -> _Rare:
        """The columns of the rows in `rare`, which are decoded one by one."""
        return _one_by_one(self.frame, self.rare)

    @cached_property
    def names(self) -> Names:
        """The headers of the records, to be found by name."""
        return Names(self.frame)

    @cached_property
    def spans(self) -> tuple[pa.Array, pa.Array]:
        """Two columns that `spans` finds in the headers."""
        return spans(self.frame, self.names)

    def kind(self) -> pa.Array:
        """The column with the name of each record's kind."""
        types = sorted({int(each) for each in self.key_type[self.rare]} | {COMMIT})
        kind = np.where(self.markers, -1, np.searchsorted(types, self.key_type)).astype(np.int32)
        return named(kind, [kind_name("offsets", each) for each in types])

    def group(self) -> pa.Array:
        """The column of group ids; null for markers."""
        group, size = self.frame.key.copy(), np.full(len(self.frame), -1)
        group[self.commits.rows], size[self.commits.rows] = self.commits.group, self.commits.group_size
        if self.rare.size:
            group[self.rare], size[self.rare] = self.one_by_one.group, self.one_by_one.group_size
        return texts(self.frame.bytes, group, size)

    def topic(self) -> pa.Array:
        """The column of topic names; null where the record is not a commit."""
        place = self.of_commits.strings(self.frame.key, self.commits.topic, self.commits.topic_size)
        return texts(self.frame.bytes, *place)

    def metadata(self) -> pa.Array:
        """The column of a commit's metadata; null where no offset is set."""
        place = self.of_values.strings(self.frame.value, self.values.metadata, self.values.metadata_size)
        return texts(self.frame.bytes, *place)

    def value_version(self) -> pa.Array:
        """The column of value versions (int16); null for markers and tombstones."""
        missing = _some(self.markers | (self.frame.value_size < 2))
        return numbers(self.frame.bytes.i16(self.frame.value), pa.int16(), missing)


OFFSETS: Final[Makers] = {
    "kind": Offsets.kind,
    "key_version": lambda view: numbers(view.key_type, pa.int16(), _some(view.markers)),
    "value_version": Offsets.value_version,
    "tombstone": lambda view: pa.array(~view.markers & (view.frame.value_size < 0)),
    "group": Offsets.group,
    "commit_topic": Offsets.topic,
    "commit_partition": lambda view: view.of_commits.numbers(view.commits.partition, pa.int32()),
    "commit_offset": lambda view: view.of_values.numbers(view.values.offset, pa.int64()),
    "commit_leader_epoch": lambda view: view.of_values.numbers(view.values.leader_epoch, pa.int32()),
    "commit_metadata": Offsets.metadata,
    "commit_timestamp": lambda view: view.of_values.times(view.values.time),
    "expire_timestamp": lambda view: view.of_values.times(view.values.expiry),
    "commit_topic_id": lambda view: _topic_ids(view.values, view.of_values),
    "member_id": lambda view: made_by(view.frame, view.names, b"member"),
    "instance_id": lambda view: made_by(view.frame, view.names, b"instance"),
    "generation": lambda view: made_by(view.frame, view.names, b"generation"),
    "client_id": lambda view: made_by(view.frame, view.names, b"client"),
    "commit_id": lambda view: view.spans[0],
    "commit_size": lambda view: view.spans[1],
    "key_json": lambda view: view.one_by_one.keys,
    "value_json": lambda view: view.one_by_one.values,
}


def _some(mask: Mask) -> Mask | None:
    return mask if mask.any() else None


class _Spread:
    """Expands columns of some rows to columns of all rows."""

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
        """Positions and sizes for all rows; `elsewhere` has positions for the others, so that positions rise."""
        return self._full(start, elsewhere), self._full(size, -1)


def _keys(frame: Frame, rows: Ints) -> _Keys:
    data, limit = frame.bytes, frame.bytes.size
    end = frame.key[rows] + frame.key_size[rows]
    at = frame.key[rows] + 2
    group, group_size = at + 2, data.i16(at)
    at = np.clip(group + group_size, 0, limit)
    topic, topic_size = at + 2, data.i16(at)
    at = np.clip(topic + topic_size, 0, limit)
    if ((group_size < 0) | (topic_size < 0) | (at + 4 != end)).any():
        raise IrregularError("an OffsetCommitKey that does not match its schema")
    return _Keys(rows, group, group_size, topic, topic_size, data.i32(at))


def _values(frame: Frame, rows: Ints) -> _Values:
    data, limit = frame.bytes, frame.bytes.size
    start = frame.value[rows]
    end = start + frame.value_size[rows]
    version = data.i16(start)
    if ((frame.value_size[rows] < 2) | (version < 0) | (version > 4)).any():
        raise IrregularError("an OffsetCommitValue of an unknown version")
    offset = data.i64(np.minimum(start + 2, limit))
    at = start + 10
    has_epoch = version >= 3
    leader_epoch = np.where(has_epoch, data.i32(np.minimum(at, limit)), -1)
    at = np.minimum(at + 4 * has_epoch, limit)
    is_flexible = version >= 4
    # The length of the metadata: an i16, or in flexible versions a varint of the length + 1.
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
    # Tagged fields: none, or tag 0 with the 16 bytes of the topic id.
    tags = np.where(is_flexible, data.byte(at), 0)
    has_id = tags == 1
    head = data.u64(at) >> np.uint64(40)
    topic_id = data.raw(np.minimum(at + 3, limit), 16)
    if (~has_id).any():
        topic_id[~has_id] = np.void(_ZERO_ID)
    regular = (size >= 0) & ((tags == 0) | (has_id & (head == 0x010010))) & (at + is_flexible + 18 * has_id == end)
    if not regular.all():
        raise IrregularError("an OffsetCommitValue that does not match its schema")
    return _Values(rows, offset, leader_epoch, metadata, size, time, expiry, topic_id)


def _topic_ids(values: _Values, spread: _Spread) -> pa.Array:
    """Topic ids as text; each distinct id is converted once."""
    ids = np.ascontiguousarray(values.topic_id)
    found = pa.Array.from_buffers(pa.binary(16), len(ids), [None, pa.py_buffer(ids)]).dictionary_encode()
    names = [None if each == _ZERO_ID else uuid_text(each) for each in found.dictionary.to_pylist()]
    index = found.indices.to_numpy(zero_copy_only=False)
    return named(spread._full(index, -1), names)


def _one_by_one(frame: Frame, rows: Ints) -> _Rare:
    """Key and value as JSON; the group is the first field of every key that has one."""
    if not rows.size:
        none = pa.nulls(len(frame), pa.string())
        return _Rare(none, none, rows, rows)
    keys: list[str | None] = [None] * len(frame)
    values: list[str | None] = [None] * len(frame)
    group, group_size = frame.key[rows], np.full(len(rows), -1)
    data = frame.bytes.data
    starts, sizes = frame.key[rows].tolist(), frame.key_size[rows].tolist()
    value_starts, value_sizes = frame.value[rows].tolist(), frame.value_size[rows].tolist()
    for number, (row, at, size, value_at, value_size) in enumerate(
        zip(rows.tolist(), starts, sizes, value_starts, value_sizes, strict=True)
    ):
        value = None if value_size < 0 else data[value_at : value_at + value_size]
        decoded = decode("offsets", data[at : at + size], value)
        keys[row], values[row] = as_json(decoded.key), as_json(decoded.value)
        if decoded.key is not None:
            group[number], group_size[number] = at + 4, int.from_bytes(data[at + 2 : at + 4], "big")
    return _Rare(pa.array(keys, pa.string()), pa.array(values, pa.string()), group, group_size)
