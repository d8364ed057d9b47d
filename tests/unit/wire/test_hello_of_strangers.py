"""Clients of other protocols on a listener of Kafka's: each is told what it has met, in its own protocol's words."""

from __future__ import annotations

import ssl

import pytest
from core_broker import Client, World, frame
from core_requests import commit_request

from broker.journal.reading import describe, entries
from broker.wire.strangers import SMALLEST_SIZE, stranger_of

HTTP = b"GET /brokers HTTP/1.1\r\nHost: localhost:9092\r\nAuthorization: Bearer abc\r\n\r\n"


def tls_hello() -> bytes:
    """What this Python's TLS sends first."""
    sent = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    link = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        link.do_handshake()
    return sent.read()


@pytest.fixture
def world():
    world = World("os")
    world.broker.keep_journal(1 << 16)
    return world


def shown(world):
    ring = world.broker.clients.journal
    return [describe(entry, ring) for entry in entries(ring)]


@pytest.mark.parametrize("piece", [1, 3, 4, 7, 10_000])
def test_tls_client_gets_an_alert_that_its_library_names(world, piece, caplog):
    client, hello = Client(world), tls_hello()
    for at in range(0, len(hello), piece):
        client.send_bytes(hello[at : at + piece])
    assert bytes(client.transport.received) == b"\x15\x03\x01\x00\x02\x02\x0a"
    assert client.transport.closed
    sentence = "this is a TLS hello; this listener (PLAINTEXT) is PLAINTEXT: set security.protocol=PLAINTEXT"
    assert [sentence in record.getMessage() for record in caplog.records] == [True]
    (entry,) = shown(world)
    assert (entry["api"], entry["why"]) == ("TLS hello", sentence)
    link = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    link.check_hostname = False
    incoming = ssl.MemoryBIO()
    incoming.write(bytes(client.transport.received))
    with pytest.raises(ssl.SSLError, match="unexpected message"):
        link.wrap_bio(incoming, ssl.MemoryBIO()).do_handshake()


@pytest.mark.parametrize("piece", [1, 3, 4, 7, 10_000])
def test_http_client_gets_a_400_with_the_sentence_and_its_secrets_are_not_kept(world, piece, caplog):
    client = Client(world)
    for at in range(0, len(HTTP), piece):
        client.send_bytes(HTTP[at : at + piece])
    head, _, body = bytes(client.transport.received).decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 400 Bad Request\r\n")
    assert f"Content-Length: {len(body)}\r\n" in head
    assert body.startswith("this is an HTTP request; this listener (PLAINTEXT) speaks Kafka's protocol alone")
    assert client.transport.closed
    assert [body.strip() in record.getMessage() for record in caplog.records] == [True]
    (entry,) = shown(world)
    assert (entry["api"], entry["why"], entry["latency_ms"]) == ("HTTP hello", body.strip(), 0)
    kept = [each[0] for piece in world.broker.clients.journal.pieces for each in piece.each()]
    assert not any(b"Bearer" in each for each in kept)


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "PRI"]
)
def test_every_method_is_told_and_is_larger_than_the_smallest_size(method):
    data = f"{method} * HTTP/2.0\r\n".encode()
    stranger = stranger_of(data, 0, "HOST")
    assert stranger is not None
    assert stranger.kind == "HTTP"
    assert "(HOST)" in stranger.sentence
    assert int.from_bytes(data[:4], "big") >= SMALLEST_SIZE


def test_large_frame_behind_kafkas_requests_is_no_stranger(world, caplog):
    client = Client(world)
    client.send_bytes(frame(commit_request("g", {}), 8))
    world.run()
    client.send_bytes(tls_hello())
    assert "socket.request.max.bytes" in caplog.text
    assert "TLS" not in caplog.text


def test_frame_that_is_larger_than_usual_is_taken_where_the_limit_is_raised():
    world = World("os", socket_request_max_bytes=str(2**31 - 1))
    client = Client(world)
    client.send_bytes((0x20000000).to_bytes(4, "big") + b"\0\x08\0\x08")
    assert not client.transport.closed
    assert not client.transport.received
