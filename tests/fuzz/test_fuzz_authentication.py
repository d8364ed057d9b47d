"""Spoiled frames and tokens before and after authentication, with an authorizer: nothing raises, nothing gets in."""

from __future__ import annotations

import random
import time

import pytest
from core_broker import World, frame, make_topic
from frames import mutated, seeds
from unit.security.security_kit import SaslClient, add_scram_user, sasl_world

from broker.config.authorizer_setting import CLASS
from protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
TOKENS = (
    b"\0alice\0secret",
    b"n,,n=carol,r=abcdefgh",
    b"n,a=carol,n=carol,r=abcdefgh,tokenauth=true",
    b"c=biws,r=abcdefgh,p=AAAA",
    b"n,,\1auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjoxfQ.\1\1",
    b"\1",
    b"",
)


def prepared() -> World:
    world = sasl_world(authorizer_class_name=CLASS, super_users="User:root")
    add_scram_user(world, "carol", "pencil")
    return world


def spoiled(chance: random.Random, token: bytes) -> bytes:
    data = bytearray(token or b"x")
    for _ in range(chance.choice((1, 1, 3))):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data[: chance.randrange(len(data) + 1)]) if chance.random() < 0.3 else bytes(data)


def check(caplog: pytest.LogCaptureFixture) -> None:
    wrong = [record for record in caplog.records if record.exc_info]
    assert not wrong, wrong[0].exc_text or wrong[0].getMessage()


def test_spoiled_tokens_and_frames_authenticate_nobody(fuzz_seconds, caplog):
    chance = random.Random(fuzz_seconds)
    world, pool = prepared(), seeds()
    end, rounds = time.monotonic() + fuzz_seconds, 0
    while time.monotonic() < end or rounds < 300:
        rounds += 1
        client = SaslClient(world)
        version = chance.choice((0, 1))
        client.send_bytes(frame(SaslHandshakeRequest(mechanism=chance.choice(MECHANISMS)), version))
        world.run()
        for _ in range(chance.randint(1, 3)):
            token = spoiled(chance, chance.choice(TOKENS))
            if version == 0:
                client.send_bytes(len(token).to_bytes(4, "big") + token)
            else:
                client.send_bytes(frame(SaslAuthenticateRequest(auth_bytes=token), chance.choice((0, 1, 2))))
            if chance.random() < 0.3:
                client.send_bytes(mutated(chance, chance.choice(pool)))
            world.run()
        if client.connection.principal != "User:ANONYMOUS":
            assert token in TOKENS, "spoiled, and yet admitted"
        client.leave()
        world.run()
        check(caplog)


def test_frames_of_every_api_before_authentication_change_nothing(fuzz_seconds, caplog):
    chance = random.Random(fuzz_seconds)
    world, pool = prepared(), seeds()
    before = world.broker.metadata.fingerprint()
    for raw in pool:
        client = SaslClient(world)
        client.send_bytes(raw + mutated(chance, raw))
        world.run()
        client.leave()
    check(caplog)
    assert world.broker.metadata.fingerprint() == before


def test_frames_of_every_api_with_an_authorizer_raise_nothing(fuzz_seconds, caplog):
    chance = random.Random(fuzz_seconds)
    world, pool = prepared(), seeds()
    admin = SaslClient(world)
    admin.plain("alice", "secret")
    admin.connection.principal = "User:root"
    make_topic(admin, "t")
    before = world.broker.metadata.fingerprint()
    end, rounds = time.monotonic() + fuzz_seconds, 0
    while time.monotonic() < end or rounds < 200:
        rounds += 1
        client = SaslClient(world)
        client.plain("bob", "b")
        client.send_bytes(b"".join(mutated(chance, chance.choice(pool)) for _ in range(10)))
        world.run()
        client.leave()
        check(caplog)
    assert world.broker.metadata.fingerprint() == before, "bob may do nothing"
