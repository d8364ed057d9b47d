"""Reads the tokens that follow version 0 of SaslHandshake: a size and bytes, without a request around them.

It takes the place of the connection as the transport's protocol until the exchange is complete. Source: KIP-43.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from broker.security.session import DONE, FAILED

if TYPE_CHECKING:
    from broker.security.session import Answer
    from broker.wire.connection import Connection

SIZE_BYTES = 4


class BareTokens:
    """The protocol of one exchange.

    step   takes a token, as Security does.
    admit  called when the client has authenticated.
    fail   called when it has failed, with the reason.
    """

    def __init__(
        self,
        connection: Connection,
        step: Callable[[Connection, bytes, Callable[[Answer], None]], Answer | None],
        admit: Callable[[Connection], None],
        fail: Callable[[Connection, str], None],
    ) -> None:
        self._connection = connection
        self._step = step
        self._waits = False  # for a password that is looked at
        self._admit = admit
        self._fail = fail
        self._data = b""
        self.connection_lost = connection.connection_lost
        self.eof_received = connection.eof_received
        self.pause_writing = connection.pause_writing
        self.resume_writing = connection.resume_writing

    def begin(self) -> None:
        """Take the connection's place, with what it has received and not served."""
        connection = self._connection
        data, connection.partial = connection.partial, b""
        connection.transport.set_protocol(self)
        if data:
            self.data_received(data)

    def data_received(self, data: bytes) -> None:
        """Take the tokens that are whole."""
        connection = self._connection
        guard: Any = connection.guard
        connection.last_active_ms = connection.turn.begin()
        self._data += data
        while not self._waits and guard.session.state not in (DONE, FAILED) and len(self._data) >= SIZE_BYTES:
            size = int.from_bytes(self._data[:SIZE_BYTES], "big", signed=True)
            if not 0 <= size <= guard.request_limit:
                connection.refuse(f"SASL token of {size} bytes")
                return
            if len(self._data) < SIZE_BYTES + size:
                return
            token, self._data = self._data[SIZE_BYTES : SIZE_BYTES + size], self._data[SIZE_BYTES + size :]
            answer = self._step(connection, token, self._looked)
            self._waits = answer is None
            if answer is not None:
                self._answer(guard, answer)
        if guard.session.state == DONE and not connection.closed:
            connection.transport.set_protocol(connection)
            if self._data:
                connection.data_received(self._data)

    def _looked(self, answer: Answer) -> None:
        """A token was taken that took long: go on."""
        self._waits = False
        self._answer(self._connection.guard, answer)
        self.data_received(b"")

    def _answer(self, guard: Any, answer: Answer) -> None:
        connection = self._connection
        if guard.session.state == FAILED:
            self._fail(connection, answer.message or "")
            return
        if guard.session.state == DONE:
            self._admit(connection)
        connection.add(len(answer.token).to_bytes(SIZE_BYTES, "big") + answer.token)
        connection.turn.durability.speaks(connection)
