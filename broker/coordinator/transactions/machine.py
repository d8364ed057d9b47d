"""TransactionMachine: the transactional ids of one partition of `__transaction_state`.

    transactions  the state of each id.
    groups        the groups whose offsets were part of an id's last transactions, as values of their records.

The functions in rules.py decide the next state of a transaction. It is appended as a NextState (written.py), which
calls `replay_transaction` with it, so its record need not be decoded. Markers and producer ids need other logs: the
host does that (coordinator.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import Any, ClassVar, Final, Protocol

from broker.base.context import Context
from broker.base.facts import facts
from broker.coordinator.offsets.provenance import CLIENT, GENERATION, INSTANCE, MEMBER
from broker.coordinator.transactions.transaction import (
    AT_REST,
    ONGOING,
    PREPARED,
    Transaction,
    decode_transaction,
)
from broker.turn.decision import Decision, Record
from protocol.codegen import codec
from protocol.messages.coordinator_records import encode_record
from protocol.messages.own_records import TransactionGroupKey, TransactionGroupTopic, TransactionGroupValue

EXPIRY_TIMER: Final = ("expiry",)  # any other timer is a transactional id whose transaction is Ongoing
TRANSACTION_LOG: Final = 0  # the record type
TRANSACTION_GROUP: Final = TransactionGroupKey.API_KEY
IDS_A_SLICE: Final = 2000  # looked at for expiry before the loop gets its turn: about 1 ms
_SHORT: Final = Struct(">h")
_PRODUCER: Final = Struct(">hqh")  # the beginning of a group's value: version, producer id, epoch
_PRODUCER_END: Final = _PRODUCER.size


class TransactionConfig(Protocol):
    """The settings that the machine needs; BrokerConfig has them."""

    @property
    def transactional_id_expiration_ms(self) -> int: ...
    @property
    def transaction_remove_expired_transaction_cleanup_interval_ms(self) -> int: ...


class TransactionHost(Protocol):
    """The coordinator, for what needs other logs."""

    def resume(self, index: int, prepared: Sequence[Transaction]) -> None:
        """Loading found these in Prepare*: send their markers."""

    def abort(self, index: int, transaction: Transaction) -> None:
        """A transaction has timed out: abort it."""


class TransactionMachine:
    """The state machine of one shard."""

    __slots__ = ("_expiring", "_forms", "_host", "config", "groups", "index", "transactions")

    VOLATILE: ClassVar[Mapping[str, str]] = {
        "_expiring": "the rest of a running check; it starts again after loading",
        "_forms": "a cache of encoded group records",
        "_host": "given",
        "config": "given",
        "index": "given",
    }

    def __init__(self, index: int, config: TransactionConfig, host: TransactionHost) -> None:
        self.index = index  # the partition of `__transaction_state`
        self.config = config
        self.transactions: dict[str, Transaction] = {}
        self.groups: dict[str, dict[str, bytes]] = {}  # by transactional id and group
        self._host = host
        self._expiring: list[str] = []  # the rest of a running expiry check
        # by transactional id and group: what the last record of the group was made from, its key, and the part of its
        # value that stays the same
        self._forms: dict[tuple[str, str], tuple[object, object, bytes, bytes]] = {}

    # -- what handlers do

    def group_record(
        self, transaction: Transaction, group_id: str, sender: Mapping[str, bytes], topics: Mapping[str, Sequence[int]]
    ) -> tuple[str, bytes, bytes]:
        """The record of a group in a transaction, with its id: who sent the offsets, and the partitions."""
        name = transaction.transactional_id, group_id
        form = self._forms.get(name)
        if form is None or form[0] != sender or form[1] != topics:
            value = encode_record(group_value(sender, topics), 0)
            form = self._forms[name] = sender, topics, group_key(*name), value[_PRODUCER_END:]
        return group_id, form[2], _PRODUCER.pack(0, transaction.producer_id, transaction.producer_epoch) + form[3]

    # -- timers

    def timer(self, transaction: Transaction) -> tuple[Hashable, int | None]:
        """The timer of the transaction, by its state."""
        return transaction.transactional_id, transaction.deadline_ms if transaction.state is ONGOING else None

    def after_batch(self) -> None:
        """Nothing is asserted here."""

    def on_load(self, ctx: Context) -> Decision:
        """Continue transactions in Prepare*, and set the timeouts of those that are Ongoing."""
        known = self.transactions.values()
        prepared = [transaction for transaction in known if transaction.state in PREPARED]
        timers = [self._next_check(ctx)]
        for name, deadline_ms in (self.timer(each) for each in known if each.state is ONGOING):
            if deadline_ms is not None:  # none waits longer than its timeout, although the wall clock went back
                deadline_ms = min(deadline_ms, ctx.now_ms + self.transactions[str(name)].timeout_ms + 1)
            timers.append((name, deadline_ms))
        if prepared:
            self._host.resume(self.index, prepared)
        return Decision(timers=timers)

    def on_timer(self, name: Hashable, ctx: Context) -> Decision:
        """A transaction has timed out, or it is time to look for unused ids."""
        if name == EXPIRY_TIMER:
            return self._expire(ctx)
        assert isinstance(name, str)
        transaction = self.transactions.get(name)
        if transaction is not None and transaction.state is ONGOING:
            self._host.abort(self.index, transaction)
        return Decision()

    def _next_check(self, ctx: Context) -> tuple[Hashable, int | None]:
        return EXPIRY_TIMER, ctx.now_ms + self.config.transaction_remove_expired_transaction_cleanup_interval_ms

    def _expire(self, ctx: Context) -> Decision:
        """Tombstones for ids that have not changed for transactional.id.expiration.ms."""
        if not self._expiring:
            self._expiring = list(self.transactions)
        before_ms = ctx.now_ms - self.config.transactional_id_expiration_ms
        records: list[Record] = []
        for name in self._expiring[-IDS_A_SLICE:]:
            transaction = self.transactions.get(name)
            if transaction is not None and transaction.state in AT_REST and transaction.updated_ms <= before_ms:
                records.append((transaction.key, None))
                records += [(group_key(name, group_id), None) for group_id in self.groups.get(name, ())]
        del self._expiring[-IDS_A_SLICE:]
        again = (EXPIRY_TIMER, ctx.now_ms) if self._expiring else self._next_check(ctx)
        return Decision(records=records, timers=[again])

    # -- replay

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int = -1) -> None:
        """Apply one record. Unknown types are skipped, as in Kafka."""
        if key is None:
            return
        kind = _SHORT.unpack_from(key)[0]
        if kind == TRANSACTION_GROUP:
            self._replay_group(key, value)
        if kind != TRANSACTION_LOG:
            return
        if value is None:
            self.transactions.pop(key[4:].decode(), None)
            return
        self.replay_transaction(decode_transaction(key, value))

    def replay_transaction(self, transaction: Transaction, groups: Iterable[tuple[str, bytes, bytes]] = ()) -> None:
        """Replay a transaction, and the records of its groups (id, key, value) that follow it."""
        for group_id, _, value in groups:
            self.groups.setdefault(transaction.transactional_id, {})[group_id] = value
        self.transactions[transaction.transactional_id] = transaction

    def _replay_group(self, key: bytes, value: bytes | None) -> None:
        named, _ = codec(TransactionGroupKey, 0).decode(key, 2)
        if value is not None:
            self.groups.setdefault(named.transactional_id, {})[named.group_id] = value
            return
        groups = self.groups.get(named.transactional_id, {})
        groups.pop(named.group_id, None)
        self._forms.pop((named.transactional_id, named.group_id), None)
        if not groups:
            self.groups.pop(named.transactional_id, None)

    def replay_marker(self, producer_id: int, producer_epoch: int, *, commit: bool) -> None:
        """No transaction writes to this log."""

    # -- queries

    def __iter__(self) -> Iterator[Transaction]:
        return iter(self.transactions.values())

    def fingerprint(self) -> dict[str, Any]:
        """The hard state, to compare a replayed shard with a live one."""
        transactions = {name: transaction.facts() for name, transaction in self.transactions.items()}
        return {**facts(self), "transactions": transactions}


def group_key(transactional_id: str, group_id: str) -> bytes:
    """The key of the record of a group in a transaction."""
    key = TransactionGroupKey(transactional_id=transactional_id, group_id=group_id)
    return _SHORT.pack(TRANSACTION_GROUP) + codec(TransactionGroupKey, 0).encode(key)


def group_value(sender: Mapping[str, bytes], topics: Mapping[str, Sequence[int]]) -> TransactionGroupValue:
    """The record of a group, without the producer."""
    instance, client = sender.get(INSTANCE), sender.get(CLIENT)
    return TransactionGroupValue(
        generation_id_or_member_epoch=int.from_bytes(sender.get(GENERATION, b"\xff"), "big", signed=True),
        member_id=sender.get(MEMBER, b"").decode(),
        group_instance_id=None if instance is None else instance.decode(),
        client_id=None if client is None else client.decode(),
        topics=[TransactionGroupTopic(topic=topic, partitions=list(indexes)) for topic, indexes in topics.items()],
    )
