"""What is written to `__transaction_state` when a transaction takes its next state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.coordinator.transactions.transaction import ONGOING, Transaction
from broker.turn.write import Batch, Write

if TYPE_CHECKING:
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.machine import TransactionMachine
    from storage.log.log import Log


class NextState(Write):
    """A transaction's next state: one batch with its record, and those of the groups whose offsets are part of it.

    version   of the transaction's record.
    groups    id, key and value of each group's record.
    """

    __slots__ = ("groups", "transaction", "version")

    def __init__(self, transaction: Transaction, version: int, groups: Sequence[tuple[str, bytes, bytes]] = ()) -> None:
        self.transaction = transaction
        self.version = version
        self.groups = groups

    def build(self, log: Log, base_offset: int, now_ms: int) -> Batch:
        """See turn/write.py."""
        groups = self.groups
        batch = self.transaction.batch(self.version, base_offset, log.epochs.latest, now_ms, groups)
        return (batch,), base_offset + len(groups), now_ms, len(batch)

    def replay(self, shard: Shard, _base_offset: int, _now_ms: int) -> None:
        """See turn/write.py. The timeout counts from the record with which the transaction begins."""
        machine: TransactionMachine = shard.machine
        transaction, deadlines = self.transaction, shard.deadlines
        machine.replay_transaction(transaction, self.groups)
        if transaction.state is not ONGOING:
            deadlines.by_name.pop(transaction.transactional_id, None)
        elif transaction.transactional_id not in deadlines.by_name:  # it begins: what passes from now on counts
            deadlines.set(transaction.transactional_id, transaction.deadline_ms)
