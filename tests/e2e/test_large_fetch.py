"""A Fetch of 100 MB streams from the disk: it takes little memory and leaves other connections their turns."""

from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path

import pytest

from momus import Broker
from protocol.codegen import codec
from protocol.messages.cluster import ApiVersionsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.record_batch import build_batch

pytestmark = pytest.mark.e2e

BATCH_BYTES = 1_000_000
BATCHES = 100
MEGABYTE = 1_000_000


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


class Socket:
    """One connection with raw frames."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=120)

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def send(self, request: object, version: int) -> None:
        cls = type(request)
        tags = b"\x00" if version >= cls.FLEXIBLE_SINCE else b""
        body = struct.pack(">hhih", cls.API_KEY, version, 1, -1) + tags
        body += codec(cls, version).encode(request)
        self.socket.sendall(struct.pack(">i", len(body)) + body)

    def receive(self, count: int) -> int:
        """Take so many bytes and forget them."""
        left = count
        while left:
            left -= len(self.socket.recv(min(left, 1 << 16)))
        return count

    def size(self) -> int:
        head = b""
        while len(head) < 4:
            head += self.socket.recv(4 - len(head))
        return int(struct.unpack(">i", head)[0])

    def ask(self, request: object, version: int) -> int:
        self.send(request, version)
        return self.receive(self.size())


@pytest.fixture
def filled(broker_factory):
    broker: Broker = broker_factory(config={"message.max.bytes": 2 * MEGABYTE, "fetch.max.bytes": 200 * MEGABYTE})
    topics = [CreatableTopic(name="big", num_partitions=1, replication_factor=1)]
    batch = build_batch([(None, bytes(BATCH_BYTES))], timestamp_ms=1_700_000_000_000)
    data = TopicProduceData(name="big", partition_data=[PartitionProduceData(index=0, records=batch)])
    with Socket(broker.bootstrap_servers) as wire:
        wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
        for _ in range(BATCHES):
            wire.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 9)
    return broker


def fetch() -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 30)
    topics = [FetchTopic(topic="big", partitions=[wanted])]
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 30, session_epoch=-1, topics=topics)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc, which Linux has")
def test_fetch_of_100_mb_takes_less_than_20_mb_and_others_are_served_meanwhile(filled):
    broker = filled
    with Socket(broker.bootstrap_servers) as slow, Socket(broker.bootstrap_servers) as other:
        assert other.ask(ApiVersionsRequest(), 0) > 0
        before = resident_bytes(broker.pid)
        slow.send(fetch(), 12)
        size = slow.size()
        assert size > BATCHES * BATCH_BYTES
        most, served = 0, 0
        done = threading.Event()

        def read_it_all() -> None:
            slow.receive(size)
            done.set()

        # nothing has been read of it yet but its size: the broker must wait for us and serve others
        for _ in range(20):
            served += other.ask(ApiVersionsRequest(), 0) > 0
            most = max(most, resident_bytes(broker.pid))
        assert not done.is_set()
        reader = threading.Thread(target=read_it_all)
        reader.start()
        while not done.is_set():
            served += other.ask(ApiVersionsRequest(), 0) > 0
            most = max(most, resident_bytes(broker.pid))
        reader.join()
        assert served > 20
        assert most - before < 20 * MEGABYTE
