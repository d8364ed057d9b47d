"""Parked requests: kept until a handler, a timer or a write answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.wire.error_counts import settle_errors
from broker.wire.reply_stream import PARKED_BYTES
from broker.wire.route import encode_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.turn.flush_state import FlushState
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection
    from broker.wire.reply_stream import Reply
    from broker.wire.route import Route
    from protocol.errors import ErrorCode


class ParkedRequest:
    """What it takes to answer or refuse a request later."""

    __slots__ = ("api_version", "correlation_id", "frame", "merge", "route")

    def __init__(self, route: Route, api_version: int, correlation_id: int, frame: tuple[bytes, int, int]) -> None:
        self.route = route
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.frame = frame  # bytes that hold it, its start and stop in them
        self.merge: Any = None  # puts what the guard has refused into the response


class ParkedRequests:
    """The parked requests by token: (connection, slot of the reply)."""

    def __init__(
        self,
        turn: Turn,
        refusal: Callable[[bytes, ErrorCode | None], Reply],
        refused: Callable[[Connection, ParkedRequest, Any], None],
    ) -> None:
        self._turn = turn
        self._refused = refused  # is told of responses with errors
        self._refusal = refusal  # (frame, code) -> the reply that refuses it
        self._waiting: dict[Any, ParkedRequest] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, token: object) -> bool:
        return token in self._waiting

    def park(self, token: Any, parked: ParkedRequest) -> None:
        """Keep a request to answer it later."""
        data, position, stop = parked.frame
        if stop - position < len(data):  # the received data would otherwise be kept for minutes
            parked.frame = (data[position:stop], 0, stop - position)
        self._waiting[token] = parked
        connection, slot = token
        connection.parked.add(slot)
        connection.unsent += PARKED_BYTES

    def find(self, token: Any) -> ParkedRequest | None:
        """The request, if it is still parked."""
        return self._waiting.get(token)

    def drop(self, token: Any) -> None:
        """Remove a request that is answered elsewhere."""
        del self._waiting[token]

    def answer(self, token: Any, response: Any, *seen: FlushState) -> None:
        """Answer a request once `seen`, the logs its response was made from, are durable. Nothing happens when its
        connection is closed."""
        parked = self._waiting.pop(token, None)
        if parked is None:
            return
        turn = self._turn
        turn.begin()
        connection, slot = token
        connection.parked.discard(slot)
        if parked.merge is not None:
            response = parked.merge(response)
        if settle_errors(turn.metrics, parked.route.api_key, parked.api_version, response) and not connection.closed:
            self._refused(connection, parked, response)
        reply = encode_reply(parked.route, parked.api_version, parked.correlation_id, response)
        self._send(token, parked, reply, seen)

    def fill(self, token: Any, reply: Reply, *seen: FlushState) -> None:
        """Answer a request that is parked, with a reply that needs no change and has no errors."""
        parked = self._waiting.pop(token)
        self._turn.begin()
        token[0].parked.discard(token[1])
        self._send(token, parked, reply, seen)

    def _send(self, token: Any, parked: ParkedRequest, reply: Reply, seen: tuple[FlushState, ...]) -> None:
        connection, slot = token
        connection.late_slot = slot
        connection.fill(slot, reply)
        for flush_state in seen:
            self._turn.durability.hold(flush_state, (connection, slot, *parked.frame))
        self._turn.durability.speaks(connection)

    def refuse(self, token: Any, code: ErrorCode | None) -> None:
        """Answer a request with an error. None: the one for what was lost with a failed write."""
        parked = self._waiting.pop(token, None)
        if parked is not None and not token[0].closed:
            data, position, stop = parked.frame
            token[0].fill(token[1], self._refusal(data[position:stop], code))
            self._turn.durability.speaks(token[0])

    def forget(self, connection: Connection) -> None:
        """The connection is closed: drop its parked requests and fetches."""
        for slot in connection.parked:
            self._waiting.pop((connection, slot), None)
        if connection.fetch_waits:
            for wait in list(connection.fetch_waits.values()):
                wait.cancel()
            connection.fetch_waits.clear()
        connection.forget(connection.generation)  # what is kept for repeats refers to the connection
        connection.out = []


def chain(merges: list[Callable[[Any], Any]]) -> Callable[[Any], Any] | None:
    """Several of what changes a response, one after the other."""
    if len(merges) < 2:
        return merges[0] if merges else None

    def merge(response: Any) -> Any:
        for each in merges:
            response = each(response)
        return response

    return merge
