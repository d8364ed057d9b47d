"""What TLS costs: commits and produce over TLS beside plaintext, handshakes a second, and another broker's TLS.

    python -m benchmarks.tls [--seconds 2] [--rounds 3] [--peer HOST:PORT --ca FILE --peer-pid PID]

The loader is this file: CONNECTIONS sockets from one thread, each with IN_FLIGHT requests under way: commits of one
partition, or produce requests of one record, acks=1, one topic for all. Server and loader share the machine, and the
loader's own encryption is in the figures. A round measures every broker in turn; the median of the rounds is printed,
with the broker's own processor time a request, which other programs on the machine do not change much.
--peer: the TLS listener of another broker, with the certificate to trust.
"""

from __future__ import annotations

import argparse
import os
import selectors
import socket
import ssl
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

from momus import Broker
from momus.launch import use_packages

use_packages()

from benchmarks.wire import frame  # noqa: E402  # after use_packages
from protocol.messages.cluster import (  # noqa: E402  # the same
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from protocol.messages.offsets import (  # noqa: E402  # the same
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.produce import (  # noqa: E402  # the same
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from protocol.record_batch import build_batch  # noqa: E402  # the same

CONNECTIONS, IN_FLIGHT = 16, 64
TOPIC = GROUP = "load"
SEND_BYTES = 1 << 18
WARM_S = 0.3
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Target(NamedTuple):
    """A broker that is measured."""

    name: str
    address: str
    context: ssl.SSLContext | None
    pid: int


class Load:
    """One connection that sends the same request again and again."""

    def __init__(self, address: str, context: ssl.SSLContext | None, one: bytes) -> None:
        host, _, port = address.rpartition(":")
        plain = socket.create_connection((host, int(port)))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket: Any = plain if context is None else context.wrap_socket(plain, server_hostname=host)
        self.socket.sendall(one)
        self.reply_bytes = len(one_reply(self.socket))
        self.socket.setblocking(False)
        self.size = len(one)
        self.data = memoryview(one * (SEND_BYTES // len(one) + 2))
        self.at = 0  # in a request that is partly sent
        self.left = 0  # bytes to send
        self.received = 0

    def send(self, requests: int) -> None:
        self.left += requests * self.size
        self.flush()

    def flush(self) -> None:
        while self.left:
            try:
                n = self.socket.send(self.data[self.at : self.at + min(self.left, SEND_BYTES)])
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                return
            self.left -= n
            self.at = (self.at + n) % self.size

    def read(self) -> int:
        """How many answers have come; all of them have one size."""
        try:
            while part := self.socket.recv(1 << 16):
                self.received += len(part)
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        n, self.received = divmod(self.received, self.reply_bytes)
        return n


def one_reply(sock: Any) -> bytes:
    """A whole frame."""
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        part = sock.recv(1 << 16)
        if not part:
            raise ConnectionError("the broker has hung up")
        data += part
    return data


def produce(size: int) -> bytes:
    """One record of this size."""
    records = build_batch([(None, b"x" * size)], timestamp_ms=int(time.time() * 1000))
    topics = [TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=records)])]
    return frame(ProduceRequest(transactional_id=None, acks=1, timeout_ms=10_000, topic_data=topics), 9)


def commit() -> bytes:
    """The offset of one partition."""
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[row])]
    return frame(OffsetCommitRequest(group_id=GROUP, member_id="", topics=topics), 8)


LOADS = {"commits": commit(), "200 B": produce(200), "16 kB": produce(16_000)}


def prepare(target: Target) -> None:
    """Have the topic and the group's coordinator, which a broker may make when it is first asked."""
    host, _, port = target.address.rpartition(":")
    topics = [MetadataRequestTopic(name=TOPIC)]
    asked = [
        frame(MetadataRequest(topics=topics, allow_auto_topic_creation=True), 9),
        frame(FindCoordinatorRequest(key=GROUP, key_type=0), 3),
        LOADS["commits"],
    ]
    with socket.create_connection((host, int(port))) as plain:
        sock = plain if target.context is None else target.context.wrap_socket(plain, server_hostname=host)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for each in asked:
                sock.sendall(each)
                reply = one_reply(sock)
            if reply[-4:-2] == b"\0\0":  # the error code before two empty lists of tags
                return
            time.sleep(0.5)
    raise TimeoutError(f"{target.name} takes no commits")


def processor_s(pid: int) -> float:
    """Processor time of a process."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(words[11]) + int(words[12])) * TICK_S


def rate(target: Target, one: bytes, seconds: float) -> tuple[float, float]:
    """Requests a second, and microseconds of the broker's processor time a request."""
    loads = [Load(target.address, target.context, one) for _ in range(CONNECTIONS)]
    chooser = selectors.DefaultSelector()
    for load in loads:
        chooser.register(load.socket, selectors.EVENT_READ, load)
        load.send(IN_FLIGHT)
    answers, begin, used, end = 0, 0.0, 0.0, time.perf_counter() + WARM_S + seconds
    while (now := time.perf_counter()) < end:
        if not begin and now > end - seconds:
            answers, begin, used = 0, now, processor_s(target.pid)
        for key, _ in chooser.select(0.05):
            if n := key.data.read():
                answers += n
                key.data.send(n)
        for load in loads:
            if load.left:
                load.flush()
    used = processor_s(target.pid) - used
    for load in loads:
        load.socket.close()
    return answers / (now - begin), used / max(answers, 1) * 1e6


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
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", help="HOST:PORT of another broker's TLS listener")
    parser.add_argument("--peer-pid", type=int, help="its process")
    parser.add_argument("--ca", help="the certificate that it is to be trusted by")
    options = parser.parse_args()
    with Broker(flush="os") as plain, Broker(flush="os", security="ssl") as secured:
        context = ssl.create_default_context(cafile=secured.client_config("confluent")["ssl.ca.location"])
        targets = [
            Target("momus, plaintext", plain.bootstrap_servers, None, plain.pid),
            Target("momus, TLS", secured.bootstrap_servers, context, secured.pid),
        ]
        if options.peer:
            other = ssl.create_default_context(cafile=options.ca)
            targets.append(Target("peer, TLS", options.peer, other, options.peer_pid or os.getpid()))
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for target in targets:
            prepare(target)
        for _ in range(options.rounds):
            for what, one in LOADS.items():
                for target in targets:
                    found.setdefault((target.name, what), []).append(rate(target, one, options.seconds))
        print(f"{'requests/s (µs of processor)':>30}" + "".join(f"{what:>22}" for what in LOADS))
        for target in targets:
            cells = [[statistics.median(each) for each in zip(*found[target.name, w], strict=True)] for w in LOADS]
            print(f"{target.name:>30}" + "".join(f"{f'{n:,.0f} ({used:,.1f})':>22}" for n, used in cells))
        print(f"{'handshakes/s':>30}{handshakes(secured.bootstrap_servers, context, options.seconds):>22,.0f}")


if __name__ == "__main__":
    main()
