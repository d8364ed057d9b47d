"""The control endpoint as raw HTTP: requests that are refused and why, and clients that say nothing."""

from __future__ import annotations

import json
import socket

import pytest

from momus.control import Control


def exchange(address: str, request: bytes) -> bytes:
    """Bytes as they are to the endpoint, and what comes back until it hangs up."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as wire:
        wire.sendall(request)
        wire.shutdown(socket.SHUT_WR)
        answer = b""
        while data := wire.recv(65536):
            answer += data
    return answer


def post(path: str, body: bytes, length: object = None) -> bytes:
    return (
        b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %s\r\n\r\n"
        % (
            path.encode(),
            str(len(body) if length is None else length).encode(),
        )
        + body
    )


def get(path: str, fields: str = "", method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode()


CLOCK = "/_admin/clock"
WRONG = {
    "nothing": (b"", 400),
    "no HTTP": (b"hello\r\n\r\n", 400),
    "half a head": (b"GET /healthz HTTP/1.1\r\nHo", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "HTTP/2": (b"GET / HTTP/2.0\r\n\r\n", 505),
    "no such path": (get("/_admin?a=1"), 404),
    "no such method": (b"DELETE /_admin/clock HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    "a head too long": (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", 431),
    "a header that is none": (b"GET /healthz HTTP/1.1\r\nX\r\n\r\n", 400),
    "a page by a name of its own": (b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
    "two hosts": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
    "no such parameter": (get("/_admin/clock?when=now"), 400),
    "no such cluster": (get("/_admin/clusters/nowhere/clock"), 404),
    "a web page": (get("/healthz", "Origin: http://example.org\r\n"), 403),
    "packed": (get("/_admin/clock", "Transfer-Encoding: gzip\r\n", "POST") + b"0\r\n\r\n", 501),
    "a body too long": (post(CLOCK, b"x" * 34_000_000), 413),
    "a length too long": (post(CLOCK, b"", "9" * 5000), 400),
    "a length that is none": (post(CLOCK, b"{}", "-2"), 400),
    "half a body": (post(CLOCK, b"{", 100), 400),
    "two lengths": (b"POST /_admin/clock HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    "no JSON": (post(CLOCK, b"{'a': 1}"), 400),
    "JSON too deep": (post(CLOCK, b"[" * 60_000), 400),
    "a text for an object": (post(CLOCK, b'"advance_ms"'), 400),
    "no object": (post(CLOCK, b"[1]"), 400),
    "no word": (post(CLOCK, b"{}"), 400),
    "an unknown word": (post(CLOCK, b'{"back": 1}'), 400),
    "two words": (post(CLOCK, b'{"advance_ms": 1, "resume": true}'), 400),
    "no number": (post(CLOCK, b'{"advance_ms": "1"}'), 400),
    "a truth for a number": (post(CLOCK, b'{"advance_ms": true}'), 400),
    "back in time": (post(CLOCK, b'{"advance_ms": -1}'), 400),
    "to the past": (post(CLOCK, b'{"set": 1}'), 400),
    "to the end of all time": (post(CLOCK, b'{"advance_ms": %d}' % 10**30), 400),
    "resume false": (post(CLOCK, b'{"resume": false}'), 400),
    "freeze false": (post(CLOCK, b'{"freeze": false}'), 400),
    "no such broker": (post("/_admin/brokers/7/stop", b""), 404),
    "a broker that is no number": (post("/_admin/brokers/%C2%B2/stop", b""), 404),
    "something to say": (post("/_admin/brokers/1/start", b'{"a": 1}'), 400),
    "the last broker": (post("/_admin/brokers/1/stop", b""), 409),
    "the only broker": (post("/_admin/brokers/1/lag", b""), 409),
    "no such follower": (post("/_admin/brokers/7/release", b""), 404),
}


@pytest.mark.parametrize("what", WRONG)
def test_bad_request_is_refused_with_its_reason_in_json(shared_broker, what):
    request, status = WRONG[what]
    head, _, body = exchange(shared_broker.control.address, request).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), head
    assert json.loads(body)["error"]
    assert json.loads(exchange(shared_broker.control.address, b"GET /healthz HTTP/1.0\r\n\r\n").split(b"\r\n\r\n")[1])


def test_silent_clients_keep_nobody_out(shared_broker):
    host, _, port = shared_broker.control.address.rpartition(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(100)]
    for wire in silent[:50]:
        wire.sendall(b"POST /_admin/clock HTTP/1.1\r\nContent-Le")
    assert Control(shared_broker.control.address).ask("GET", "/healthz") == {"status": "ok"}
    for wire in silent:
        wire.close()


def test_burst_of_requests_is_served_whole(shared_broker):
    host, _, port = shared_broker.control.address.rpartition(":")
    wires = [socket.create_connection((host, int(port)), timeout=60) for _ in range(200)]
    for wire in wires:
        wire.sendall(get("/healthz", "Connection: close\r\n"))
    for wire in wires:
        assert wire.recv(100).startswith(b"HTTP/1.1 200 ")
        wire.close()
