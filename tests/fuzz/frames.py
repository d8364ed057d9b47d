"""Valid frames of every API in every version, and how to spoil them."""

from __future__ import annotations

import random

from core_broker import frame
from core_requests import commit_request, fetch_request, produce_request

from broker.handlers import make_routes
from protocol.api import request_class

INTERESTING = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF)
SIZES = (-(2**31), -1, 0, 1, 7, 8, 9, 65_535, 65_536, 65_537, 1 << 20, 104_857_600, 104_857_601, 2**31 - 1)


def seeds() -> list[bytes]:
    """A frame of every API in every version, and some with more in them."""
    found = []
    for route in make_routes():
        request = request_class(route.api_key)
        for version in range(route.min_version, route.max_version + 1):
            try:
                found.append(frame(request(), version))
            except (TypeError, ValueError, AttributeError):
                continue  # a field without a default
    found += [frame(commit_request("g", {0: 1, 1: 2}, "wide"), version) for version in range(2, 10)]
    found += [frame(produce_request("t", 0, b"value" * 10), version) for version in range(3, 13)]
    found += [frame(fetch_request("t", 0, 0), version) for version in range(4, 13)]
    return found


def mutated(chance: random.Random, raw: bytes) -> bytes:
    """One valid frame with something wrong in it; its size field is made right again, mostly."""
    data = bytearray(raw[4:])
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(data))
        what = chance.randrange(6)
        if what == 0:
            data[at] = chance.randrange(256)
        elif what == 1:
            data[at] = chance.choice(INTERESTING)
        elif what == 2:
            del data[at : at + chance.randrange(1, 9)]
        elif what == 3:
            data[at:at] = chance.randbytes(chance.randrange(1, 9))
        elif what == 4:
            data[at : at + 4] = chance.choice(SIZES).to_bytes(4, "big", signed=True)
        else:
            data += data[at:]
        if not data:
            data = bytearray(1)
    size = len(data) if chance.random() < 0.9 else chance.choice(SIZES)
    return size.to_bytes(4, "big", signed=True) + bytes(data)
