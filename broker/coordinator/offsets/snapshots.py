"""The image of a group shard: all committed offsets in columns, and the records of everything else.

It is taken in slices while commits go on. Committed offsets may be newer than the image's offset, up to `end_offset`;
everything else is as it was at the image's offset. Replaying the log from there on gives the right state, if the log
reaches end_offset. An image that reaches beyond the log must not be used.

Payload, big-endian:
    i64 end_offset
    u32 count of records, each: i64 offset | u32 length, key | u32 length, value
    u32 count of topics, each: u32 length, name | 16 topic id
    then blocks until the end, each: u8 kind | u32 topic | u32 count n
        1   n groups with one partition: u32 length, their names (each ends with a zero byte)
            | i32 partition, i64 offset, i32 leader epoch, i64 commit time: a column of n each
        2   a group with n partitions: u32 length, its name | the same columns
        3   rare values of the preceding group: n times i32 partition | i64 expiry | 16 topic id | u32 length, metadata
        4   n groups that have no offset left (topic 0): n times u32 length, name
        5   n pending offsets (topic 0), as at the image's offset: n times i64 producer id | i64 offset of the record
            | u32 length, key | u32 length, value; no value: a later commit has replaced it
        6   who sends a producer's pending offsets for a group, n rows (topic 0): n times i64 producer id
            | u32 length, group | u32 count of headers, each: u32 length, name | u32 length, value
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Generator, Iterable, Iterator
from struct import Struct
from typing import Any, Final

from broker.coordinator.offsets.columns import Label, TopicOffsets
from broker.coordinator.offsets.commit_batch import offset_key_prefix
from broker.coordinator.offsets.pending import PendingOffsets
from broker.coordinator.offsets.table import OffsetTable
from broker.coordinator.records import offset_value

SINGLES: Final = 1
COLUMNS: Final = 2
RARE: Final = 3
EMPTIED: Final = 4
PENDING: Final = 5
SENDERS: Final = 6
_WITHOUT_TOPIC: Final = (EMPTIED, PENDING, SENDERS)
GROUPS_A_SLICE: Final = 100  # about 0.3 ms
CELLS_A_SLICE: Final = 20_000

_COUNT: Final = Struct(">I")
_LONG: Final = Struct(">q")
_BLOCK: Final = Struct(">BII")
_RECORD: Final = Struct(">qII")
_RARE: Final = Struct(">iq16sI")
_PENDING: Final = Struct(">qq")
_TYPES: Final = "iqiq"

KeptRecord = tuple[int, bytes, bytes]  # offset, key, value
PendingRecord = tuple[int, int, bytes, bytes]  # producer id, offset, key, value or nothing
Sender = tuple[int, str, dict[str, bytes]]  # producer id, group, headers
Cells = tuple[Iterable[int], Iterable[int], Iterable[int], Iterable[int]]


class Labels:
    """Numbers topics in the order of their first use."""

    def __init__(self) -> None:
        self.numbers: dict[Label, int] = {}

    def number(self, label: Label) -> int:
        """The number of a topic, given at its first use; counts from 0."""
        return self.numbers.setdefault(label, len(self.numbers))

    def encode(self) -> bytes:
        """The count, then name and id of each topic in the order of their numbers."""
        parts = [_COUNT.pack(len(self.numbers))]
        for label in self.numbers:
            parts += (*_sized(label.name.encode()), label.topic_id)
        return b"".join(parts)


def encode_offsets(table: OffsetTable, labels: Labels) -> Generator[None, None, list[bytes]]:
    """The blocks of a table, in slices."""
    slices: list[bytes] = []  # few and large, because each costs the writer time
    blocks: list[bytes] = []
    singles: dict[Label, tuple[list[bytes], list[tuple[int, int, int, int]]]] = {}
    handled = 0
    for group_id in list(table.group_ids()):
        for columns in table.topics(group_id):
            rows, offsets, epochs, times = columns.columns()
            n = len(rows)
            handled += n // 20 + 1
            if not n:
                continue
            if n == 1 and columns.rare is None and "\0" not in group_id:
                names, cells = singles.setdefault(columns.label, ([], []))
                names.append(group_id.encode())
                cells.append((rows[0], offsets, epochs, times))  # type: ignore[arg-type]  # of one row: no arrays
                continue
            blocks += (_BLOCK.pack(COLUMNS, labels.number(columns.label), n), *_sized(group_id.encode()))
            blocks.append(_cells((rows, _column(offsets, n), _column(epochs, n), _column(times, n))))
            if columns.rare is not None:
                blocks.append(_rare(columns, labels))
        if handled >= GROUPS_A_SLICE:
            handled = 0
            _flush(singles, labels, blocks)
            slices.append(b"".join(blocks))
            blocks.clear()
            yield
    _flush(singles, labels, blocks)
    if table.emptied:
        blocks.append(_BLOCK.pack(EMPTIED, 0, len(table.emptied)))
        for group_id in table.emptied:
            blocks += _sized(group_id.encode())
    slices.append(b"".join(blocks))
    return slices


def encode_pending(pending: PendingOffsets) -> bytes:
    """The blocks of all pending offsets, as they are now."""
    rows = list(pending.items())
    parts = [_BLOCK.pack(PENDING, 0, len(rows))]
    for producer_id, group_id, topic, partition, each in rows:
        value = b"" if each.committed is None else offset_value(each.committed)
        parts.append(_PENDING.pack(producer_id, each.record_offset))
        parts += _sized(offset_key_prefix(group_id, topic) + partition.to_bytes(4, "big"))
        parts += _sized(value)
    senders = list(pending.senders())
    parts.append(_BLOCK.pack(SENDERS, 0, len(senders)))
    for producer_id, group_id, headers in senders:
        parts.append(_LONG.pack(producer_id))
        parts += _sized(group_id.encode())
        parts.append(_COUNT.pack(len(headers)))
        for name, content in headers.items():
            parts += (*_sized(name.encode()), *_sized(content))
    return b"".join(parts)


def _sized(data: bytes) -> tuple[bytes, bytes]:
    return _COUNT.pack(len(data)), data


def _flush(
    singles: dict[Label, tuple[list[bytes], list[tuple[int, int, int, int]]]], labels: Labels, blocks: list[bytes]
) -> None:
    for label, (names, cells) in singles.items():
        joined = b"\0".join(names) + b"\0"
        blocks += (_BLOCK.pack(SINGLES, labels.number(label), len(names)), *_sized(joined))
        blocks.append(_cells(tuple(zip(*cells, strict=True))))  # type: ignore[arg-type]  # four columns
    singles.clear()


def _rare(columns: TopicOffsets, labels: Labels) -> bytes:
    rare = columns.rare
    assert rare is not None
    partitions = sorted({*rare.metadata, *rare.expire, *rare.other_ids})
    parts = [_BLOCK.pack(RARE, labels.number(columns.label), len(partitions))]
    for partition in partitions:
        metadata = rare.metadata.get(partition, "").encode("utf-8", "surrogatepass")
        topic_id = rare.other_ids.get(partition, columns.label.topic_id)
        parts += (_RARE.pack(partition, rare.expire.get(partition, -1), topic_id, len(metadata)), metadata)
    return b"".join(parts)


def _column(value: int | array[int], n: int) -> Iterable[int]:
    return (value,) * n if isinstance(value, int) else value


def _cells(cells: Cells) -> bytes:
    parts = []
    for kind, values in zip(_TYPES, cells, strict=True):
        column = array(kind, values)
        if sys.byteorder == "little":
            column.byteswap()
        parts.append(column.tobytes())
    return b"".join(parts)


def encode_head(end_offset: int, records: Iterable[KeptRecord], labels: Labels) -> bytes:
    """The payload up to the blocks."""
    kept = list(records)
    parts = [_LONG.pack(end_offset), _COUNT.pack(len(kept))]
    for offset, key, value in kept:
        parts += (_RECORD.pack(offset, len(key), len(value)), key, value)
    parts.append(labels.encode())
    return b"".join(parts)


def end_offset_of(payload: memoryview) -> int:
    """How far the log must reach for the image to be usable."""
    end_offset: int = _LONG.unpack_from(payload)[0] if len(payload) >= _LONG.size else -1
    return end_offset


class Reader:
    """Reads a payload."""

    def __init__(self, payload: memoryview) -> None:
        self._data = payload
        self._at = _LONG.size
        self.pending: list[PendingRecord] = []  # filled by `offsets`, as the next one
        self.senders: list[Sender] = []

    def _take(self, n: int) -> memoryview:
        at = self._at
        self._at = at + n
        if self._at > len(self._data):
            raise ValueError("the image ends too early")
        return self._data[at : at + n]

    def _unpack(self, struct: Struct) -> tuple[Any, ...]:
        return struct.unpack(self._take(struct.size))

    def _bytes(self) -> bytes:
        return bytes(self._take(self._unpack(_COUNT)[0]))

    def records(self) -> Iterator[KeptRecord]:
        """Everything but offsets, in log order."""
        for _ in range(self._unpack(_COUNT)[0]):
            offset, key_size, value_size = self._unpack(_RECORD)
            yield offset, bytes(self._take(key_size)), bytes(self._take(value_size))

    def offsets(self, table: OffsetTable) -> Iterator[None]:
        """Fill an empty table, in slices."""
        topics = []
        for _ in range(self._unpack(_COUNT)[0]):
            name = self._bytes().decode()
            topics.append((name, bytes(self._take(16))))
        labels = [table.label(*topic) for topic in topics]
        columns = None
        handled = 0
        while self._at < len(self._data):
            kind, topic, n = self._unpack(_BLOCK)
            if kind in _WITHOUT_TOPIC:
                for _ in range(n):
                    self._row(kind, table)
                continue
            label = labels[topic]
            if kind == RARE:
                assert columns is not None
                for _ in range(n):
                    partition, expire_ms, topic_id, size = self._unpack(_RARE)
                    metadata = bytes(self._take(size)).decode("utf-8", "surrogatepass")
                    known = columns.get(partition)
                    assert known is not None
                    columns.replay(
                        partition, known._replace(metadata=metadata, expire_timestamp_ms=expire_ms, topic_id=topic_id)
                    )
                continue
            names = self._bytes()
            cells = [self._cells(kind, n) for kind in _TYPES]
            if kind == SINGLES:
                for name, *row in zip(names.decode().split("\0"), *cells, strict=False):
                    columns = TopicOffsets(label)
                    columns.replay_only_row(*row)
                    table.adopt(name, columns)
                handled += n * 20
            else:
                columns = TopicOffsets(label)
                columns.replay_rows(*cells)
                table.adopt(names.decode(), columns)
                handled += n + 20
            if handled >= CELLS_A_SLICE:
                handled = 0
                yield

    def _row(self, kind: int, table: OffsetTable) -> None:
        if kind == EMPTIED:
            table.replay_emptied(self._bytes().decode())
        elif kind == PENDING:
            producer_id, offset = self._unpack(_PENDING)
            self.pending.append((producer_id, offset, self._bytes(), self._bytes()))
        else:
            (producer_id,) = self._unpack(_LONG)
            group_id = self._bytes().decode()
            headers = {self._bytes().decode(): self._bytes() for _ in range(self._unpack(_COUNT)[0])}
            self.senders.append((producer_id, group_id, headers))

    def _cells(self, kind: str, n: int) -> array[int]:
        column = array(kind)
        column.frombytes(self._take(n * column.itemsize))
        if sys.byteorder == "little":
            column.byteswap()
        return column
