"""InitProducerId: a producer begins, or begins again.

InitProducerId  v3: resume with id and epoch (KIP-360). v4: PRODUCER_FENCED.

Behaviour: without a transactional id it gives a producer id that was never given before.
Differs:   a transaction is aborted when its timeout is over, not at the next check
           (`transaction.abort.timed.out.transaction.cleanup.interval.ms` has no effect).
Absent:    two-phase commit (KIP-939, InitProducerId v6), which is not final in Kafka 4.3.
Absent:    KIP-447's draft client API (a group id in the producer, assignments in InitProducerId): it never got fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.base.context import Context
from broker.coordinator.transactions.rules import init_producer_id as decide_producer_id
from broker.coordinator.transactions.rules import may_begin_again
from broker.coordinator.transactions.transaction import ONGOING
from broker.coordinator.written import Records
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.coordinator.transactions.transaction import Transaction
    from broker.turn.turn import Turn


class View(Protocol):
    """What this handler uses of the broker."""

    @property
    def metadata_shard(self) -> Shard: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def groups(self) -> GroupShards: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...
    @property
    def turn(self) -> Turn: ...


def init_producer_id(broker: View, ctx: Context, request: InitProducerIdRequest) -> Decision:
    """Answer a producer's id and epoch. This fences every older producer with the transactional id.

    Errors:  INVALID_REQUEST (the id is empty, or only one of producer id and epoch is given),
             INVALID_TRANSACTION_TIMEOUT, CONCURRENT_TRANSACTIONS (also when this call aborts a transaction),
             PRODUCER_FENCED, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
    Source:  Kafka's TransactionCoordinator.handleInitProducerId.
    """
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    name = request.transactional_id
    if name is None:
        producer_id, records = broker.groups.metadata.next_producer_id()
        response = InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
        values = [(None, value) for value in records]
        return Decision(response, writes=((broker.metadata_shard, Records(values)),) if values else ())
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if not 0 < request.transaction_timeout_ms <= broker.config.transaction_max_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    transactions = broker.transactions
    transactions.ensure_topic(ctx.rng)
    shard = transactions.shard(name, ctx)
    shard.before_write()
    given = None if request.producer_id == -1 else (request.producer_id, request.producer_epoch)

    def decide(new_id: int | None) -> Decision:
        transaction: Transaction | None = shard.machine.transactions.get(name)
        if transaction is not None and transaction.state is ONGOING and may_begin_again(transaction, given):
            first = f"the open transaction of {name!r} is aborted first"
            return transactions.fence(shard, transaction, KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, first))
        now_ms = broker.turn.now_ms
        made = decide_producer_id(transaction, name, given, request.transaction_timeout_ms, now_ms, new_id)
        response = InitProducerIdResponse(producer_id=made.producer_id, producer_epoch=made.producer_epoch)
        return Decision(response, shard=shard, writes=((shard, transactions.next_state(made)),))

    return transactions.with_new_id(shard, decide)
