"""TLS without a socket: a loop run by hand, an authority with certificates, and the client's side of a handshake."""

from __future__ import annotations

import ssl
from collections import deque
from typing import Any

import trustme

from broker.config.settings import BrokerConfig
from broker.security.listener_settings import ListenerSettings
from broker.shell.tls.contexts import make_context
from broker.shell.tls.handshakes import Handshakes
from broker.shell.tls.protocol import TlsProtocol

CA = trustme.CA()
LEAF = CA.issue_cert("localhost", common_name="server")
ALICE = CA.issue_cert("a@b", common_name="alice")
KEY, CHAIN = LEAF.private_key_pem.bytes().decode(), LEAF.cert_chain_pems[0].bytes().decode()
INLINE = {"ssl.keystore.key": KEY, "ssl.keystore.certificate.chain": CHAIN}


class Loop:
    """Calls that wait, and a clock that stands."""

    def __init__(self) -> None:
        self.calls: deque[Any] = deque()
        self.later: list[Any] = []
        self.now_s = 0.0

    def time(self) -> float:
        return self.now_s

    def call_soon(self, call: Any) -> None:
        self.calls.append(call)

    def call_later(self, seconds: float, call: Any) -> Any:
        self.later.append(call)
        return self

    def cancel(self) -> None:
        pass

    def run(self) -> None:
        while self.calls:
            self.calls.popleft()()


class Socket:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.closed = False
        self.reading = True

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class App:
    """Stands for the Connection."""

    def __init__(self, certificate: Any) -> None:
        self.certificate = certificate
        self.received = b""
        self.closed = False
        self.host = "/peer"
        self.lost = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, error: Any) -> None:
        self.lost = True


class Peer:
    """A TLS client, and the protocol that it talks to."""

    def __init__(
        self,
        handshakes: Handshakes,
        loop: Loop,
        *,
        cert: Any = None,
        ca: Any = CA,
        name: str = "localhost",
        **settings: str,
    ) -> None:
        self.loop = loop
        self.app: App | None = None
        given = {**INLINE, **{key.replace("_", "."): value for key, value in settings.items()}}
        server = make_context(ListenerSettings(BrokerConfig.load(given), "SSL"))
        self.protocol = TlsProtocol(lambda: server, handshakes, self._make, "SSL")
        self.socket = Socket()
        self.protocol.connection_made(self.socket)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        ca.configure_trust(context)
        if cert:
            cert.configure_cert(context)
        self.inward, self.outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = context.wrap_bio(self.inward, self.outward, server_hostname=name)

    def _make(self, certificate: Any) -> App:
        self.app = App(certificate)
        return self.app

    def exchange(self) -> None:
        """Carry bytes to and fro until nothing moves."""
        moved = True
        while moved:
            moved = False
            if data := self.outward.read():
                moved = True
                if not self.socket.closed:
                    self.protocol.data_received(data)
                    self.loop.run()
            if self.socket.written:
                moved = True
                self.inward.write(bytes(self.socket.written))
                self.socket.written.clear()

    def connect(self) -> None:
        for _ in range(4):
            try:
                self.client.do_handshake()
            except ssl.SSLWantReadError:
                self.exchange()
            else:
                self.exchange()
                return
        raise ConnectionError("no handshake")

    def send(self, data: bytes) -> None:
        self.client.write(data)
        self.exchange()
