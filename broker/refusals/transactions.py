"""Why the transaction coordinator refused a producer: ids, epochs, states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.base.placement import shard_index
from broker.coordinator.runtime import READY
from broker.coordinator.transactions.transaction import STATE_NAMES
from protocol.shown import shown

if TYPE_CHECKING:
    from broker.coordinator.transactions.coordinator import TransactionCoordinator


def explain_producer(transactions: TransactionCoordinator, request: Any) -> str:
    """What the producer sent, and what is known of its transactional id."""
    name, sent_id, sent_epoch = _sent(request)
    if not name or not transactions.shards:
        return ""
    shard = transactions.shards[shard_index(name, len(transactions.shards))]
    machine: Any = shard.machine
    known = machine.transactions.get(name) if shard.state is READY else None
    if known is None:
        return f"transactional id {shown(name)} is not known: no producer has begun with it, or it has expired"
    sent = "" if sent_id < 0 else f"the producer sent id {sent_id}, epoch {sent_epoch}; "
    now = f"transactional id {shown(name)} is {STATE_NAMES[known.state]}, with producer id {known.producer_id}"
    return f"{sent}{now}, epoch {known.producer_epoch}"


def _sent(request: Any) -> tuple[str, int, int]:
    """Transactional id, producer id and epoch of a request."""
    name = getattr(request, "transactional_id", None) or getattr(request, "v3_and_below_transactional_id", None)
    if name:
        prefix = "" if hasattr(request, "producer_id") else "v3_and_below_"
        return name, getattr(request, f"{prefix}producer_id"), getattr(request, f"{prefix}producer_epoch")
    for each in getattr(request, "transactions", []):
        return each.transactional_id, each.producer_id, each.producer_epoch
    return "", -1, -1
