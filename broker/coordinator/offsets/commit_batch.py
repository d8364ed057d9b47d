"""The record batch of an offset commit: what stays the same from one commit to the next is made once."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from fastcrc import crc32

from protocol.record import varint
from protocol.record_batch import TRANSACTIONAL

crc32c = crc32.iscsi
BATCH_HEAD = Struct(">qiiBI")  # base offset, length, leader epoch, magic, crc
ZERO_ID = bytes(16)


def offset_key_prefix(group_id: str, topic: str) -> bytes:
    """OffsetCommitKey v1 without its last field, the partition."""
    group, name = group_id.encode(), topic.encode()
    return b"\x00\x01" + len(group).to_bytes(2, "big") + group + len(name).to_bytes(2, "big") + name


class CommitBatch:
    """Builds batches for commits by one group on the same partitions of one topic, without metadata.

    Shape: `headers` (an encoded header section) on the first record; record i has OffsetCommitKey v1 of
    partitions[i] and OffsetCommitValue v4 (offset, leader epoch, "", commit
    timestamp, topic id), Kafka's own schemas.
    """

    __slots__ = ("_args", "_end", "_pack", "count", "dense", "group_id", "partitions", "size", "topic", "topic_id")

    def __init__(
        self, group_id: str, topic: str, topic_id: bytes, partitions: Sequence[int], headers: bytes = b"\x00"
    ) -> None:
        self.group_id = group_id
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions
        self.count = n = len(partitions)
        self.dense = tuple(partitions) == tuple(range(partitions[0], partitions[0] + n))
        prefix = offset_key_prefix(group_id, topic)
        tags = b"\x00" if topic_id == ZERO_ID else b"\x01\x00\x10" + topic_id
        value_size = 2 + 8 + 4 + 1 + 8 + len(tags)
        layout = [">hiqqqhii"]
        args: list[object] = [0, n - 1, 0, 0, -1, -1, -1, n]
        last = b""
        for i, partition in enumerate(partitions):
            key = prefix + partition.to_bytes(4, "big")
            body = b"\x00\x00" + varint(i) + varint(len(key)) + key + varint(value_size) + b"\x00\x04"
            size = len(body) + value_size - 2 + len(headers)  # the value's version is in body
            fixed = last + varint(size) + body
            layout.append(f"{len(fixed)}sqiBq")
            args += (fixed, 0, -1, 1, 0)
            last = tags + headers
            headers = b"\x00"
        layout.append(f"{len(last)}s")
        args.append(last)
        layout_struct = Struct("".join(layout))
        self._pack = layout_struct.pack
        self.size = BATCH_HEAD.size + layout_struct.size
        self._args = args
        self._end = 8 + 5 * n

    def build(
        self,
        base_offset: int,
        leader_epoch: int,
        now_ms: int,
        offsets: Sequence[int],
        epochs: Sequence[int],
        producer: tuple[int, int] | None = None,
    ) -> bytes:
        """The batch of one commit; `producer` (id and epoch): a part of its transaction.

        One CommitBatch builds either plain batches or transactional ones.
        """
        args, n = self._args, self.count
        if producer is not None:
            args[0] = TRANSACTIONAL
            args[4:6] = producer
        args[2] = args[3] = now_ms
        if n == 1:
            args[9] = offsets[0]
            args[10] = epochs[0]
            args[12] = now_ms
        else:
            end = self._end
            args[9:end:5] = offsets
            args[10:end:5] = epochs
            args[12:end:5] = (now_ms,) * n
        tail = self._pack(*args)
        return BATCH_HEAD.pack(base_offset, len(tail) + 9, leader_epoch, 2, crc32c(tail)) + tail
