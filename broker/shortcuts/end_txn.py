"""The shortcut of EndTxn v3 to v5, for a producer that ends one transaction after the other.

The general handler is handlers/transactions.py.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from broker.coordinator.transactions.rules import end_transaction, end_transaction_v2
from broker.coordinator.transactions.transaction import ONGOING
from broker.shortcuts.head import BODY, HeadReader, keep
from broker.shortcuts.transactions import REFUSED, TransactionShortcuts
from broker.wire.parked import ParkedRequest
from broker.wire.service import TAKEN
from protocol.api import ApiKey
from protocol.errors import KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.machine import TransactionMachine
    from broker.coordinator.transactions.transaction import Transaction
    from broker.wire.connection import Connection
    from broker.wire.router import Router

END_TXN: Final = int(ApiKey.END_TXN)
OLDEST: Final = 3
NEWEST: Final = 5
NEW_EPOCH_SINCE: Final = 5  # KIP-890: the epoch goes up with every transaction

_END: Final = Struct(">qhBB")  # producer id, epoch, commit, tags
_ENDED: Final = Struct(">iiBihB")  # size, correlation id, tags, throttle time, no error, tags
_ENDED_V5: Final = Struct(">iiBihqhB")  # the same with producer id and epoch


class EndTxnShortcut:
    """Serves EndTxn without a message."""

    def __init__(self, shared: TransactionShortcuts, router: Router) -> None:
        self._shared = shared
        self._transactions = shared.transactions
        self._turn = shared.turn
        self._router = router

    def serve(self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int) -> bytes | None:
        """End a transaction; see service.Shortcut."""
        version = data[position + 7]
        if data[position + 6] or not OLDEST <= version <= NEWEST or not self._shared.is_open(stop - position):
            return None
        try:
            found = self._find(connection, data[position + BODY : stop - _END.size])
            if found is None:
                return None
            shard, transaction = found
            producer_id, epoch, commit, tags = _END.unpack_from(data, stop - _END.size)
            if tags or (version >= NEW_EPOCH_SINCE and transaction.is_exhausted):
                return None
            end = end_transaction if version < NEW_EPOCH_SINCE else end_transaction_v2
            made = end(transaction, producer_id, epoch, commit=bool(commit), now_ms=self._turn.now_ms)
        except REFUSED:
            return None
        assert made is not None
        return self._end(connection, data, position, stop, version, correlation_id, shard, made)

    def _find(self, connection: Connection, head: bytes) -> tuple[Shard, Transaction] | None:
        """The ongoing transaction, and its shard."""
        learnt = connection.learned.setdefault(END_TXN, {})
        known: tuple[Shard, str] | None = learnt.get(head)
        if known is None:
            reader = HeadReader(head, 0, len(head))
            reader.client_id()
            reader.expect_zero()
            name = reader.name()
            if not name or reader.at != len(head):
                return None
            known = self._transactions.shard(name), name
            keep(learnt, head, known)
        shard, name = known
        machine: TransactionMachine = shard.machine
        transaction = machine.transactions.get(name)
        if transaction is None or transaction.state is not ONGOING:
            return None
        return shard, transaction

    def _end(
        self,
        connection: Connection,
        data: bytes,
        position: int,
        stop: int,
        version: int,
        correlation_id: int,
        shard: Shard,
        made: Transaction,
    ) -> bytes | None:
        """Write the decision. The reply is there now, or its slot is filled when the last marker is written. None: the
        log cannot be written, and nothing has changed."""
        token = (connection, connection.next_slot)
        try:
            done = self._transactions.end(shard, made, self._turn.now_ms, token)
        except KafkaError as error:
            connection.out.append(None)
            connection.fill(token[1], self._router.refusal(data[position:stop], error.code))
            return TAKEN
        except StorageError:
            return None
        if done is None:
            route = self._router.routes[END_TXN]
            route.load()
            connection.out.append(None)
            self._router.parked.park(token, ParkedRequest(route, version, correlation_id, data, position, stop))
            return TAKEN
        if version < NEW_EPOCH_SINCE:
            return _ENDED.pack(12, correlation_id, 0, 0, 0, 0)
        return _ENDED_V5.pack(22, correlation_id, 0, 0, 0, done.producer_id, done.producer_epoch, 0)
