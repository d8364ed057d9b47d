"""A TCP proxy that cuts connections at random: after any byte, in either direction, without a word to anybody."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from random import Random


class FaultProxy:
    """Forwards connections to a broker until a random number of bytes has passed in one of the directions."""

    def __init__(self, seed: int, *, least_bytes: int, most_bytes: int) -> None:
        self.target = ""  # host:port of the broker, which may have to know our address first
        self._rng = Random(seed)
        self._bytes = least_bytes, most_bytes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self.cuts = 0
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._sockets):
            _close(each)

    def calm(self) -> None:
        """Cut no connection that is made from now on."""
        self._bytes = 1 << 60, 1 << 60

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                host, port = self.target.rsplit(":", 1)
                broker = socket.create_connection((host, int(port)))
            except (OSError, ValueError):
                return
            self._sockets |= {client, broker}
            for source, sink in ((client, broker), (broker, client)):
                budget = self._rng.randint(*self._bytes)
                threading.Thread(target=self._pump, args=(source, sink, budget), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, budget: int) -> None:
        with suppress(OSError):
            while budget > 0:
                data = source.recv(min(65536, budget))
                if not data:
                    break
                sink.sendall(data)
                budget -= len(data)
            else:
                self.cuts += 1
        _close(source)
        _close(sink)


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
