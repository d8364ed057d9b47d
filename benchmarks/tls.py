"""What TLS costs: produce over TLS beside plaintext, handshakes a second, and Apache Kafka's TLS where it runs.

    python -m benchmarks.tls [--seconds 3] [--peer HOST:PORT --ca FILE]

The loader is this file: CONNECTIONS sockets from one thread, each with IN_FLIGHT produce requests of one record of SIZE
bytes under way, acks=1, one topic a connection. Server and loader share the machine, and the loader's own encryption is
in the figures. --peer: the TLS listener of another broker, with the certificate to trust.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import ssl
import time
from typing import Any

from momus import Broker
from momus.launch import use_packages

use_packages()

from protocol.codegen import codec  # noqa: E402  # behind use_packages
from protocol.header import encode_request_header  # noqa: E402  # the same
from protocol.messages.produce import (  # noqa: E402  # the same
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from protocol.record_batch import build_batch  # noqa: E402  # the same

CONNECTIONS, IN_FLIGHT = 16, 64
SIZES = (200, 16_000)
TOPIC = "load"


class Load:
    """One connection with requests under way."""

    def __init__(self, address: str, context: ssl.SSLContext | None) -> None:
        host, _, port = address.rpartition(":")
        plain = socket.create_connection((host, int(port)))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket: Any = plain if context is None else context.wrap_socket(plain, server_hostname=host)
        self.socket.setblocking(False)
        self.received = b""
        self.unsent = b""
        self.answers = 0

    def send(self, data: bytes) -> None:
        self.unsent += data
        self.flush()

    def flush(self) -> None:
        while self.unsent:
            try:
                n = self.socket.send(self.unsent[: 1 << 18])
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                return
            self.unsent = self.unsent[n:]

    def read(self) -> int:
        """How many answers have come."""
        try:
            while part := self.socket.recv(1 << 16):
                self.received += part
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        n = 0
        while len(self.received) >= 4 and len(self.received) >= (end := 4 + int.from_bytes(self.received[:4], "big")):
            self.received = self.received[end:]
            n += 1
        return n


def frame(size: int) -> bytes:
    """One produce request."""
    records = build_batch([(None, b"x" * size)], timestamp_ms=int(time.time() * 1000))
    parts = [PartitionProduceData(index=0, records=records)]
    topics = [TopicProduceData(name=TOPIC, partition_data=parts)]
    request = ProduceRequest(transactional_id=None, acks=1, timeout_ms=10_000, topic_data=topics)
    body = encode_request_header(0, 9, 1, "load") + codec(ProduceRequest, 9).encode(request)
    return len(body).to_bytes(4, "big") + body


def produce(address: str, context: ssl.SSLContext | None, size: int, seconds: float) -> float:
    """Requests a second."""
    loads = [Load(address, context) for _ in range(CONNECTIONS)]
    chooser = selectors.DefaultSelector()
    one = frame(size)
    for load in loads:
        chooser.register(load.socket, selectors.EVENT_READ, load)
        load.send(one * IN_FLIGHT)
    answers, begin = 0, time.perf_counter()
    while (now := time.perf_counter()) - begin < seconds:
        for key, _ in chooser.select(0.05):
            if n := key.data.read():
                answers += n
                key.data.send(one * n)
        for load in loads:
            if load.unsent:
                load.flush()
    for load in loads:
        load.socket.close()
    return answers / (now - begin)


def handshakes(address: str, context: ssl.SSLContext, seconds: float) -> float:
    """Handshakes a second, one after the other."""
    host, _, port = address.rpartition(":")
    n, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        with socket.create_connection((host, int(port))) as plain, context.wrap_socket(plain, server_hostname=host):
            n += 1
    return n / (time.perf_counter() - begin)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--peer", help="HOST:PORT of another broker's TLS listener")
    parser.add_argument("--ca", help="the certificate that it is to be trusted by")
    options = parser.parse_args()
    with Broker(flush="os") as plain, Broker(flush="os", security="ssl") as secured:
        context = ssl.create_default_context(cafile=secured.client_config("confluent")["ssl.ca.location"])
        targets: list[tuple[str, str, ssl.SSLContext | None]] = [
            ("momus, plaintext", plain.bootstrap_servers, None),
            ("momus, TLS", secured.bootstrap_servers, context),
        ]
        for broker in (plain, secured):
            broker.create_topic(TOPIC)
        if options.peer:
            targets.append(("peer, TLS", options.peer, ssl.create_default_context(cafile=options.ca)))
        print(f"{'':>18}" + "".join(f"{f'{size} B, requests/s':>24}" for size in SIZES))
        for name, address, secure in targets:
            rates = [produce(address, secure, size, options.seconds) for size in SIZES]
            print(f"{name:>18}" + "".join(f"{rate:>24,.0f}" for rate in rates))
        print(f"{'handshakes/s':>18}{handshakes(secured.bootstrap_servers, context, options.seconds):>24,.0f}")


if __name__ == "__main__":
    main()
