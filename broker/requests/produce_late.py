"""The answer to a Produce that was parked: it is sent once it is there, and waits for all that it has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.turn.decision import LATER, NO_REPLY

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.coordinator.runtime import Shard
    from broker.requests.produce_ask import Ask
    from broker.turn.durability import Durability
    from broker.wire.parked import ParkedRequests


def send_late(
    parked_requests: ParkedRequests, durability: Durability, metadata: Shard, ask: Ask, ctx: Context, reply: Any
) -> None:
    """Answer a request that is parked, unless its answer is LATER still, or its connection closed.

    Without a reply (acks=0) its slot is filled with nothing; an error closes the connection then.
    """
    token: Any = ctx.token
    parked = parked_requests.find(token)
    if reply is LATER or parked is None:
        return
    connection, slot = token
    if reply is not NO_REPLY:
        parked_requests.answer(token, reply)
        for flush_state in (*ask.reads(), metadata.flush_state):
            if not durability.is_settled(flush_state):
                durability.hold(flush_state, (connection, slot, *parked.frame))
    elif ask.failed:
        connection.refuse("Produce with acks=0 failed")
    else:
        parked_requests.drop(token)
        connection.parked.discard(slot)
        connection.fill(slot, b"")
        durability.speaks(connection)
