"""The check before transactional records are appended: the partition must be part of the transaction.

Produce from version 12 on, and TxnOffsetCommit from 5 on, add the partition (KIP-890); for older versions it is only
verified. Produce leaves out partitions that have the transaction open already.

| the coordinator answers           | Produce <= 10     | 11                  | from 12 on | TxnOffsetCommit        |
|-----------------------------------|-------------------|---------------------|------------|------------------------|
| PRODUCER_FENCED                   | INVALID_PRODUCER_EPOCH everywhere                                             |
| TRANSACTION_ABORTABLE (not added) | INVALID_TXN_STATE | the same            | the same   | <= 3 INVALID_TXN_STATE |
| CONCURRENT_TRANSACTIONS           | NOT_ENOUGH_REPLICAS                     | the same   | the same               |
| coordinator loading, moved, gone  | NOT_ENOUGH_REPLICAS                                  | the same               |
| anything else                     | the same everywhere                                                           |

Source: Kafka's AddPartitionsToTxnManager, ReplicaManager.handleProduceAppend, TransactionCoordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from broker.coordinator.transactions.rules import add_partitions, verify_partitions
from broker.coordinator.transactions.transaction import TopicIndex
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.config.settings import BrokerConfig
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.machine import TransactionMachine
    from broker.coordinator.transactions.transaction import Partitions, Transaction
    from broker.turn.turn import Turn

Refused: TypeAlias = dict[TopicIndex, ErrorCode]  # the partitions that must not be written to; empty: none

PRODUCE_ADDS_SINCE: Final = 12
OFFSETS_ADD_SINCE: Final = 5
_ABORTABLE_SINCE_PRODUCE: Final = 11
_UNREACHABLE: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)


class Transactions(Protocol):
    """What the gate needs of the transaction coordinator."""

    turn: Turn
    config: BrokerConfig

    def shard(self, transactional_id: str) -> Shard:
        """The loaded shard of an id. Errors: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""

    def change(self, shard: Shard, transaction: Transaction, now_ms: int) -> None:
        """Append a transaction's next state."""

    def change_now(self, shard: Shard, transaction: Transaction, now_ms: int) -> bool:
        """The same, and write it at once. False: it was thrown away."""


def before_produce(
    transactions: Transactions,
    ctx: Context,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Sequence[TopicIndex],
    continue_: Callable[[Refused], None],
) -> Refused | None:
    """Which partitions must not be written to; None: `continue_` is called with them later.

    It answers at once when nothing had to be written. Otherwise the record that names the partitions is in the
    coordinator's log but not durable. Then `continue_(refused)` is called exactly once: when the record is durable, or
    when it was thrown away (all are refused then). That may happen within the same turn. Calls for one transactional
    id continue in the order of the calls.
    """
    version = ctx.api_version
    adds = version >= PRODUCE_ADDS_SINCE
    if not adds and not transactions.config.transaction_partition_verification_enable:
        return {}
    grouped: Partitions = {}
    for topic, index in partitions:
        grouped[topic] = (*grouped.get(topic, ()), index)

    def step(durable: bool) -> None:
        continue_({} if durable else dict.fromkeys(partitions, ErrorCode.NOT_ENOUGH_REPLICAS))

    try:
        refused = ask(transactions, ctx.now_ms, transactional_id, producer_id, producer_epoch, grouped, adds, step)
    except KafkaError as error:
        return dict.fromkeys(partitions, _produce_code(error.code, version))
    if refused:
        return dict.fromkeys(refused, _produce_code(ErrorCode.TRANSACTION_ABORTABLE, version))
    return None if refused is None else {}


def unverified(transactions: Transactions, transactional_id: str, producer_id: int, producer_epoch: int) -> ErrorCode:
    """The error for offsets of a producer that is fenced, where transactions are not verified; NONE for others.

    In Kafka the log refuses a batch with an older epoch than it has seen. A shard of groups keeps no epochs, so the
    transaction coordinator is asked, which knows of a newer producer before any log does.
    """
    try:
        machine: TransactionMachine = transactions.shard(transactional_id).machine
    except KafkaError as error:  # NOT_COORDINATOR: there have never been transactions
        return ErrorCode.NONE if error.code == ErrorCode.NOT_COORDINATOR else error.code
    found = machine.transactions.get(transactional_id)
    if found is not None and found.producer_id == producer_id and producer_epoch < found.producer_epoch:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode.NONE


def ask(
    transactions: Transactions,
    now_ms: int,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Partitions,
    adds: bool,
    step: Callable[[bool], None],
) -> Sequence[TopicIndex] | None:
    """The partitions that are not in the transaction. None: `step` is called when the record of them is durable.

    Errors:  INVALID_REQUEST: an empty transactional id; those of rules.add_partitions and verify_partitions.
    """
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    shard = transactions.shard(transactional_id)
    machine: TransactionMachine = shard.machine
    transaction = machine.transactions.get(transactional_id)
    if adds:
        made = add_partitions(transaction, producer_id, producer_epoch, partitions, now_ms, 2)
        if made is not None:
            shard.before_write()
        if made is not None and transactions.turn.fsync:
            transactions.change(shard, made, now_ms)
        elif made is not None:
            if not transactions.change_now(shard, made, now_ms):
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return ()
    else:
        missing = verify_partitions(transaction, producer_id, producer_epoch, partitions)
        if missing:
            return missing
    flush_state = shard.flush_state
    if flush_state.durable_offset >= flush_state.log.end_offset:
        return ()
    if not transactions.turn.fsync:
        if not transactions.turn.durability.write_now(flush_state):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return ()
    flush_state.then(step)
    return None


def _produce_code(code: ErrorCode, version: int) -> ErrorCode:
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_SINCE_PRODUCE:
        return ErrorCode.INVALID_TXN_STATE
    if code in _UNREACHABLE or (code == ErrorCode.CONCURRENT_TRANSACTIONS and version < PRODUCE_ADDS_SINCE):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code
