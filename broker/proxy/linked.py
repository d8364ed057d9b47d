"""The side of a proxy's connection that its node's replies come to."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from broker.wire.connection import Connection

if TYPE_CHECKING:
    from broker.wire.service import Service

NO_SLOT: Final = -1
Flight = tuple[int, int, int, int, int]  # correlation id, kind, API key, version, slot (NO_SLOT: its reply passes)


class Linked(Connection):
    """A Connection whose requests are served by a node elsewhere; connection.py has the rest of it.

    up        the transport to the node; None: it is not reached yet.
    flights   the requests that the node has not answered, in their order.
    """

    __slots__ = ("flights", "is_node_full", "up")

    def __init__(self, service: Service, node_id: int, listener: Any) -> None:
        super().__init__(service, node_id, listener)
        self.up: Any = None
        self.flights: deque[Flight] = deque()
        self.is_node_full = False

    def link_lost(self) -> None:
        """The node has closed the connection: the client is told the same, after the replies that were whole."""
        if not self.closed:
            self.turn.call_soon(self._hang_up)

    def _hang_up(self) -> None:
        if not self.closed:
            self.closed = True
            (self.transport.abort if self.write_paused else self.transport.close)()

    def wait_for_node(self, is_full: bool) -> None:
        """Read nothing from the client while its node does not take what it has sent."""
        self.is_node_full = is_full
        if is_full:
            self.halt()
        elif not self.closed:
            self.resume_soon()

    def send(self, data: bytes) -> None:
        """Bytes of replies that pass."""
        self.service.metrics.bytes_out += len(data)
        self.transport.write(data)

    def new_slot(self) -> int:
        """A slot for the reply to a request that has passed."""
        slot = self.next_slot
        self.out.append(None)
        return slot

    def filled(self, slot: int, reply: bytes) -> None:
        """A reply has come into its slot."""
        self.turn.begin()
        self.fill(slot, reply)
        self.turn.durability.speaks(self)

    def replied(self, frame: bytes, slot: int, kind: int, api_key: int, version: int) -> None:
        """A whole reply has come, which has a slot or must be changed. Errors: MalformedError."""
        raise NotImplementedError
