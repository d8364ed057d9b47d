"""Bytes that no client sends: the broker answers, closes, and goes on."""

from __future__ import annotations

import time
from typing import Any

import pytest
from core_broker import frame
from core_requests import fetch_request, produce_request
from frames import SIZES, mutated, seeds

from broker.handlers import make_routes
from protocol.api import request_class
from protocol.codegen import codec


def refused(target: Any) -> int:
    return target.broker.log.count("closing connection")


def test_random_bytes_are_answered_by_a_closed_connection(target):
    end = time.monotonic() + target.seconds
    target.begin()
    while time.monotonic() < end:
        target.throw(target.random.randbytes(target.random.choice((1, 3, 4, 8, 12, 100, 5000))))
    target.throw(target.random.randbytes(3 << 20))
    for size in SIZES:
        target.throw(size.to_bytes(4, "big", signed=True) + target.random.randbytes(64))


def test_mutated_frames_of_every_api_harm_nobody(target):
    end = time.monotonic() + 2 * target.seconds
    pool = seeds()
    assert len({raw[4:6] for raw in pool}) > 25, "most APIs are among the seeds"
    target.begin()
    rounds = 0
    while time.monotonic() < end or rounds < 20:
        target.throw(b"".join(mutated(target.random, target.random.choice(pool)) for _ in range(20)))
        rounds += 1
    target.check()


def test_every_valid_frame_cut_at_some_byte_is_refused_with_one_line(target):
    pool = seeds()
    target.random.shuffle(pool)
    end = time.monotonic() + target.seconds
    target.begin()
    for raw in pool:
        if time.monotonic() > end:
            break
        before = refused(target)
        cut = target.random.randrange(12, len(raw) + 1)
        target.throw((cut - 4).to_bytes(4, "big") + raw[4:cut])
        assert refused(target) <= before + 1
        target.throw(raw[: target.random.randrange(len(raw))])  # and one that goes in the middle of a frame
        assert refused(target) <= before + 1


def test_frames_within_frames_claim_no_memory_for_what_they_do_not_hold(target):
    """Array counts and lengths that are far beyond the frame."""
    target.begin()
    for route in make_routes():
        version = route.max_version
        head = codec(request_class(route.api_key), version)
        assert head is not None
        for claim in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\xff" * 10):
            body = route.api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\1\0\0\0" + claim * 5
            target.throw(len(body).to_bytes(4, "big") + body)
    target.check()


@pytest.mark.parametrize("version", [9, 3])
def test_batches_with_any_byte_changed_are_refused_or_whole(target, version):
    raw = frame(produce_request("t", 0, b"v" * 40, b"w" * 40), version)
    target.begin()
    data = bytearray()
    for at in range(40, len(raw)):
        changed = bytearray(raw)
        changed[at] ^= 1 << target.random.randrange(8)
        data += changed
    target.throw(bytes(data))
    answer = target.healthy.call(fetch_request("t", 0, 0), 12).responses[0].partitions[0]
    assert answer.error_code == 0
