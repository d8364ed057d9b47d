"""The shortcut of Produce with a transactional id, v9 to v12: one batch for one partition.

The general handler is handlers/produce.py. The shortcut serves only where a write is durable at once (not at `fsync`,
where requests wait for a sync) and one node leads and coordinates everything.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from broker.coordinator.transactions.gate import ask
from broker.partitions.record_rules import is_transactional
from broker.shortcuts.head import BODY, INT32, PRODUCER, REPLY_HEAD, HeadReader, keep, transactional_id_end
from broker.shortcuts.transactions import REFUSED, TransactionShortcuts, no_step_follows
from protocol.codec_support import read_uvarint
from protocol.record_batch import LOG_OVERHEAD_BYTES

if TYPE_CHECKING:
    from broker.cluster.metadata import Topic
    from broker.coordinator.transactions.transaction import Partitions as TransactionPartitions
    from broker.partitions.table import Partitions
    from broker.wire.connection import Connection

OLDEST: Final = 9
NEWEST: Final = 12
ADDS_SINCE: Final = 12  # the partition joins the transaction by itself (KIP-890)
LEARNT: Final = -2  # the key of what is learnt; plain requests have other keys

_ANSWER: Final = Struct(">qqqIIB")  # offset, time, start; no errors, message and tags; throttle; tags
_LENGTH_AT: Final = 8  # in a batch
_PRODUCER_AT: Final = 43


class Place:
    """One partition that a transactional producer writes to."""

    __slots__ = ("index", "partitions", "reply", "topic", "transactional_id")

    def __init__(self, transactional_id: str, topic: Topic, index: int, reply: bytes) -> None:
        self.transactional_id = transactional_id
        self.topic = topic
        self.index = index
        self.partitions: TransactionPartitions = {topic.name: (index,)}
        self.reply = reply  # up to the offset


class TransactionalProduceShortcut:
    """Serves requests with one transactional batch for one partition."""

    def __init__(self, shared: TransactionShortcuts, partitions: Partitions) -> None:
        self._shared = shared
        self._transactions = shared.transactions
        self._turn = shared.turn
        self._partitions = partitions

    def serve(self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int) -> bytes | None:
        """Append. The reply is held until the log is flushed; see service.Shortcut."""
        version = data[position + 7]
        if data[position + 6] or not OLDEST <= version <= NEWEST or not self._shared.is_open(stop - position):
            return None
        try:
            return self._serve(connection, data, position, stop, version, correlation_id)
        except REFUSED:
            return None

    def _serve(
        self, connection: Connection, data: bytes, position: int, stop: int, version: int, correlation_id: int
    ) -> bytes | None:
        at = transactional_id_end(data, position) + 7  # acks, timeout, topics
        at += data[at] + 5  # name, partitions
        if at + 64 > stop:
            return None
        head = data[position + BODY : at]
        places = connection.learned.setdefault(LEARNT, {})
        place: Place | None = places.get(head)
        if place is None:
            place = self._learn(head)
            if place is None:
                return None
            keep(places, head, place)
        size, at = read_uvarint(data, at)  # the records' length plus one
        records = memoryview(data)[at : at + size - 1]
        if at + size + 2 != stop or data[stop - 3 : stop] != b"\0\0\0" or not is_transactional(records):
            return None
        if INT32.unpack_from(records, _LENGTH_AT)[0] != len(records) - LOG_OVERHEAD_BYTES:
            return None  # not one batch: it must not join the transaction
        topic, turn, metadata = place.topic, self._turn, self._partitions.metadata
        partition = self._partitions.get(topic, place.index)
        if partition.metadata_version != metadata.version or partition.topic is not topic:
            partition.configure(topic, metadata)
        producer_id, epoch = PRODUCER.unpack_from(records, _PRODUCER_AT)
        if not partition.has_open_transaction(producer_id, epoch):
            partition.check_epoch(producer_id, epoch)
            adds = version >= ADDS_SINCE
            if not adds and not self._transactions.config.transaction_partition_verification_enable:
                return None
            if ask(
                self._transactions,
                turn.now_ms,
                place.transactional_id,
                producer_id,
                epoch,
                place.partitions,
                adds,
                no_step_follows,
            ):
                return None
        offset, append_time = partition.append(records, turn.now_ms, begins_at_zero=version >= ADDS_SINCE)
        answer = _ANSWER.pack(offset, append_time, partition.log.log_start_offset, 1 << 24, 0, 0)
        turn.durability.hold_write(partition.flush_state, (connection, connection.next_slot, data, position, stop))
        return REPLY_HEAD.pack(4 + len(place.reply) + len(answer), correlation_id) + place.reply + answer

    def _learn(self, head: bytes) -> Place | None:
        reader = HeadReader(head, 0, len(head))
        reader.client_id()
        reader.expect_zero()
        transactional_id = reader.name()
        acks = reader.piece(2)
        reader.piece(4)  # timeout
        if acks not in (b"\xff\xff", b"\0\1") or reader.count(1) != 1:
            return None
        name_at = reader.at
        name = reader.name()
        if reader.count(1) != 1:
            return None
        index = int.from_bytes(reader.piece(4), "big", signed=True)
        if reader.at != len(head):
            return None
        topic = self._shared.settled_topic(name)
        if topic is None or topic.internal or not 0 <= index < len(topic.partitions):
            return None
        reply = b"\0\2" + head[name_at:] + b"\0\0"
        return Place(transactional_id, topic, index, reply)
