"""Frames with something wrong in them, at the whole broker in this process: what the log of a real one would show as a
traceback is raised here, and what a shortcut answers is what the general handlers answer."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from core_broker import Client, World, frame, make_topic
from core_requests import commit_request, fetch_request, produce_request
from frames import INTERESTING, mutated, seeds

from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.transactions import InitProducerIdRequest


def prepared(flush: str = "os", **arguments: Any) -> World:
    """A broker that has met most APIs: their handlers are loaded, their shortcuts have learnt something."""
    world = World(flush, **arguments)
    client = Client(world)
    make_topic(client, "t", 2)
    make_topic(client, "wide", 5)
    client.call(commit_request("g", {0: 1, 1: 2}, "wide"), 8)
    client.call(produce_request("t", 0, b"v"), 9)
    client.call(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
    join = JoinGroupRequest(
        group_id="members",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        group_instance_id="i",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")],
    )
    client.call(join, 5)
    return world


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_mutated_frames_of_every_api_raise_nothing(flush, fuzz_seconds, caplog):
    chance = random.Random(fuzz_seconds)
    world, pool = prepared(flush), seeds()
    end = time.monotonic() + fuzz_seconds
    rounds = 0
    while time.monotonic() < end or rounds < 200:
        rounds += 1
        client = Client(world)
        client.send_bytes(b"".join(mutated(chance, chance.choice(pool)) for _ in range(10)))
        world.run()
        if rounds % 50 == 0:
            world.advance(chance.choice((1, 1000, 100_000)))
        client.leave()
        wrong = [record for record in caplog.records if record.exc_info]
        assert not wrong, wrong[0].exc_text or wrong[0].getMessage()
    again = world.crash()
    assert again.broker.metadata.fingerprint() == world.broker.metadata.fingerprint()


SHORT = {
    "commit": (commit_request("g", {0: 1, 1: 2}, "wide"), (8, 9)),
    "produce": (produce_request("t", 0, b"some value"), (3, 5, 9, 12)),
    "fetch": (fetch_request("t", 0, 0), (4, 11, 12)),
    "wait": (fetch_request("t", 0, 1, max_wait_ms=10), (12,)),
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", SHORT)
def test_every_byte_changed_after_shortcuts_have_learnt_raises_nothing(name, caplog):
    request, versions = SHORT[name]
    world = prepared()
    for version in versions:
        raw = frame(request, version)
        for at in range(4, len(raw)):
            for value in INTERESTING:
                client = Client(world)
                client.send_bytes(raw + raw[:at] + bytes([value]) + raw[at + 1 :])
                world.run()
                client.leave()
        for size in range(8, len(raw) - 4):
            client = Client(world)
            client.send_bytes(raw + size.to_bytes(4, "big") + raw[4 : 4 + size])
            world.run()
            client.leave()
    wrong = [record for record in caplog.records if record.exc_info]
    assert not wrong, wrong[0].exc_text or wrong[0].getMessage()
