"""The shortcut of AddPartitionsToTxn and AddOffsetsToTxn v3: the same producer adds the same partitions as before.

The general handlers are in handlers/transactions.py. The key of what is learnt is all bytes of the request without the
producer's id and epoch.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.transactions.rules import add_partitions
from broker.coordinator.transactions.transaction import Partitions
from broker.shortcuts.head import BODY, PRODUCER, REPLY_HEAD, HeadReader, keep, transactional_id_end
from broker.shortcuts.transactions import REFUSED, TransactionShortcuts
from protocol.api import ApiKey
from protocol.codegen import codec
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.machine import TransactionMachine
    from broker.wire.connection import Connection
    from broker.wire.service import Shortcut

ADD_PARTITIONS: Final = int(ApiKey.ADD_PARTITIONS_TO_TXN)
ADD_OFFSETS: Final = int(ApiKey.ADD_OFFSETS_TO_TXN)
VERSION: Final = 3  # what clients send; 4 and above are for brokers
MOST_BYTES: Final = 4096


class Place:
    """The partitions that a producer adds to its transactions."""

    __slots__ = ("partitions", "reply", "shard", "transactional_id")

    def __init__(self, transactional_id: str, shard: Shard, partitions: Partitions, reply: bytes) -> None:
        self.transactional_id = transactional_id
        self.shard = shard
        self.partitions = partitions
        self.reply = reply


class AddToTxnShortcut:
    """Serves requests that it has learnt."""

    def __init__(self, shared: TransactionShortcuts) -> None:
        self._shared = shared
        self._transactions = shared.transactions
        self._turn = shared.turn

    def shortcuts(self) -> dict[int, Shortcut]:
        """The shortcut of each of the two APIs."""
        return {api_key: partial(self.serve, api_key) for api_key in (ADD_PARTITIONS, ADD_OFFSETS)}

    def serve(
        self, api_key: int, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int
    ) -> bytes | None:
        """Add the partitions; see service.Shortcut."""
        size = stop - position
        if data[position + 7] != VERSION or data[position + 6] or size > MOST_BYTES or not self._shared.is_open(size):
            return None
        try:
            return self._serve(api_key, connection, data, position, stop, correlation_id)
        except REFUSED:
            return None

    def _serve(
        self, api_key: int, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int
    ) -> bytes | None:
        at = transactional_id_end(data, position)
        if at + 10 > stop:
            return None
        key = data[position + BODY : at] + data[at + 10 : stop]
        places = connection.learned.setdefault(api_key, {})
        place: Place | None = places.get(key)
        if place is None:
            place = self._learn(data[position + BODY : stop], api_key)
            if place is None:
                return None
            keep(places, key, place)
        shard = place.shard  # loaded: what is learnt is dropped before a shard is not
        producer_id, epoch = PRODUCER.unpack_from(data, at)
        now_ms = self._turn.now_ms
        machine: TransactionMachine = shard.machine
        transaction = machine.transactions.get(place.transactional_id)
        made = add_partitions(transaction, producer_id, epoch, place.partitions, now_ms, 0)
        durability, slot = self._turn.durability, connection.next_slot
        if made is not None:
            self._transactions.append(shard, made, now_ms)
            durability.hold_write(shard.flush_state, (connection, slot, data, position, stop))
        else:
            durability.hold(shard.flush_state, (connection, slot, data, position, stop))
        return REPLY_HEAD.pack(4 + len(place.reply), correlation_id) + place.reply

    def _learn(self, head: bytes, api_key: int) -> Place | None:
        from protocol.messages.transactions import (  # 1 ms: only brokers with transactions need it
            AddOffsetsToTxnRequest,
            AddOffsetsToTxnResponse,
            AddPartitionsToTxnRequest,
        )

        reader = HeadReader(head, 0, len(head))
        reader.client_id()
        reader.expect_zero()
        is_offsets = api_key == ADD_OFFSETS
        request: Any
        request, end = codec(AddOffsetsToTxnRequest if is_offsets else AddPartitionsToTxnRequest, VERSION).decode(
            head, reader.at
        )
        if end != len(head) or request.unknown_tags:
            return None
        partitions: Partitions = {}
        if is_offsets:
            name = request.transactional_id
            partitions[OFFSETS_TOPIC] = (self._transactions.groups.index_of(request.group_id),)
            response: Any = AddOffsetsToTxnResponse()
        else:
            name = request.v3_and_below_transactional_id
            for asked in request.v3_and_below_topics:
                topic = self._shared.settled_topic(asked.name)
                if topic is None or topic.internal or not asked.partitions or asked.name in partitions:
                    return None
                if min(asked.partitions) < 0 or max(asked.partitions) >= len(topic.partitions):
                    return None
                partitions[asked.name] = tuple(asked.partitions)
            response = _added(request)
        if not name:
            return None
        reply = b"\0" + codec(type(response), VERSION).encode(response)
        return Place(name, self._transactions.shard(name), partitions, reply)


def _added(request: Any) -> Any:
    from protocol.messages.transactions import error_response  # 1 ms, as above

    return error_response(request, VERSION, ErrorCode.NONE)
