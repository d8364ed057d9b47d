"""The fast way of Produce: one batch for one partition, as producers send it, read and answered without messages.

A shortcut of the general handler in handlers/produce.py. It answers None whenever a request is in any way out of the
ordinary or is to be refused, and has changed nothing then: the general handler decides. Validation is the partition's.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from broker.partitions.record_rules import ZSTD_SINCE, is_transactional
from broker.wire.request_bytes import REPLY_HEAD
from protocol.codec_support import read_uvarint
from protocol.errors import KafkaError, MalformedError
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.cluster.metadata import Topic
    from broker.wire.connection import Connection

OLDEST: Final = 3
NEWEST: Final = 13
FLEXIBLE_SINCE: Final = 9
TOPIC_IDS_SINCE: Final = 13
MOST_TOPICS: Final = 10_000

_FLEXIBLE_HEAD: Final = Struct(">BBhiB")  # header tags, transactional id, acks, timeout, topics
_OLD_HEAD: Final = Struct(">hhiih")  # transactional id, acks, timeout, topics, length of the name
_OLD_PARTITION: Final = Struct(">iii")  # partitions, index, size of the records
_INT32: Final = Struct(">i")
_FLEXIBLE_ANSWER: Final = Struct(">BihqqqIIB")  # no record errors, message, tags; throttle; tags
_OLD_ANSWER: Final = Struct(">iihqq")  # partitions, index, error, base offset, log append time
_INT64: Final = Struct(">q")


class ProducePath:
    """The shortcut of Produce v3 to v13."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topics: dict[bytes, Topic] = {}  # by name or id as it stands in requests; looked at again at each use

    def produce(
        self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int
    ) -> bytes | None:
        """Append and answer the reply, held until the partition's log is flushed; None: not one for here."""
        version = data[position + 7]
        at = position + 14 + max(0, int.from_bytes(data[position + 12 : position + 14], "big", signed=True))
        if data[position + 6] or not OLDEST <= version <= NEWEST or at + 40 > stop:
            return None
        if version >= FLEXIBLE_SINCE:
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
            index = _INT32.unpack_from(data, at + 1)[0]
            at += 5
            try:
                size, at = read_uvarint(data, at)
            except (MalformedError, IndexError):
                return None
            size -= 1  # the length of an array plus one
            if at + size + 3 != stop or data[stop - 3 : stop] != b"\0\0\0":
                return None
        else:
            transactional_id, acks, _, count, length = _OLD_HEAD.unpack_from(data, at)
            if transactional_id != -1 or count != 1 or length < 1:
                return None
            at += 14
            label = data[at - 2 : at + length]
            name = label[2:]
            at += length
            if at + 12 > stop:
                return None
            count, index, size = _OLD_PARTITION.unpack_from(data, at)
            at += 12
            if count != 1 or at + size != stop:
                return None
        if acks != -1 and acks != 1:
            return None
        topic = self._topics.get(name)
        broker = self._broker
        metadata = broker.metadata
        if topic is None or metadata.topics_by_id.get(topic.topic_id) is not topic:
            topic = self._learn(name, version)
        if topic is None or topic.internal or not 0 <= index < len(topic.partitions):
            return None
        if topic.partitions[index].leader != connection.node_id:
            return None
        records = memoryview(data)[at : at + size]
        if is_transactional(records):
            return None
        try:
            partition = broker.partition(topic, index)
            if partition.metadata_version != metadata.version or partition.topic is not topic:
                partition.configure(topic, metadata)
            offset, append_time = partition.append(records, broker.now_ms, zstd_allowed=version >= ZSTD_SINCE)
        except (KafkaError, StorageError):
            return None
        slot = connection.base + len(connection.out)
        flush_state = partition.flush_state
        if not flush_state.queued:
            broker.touch(flush_state)
        broker.durability.hold(flush_state, (connection, slot, data, position, stop))
        start = partition.log.log_start_offset
        if version >= FLEXIBLE_SINCE:
            answer = _FLEXIBLE_ANSWER.pack(2, index, 0, offset, append_time, start, 1 << 24, 0, 0)
            body = b"\0\2" + label + answer
        else:
            answer = _OLD_ANSWER.pack(1, index, 0, offset, append_time)
            if version >= 5:
                answer += _INT64.pack(start)
            if version >= 8:
                answer += b"\0\0\0\0\xff\xff"  # no record errors, no message
            body = b"\0\0\0\1" + label + answer + b"\0\0\0\0"
        return REPLY_HEAD.pack(4 + len(body), correlation_id) + body

    def _learn(self, name: bytes, version: int) -> Topic | None:
        metadata = self._broker.metadata
        if version >= TOPIC_IDS_SINCE:
            topic = metadata.topics_by_id.get(name)
        else:
            try:
                topic = metadata.topics.get(name.decode())
            except UnicodeDecodeError:
                return None
        if len(self._topics) >= MOST_TOPICS:  # deleted ones stay until then
            self._topics.clear()
        if topic is None or not self._broker.durability.is_settled(self._broker.metadata_shard.flush_state):
            return None  # a topic that is not durable yet may never be: its first replies wait for it
        self._topics[name] = topic
        return topic
