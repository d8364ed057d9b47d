"""The fast way of AddPartitionsToTxn and AddOffsetsToTxn: the same producer adds the same partitions as before.

What is learnt is kept by all bytes of the request but the producer's id and epoch. See txn_path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.placement import shard_index
from broker.coordinator.runtime import READY
from broker.coordinator.transactions.rules import add_partitions
from broker.coordinator.transactions.transaction import Partitions
from broker.shortcuts.txn_offset_commit import settled_topic
from broker.wire.request_bytes import PRODUCER, REPLY_HEAD, header_end, keep, transactional_id_end
from protocol.api import ApiKey
from protocol.codegen import codec

if TYPE_CHECKING:
    from broker.cluster.metadata import Topic
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.coordinator.transactions.machine import TransactionMachine
    from broker.wire.connection import Connection

VERSION: Final = 3  # what clients send; 4 and above are for brokers
MOST_BYTES: Final = 4096


class AddPlace:
    """What a producer adds to its transactions."""

    __slots__ = ("partitions", "reply", "shard", "topics", "transactional_id")

    def __init__(
        self,
        transactional_id: str,
        shard: Shard,
        partitions: Partitions,
        topics: list[tuple[str, Topic, int]],
        reply: bytes,
    ) -> None:
        self.transactional_id = transactional_id
        self.shard = shard
        self.partitions = partitions
        self.topics = topics  # name, topic and highest partition, which have to be there still
        self.reply = reply


class AddPath:
    """Serves what it can."""

    def __init__(self, transactions: TransactionCoordinator) -> None:
        self._transactions = transactions
        self._broker = transactions.broker
        self._known: dict[bytes, AddPlace] = {}

    def add(
        self, connection: Connection, data: bytes, position: int, stop: int, api_key: int, correlation_id: int
    ) -> bool:
        """Serve one frame, if it is what it usually is."""
        if stop - position > MOST_BYTES:
            return False
        at = transactional_id_end(data, position)
        if at + 10 > stop:
            return False
        key = data[position + 4 : position + 6] + data[position + 12 : at] + data[at + 10 : stop]
        known = self._known.get(key)
        if known is None:
            known = self._learn(key, data[position + 12 : stop], api_key)
            if known is None:
                return False
        broker, shard = self._broker, known.shard
        topics = broker.metadata.topics
        for name, topic, highest in known.topics:
            if topics.get(name) is not topic or highest >= len(topic.partitions):
                return False
        if shard.state is not READY:
            return False
        producer_id, epoch = PRODUCER.unpack_from(data, at)
        now_ms = broker.now_ms
        machine: TransactionMachine = shard.machine
        transaction = machine.transactions.get(known.transactional_id)
        made = add_partitions(transaction, producer_id, epoch, known.partitions, now_ms, 0)
        if made is not None:
            self._transactions.change(shard, made, now_ms)
        slot = connection.add(REPLY_HEAD.pack(4 + len(known.reply), correlation_id) + known.reply)
        broker.durability.hold(shard.flush_state, (connection, slot, data, position, stop))
        return True

    def _learn(self, key: bytes, head: bytes, api_key: int) -> AddPlace | None:
        from protocol.messages.transactions import (
            AddOffsetsToTxnRequest,
            AddOffsetsToTxnResponse,
            AddPartitionsToTxnRequest,
        )

        at = header_end(head, 0)
        if at < 0:
            return None
        is_offsets = api_key == ApiKey.ADD_OFFSETS_TO_TXN
        request: Any
        request, end = codec(AddOffsetsToTxnRequest if is_offsets else AddPartitionsToTxnRequest, VERSION).decode(
            head, at
        )
        if end != len(head) or request.unknown_tags:
            return None
        found: list[tuple[str, Topic, int]] = []
        partitions: Partitions = {}
        if is_offsets:
            name = request.transactional_id
            index = shard_index(request.group_id, len(self._broker.group_shards))
            partitions[OFFSETS_TOPIC] = (index,)
            response: Any = AddOffsetsToTxnResponse()
        else:
            name = request.v3_and_below_transactional_id
            for asked in request.v3_and_below_topics:
                topic = settled_topic(self._broker, asked.name)
                if topic is None or not asked.partitions or min(asked.partitions) < 0 or asked.name in partitions:
                    return None
                partitions[asked.name] = tuple(asked.partitions)
                found.append((asked.name, topic, max(asked.partitions)))
            response = _added(request)
        if not name:
            return None
        reply = b"\0" + codec(type(response), VERSION).encode(response)
        known = AddPlace(name, self._transactions.shard(name), partitions, found, reply)
        keep(self._known, key, known)
        return known


def _added(request: Any) -> Any:
    from protocol.errors import ErrorCode
    from protocol.messages.transactions import error_response

    return error_response(request, VERSION, ErrorCode.NONE)
