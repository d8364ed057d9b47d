"""Writes why requests were refused into the log (`momus.refusals`, level info) and the journal."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from broker.refusals.why import Broker, why

if TYPE_CHECKING:
    from broker.wire.clients import Clients
    from broker.wire.connection import Connection
    from protocol.declare import Message

logger = logging.getLogger("momus.refusals")


class Recorder:
    """Called by the router for each response that has errors."""

    def __init__(self, broker: Broker, clients: Clients) -> None:
        self._broker = broker
        self._clients = clients

    def refused(
        self, connection: Connection, correlation_id: int, request: Message, response: Any, said: str | None
    ) -> None:
        """Make the sentence and write it. What goes wrong here does not reach the client."""
        try:
            text = why(self._broker, request, response, said)
        except Exception:
            logger.exception("cannot say why a %s was refused", type(request).__name__)
            return
        if not text:
            return
        logger.info("%s of client %r is refused: %s", type(request).__name__, connection.client, text)
        if self._clients.journal is not None:
            self._clients.journal.note(connection, correlation_id, "why", text)
