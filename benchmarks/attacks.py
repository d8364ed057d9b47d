"""What `benchmarks.hostile` does to a broker: each attack is a function that runs in a process of its own, for ever.

Those in ON_LISTENERS attack the listener itself, and the broker asks for TLS and SASL. Those in ON_NEIGHBOURS are
clients that ask for much and may; of them each counts the replies that it has read whole in `answers`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

from momus.launch import use_packages

use_packages()

from benchmarks.wire import frame  # noqa: E402  # after use_packages
from protocol.messages.cluster import MetadataRequest  # noqa: E402  # the same
from protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource  # noqa: E402  # the same
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic  # noqa: E402  # the same

TOPICS = 100
PARTITIONS = 100  # of each topic: 10,000 in all
HALTED_S = 3600


def name_of(topic: int) -> str:
    """The names of the topics that the neighbours ask about."""
    return f"orders-{topic:04}"


def _opened(host: str, port: int, n: int) -> list[socket.socket]:
    return [socket.create_connection((host, port)) for _ in range(n)]


def half_open(host: str, port: int, n: int, answers: Any) -> None:
    """Connections that send nothing."""
    kept = _opened(host, port, n)
    time.sleep(HALTED_S)
    del kept


def slowloris(host: str, port: int, n: int, answers: Any) -> None:
    """Connections that send a byte a second."""
    kept = _opened(host, port, n)
    while True:
        for each in kept:
            try:
                each.send(b"\x16")
            except OSError:
                each.close()
        time.sleep(1)


def handshakes(host: str, port: int, n: int, answers: Any) -> None:
    """TLS handshakes, as many as this process can begin."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    while True:
        try:
            with socket.create_connection((host, port)) as plain, context.wrap_socket(plain):
                pass
        except OSError:
            continue


def all_topics() -> bytes:
    """Metadata of every topic."""
    return frame(MetadataRequest(topics=None), 9)


def all_configs() -> bytes:
    """DescribeConfigs of every topic."""
    resources = [DescribeConfigsResource(resource_type=2, resource_name=name_of(topic)) for topic in range(TOPICS)]
    return frame(DescribeConfigsRequest(resources=resources), 4)


def new_session() -> bytes:
    """A Fetch that opens a session over a thousand partitions and waits for nothing."""
    partitions = [FetchPartition(partition=at, fetch_offset=0, partition_max_bytes=1 << 20) for at in range(PARTITIONS)]
    topics = [FetchTopic(topic=name_of(topic), partitions=partitions) for topic in range(TOPICS // 10)]
    return frame(FetchRequest(max_wait_ms=0, min_bytes=0, session_id=0, session_epoch=0, topics=topics), 11)


async def _asks(host: str, port: int, frame: bytes, answers: Any) -> None:
    """One client: ask, read the whole reply, ask again."""
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    while True:
        writer.write(frame)
        left = int.from_bytes(await reader.readexactly(4), "big")
        while left:
            left -= len(await reader.read(min(left, 1 << 20)))
        answers.value += 1


async def _never_reads(host: str, port: int, frame: bytes) -> None:
    """One client that asks as fast as it may and reads nothing; closed by the broker it comes again."""
    loop = asyncio.get_running_loop()
    while True:
        with contextlib.suppress(OSError), socket.socket() as plain:
            plain.setblocking(False)
            await loop.sock_connect(plain, (host, port))
            while True:
                await loop.sock_sendall(plain, frame)
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)


async def _together(tasks: list[Any]) -> None:
    await asyncio.gather(*tasks)


def asking(question: Callable[[], bytes]) -> Callable[..., None]:
    """Fifty clients that ask one after the other and read each reply."""

    def attack(host: str, port: int, n: int, answers: Any) -> None:
        asyncio.run(_together([_asks(host, port, question(), answers) for _ in range(50)]))

    return attack


def never_reading(question: Callable[[], bytes]) -> Callable[..., None]:
    """Five hundred clients that ask and read nothing."""

    def attack(host: str, port: int, n: int, answers: Any) -> None:
        asyncio.run(_together([_never_reads(host, port, question()) for _ in range(500)]))

    return attack


def opening(host: str, port: int, n: int, answers: Any) -> None:
    """Connections that are opened one after the other, ten thousand at most, then closed and opened again."""
    while True:
        kept = []
        with contextlib.suppress(OSError):
            for _ in range(10_000):
                kept.append(socket.create_connection((host, port)))
                answers.value += 1
        for each in kept:
            each.close()


ON_LISTENERS: dict[str, Callable[..., None]] = {
    "half open": half_open,
    "slowloris": slowloris,
    "handshakes": handshakes,
}
ON_NEIGHBOURS: dict[str, Callable[..., None]] = {
    "metadata, 50": asking(all_topics),
    "metadata, 500 that never read": never_reading(all_topics),
    "configs, 50": asking(all_configs),
    "configs, 500 that never read": never_reading(all_configs),
    "fetch sessions, 50": asking(new_session),
    "10,000 connections opening": opening,
}


def run(attack: Callable[..., None], host: str, port: int, n: int, answers: Any) -> None:
    """Run an attack, with less of the processors than the broker and who measures it."""
    os.nice(10)
    with contextlib.suppress(KeyboardInterrupt):
        attack(host, port, n, answers)
