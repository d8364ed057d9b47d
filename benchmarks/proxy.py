"""What the proxy costs beside a plain splice of two sockets by uvloop, in the same run: `python -m benchmarks.proxy`.

lone        a request at a time (OffsetFetch), p50 in us: direct, spliced, by the proxy
produce     batches of 100 bytes, 8 connections with 16 requests each in flight, a second: direct, spliced, by the proxy
fetch       replies of 1 MB to Fetch v18, which may end with addresses, one connection, MB a second: the same
memory      MB that 1,000 open connections add to the proxy's process, and all that it has then
ready       ms from the start of the process until it serves

One line of JSON for each. Rounds take turns, so that what else the machine does falls on all; the median counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import selectors
import socket
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks.lone import Line
from benchmarks.wire import frame
from protocol.messages.cluster import MetadataRequest, MetadataRequestTopic
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.record_batch import build_batch

TOPIC, LARGE = "proxied", "proxied-large"
CONNECTIONS, DEPTH = 8, 16
MEGABYTE = 1 << 20
OPEN = 1000
STARTS = 5


class Half(asyncio.Protocol):
    """One side of a spliced connection."""

    def __init__(self, place: tuple[str, int] | None = None) -> None:
        self.place = place
        self.other: Half | None = None
        self.transport: Any = None
        self.early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect the other side, if this is a client's."""
        self.transport = transport
        if self.place is not None:
            self.reaching = asyncio.ensure_future(self._reach(self.place))

    async def _reach(self, place: tuple[str, int]) -> None:
        _, other = await asyncio.get_running_loop().create_connection(Half, *place)
        other.other, self.other = self, other
        if self.early:
            other.transport.write(b"".join(self.early))

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        if self.other is None:
            self.early.append(data)
        else:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        """The other side waits."""
        if self.other is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """It goes on."""
        if self.other is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Both are closed."""
        if self.other is not None:
            self.other.transport.close()


async def splice(to: str) -> None:
    """Splice all connections to an address, until the process is ended."""
    host, _, port = to.rpartition(":")
    server = await asyncio.get_running_loop().create_server(lambda: Half((host, int(port))), "127.0.0.1", 0)
    print(f"momus ready 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def started(*words: str) -> tuple[subprocess.Popen[str], str, float]:
    """A process that says where it listens; and after how many ms."""
    began = time.perf_counter()
    kept = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # as an installed momus has it: to make bytecode takes 250 ms
    process = subprocess.Popen([sys.executable, "-m", *words], stdout=subprocess.PIPE, text=True, env=kept)
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, line.split()[2].split(",")[0], (time.perf_counter() - began) * 1000


def produce(topic: str, size: int, number: int = 1) -> bytes:
    batch = build_batch([(None, b"x" * size)], timestamp_ms=0)
    data = [PartitionProduceData(index=0, records=batch)]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)])
    return frame(request, 11, number)


def lone(address: str, seconds: float) -> float:
    """p50 of a round trip, in us."""
    group = OffsetFetchRequestGroup(group_id="g", topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])])
    data, line, took = frame(OffsetFetchRequest(groups=[group]), 8), Line(address), []
    end = time.perf_counter() + seconds
    while (before := time.perf_counter()) < end:
        line.socket.sendall(data)
        line.reply()
        took.append(time.perf_counter() - before)
    line.socket.close()
    return statistics.median(took) * 1e6


def many(address: str, seconds: float) -> float:
    """Produce requests a second."""
    data, selector, done = produce(TOPIC, 100), selectors.DefaultSelector(), 0
    left: dict[socket.socket, bytes] = {}
    for _ in range(CONNECTIONS):
        line = Line(address).socket
        line.sendall(data * DEPTH)
        left[line] = b""
        selector.register(line, selectors.EVENT_READ)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for key, _ in selector.select(1):
            line: Any = key.fileobj
            got = left[line] + line.recv(1 << 16)
            answered = 0
            while len(got) >= 4 and len(got) >= (size := 4 + int.from_bytes(got[:4], "big")):
                got, answered = got[size:], answered + 1
            left[line] = got
            done += answered
            if answered:
                line.sendall(data * answered)
    for line in left:
        line.close()
    return done / seconds


def large(address: str, seconds: float) -> float:
    """MB a second of Fetch replies of 1 MB."""
    line = Line(address)
    topic_id = line.ask(MetadataRequest(topics=[MetadataRequestTopic(name=LARGE)]), 12).topics[0].topic_id
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MEGABYTE)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=MEGABYTE,
        session_epoch=-1,
        topics=[FetchTopic(topic_id=topic_id, partitions=[wanted])],
    )
    data, got = frame(request, 18), 0
    buffer, end = bytearray(1 << 20), time.perf_counter() + seconds
    while time.perf_counter() < end:
        line.socket.sendall(data)
        left = int.from_bytes(line.socket.recv(4, socket.MSG_WAITALL), "big")
        got += left
        while left:
            left -= line.socket.recv_into(buffer, min(left, len(buffer)))
    line.socket.close()
    return got / MEGABYTE / seconds


def resident_mb(pid: int) -> float:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


def show(row: dict[str, Any]) -> None:
    print(json.dumps(row), flush=True)


def compare(name: str, measure: Any, places: dict[str, str], rounds: int, seconds: float) -> None:
    found: dict[str, list[float]] = {way: [] for way in places}
    for _ in range(rounds):
        for way, address in places.items():
            found[way].append(measure(address, seconds))
    median = {way: statistics.median(values) for way, values in found.items()}
    ratios = {"to_splice": median["proxy"] / median["splice"], "to_direct": median["proxy"] / median["direct"]}
    show({"row": name, **{way: round(value, 1) for way, value in median.items()}, **_rounded(ratios)})


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in values.items()}


def main() -> None:
    """Measure all rows; `splice HOST:PORT` is the process that splices."""
    if sys.argv[1:2] == ["splice"]:
        import uvloop

        uvloop.run(splice(sys.argv[2]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=21)
    told = parser.parse_args()
    words = ["--listen", "127.0.0.1:0", "--flush", "memory", "-d", "/tmp/momus-benchmark-proxy"]
    broker, direct, _ = started("momus", "serve", *words)
    spliced, splice_at, _ = started("benchmarks.proxy", "splice", direct)
    starts = [started("momus", "proxy", "--to", direct, "--listen", "127.0.0.1:0") for _ in range(STARTS)]
    try:
        proxy, proxy_at, _ = starts[0]
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in (TOPIC, LARGE)]
        line = Line(direct)
        line.ask(CreateTopicsRequest(topics=topics, timeout_ms=5000), 7)
        line.socket.sendall(produce(LARGE, MEGABYTE - 200))
        line.reply()
        places = {"direct": direct, "splice": splice_at, "proxy": proxy_at}
        compare("lone", lone, places, told.rounds, told.seconds)
        compare("produce", many, places, told.rounds, told.seconds)
        compare("fetch", large, places, told.rounds, told.seconds)
        before = resident_mb(proxy.pid)
        lines = [Line(proxy_at).socket for _ in range(OPEN)]
        data = frame(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=[])]), 8)
        for each in lines:
            each.sendall(data)
        for each in lines:
            each.recv(1 << 16)
        after = resident_mb(proxy.pid)
        show({"row": "memory", "connections": OPEN, "added_mb": round(after - before, 1), "mb": round(after, 1)})
        show({"row": "ready", "ms": round(statistics.median(ms for _, _, ms in starts))})
    finally:
        for process in (broker, spliced, *[each for each, _, _ in starts]):
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
