"""Clients that connect and do not do their part: thousands of half frames, readers that never read, silence."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import zlib

import cramjam
import pytest
from budget import slow
from core_broker import frame
from core_requests import commit_request, fetch_request, produce_request
from fastcrc import crc32
from wire_peer import Peer, make_topic

from protocol.errors import ErrorCode
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.cluster import MetadataRequest
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

METADATA = MetadataRequest(topics=None)
ALL_OFFSETS = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])


def throw_until_full(peer: Peer, data: bytes) -> None:
    """Send as much as the broker takes, and leave it at that."""
    peer.socket.settimeout(0.05)
    try:
        peer.socket.sendall(data)
    except OSError:
        return


@pytest.mark.parametrize("size", [60_000, slow(90_000_000)], ids=["small", "large"])
def test_half_frames_on_2000_connections_leave_the_broker_small_and_others_served(target, size):
    target.begin()
    part = size.to_bytes(4, "big") + bytes(min(size - 1000, 59_000))
    for n in range(2000):
        throw_until_full(target.peer(), part)
        if n % 250 == 0:
            target.check()
    target.check()


def test_sizes_alone_on_2000_connections_cost_nothing(target):
    target.begin()
    for n in range(2000):
        throw_until_full(target.peer(), b"\x05\x00\x00\x00" if n % 2 else b"\x05")
    target.check()
    assert "closing" not in target.broker.log


def fill(target) -> None:
    for _ in range(12):
        answer = target.healthy.call(produce_request("t", 0, *[b"v" * 9_000] * 100), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
    for partitions in (range(400), range(400)):
        target.healthy.call(commit_request("g", dict.fromkeys(partitions, 5), "wide"), 8)


QUESTIONS = {
    "metadata": (METADATA, 12),
    "offsets": (ALL_OFFSETS, 8),
    "records": (fetch_request("t", 0, 0), 12),
    "long-polls": (fetch_request("t", 0, 1200, max_wait_ms=600_000), 12),
}


@pytest.mark.parametrize("question", [slow("metadata"), "offsets", "records", "long-polls"])
def test_readers_that_never_read_while_asking_for_much_leave_the_broker_small_and_others_served(target, question):
    ask_and_never_read(target, question)


@pytest.mark.parametrize("question", ["offsets", "records"])
def test_readers_over_tls_that_never_read_leave_the_broker_small_and_others_served(tls_target, question):
    ask_and_never_read(tls_target, question)


def ask_and_never_read(target, question):
    fill(target)
    request, version = QUESTIONS[question]
    data = frame(request, version) * 3000
    target.begin()
    for n in range(150):
        throw_until_full(target.peer(), data)
        if n % 25 == 0:
            target.check()
    target.check()


def test_joins_that_nobody_waits_for_leave_the_broker_small(target):
    target.begin()
    for n in range(300):
        join = JoinGroupRequest(
            group_id=f"g{n % 10}",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")],
        )
        with Peer(target.broker) as peer:
            peer.send(join, 3)
    target.check()


def varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def bomb(attributes: int, payload: bytes) -> ProduceRequest:
    """A produce request of one batch with one record, whose compressed bytes are given."""
    tail = struct.pack(">hiqqqhii", attributes, 0, 1, 1, -1, -1, -1, 1) + payload
    batch = struct.pack(">qiiBI", 0, len(tail) + 9, 0, 2, crc32.iscsi(tail)) + tail
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])
    return ProduceRequest(transactional_id=None, acks=-1, timeout_ms=10_000, topic_data=[data])


@pytest.mark.parametrize("codec", ["zstd", slow("gzip"), slow("lz4")])
def test_batch_that_inflates_beyond_all_bounds_is_refused_in_bounded_memory(target, codec):
    size = 150_000_000
    body = b"\0\0\0" + varint(-1) + varint(size) + bytes(size) + b"\0"
    plain = varint(len(body)) + body
    if codec == "gzip":
        attributes, payload = 1, zlib.compress(plain, wbits=31)
    elif codec == "zstd":
        attributes, payload = 4, bytes(cramjam.zstd.compress(plain))
    else:
        attributes, payload = 3, bytes(cramjam.lz4.compress(plain))
    del plain, body
    assert len(payload) < 1_000_000
    target.begin()
    for _ in range(3):
        answer = target.healthy.call(bomb(attributes, payload), 9).responses[0].partition_responses[0]
        assert answer.error_code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)
    target.check()


@pytest.mark.heavy
def test_descriptors_that_run_out_are_a_log_line_and_not_a_stop(tmp_path):
    command = f"ulimit -n 256; exec {sys.executable} -m momus serve --listen 127.0.0.1:0 --data-dir {tmp_path / 'data'}"
    process = subprocess.Popen(
        ["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    try:
        address = process.stdout.readline().split()[2]
        healthy = Peer(address)
        make_topic(healthy, "wide", 200)
        crowd = []
        for _ in range(400):
            peer = Peer(address)
            crowd.append(peer)
        served = 0
        for peer in crowd:
            try:
                served += bool(peer.call(METADATA, 12).topics)
            except OSError:
                continue
        assert 50 < served < 256
        for index in range(200):  # more segment files than descriptors are left
            answer = healthy.call(produce_request("wide", index, b"v"), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
        answer = healthy.call(commit_request("g", dict.fromkeys(range(200), 1), "wide"), 8)
        assert {p.error_code for p in answer.topics[0].partitions} == {0}
        make_topic(healthy, "late")
        for peer in crowd:
            peer.close()
        healthy.call(METADATA, 12)  # answered in the turn in which it sees that the crowd has gone, or after it
        for _ in range(100):
            with Peer(address) as late:
                try:
                    assert late.call(METADATA, 12).topics
                    break
                except OSError:
                    continue  # it has not closed all of the crowd yet
        else:
            pytest.fail("nobody is let in any more")
        healthy.close()
        process.terminate()
        _, log = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    lines = [line for line in log.splitlines() if "no file descriptor is left" in line]
    left_out = sum(map(int, re.findall(r"(\d+) more lines like these were left out", log)))
    assert lines
    assert len(lines) + left_out >= 400 - served
    assert "Traceback" not in log


def test_connections_above_the_limit_are_closed_with_a_line_and_the_others_stay(broker_factory):
    broker = broker_factory(config={"max.connections": 5})
    first = [Peer(broker) for _ in range(5)]
    for peer in first:
        assert peer.call(METADATA, 12).brokers
    extra = [Peer(broker) for _ in range(3)]
    assert all(peer.is_closed_by_broker() for peer in extra)
    for peer in first:
        assert peer.call(METADATA, 12).brokers
    assert broker.log.count("max.connections=5") == 3
    for peer in [*first, *extra]:
        peer.close()


def test_idle_connections_are_closed_and_busy_ones_stay(broker_factory):
    broker = broker_factory(config={"connections.max.idle.ms": 2000})
    idle, half, busy = Peer(broker), Peer(broker), Peer(broker)
    stuffed = Peer(broker)
    make_topic(idle, "wide", 500)
    throw_until_full(stuffed, frame(METADATA, 12) * 3000)  # and never reads
    half.socket.sendall(b"\0\0\1\0\0")
    waiting = {idle, half}
    for peer in waiting:
        peer.socket.settimeout(0.02)
    while waiting:
        assert busy.call(METADATA, 12).brokers
        waiting = {peer for peer in waiting if not peer.is_closed_by_broker()}
    for peer in (idle, half, busy, stuffed):
        peer.close()
    assert broker.stop() == 0
