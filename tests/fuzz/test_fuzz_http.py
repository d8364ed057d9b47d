"""Spoiled HTTP requests at the control endpoint and the schema registry: no one else waits, nothing raises or grows."""

from __future__ import annotations

import random
import re
import socket
import time

import pytest
from budget import slow
from conformance.http_corpus import CHUNKED, CORPUS, HOST

REQUESTS = [request for request, _ in CORPUS.values() if len(request) < 10_000]
WORDS = (
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";", b",", b'"', b"0", b"ffffffffffffffff", b"-1"),
    *(
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Expect: 100-continue\r\n",
        b"Connection: close\r\n",
    ),
    *(b"Connection: Upgrade\r\nUpgrade: h2c\r\n", HOST, b"1\r\nx\r\n", b"0\r\n\r\n", b"x" * 9000),
    *(b"POST /subjects/s/versions HTTP/1.1\r\n", b"POST /_admin/clock HTTP/1.1\r\n", b'{"schema": "\\"int\\""}'),
    *(b"GET /subjects HTTP/1.1\r\n", b"GET /_admin/topics HTTP/1.1\r\n", CHUNKED),
)


def spoiled(chance: random.Random) -> bytes:
    data = bytearray(b"".join(chance.choices(REQUESTS, k=chance.randint(1, 4))))
    for _ in range(chance.randint(0, 6)):
        at = chance.randrange(len(data) + 1)
        word = chance.choice(WORDS)
        kind = chance.randrange(4)
        if kind == 0:
            data[at:at] = word
        elif kind == 1:
            data[at : at + len(word)] = word
        elif kind == 2:
            del data[at : at + chance.choice((1, 2, 10))]
        elif at < len(data):
            data[at] = chance.randrange(256)
    return bytes(data)


def thrown(place: tuple[str, int], chance: random.Random) -> bytes:
    """What comes back to spoiled requests that are sent in pieces, or cut off."""
    data, got = spoiled(chance), b""
    with socket.create_connection(place, timeout=60) as wire:
        try:
            while data:
                size = chance.choice((1, 7, 1000, len(data))) if len(data) < 3000 else len(data)
                wire.sendall(data[:size])
                data = data[size:]
            if chance.random() < 0.1:
                return b""
            wire.shutdown(socket.SHUT_WR)
            while more := wire.recv(65_536):
                got += more
        except OSError:  # refused, and closed on us: that is an answer
            pass
    return got


@pytest.mark.heavy
@pytest.mark.parametrize("times", [1, slow(24)], ids=["short", "minutes"])
def test_spoiled_requests_harm_nobody(target, times):
    registry = target.broker.registry_url.rpartition("/")[2]
    doors = [address.rpartition(":") for address in (target.broker.control.address, registry)]
    places = [(host, int(port)) for host, _, port in doors]
    target.begin()
    end, thrown_at = time.monotonic() + max(target.seconds * times, 60 if times > 1 else 0), 0
    while time.monotonic() < end or thrown_at < 200:
        thrown_at += 1
        answers = thrown(target.random.choice(places), target.random)
        for status in re.findall(rb"^HTTP/1\.1 (\d+)", answers, re.MULTILINE):
            assert status != b"500", answers
        if thrown_at % 50 == 0:
            target.check()
