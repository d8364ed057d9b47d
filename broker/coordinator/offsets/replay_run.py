"""Replays commits from the log in columns: one or two C calls for a batch that momus wrote, and no object for a record.

A batch that is neither as CommitBatch writes it nor what a cleaner left of one is replayed record by record.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.coordinator.offsets.commit_batch import VALUE_HEAD, template_of
from broker.coordinator.records import offset_value
from protocol.record import read_varint, varint
from protocol.record_batch import HEADER_BYTES, BatchHeader

if TYPE_CHECKING:
    from broker.coordinator.offsets.table import OffsetTable
    from broker.turn.decision import Record

MOST_RECORDS: Final = 4096  # of a template, which holds a few hundred bytes for each
LAYOUTS_KEPT: Final = 1024
KEY_HEAD: Final = b"\x00\x01"
ZERO_ID: Final = bytes(16)
NO_ID: Final = b"\x00"
ID_TAG: Final = b"\x01\x00\x10"
Cells = tuple[object, ...]  # one field of each record
Columns = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # partitions, offsets, epochs


class First(NamedTuple):
    """The fields of the first record of a batch; `end` is the position after it."""

    prefix: bytes
    partition: int
    offset: int
    epoch: int
    timestamp: int
    tail: bytes
    key_size: int
    value_size: int
    end: int


class Layout:
    """How records of a gapped run are laid out in a batch, those whose offset delta takes `delta_bytes` (1 or 2)."""

    __slots__ = ("delta_bytes", "head", "key_size", "records", "size", "value_size")

    def __init__(self, delta_bytes: int, key_size: int, value_size: int) -> None:
        self.delta_bytes = delta_bytes
        self.key_size, self.value_size = varint(key_size), varint(value_size)
        body = 2 + delta_bytes + len(self.key_size) + key_size + len(self.value_size) + value_size + 1
        self.head = varint(body) + b"\x00\x00"  # attributes and time delta
        struct = Struct(
            f">{len(self.head)}s{delta_bytes}s{len(self.key_size)}s{key_size - 4}si"
            f"{len(self.value_size)}shqiBq{value_size - VALUE_HEAD.size + 1}s"
        )
        self.size = struct.size
        self.records = struct.iter_unpack


_layout = lru_cache(maxsize=LAYOUTS_KEPT)(Layout)


def replay_commit(table: OffsetTable, header: BatchHeader, batch: memoryview) -> bool:
    """Replay a batch that is one commit on partitions of one topic. False: it has another shape."""
    n = header.record_count
    if header.attributes or header.producer_id >= 0 or not 0 < n <= MOST_RECORDS:
        return False
    try:
        first = _first_record(batch)
    except (IndexError, ValueError):
        return False
    if first is None:
        return False
    columns: Columns = (first.partition,), (first.offset,), (first.epoch,)
    if n > 1:
        rest = (_run if header.last_offset_delta == n - 1 else _gapped_run)(batch, first, n - 1)
        if rest is None:
            return False
        columns = columns[0] + rest[0], columns[1] + rest[1], columns[2] + rest[2]
    elif first.end != len(batch):
        return False
    prefix = first.prefix
    group_end = 4 + int.from_bytes(prefix[2:4], "big")
    if group_end + 2 + int.from_bytes(prefix[group_end : group_end + 2], "big") != len(prefix):
        return False
    topic_id = ZERO_ID if first.tail == NO_ID else first.tail[3:]
    group_id, topic = prefix[4:group_end].decode(), prefix[group_end + 2 :].decode()
    partitions, offsets, epochs = columns
    start = partitions[0]
    dense = partitions == tuple(range(start, start + n))
    table.replay_run(group_id, topic, topic_id, partitions, offsets, epochs, first.timestamp, dense=dense)
    return True


def _first_record(batch: memoryview) -> First | None:
    size, at = read_varint(batch, HEADER_BYTES)
    end = at + size
    if batch[at] or batch[at + 1]:  # attributes, time delta
        return None
    _, at = read_varint(batch, at + 2)  # offset delta
    key_size, at = read_varint(batch, at)
    key_end = at + key_size
    if key_size < 10 or bytes(batch[at : at + 2]) != KEY_HEAD:
        return None
    prefix = bytes(batch[at : key_end - 4])
    partition = int.from_bytes(batch[key_end - 4 : key_end], "big", signed=True)
    value_size, at = read_varint(batch, key_end)
    value_end = at + value_size
    if value_size < VALUE_HEAD.size + 1 or value_end >= end or end > len(batch):
        return None
    version, offset, epoch, metadata, timestamp = VALUE_HEAD.unpack_from(batch, at)
    tail = bytes(batch[at + VALUE_HEAD.size : value_end])
    if version != 4 or metadata != 1 or partition < 0:
        return None
    if tail != NO_ID and (len(tail) != 19 or tail[:3] != ID_TAG):
        return None
    if b"txsize" in bytes(batch[value_end:end]):  # part of a commit over several batches
        return None
    return First(prefix, partition, offset, epoch, timestamp, tail, key_size, value_size, end)


def _run(batch: memoryview, first: First, count: int) -> Columns | None:
    """Partitions, offsets and epochs of the records after the first one. None: one of them has another shape."""
    template = template_of(count + 1, first.key_size, first.value_size)
    if first.end + template.size != len(batch):
        return None
    run = template.unpack(batch, first.end)
    if run[0::10] != template.heads or run[3::10].count(template.value_size) != count:
        return None
    if not _are_like(first, run[1::10], run[4::10], run[7::10], run[8::10], run[9::10]):
        return None
    return run[2::10], run[5::10], run[6::10]


def _gapped_run(batch: memoryview, first: First, count: int) -> Columns | None:
    """The same for what a cleaner has left of a batch: there are gaps between its offset deltas.

    Deltas of one byte come first, then those of two. All records with the one have one size, and all with the other
    another, so the size of the batch says how many there are of each.
    """
    short, long = _layout(1, first.key_size, first.value_size), _layout(2, first.key_size, first.value_size)
    longs, over = divmod(len(batch) - first.end - count * short.size, long.size - short.size)
    if over or not 0 <= longs <= count:
        return None
    middle = first.end + (count - longs) * short.size
    if not longs:
        return _columns(batch[first.end :], short, first)
    if longs == count:
        return _columns(batch[middle:], long, first)
    above, below = _columns(batch[first.end : middle], short, first), _columns(batch[middle:], long, first)
    return above and below and (above[0] + below[0], above[1] + below[1], above[2] + below[2])


def _are_varints(data: bytes, width: int) -> bool:
    """Whether these are varints of one byte each, or of two."""
    return data[width - 1 :: width].isascii() and (width == 1 or min(data[::width]) > 0x7F)


def _columns(records: memoryview, layout: Layout, first: First) -> Columns | None:
    """Partitions, offsets and epochs of records of one size. None: one of them has another shape.

    What the deltas are is not looked at: no offset of a record is kept for a plain commit.
    """
    heads, deltas, keys, prefixes, partitions, sizes, versions, offsets, epochs, metadata, times, tails = zip(
        *layout.records(records), strict=True
    )
    n = len(heads)
    if (
        heads.count(layout.head) != n
        or not _are_varints(b"".join(deltas), layout.delta_bytes)
        or keys.count(layout.key_size) != n
        or sizes.count(layout.value_size) != n
        or not _are_like(first, prefixes, versions, metadata, times, tails)
    ):
        return None
    return partitions, offsets, epochs


def _are_like(first: First, prefixes: Cells, versions: Cells, metadata: Cells, times: Cells, tails: Cells) -> bool:
    """Whether records have group, topic, time and topic id of the first one, and are of version 4 without metadata."""
    n = len(prefixes)
    return (
        prefixes.count(first.prefix) == n
        and versions.count(4) == n
        and metadata.count(1) == n
        and times.count(first.timestamp) == n
        and tails.count(first.tail + b"\x00") == n
    )


def offset_key(key: bytes) -> tuple[str, str, int]:
    """Group, topic and partition of an OffsetCommitKey (types 0 and 1: the same fields)."""
    group_end = 4 + int.from_bytes(key[2:4], "big")
    topic_end = group_end + 2 + int.from_bytes(key[group_end : group_end + 2], "big")
    partition = int.from_bytes(key[topic_end : topic_end + 4], "big", signed=True)
    return key[4:group_end].decode(), key[group_end + 2 : topic_end].decode(), partition


def record_of(table: OffsetTable, key: bytes) -> Record | None:
    """The record that commits the present offset of an offset record's key again. None: one is pending there.

    A new record would replace the pending offset.
    """
    group_id, topic, partition = offset_key(key)
    columns = table.topic(group_id, topic)
    if columns is None:
        return key, None
    if columns.pending and partition in columns.pending:
        return None
    committed = columns.get(partition)
    return key, None if committed is None else offset_value(committed)
