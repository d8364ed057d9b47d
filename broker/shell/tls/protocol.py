"""One TLS connection: a protocol for the socket's transport, and a transport for its Connection.

It stands between the two with an SSLObject over memory. asyncio has such a layer; this one lets the broker pace
handshakes (`handshakes.py`), bound what they hold, choose the context for each client, and log what is wrong.

    bytes of the socket -> data_received -> SSLObject.read  -> Connection.data_received
    bytes to the socket <- transport.write <- SSLObject.write <- TlsTransport.write <- Connection
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from broker.config.addresses import client_host
from broker.shell.tls.handshakes import MOST_BYTES

if TYPE_CHECKING:
    from broker.shell.tls.handshakes import Handshakes

logger = logging.getLogger("momus.security")

READ_BYTES: Final = 1 << 18  # decrypted before it is handed on
RECORD_BYTES: Final = 1 << 14  # the most that one read gives, as it is the most in a record of TLS
WRITE_BYTES: Final = 1 << 18  # encrypted at once
_FIRST_BYTE: Final = 0x16  # of a TLS handshake
# What every connection decrypts into: new memory for each read, of an unknown size, costs as much as decrypting 16 kB.
_DECRYPTED: Final = memoryview(bytearray(READ_BYTES + RECORD_BYTES))


class TlsProtocol:
    """What the socket's transport calls.

    context          makes the SSLContext when the handshake takes its first step: accepting a client is cheap.
    make_connection  (subject of the client's certificate or None, TlsTransport) -> the Connection; None: not wanted.
    """

    def __init__(
        self,
        context: Callable[[], ssl.SSLContext],
        handshakes: Handshakes,
        make_connection: Callable[[dict[str, Any] | None], Any],
        name: str,
    ) -> None:
        self._context = context
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: Any = None
        self._handshakes = handshakes
        self._make_connection = make_connection
        self._name = name
        self._received = 0
        self._is_ready = False
        self.transport: Any = None
        self.app: Any = None  # the Connection; None during the handshake
        self._is_paused = False
        self._held = b""  # decrypted while the Connection does not read

    # -- the socket's side

    def connection_made(self, transport: Any) -> None:
        """A client has connected: its handshake begins."""
        self.transport = transport
        self._handshakes.begin(self)

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed."""
        self._handshakes.end(self, is_good=False)
        if self.app is not None:
            self.app.connection_lost(error)

    def eof_received(self) -> bool:
        """Close the connection."""
        return False

    def pause_writing(self) -> None:
        """The client reads more slowly than the broker writes."""
        if self.app is not None:
            self.app.pause_writing()

    def resume_writing(self) -> None:
        """The client has caught up."""
        if self.app is not None:
            self.app.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Decrypt, or take the next step of the handshake when its turn comes."""
        if self.app is not None:
            self._incoming.write(data)
            self._decrypt()
            return
        if not self._received and data[0] != _FIRST_BYTE:
            self.give_up(f"its first bytes are no TLS; the listener {self._name} is a TLS listener")
            return
        self._received += len(data)
        if self._received > MOST_BYTES:
            self.give_up(f"more than {MOST_BYTES} bytes before its handshake is complete")
            return
        self._incoming.write(data)
        if not self._is_ready:
            self._is_ready = True
            self._handshakes.ready(self)

    # -- the handshake

    def step(self) -> None:
        """Take a step of the handshake."""
        self._is_ready = False
        if self._tls is None:
            self._tls = self._context().wrap_bio(self._incoming, self._outgoing, server_side=True)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            self._flush()  # the alert that tells the client
            self.give_up(f"TLS handshake failed: {_reason(error)}")
            return
        self._flush()
        self._handshakes.end(self, is_good=True)
        app = self._make_connection(self._tls.getpeercert())
        if app is None:
            self.transport.close()
            return
        self.app = app
        app.connection_made(TlsTransport(self))
        if not app.closed:
            self._decrypt()

    def give_up(self, why: str) -> None:
        """Close a connection whose handshake is not complete."""
        host = client_host(self.transport.get_extra_info("peername"))
        self._handshakes.tell(f"closing connection {host or '/'} on listener {self._name}: {why}")
        self._handshakes.end(self, is_good=False)
        self.transport.close()

    def drop(self) -> None:
        """The cluster has ended."""
        self.transport.abort()

    # -- bytes

    def _decrypt(self) -> None:
        tls, incoming = self._tls, self._incoming
        size = 0
        is_end = False
        try:
            while n := tls.read(RECORD_BYTES, _DECRYPTED[size:]):
                size += n
                if size > READ_BYTES:
                    self._give(bytes(_DECRYPTED[:size]))
                    size = 0
                elif not incoming.pending and not tls.pending():  # an exception would say it more slowly
                    break
            else:
                is_end = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            is_end = True
            if not isinstance(error, ssl.SSLZeroReturnError):
                self._warn(error)
        if self._outgoing.pending:  # an answer of the protocol's own, as to a key update
            self._flush()
        if size:
            self._give(bytes(_DECRYPTED[:size]))
        if is_end:
            self.transport.close()

    def _warn(self, error: ssl.SSLError) -> None:
        """Log what ended a connection; with TLS 1.3 a client's certificate or its refusal of ours shows only here."""
        logger.warning("closing connection %s on listener %s: TLS: %s", self.app.host, self._name, _reason(error))

    def _give(self, data: bytes) -> None:
        if self._is_paused:
            self._held += data
        else:
            self.app.data_received(data)

    def _flush(self) -> None:
        if data := self._outgoing.read():
            self.transport.write(data)

    def write(self, data: bytes) -> None:
        """Encrypt and send."""
        view = memoryview(data)
        try:
            for start in range(0, len(view), WRITE_BYTES):
                self._tls.write(view[start : start + WRITE_BYTES])
                self._flush()
        except ssl.SSLError as error:
            self._warn(error)
            self.transport.abort()

    def close(self) -> None:
        """Say goodbye, and close the socket once everything is sent."""
        with suppress(ssl.SSLError):  # the client's goodbye is not awaited
            self._tls.unwrap()
        self._flush()
        self.transport.close()

    def pause(self) -> None:
        """The Connection does not want to read."""
        self._is_paused = True
        self.transport.pause_reading()

    def resume(self) -> None:
        """The Connection reads again: first what was decrypted meanwhile."""
        self._is_paused = False
        if not self.transport.is_closing():
            self.transport.resume_reading()
        if self._held:
            data, self._held = self._held, b""
            self.app.data_received(data)


class TlsTransport:
    """What a Connection writes to."""

    def __init__(self, protocol: TlsProtocol) -> None:
        self._protocol = protocol
        socket = protocol.transport
        self.write = protocol.write
        self.close = protocol.close
        self.pause_reading = protocol.pause
        self.resume_reading = protocol.resume
        self.abort = socket.abort
        self.is_closing = socket.is_closing
        self.get_extra_info = socket.get_extra_info
        self.get_write_buffer_size = socket.get_write_buffer_size
        self.set_write_buffer_limits = socket.set_write_buffer_limits

    def set_protocol(self, app: Any) -> None:
        """Another receiver takes the place of the Connection."""
        self._protocol.app = app


def _reason(error: ssl.SSLError) -> str:
    """What OpenSSL says, without the place in its source."""
    return (error.reason or str(error)).lower().replace("_", " ")
