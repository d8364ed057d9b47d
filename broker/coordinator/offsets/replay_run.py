"""Replays commits from the log in columns: one C call for a batch that momus wrote, and no object for a record.

A batch that is not exactly as CommitBatch writes it is replayed record by record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.coordinator.offsets.commit_batch import VALUE_HEAD, template_of
from broker.coordinator.records import offset_value
from protocol.record import read_varint
from protocol.record_batch import HEADER_BYTES, BatchHeader

if TYPE_CHECKING:
    from broker.coordinator.offsets.table import OffsetTable
    from broker.coordinator.result import Record

MOST_RECORDS: Final = 4096  # of a template, which holds a few hundred bytes for each
KEY_HEAD: Final = b"\x00\x01"
ZERO_ID: Final = bytes(16)
NO_ID: Final = b"\x00"
ID_TAG: Final = b"\x01\x00\x10"


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


def replay_commit(table: OffsetTable, header: BatchHeader, batch: memoryview) -> bool:
    """Replay a batch that is one commit on partitions of one topic. False: it has another shape."""
    n = header.record_count
    if header.attributes or header.producer_id >= 0 or not n or header.last_offset_delta != n - 1 or n > MOST_RECORDS:
        return False
    try:
        first = _first_record(batch)
    except (IndexError, ValueError):
        return False
    if first is None:
        return False
    partitions: Sequence[int] = (first.partition,)
    offsets: Sequence[int] = (first.offset,)
    epochs: Sequence[int] = (first.epoch,)
    if n > 1:
        template = template_of(n, first.key_size, first.value_size)
        if first.end + template.size != len(batch):
            return False
        run = template.unpack(batch, first.end)
        m = n - 1
        if (
            run[0::10] != template.heads
            or run[1::10].count(first.prefix) != m
            or run[3::10].count(template.value_size) != m
            or run[4::10].count(4) != m
            or run[7::10].count(1) != m
            or run[8::10].count(first.timestamp) != m
            or run[9::10].count(first.tail + b"\x00") != m
        ):
            return False
        partitions = (first.partition, *run[2::10])
        offsets = (first.offset, *run[5::10])
        epochs = (first.epoch, *run[6::10])
    elif first.end != len(batch):
        return False
    prefix = first.prefix
    group_end = 4 + int.from_bytes(prefix[2:4], "big")
    if group_end + 2 + int.from_bytes(prefix[group_end : group_end + 2], "big") != len(prefix):
        return False
    topic_id = ZERO_ID if first.tail == NO_ID else first.tail[3:]
    group_id, topic = prefix[4:group_end].decode(), prefix[group_end + 2 :].decode()
    start = partitions[0]
    dense = partitions == tuple(range(start, start + n))
    table.replay_run(group_id, topic, topic_id, partitions, offsets, epochs, first.timestamp, dense=dense)
    return True


def _first_record(batch: memoryview) -> First | None:
    size, at = read_varint(batch, HEADER_BYTES)
    end = at + size
    if batch[at] or batch[at + 1] or batch[at + 2]:  # attributes, time delta, offset delta
        return None
    key_size, at = read_varint(batch, at + 3)
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
