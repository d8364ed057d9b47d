"""What a commit of offsets of one topic writes: its record batch, and its replay in columns.

CommitBatch makes the constant parts of the batch once and reuses them; OneCommit is faster where they are used once.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from fastcrc import crc32

from broker.turn.write import Batch, Write
from protocol.record import varint
from protocol.record_batch import TRANSACTIONAL

if TYPE_CHECKING:
    from broker.coordinator.offsets.columns import TopicOffsets
    from broker.coordinator.offsets.pending import PendingOffsets
    from broker.turn.decision import Headers

Producer = tuple[int, int]  # id and epoch

crc32c: Final = crc32.iscsi
BATCH_HEAD: Final = Struct(">qiiBI")  # base offset, length, leader epoch, magic, crc
# attributes, last offset delta, first and last time, producer id and epoch, base sequence, record count
BATCH_TAIL: Final = Struct(">hiqqqhii")
VALUE_HEAD: Final = Struct(">hqiBq")  # version, offset, leader epoch, length of the metadata, commit timestamp
TEMPLATE_RECORDS_KEPT: Final = 50_000  # of all templates together; about 0.5 kB each
RECORD_BYTES: Final = 48  # of a record beside its key's prefix and the tags: lengths, deltas, partition, value
ZERO_ID: Final = bytes(16)


def offset_key_prefix(group_id: str, topic: str) -> bytes:
    """OffsetCommitKey v1 without its last field, the partition."""
    group, name = group_id.encode(), topic.encode()
    return b"\x00\x01" + len(group).to_bytes(2, "big") + group + len(name).to_bytes(2, "big") + name


class PlainCommit(Write):
    """Offsets that a group commits on partitions of one topic, without metadata: one batch (see turn/write.py).

    offsets, leader_epochs   one for each of the partitions; set before each use.
    columns                  those that a plain commit changes, once it has been replayed. Who keeps a commit for
                             later drops it when columns are removed (turn/learned.py).
    producer, sender         id and epoch: the offsets are pending until its marker; the headers say who commits them.
    """

    __slots__ = (
        "columns",
        "count",
        "dense",
        "group_id",
        "leader_epochs",
        "offsets",
        "partitions",
        "producer",
        "sender",
        "topic",
        "topic_id",
    )

    def __init__(self, group_id: str, topic: str, topic_id: bytes, partitions: Sequence[int]) -> None:
        self.group_id = group_id
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions
        self.count = n = len(partitions)
        self.dense = list(partitions) == list(range(partitions[0], partitions[0] + n))
        self.offsets: Sequence[int] = ()
        self.leader_epochs: Sequence[int] = ()
        self.producer: Producer | None = None
        self.sender: Headers = ()
        self.columns: TopicOffsets | None = None

    def replay(self, shard: Any, base_offset: int, now_ms: int) -> None:
        """The offsets become the group's, or pending."""
        producer = self.producer
        if producer is None:
            columns = self.columns
            if columns is None:
                columns = self.columns = shard.machine.offsets.topic_or_new(self.group_id, self.topic)
            columns.replay_run(
                self.partitions, self.offsets, self.leader_epochs, now_ms, self.topic_id, dense=self.dense
            )
            return
        pending: PendingOffsets = shard.machine.pending
        pending.replay_run(
            producer[0],
            self.group_id,
            self.topic,
            self.partitions,
            self.offsets,
            self.leader_epochs,
            now_ms,
            base_offset,
            self.topic_id,
        )
        if self.sender:
            pending.replay_sender(producer[0], self.group_id, self.sender)


class CommitBatch(PlainCommit):
    """Builds batches for commits by one group on the same partitions of one topic, without metadata.

    Shape: `headers` (an encoded header section) on the first record; record i has OffsetCommitKey v1 of
    partitions[i] and OffsetCommitValue v4 (offset, leader epoch, "", commit
    timestamp, topic id), Kafka's own schemas.
    """

    __slots__ = ("_args", "_end", "_length", "_pack", "size")

    def __init__(
        self, group_id: str, topic: str, topic_id: bytes, partitions: Sequence[int], headers: bytes = b"\x00"
    ) -> None:
        super().__init__(group_id, topic, topic_id, partitions)
        n = self.count
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
        self._length = layout_struct.size + 9  # what follows the length in the head
        self._args = args
        self._end = 8 + 5 * n

    def build(self, log: Any, base_offset: int, now_ms: int) -> Batch:
        """One CommitBatch builds either plain batches or transactional ones."""
        args, n, producer = self._args, self.count, self.producer
        offsets, epochs = self.offsets, self.leader_epochs
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
        data = BATCH_HEAD.pack(base_offset, self._length, log.epochs.latest, 2, crc32c(tail)) + tail
        return (data,), base_offset + n - 1, now_ms, self.size


class Template:
    """The layout and constant bytes of the records after the first one, in a batch of `count` records."""

    __slots__ = ("constants", "heads", "pack", "size", "unpack", "value_size")

    def __init__(self, count: int, key_size: int, value_size: int) -> None:
        tail_size = value_size - VALUE_HEAD.size + 1
        self.value_size = varint(value_size)
        key_length = varint(key_size)
        layout = [">"]
        heads = []
        for i in range(1, count):
            body = b"\x00\x00" + varint(i) + key_length
            size = len(body) + key_size + len(self.value_size) + value_size + 1
            heads.append(varint(size) + body)
            layout.append(f"{len(heads[-1])}s{key_size - 4}si{len(self.value_size)}shqiBq{tail_size}s")
        # What `pack` takes, ten values a record: head, prefix, partition, length, then version, offset, epoch, length
        # of the metadata plus one, time, tags. A build copies this and fills in the others.
        self.constants: list[object] = [None] * (10 * (count - 1))
        self.constants[0::10] = heads
        self.constants[3::10] = [self.value_size] * (count - 1)
        self.constants[4::10] = [4] * (count - 1)
        self.constants[7::10] = [1] * (count - 1)
        self.heads = tuple(heads)
        struct = Struct("".join(layout))
        self.unpack = struct.unpack_from
        self.pack = struct.pack
        self.size = struct.size


_templates: dict[tuple[int, int, int], Template] = {}


def template_of(count: int, key_size: int, value_size: int) -> Template:
    """The template of batches of `count` records with keys and values of these sizes."""
    shape = count, key_size, value_size
    template = _templates.get(shape)
    if template is None:
        if count + sum([kept[0] for kept in _templates]) > TEMPLATE_RECORDS_KEPT:
            _templates.clear()
        template = _templates[shape] = Template(*shape)
    return template


class OneCommit(PlainCommit):
    """Builds the same batch as CommitBatch; faster where the partitions are used once."""

    __slots__ = ("_headers", "_prefix", "_tags")

    def __init__(
        self, group_id: str, topic: str, topic_id: bytes, partitions: Sequence[int], headers: bytes = b"\x00"
    ) -> None:
        super().__init__(group_id, topic, topic_id, partitions)
        self._headers = headers
        self._prefix = offset_key_prefix(group_id, topic)
        self._tags = b"\x00" if topic_id == ZERO_ID else b"\x01\x00\x10" + topic_id

    @property
    def most_bytes(self) -> int:
        """An upper bound of the size of the batch."""
        record_bytes = RECORD_BYTES + len(self._prefix) + len(self._tags)
        return BATCH_HEAD.size + BATCH_TAIL.size + self.count * record_bytes + len(self._headers)

    def build(self, log: Any, base_offset: int, now_ms: int) -> Batch:
        """See turn/write.py."""
        offsets, epochs, producer = self.offsets, self.leader_epochs, self.producer
        n, partitions, tags, prefix = self.count, self.partitions, self._tags, self._prefix
        value_size = VALUE_HEAD.size + len(tags)
        key = prefix + partitions[0].to_bytes(4, "big")
        body = b"\x00\x00\x00" + varint(len(key)) + key + varint(value_size)
        value = VALUE_HEAD.pack(4, offsets[0], epochs[0], 1, now_ms) + tags
        records = varint(len(body) + value_size + len(self._headers)) + body + value + self._headers
        if n > 1:
            template = template_of(n, len(key), value_size)
            args = template.constants.copy()
            args[1::10] = [prefix] * (n - 1)
            args[2::10] = partitions[1:]
            args[5::10] = offsets[1:]
            args[6::10] = epochs[1:]
            args[8::10] = [now_ms] * (n - 1)
            args[9::10] = [tags + b"\x00"] * (n - 1)
            records += template.pack(*args)
        attributes, (producer_id, producer_epoch) = (0, (-1, -1)) if producer is None else (TRANSACTIONAL, producer)
        tail = BATCH_TAIL.pack(attributes, n - 1, now_ms, now_ms, producer_id, producer_epoch, -1, n) + records
        data = BATCH_HEAD.pack(base_offset, len(tail) + 9, log.epochs.latest, 2, crc32c(tail)) + tail
        return (data,), base_offset + n - 1, now_ms, len(data)
