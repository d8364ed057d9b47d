"""Large Fetches from a real broker, whose kernel sends them: the same bytes on each listener, at the client's speed."""

from __future__ import annotations

import os
import random
import socket
import ssl
import struct
from pathlib import Path

import pytest
from core_requests import fetch_request, produce_request
from test_large_fetch import resident_bytes
from wire_peer import Peer, make_topic

from momus import Broker
from protocol.messages.cluster import ApiVersionsRequest
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState

pytestmark = pytest.mark.e2e

BATCHES = 30
BATCH_BYTES = 900_000


def fill(peer: Peer) -> list[bytes]:
    """Values without a pattern, in two partitions."""
    rng = random.Random(20)
    values = [rng.randbytes(BATCH_BYTES) for _ in range(BATCHES)]
    make_topic(peer, "t", 2)
    for n, value in enumerate(values):
        answer = peer.call(produce_request("t", n % 2, value), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
    return values


def over_tls(address: str) -> Peer:
    peer = Peer(address)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    peer.socket = context.wrap_socket(peer.socket)
    return peer


def both_partitions():
    request = fetch_request("t", 0, 0)
    request.topics[0].partitions += fetch_request("t", 1, 0).topics[0].partitions
    return request


@pytest.mark.parametrize("flush", ["os", "memory"])
@pytest.mark.parametrize("security", [None, "ssl"])
def test_pipelined_large_fetches_bring_the_records_in_order(broker_factory, flush, security):
    broker: Broker = broker_factory(flush=flush, security=security)
    connect = over_tls if security else Peer
    with connect(broker.bootstrap_servers.split(",")[0]) as peer:
        values = fill(peer)
        for _ in range(3):
            peer.send(both_partitions(), 12)
            peer.send(ApiVersionsRequest(), 0)
            peer.send(fetch_request("t", 1, 3), 12)
        for _ in range(3):
            answer = peer.receive(1, 12).responses[0].partitions
            for place in (0, 1):
                found = bytes(answer[place].records)
                assert len(found) > BATCHES // 2 * BATCH_BYTES
                at = 0
                for value in values[place::2]:
                    at = found.index(value, at) + len(value)
            assert peer.receive(18, 0).api_keys
            rest = bytes(peer.receive(1, 12).responses[0].partitions[0].records)
            assert values[7] in rest[: BATCH_BYTES + 100]
            assert values[-1] in rest[-BATCH_BYTES - 100 :]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open descriptors are counted in /proc, which Linux has")
def test_clients_that_go_in_the_middle_leave_no_descriptor_behind(broker):
    with Peer(broker) as peer:
        fill(peer)
        peer.call(fetch_request("t", 0, 0), 12)
        before = len(os.listdir(f"/proc/{broker.pid}/fd"))
        memory = resident_bytes(broker.pid)
        gone = [Peer(broker) for _ in range(20)]
        for each in gone:
            each.send(both_partitions(), 12)
            each._read(4)
        assert peer.call(ApiVersionsRequest(), 0).api_keys
        assert resident_bytes(broker.pid) - memory < 20 * BATCH_BYTES
        for number, each in enumerate(gone):
            if number % 2:  # a reset
                each.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            each.close()
        wanted = DeleteTopicState(name="t", topic_id=bytes(16))
        peer.call(DeleteTopicsRequest(topics=[wanted], timeout_ms=1000), 6)
        for _ in range(500):
            if len(os.listdir(f"/proc/{broker.pid}/fd")) <= before:
                break
            peer.call(ApiVersionsRequest(), 0)
        assert len(os.listdir(f"/proc/{broker.pid}/fd")) <= before


def test_topic_deleted_while_a_slow_client_reads_it_comes_whole(broker):
    with Peer(broker) as slow, Peer(broker) as admin:
        values = fill(admin)
        slow.send(both_partitions(), 12)
        head = slow._read(4)
        wanted = DeleteTopicState(name="t", topic_id=bytes(16))
        assert admin.call(DeleteTopicsRequest(topics=[wanted], timeout_ms=1000), 6).responses[0].error_code == 0
        found = slow._read(int.from_bytes(head, "big"))
        assert all(value in found for value in values)
