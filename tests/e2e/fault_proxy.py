"""A TCP proxy that cuts connections at random: after any byte, in either direction, without a word to anybody.

It can withhold replies before it cuts: meanwhile the broker goes on taking requests whose replies nobody will see.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from random import Random

# librdkafka's idempotent producer with small batches, five of them in flight, that comes back at once.
OVER_CUTS = {
    "enable.idempotence": True,
    "max.in.flight.requests.per.connection": 5,
    "linger.ms": 1,
    "batch.num.messages": 50,
    "reconnect.backoff.ms": 1,
    "reconnect.backoff.max.ms": 20,
    "retry.backoff.ms": 5,
    "message.timeout.ms": 300_000,
}


class FaultProxy:
    """Forwards connections to a broker until a random number of bytes has passed in one of the directions."""

    def __init__(
        self,
        seed: int,
        *,
        least_bytes: int,
        most_bytes: int,
        reply_bytes: tuple[int, int] | None = None,
        withheld_s: float = 0.0,
    ) -> None:
        """reply_bytes: the range for the broker's direction; withheld_s: the longest time replies are withheld."""
        self.target = ""  # host:port of the broker, which may have to know our address first
        self._rng = Random(seed)
        self._bytes = least_bytes, most_bytes
        self._reply_bytes = reply_bytes or self._bytes
        self._withheld_s = withheld_s
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
        self._bytes = self._reply_bytes = 1 << 60, 1 << 60

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                host, port = self.target.rsplit(":", 1)
                broker = socket.create_connection((host, int(port)))
            except (OSError, ValueError):  # the broker was killed
                _close(client)
                continue
            self._sockets |= {client, broker}
            withheld_s = self._rng.uniform(0, self._withheld_s)
            for source, sink, range_, last_s in (
                (client, broker, self._bytes, 0.0),
                (broker, client, self._reply_bytes, withheld_s),
            ):
                budget = self._rng.randint(*range_)
                threading.Thread(target=self._pump, args=(source, sink, budget, last_s), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, budget: int, last_s: float) -> None:
        with suppress(OSError):
            while budget > 0:
                data = source.recv(min(65536, budget))
                if not data:
                    break
                sink.sendall(data)
                budget -= len(data)
            else:
                self.cuts += 1
                time.sleep(last_s)
        _close(source)
        _close(sink)


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
