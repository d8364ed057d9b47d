"""EndTxn: a producer commits or aborts its transaction.

EndTxn  v5: the epoch rises with every transaction, and the response holds it (KIP-890).

Differs:  EndTxn is answered when the transaction is complete. Kafka answers when it is decided, and the producer's next
          transaction may have to wait (CONCURRENT_TRANSACTIONS), as may a question for stable offsets
          (UNSTABLE_OFFSET_COMMIT).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.coordinator.transactions.rules import NeedsProducerIdError, end_transaction, end_transaction_v2
from broker.requests.add_to_txn import find_shard
from broker.requests.repeated import HotRequest
from broker.turn.decision import AGAIN, LATER, Decision
from protocol.messages.transactions import EndTxnRequest, EndTxnResponse
from protocol.shape import Shape

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.coordinator.transactions.transaction import Transaction
    from broker.coordinator.transactions.written import NextState
    from broker.requests.kept import Kept

EPOCH_RISES_SINCE: Final = 5


class View(Protocol):
    """What the rule uses of the broker."""

    @property
    def transactions(self) -> TransactionCoordinator: ...


class Ask:
    """What one EndTxn asks. A repeat uses the decisions that `prepare` makes, and the transaction's record, again."""

    __slots__ = (
        "begun",
        "commit",
        "end",
        "producer_epoch",
        "producer_id",
        "shard",
        "step",
        "transactional_id",
        "transactions",
    )
    shard: Shard  # of the transaction, set when it is known
    step: NextState  # Prepare*; set by `prepare`
    transactions: TransactionCoordinator

    def __init__(self, request: EndTxnRequest, version: int) -> None:
        self.end = end_transaction if version < EPOCH_RISES_SINCE else end_transaction_v2
        self.transactional_id = request.transactional_id
        self.producer_id = request.producer_id
        self.producer_epoch = request.producer_epoch
        self.commit = request.committed
        self.begun: Decision | None = None


class EndTxn(HotRequest):
    """The rule, the general codec, and a producer that ends one transaction after the other."""

    REQUEST = Shape(EndTxnRequest, "producer_id", "producer_epoch", "committed")
    REPLY = Shape(EndTxnResponse, "producer_id", "producer_epoch")

    def __init__(self, broker: Any) -> None:
        super().__init__(broker)
        self._view: View = broker

    def decide(self, ask: Ask, ctx: Context) -> Decision:
        """Commit or abort. The reply is the Transaction, when every partition has its marker.

        Errors:  INVALID_REQUEST (no id), INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS (an
                 equal request is still being carried out), INVALID_TXN_STATE, COORDINATOR_NOT_AVAILABLE.
        Source:  Kafka's TransactionCoordinator.endTransaction; transactions/rules.py has the tables.
        """
        if ask.begun is None:
            return self._view.transactions.with_new_id(ask.shard, partial(self._end, ask, ctx))
        shard, step = ask.shard, ask.step
        transaction: Transaction | None = shard.machine.transactions.get(ask.transactional_id)
        try:
            made = ask.end(transaction, ask.producer_id, ask.producer_epoch, commit=ask.commit, now_ms=ctx.now_ms)
        except NeedsProducerIdError:
            return Decision()
        if made is None:
            return Decision()
        step.transaction, step.groups = made, ask.transactions.groups_in(shard, made)
        return ask.begun

    def _end(self, ask: Ask, ctx: Context, new_id: int | None) -> Decision:
        shard, transactions = ask.shard, self._view.transactions
        transaction: Transaction | None = shard.machine.transactions.get(ask.transactional_id)
        made = ask.end(
            transaction,
            ask.producer_id,
            ask.producer_epoch,
            commit=ask.commit,
            now_ms=self.turn.now_ms,
            new_producer_id=new_id,
        )
        if made is None:  # it has already ended like this
            assert transaction is not None
            return Decision(transaction, shard=shard)

        return transactions.end(shard, made, partial(self._prepared, ask, ctx, made))

    def _prepared(self, ask: Ask, ctx: Context, made: Transaction, durable: bool) -> Decision:
        done = self._view.transactions.send_markers(ask.shard, made, durable, ctx.token)
        return Decision(done, shard=ask.shard, repeats=None if done is LATER else ask)

    def message(self, ctx: Context, request: EndTxnRequest) -> Decision:
        """See HotRequest."""
        ask = Ask(request, ctx.api_version)
        ask.shard = find_shard(self._view.transactions, ctx, ask.transactional_id)
        return self.answered(self.decide(ask, ctx), _response)

    def prepare(self, kept: Kept, decision: Decision) -> None:
        """See HotRequest."""
        ask, ctx, transactions = kept.ask, kept.ctx, self._view.transactions
        shard: Shard = ask.shard
        step = transactions.next_state(shard.machine.transactions[ask.transactional_id])
        done = Decision(shard=shard, repeats=AGAIN)

        def follow(durable: bool) -> Decision:
            done.reply = transactions.send_markers(shard, step.transaction, durable, ctx.token)
            return done

        ask.transactions, ask.step = transactions, step
        ask.begun = Decision(
            shard=shard, writes=((shard, step),), until=shard.flush_state, follow=follow, repeats=AGAIN
        )

    def fill(self, ask: Ask, fields: tuple[Any, ...], width: int) -> None:
        """See HotRequest."""
        ask.producer_id, ask.producer_epoch, ask.commit = fields[:3]

    def values(self, kept: Kept, decision: Decision, reply: Any) -> bool:
        """Before v5 nothing in the reply differs."""
        kept.values[:2] = reply.producer_id, reply.producer_epoch
        return True


def _response(transaction: Transaction) -> EndTxnResponse:
    return EndTxnResponse(producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch)
