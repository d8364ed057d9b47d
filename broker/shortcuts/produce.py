"""The shortcut of Produce v3 to v13: one batch for one partition, as producers send it.

The general handler is handlers/produce.py. It serves every request that is unusual or has to be refused; the shortcut
has then changed nothing. The partition validates the batch. transactional_produce.py serves transactional batches.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.cluster.followers import NO_CEILING
from broker.partitions.record_rules import ZSTD_SINCE, is_transactional
from broker.shortcuts.head import INT32, REPLY_HEAD, keep
from protocol.api import ApiKey
from protocol.codec_support import read_uvarint
from protocol.errors import KafkaError, MalformedError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.metadata import Topic
    from broker.coordinator.runtime import Shard
    from broker.partitions.table import Partitions
    from broker.turn.durability import FlushState
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection
    from broker.wire.service import Shortcut

PRODUCE: Final = int(ApiKey.PRODUCE)
PRODUCE_BY_ID: Final = -1  # the key of what is learnt by topic id: an id may have the bytes of a name
OLDEST: Final = 3
NEWEST: Final = 13
FLEXIBLE_SINCE: Final = 9
TOPIC_IDS_SINCE: Final = 13

_FLEXIBLE_HEAD: Final = Struct(">BBhiB")  # header tags, transactional id, acks, timeout, topics
_OLD_HEAD: Final = Struct(">hhiih")  # transactional id, acks, timeout, topics, length of the name
_OLD_PARTITION: Final = Struct(">iii")  # partitions, index, size of the records
_FLEXIBLE_ANSWER: Final = Struct(">BihqqqIIB")  # no record errors, message, tags; throttle; tags
_OLD_ANSWER: Final = Struct(">iihqq")  # partitions, index, error, base offset, log append time
_INT64: Final = Struct(">q")


class ProduceShortcut:
    """Serves requests with one batch for one partition."""

    def __init__(self, turn: Turn, partitions: Partitions, metadata_shard: Shard) -> None:
        self._turn = turn
        self._partitions = partitions
        self._metadata_shard = metadata_shard
        self.transactional: Shortcut | None = None  # serves requests with a transactional id, once there are any

    def serve(self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int) -> bytes | None:
        """Append. The reply is held until the partition's log is flushed; see service.Shortcut."""
        version = data[position + 7]
        at = position + 14 + max(0, int.from_bytes(data[position + 12 : position + 14], "big", signed=True))
        if data[position + 6] or not OLDEST <= version <= NEWEST or at + 40 > stop:
            return None
        if version < FLEXIBLE_SINCE:
            parsed = _old(data, at, stop)
        elif data[at + 1] and self.transactional is not None:
            return self.transactional(connection, data, position, stop, correlation_id)
        else:
            parsed = _flexible(data, at, stop, version)
        if parsed is None:
            return None
        acks, label, name, index, at, size = parsed
        if acks != -1 and acks != 1:
            return None
        topics = connection.learned.get(PRODUCE if version < TOPIC_IDS_SINCE else PRODUCE_BY_ID)
        topic: Topic | None = None if topics is None else topics.get(name)
        if topic is None:
            topic = self._learn(connection, name, version)
            if topic is None:
                return None
        found = self._append(connection.node_id, topic, index, memoryview(data)[at : at + size], version)
        if found is None:
            return None
        flush_state, offset, append_time, log_start_offset = found
        slot = connection.base + len(connection.out)
        self._turn.durability.hold_write(flush_state, (connection, slot, data, position, stop))
        if version >= FLEXIBLE_SINCE:
            answer = _FLEXIBLE_ANSWER.pack(2, index, 0, offset, append_time, log_start_offset, 1 << 24, 0, 0)
            body = b"\0\2" + label + answer
        else:
            answer = _OLD_ANSWER.pack(1, index, 0, offset, append_time)
            if version >= 5:
                answer += _INT64.pack(log_start_offset)
            if version >= 8:
                answer += b"\0\0\0\0\xff\xff"  # no record errors, no message
            body = b"\0\0\0\1" + label + answer + b"\0\0\0\0"
        return REPLY_HEAD.pack(4 + len(body), correlation_id) + body

    def _append(
        self, node_id: int, topic: Topic, index: int, records: memoryview, version: int
    ) -> tuple[FlushState, int, int, int] | None:
        """Flush state of the partition, base offset, log append time, log start offset. None: not served here."""
        if topic.internal or not 0 <= index < len(topic.partitions) or is_transactional(records):
            return None
        if topic.partitions[index].leader != node_id:
            return None
        partitions = self._partitions
        try:
            partition = partitions.get(topic, index)
            metadata = partitions.metadata
            if partition.metadata_version != metadata.version or partition.topic is not topic:
                partition.configure(topic, metadata)
            if partition.ceiling != NO_CEILING:  # acks=all is refused or waits then
                return None
            offset, append_time = partition.append(records, self._turn.now_ms, zstd_allowed=version >= ZSTD_SINCE)
        except (KafkaError, StorageError):
            return None
        return partition.flush_state, offset, append_time, partition.log.log_start_offset

    def _learn(self, connection: Connection, name: bytes, version: int) -> Topic | None:
        """The topic of a name, or from v13 on of an id, given as bytes of the request."""
        metadata = self._partitions.metadata
        topic: Topic | None
        if version >= TOPIC_IDS_SINCE:
            topic = metadata.topics_by_id.get(name)
        else:
            try:
                topic = metadata.topics.get(name.decode())
            except UnicodeDecodeError:
                return None
        # a topic that is not durable may still be lost: the general handler holds its replies until it is
        if topic is None or not self._turn.durability.is_settled(self._metadata_shard.flush_state):
            return None
        api = PRODUCE if version < TOPIC_IDS_SINCE else PRODUCE_BY_ID
        keep(connection.learned.setdefault(api, {}), name, topic)
        return topic


# acks, topic as the reply has it, its name or id, partition, position and size of the records
_Parsed: TypeAlias = tuple[int, bytes, bytes, int, int, int]


def _flexible(data: bytes, at: int, stop: int, version: int) -> _Parsed | None:
    """Read a request of v9 or later after the client id; None: more or less than one partition, or too short."""
    tags, transactional_id, acks, _, count = _FLEXIBLE_HEAD.unpack_from(data, at)
    if tags or transactional_id or count != 2:
        return None
    at += 9
    if version >= TOPIC_IDS_SINCE:
        label = name = data[at : at + 16]
        at += 16
    else:
        length = data[at]  # one more than the name has bytes
        if not 1 < length < 0x80:
            return None
        label = data[at : at + length]
        name = label[1:]
        at += length
    if at + 8 > stop or data[at] != 2:
        return None
    index = INT32.unpack_from(data, at + 1)[0]
    try:
        size, at = read_uvarint(data, at + 5)
    except (MalformedError, IndexError):
        return None
    size -= 1  # the length of an array plus one
    if at + size + 3 != stop or data[stop - 3 : stop] != b"\0\0\0":
        return None
    return acks, label, name, index, at, size


def _old(data: bytes, at: int, stop: int) -> _Parsed | None:
    """The same before v9."""
    transactional_id, acks, _, count, length = _OLD_HEAD.unpack_from(data, at)
    if transactional_id != -1 or count != 1 or length < 1:
        return None
    at += 14
    label = data[at - 2 : at + length]
    at += length
    if at + 12 > stop:
        return None
    count, index, size = _OLD_PARTITION.unpack_from(data, at)
    at += 12
    if count != 1 or at + size != stop:
        return None
    return acks, label, label[2:], index, at, size
