"""Connections that are idle for longer than connections.max.idle.ms are closed, by the cluster's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.wire.clients import Clients
    from broker.wire.connection import Connection


def close_idle(clients: Clients, limit_ms: int, most: int) -> bool:
    """Close connections that were neither read from nor answered late for limit_ms. Returns whether there are more.

    As in Kafka, a request that waits in the broker does not keep its connection open, but its answer counts. A broker
    that is paused closes nothing.
    """
    if limit_ms <= 0:
        return False
    now_ms = clients.turn.env.clock.steady_ms()
    closed = 0
    for connection in list(clients.open):
        if now_ms - connection.last_active_ms > limit_ms and not connection.asleep:
            if closed == most:
                return True
            closed += 1
            close(connection)
    return False


def close(connection: Connection) -> None:
    """Hang up once the client has what was sent to it; at once if it does not read: that could take for ever."""
    (connection.transport.abort if connection.write_paused else connection.transport.close)()
