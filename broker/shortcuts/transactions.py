"""The fast way of what a transactional producer asks: Produce, TxnOffsetCommit, EndTxn and the rest, without messages.

A producer says the same again and again: what was learnt of its last request is kept by the bytes that repeat.
Shortcuts of the general handlers, which are asked whenever anything is out of the ordinary or is to be refused; nothing
is left out on the way. Only where a write is durable (not at `fsync`, where requests have to wait) and one node does it
all.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final

from broker.coordinator.runtime import READY
from broker.coordinator.transactions.gate import ask
from broker.coordinator.transactions.rules import end_transaction, end_transaction_v2
from broker.coordinator.transactions.transaction import ONGOING, Partitions
from broker.partitions.record_rules import is_transactional
from broker.shortcuts.add_to_txn import VERSION, AddPath
from broker.shortcuts.txn_offset_commit import OffsetsPath, nobody_waits, settled_topic
from broker.wire.request_bytes import (
    PRODUCER,
    REPLY_HEAD,
    SHORT_TEXT,
    header_end,
    keep,
    short_text,
    transactional_id_end,
)
from broker.wire.router import ParkedRequest
from protocol.codec_support import read_uvarint
from protocol.errors import KafkaError, MalformedError
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.metadata import Topic
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.coordinator.transactions.machine import TransactionMachine
    from broker.wire.connection import Connection

PRODUCE: Final = 0
ADD_PARTITIONS: Final = 24
ADD_OFFSETS: Final = 25
END_TXN: Final = 26
TXN_OFFSET_COMMIT: Final = 28
LEAST_BYTES: Final = 28

_END: Final = Struct(">qhBB")  # producer id, epoch, commit, tags
_ENDED: Final = Struct(">iiBihB")  # size, correlation id, tags, throttle time, no error, tags
_ENDED_V5: Final = Struct(">iiBihqhB")  # the same with producer id and epoch
_PRODUCE_ANSWER: Final = Struct(">qqqIIB")  # offset, time, start; no errors, message and tags; throttle; tags
_PRODUCER_AT: Final = 43  # in a batch


class ProducePlace:
    """One partition that a transactional producer writes to."""

    __slots__ = ("index", "name", "partitions", "reply", "topic", "transactional_id")

    def __init__(self, transactional_id: str, name: str, topic: Topic, index: int, reply: bytes) -> None:
        self.transactional_id = transactional_id
        self.name = name
        self.topic = topic
        self.index = index
        self.partitions: Partitions = {name: (index,)}
        self.reply = reply  # up to the offset


class TxnPath:
    """Serves what it can, and passes everything else on."""

    def __init__(self, transactions: TransactionCoordinator, dispatch: Any) -> None:
        self._transactions = transactions
        self._broker = transactions.broker
        self._dispatch = dispatch
        self._is_open = not self._broker.fsync and len(self._broker.nodes) == 1
        self._ends: dict[bytes, tuple[Shard, str]] = {}
        self._places: dict[bytes, ProducePlace] = {}
        self._offsets = OffsetsPath(transactions)
        self._adds = AddPath(transactions)

    def dispatch(
        self,
        connection: Connection,
        data: bytes,
        position: int,
        stop: int,
        api_key: int,
        api_version: int,
        correlation_id: int,
    ) -> None:
        """Serve one frame, as Router.dispatch."""
        if self._is_open and stop - position > LEAST_BYTES:
            served = False
            try:
                if api_key == END_TXN:
                    served = 3 <= api_version <= 5 and self._end(
                        connection, data, position, stop, api_version, correlation_id
                    )
                elif api_key == TXN_OFFSET_COMMIT:
                    served = 3 <= api_version <= 5 and self._offsets.commit(
                        connection, data, position, stop, api_version, correlation_id
                    )
                elif api_key in (ADD_PARTITIONS, ADD_OFFSETS):
                    served = api_version == VERSION and self._adds.add(
                        connection, data, position, stop, api_key, correlation_id
                    )
                elif api_key == PRODUCE:
                    served = 9 <= api_version <= 12 and self._produce(
                        connection, data, position, stop, api_version, correlation_id
                    )
            except (KafkaError, MalformedError, StorageError, IndexError, UnicodeDecodeError, struct_error):
                pass  # refused, or not what it looks like: the general handler has the words for it
            if served:
                self._broker.metrics.counts[api_key] += 1
                self._broker.expects_more = True
                return
        self._dispatch(connection, data, position, stop, api_key, api_version, correlation_id)

    # -- EndTxn

    def _end(
        self, connection: Connection, data: bytes, position: int, stop: int, version: int, correlation_id: int
    ) -> bool:
        head = data[position + 12 : stop - 12]
        known = self._ends.get(head)
        if known is None:
            known = self._learn_end(head)
            if known is None:
                return False
        shard, name = known
        producer_id, epoch, commit, tags = _END.unpack_from(data, stop - 12)
        machine: TransactionMachine = shard.machine
        transaction = machine.transactions.get(name)
        if tags or shard.state is not READY or transaction is None or transaction.state is not ONGOING:
            return False
        broker, transactions = self._broker, self._transactions
        now_ms = broker.now_ms
        if version < 5:
            made = end_transaction(transaction, producer_id, epoch, commit=bool(commit), now_ms=now_ms)
        elif transaction.is_exhausted:
            return False
        else:
            made = end_transaction_v2(transaction, producer_id, epoch, commit=bool(commit), now_ms=now_ms)
        assert made is not None
        slot = connection.next_slot
        token = (connection, slot)
        connection.out.append(None)
        try:
            done = transactions.end(shard, made, now_ms, token)
        except KafkaError as error:
            connection.fill(slot, broker.router.refusal(data[position:stop], error.code))
            return True
        if done is None:
            route = broker.router.routes[END_TXN]
            if route.request is None:
                route.load()
            broker.park(token, ParkedRequest(route, version, correlation_id, data, position, stop), None)
        elif version < 5:
            connection.fill(slot, _ENDED.pack(12, correlation_id, 0, 0, 0, 0))
        else:
            answer = (done.producer_id, done.producer_epoch, 0)
            connection.fill(slot, _ENDED_V5.pack(22, correlation_id, 0, 0, 0, *answer))
        return True

    def _learn_end(self, head: bytes) -> tuple[Shard, str] | None:
        at = header_end(head, 0)
        if at < 0 or at >= len(head) or not 1 < head[at] < SHORT_TEXT or at + head[at] != len(head):
            return None
        name = head[at + 1 :].decode()
        known = self._transactions.shard(name), name
        keep(self._ends, head, known)
        return known

    # -- Produce

    def _produce(
        self, connection: Connection, data: bytes, position: int, stop: int, version: int, correlation_id: int
    ) -> bool:
        at = transactional_id_end(data, position)
        name_at = at + 7
        at = name_at + data[name_at] + 5
        if at + 64 > stop:
            return False
        head = data[position + 12 : at]
        known = self._places.get(head)
        if known is None:
            known = self._learn_place(head)
            if known is None:
                return False
        size, at = read_uvarint(data, at)  # the records' length plus one
        records = memoryview(data)[at : at + size - 1]
        if at + size + 2 != stop or data[stop - 3 : stop] != b"\0\0\0" or not is_transactional(records):
            return False
        broker = self._broker
        topic, index = known.topic, known.index
        if broker.metadata.topics.get(known.name) is not topic or index >= len(topic.partitions):
            return False
        partition = broker.partition(topic, index)
        if partition.metadata_version != broker.metadata.version or partition.topic is not topic:
            partition.configure(topic, broker.metadata)
        producer_id, epoch = PRODUCER.unpack_from(records, _PRODUCER_AT)
        if not partition.has_open_transaction(producer_id, epoch):
            partition.check_epoch(producer_id, epoch)
            adds = version >= 12
            if not adds and not broker.config.transaction_partition_verification_enable:
                return False
            refused = ask(
                self._transactions,
                broker.now_ms,
                known.transactional_id,
                producer_id,
                epoch,
                known.partitions,
                adds,
                nobody_waits,
            )
            if refused:
                return False
        offset, append_time = partition.append(records, broker.now_ms, begins_at_zero=version >= 12)
        flush_state = partition.flush_state
        if not flush_state.queued:
            broker.touch(flush_state)
        answer = _PRODUCE_ANSWER.pack(offset, append_time, partition.log.log_start_offset, 1 << 24, 0, 0)
        slot = connection.add(
            REPLY_HEAD.pack(4 + len(known.reply) + len(answer), correlation_id) + known.reply + answer
        )
        broker.durability.hold(flush_state, (connection, slot, data, position, stop))
        return True

    def _learn_place(self, head: bytes) -> ProducePlace | None:
        at = header_end(head, 0)
        transactional_id, at = short_text(head, at)
        if transactional_id is None or head[at : at + 2] not in (b"\xff\xff", b"\0\1") or head[at + 6] != 2:
            return None
        name_at = at + 7
        name, at = short_text(head, name_at)
        if name is None or head[at] != 2 or at + 5 != len(head):
            return None
        index = int.from_bytes(head[at + 1 : at + 5], "big", signed=True)
        topic = settled_topic(self._broker, name)
        if topic is None or topic.internal or not 0 <= index < len(topic.partitions):
            return None
        reply = b"\0\2" + head[name_at:] + b"\0\0"
        known = ProducePlace(transactional_id, name, topic, index, reply)
        keep(self._places, head, known)
        return known
