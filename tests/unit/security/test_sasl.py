"""Connections of a SASL listener: what they may ask before they authenticate, in which order, and how they end."""

from __future__ import annotations

import logging

import pytest
from core_broker import Client, World, frame
from unit.security.security_kit import SaslClient, add_scram_user, sasl_world

from protocol.errors import ErrorCode
from protocol.messages.cluster import ApiVersionsRequest, MetadataRequest
from protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

HELLO = ApiVersionsRequest(client_software_name="a", client_software_version="1")


def test_api_versions_is_served_before_authentication(client):
    assert client.call(HELLO, 4).error_code == 0
    assert client.call(HELLO, 3).error_code == 0
    assert not client.closed


@pytest.mark.parametrize("steps", [0, 1])
def test_any_other_request_before_authentication_closes_the_connection(client, steps):
    if steps:
        client.handshake("SCRAM-SHA-256")
    client.send(MetadataRequest(topics=[]), 9)
    client.world.run()
    assert client.closed
    assert not client.replies()


@pytest.mark.parametrize(
    "request_",
    [SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), SaslHandshakeRequest(mechanism="PLAIN")],
)
def test_steps_out_of_order_close_the_connection(client, request_):
    if isinstance(request_, SaslHandshakeRequest):
        client.handshake("PLAIN")
    client.send(request_, 1)
    client.world.run()
    assert client.closed


def test_request_above_the_limit_closes_the_connection():
    client = SaslClient(sasl_world(sasl_server_max_receive_size="100"))
    client.send(SaslHandshakeRequest(mechanism="P" * 200), 1)
    client.world.run()
    assert client.closed


def test_requests_behind_the_last_token_are_served(client):
    """A client need not wait for the answer to its last token."""
    client.handshake("PLAIN")
    client.correlation_id += 2
    client.asked += [(36, 2), (3, 9)]
    client.send_bytes(
        frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2, 2) + frame(MetadataRequest(topics=[]), 9, 3)
    )
    client.world.run()
    assert [type(each).__name__ for each in client.replies()] == ["SaslAuthenticateResponse", "MetadataResponse"]


@pytest.mark.parametrize("cut", [1, 3, 7, 100])
def test_bare_tokens_follow_version_0_of_the_handshake(client, cut):
    client.handshake("PLAIN", 0)
    token = b"\0alice\0secret"
    data = len(token).to_bytes(4, "big") + token + frame(MetadataRequest(topics=[]), 9, 7)
    for at in range(0, len(data), cut):
        client.send_bytes(data[at : at + cut])
    client.world.run()
    received = bytes(client.transport.received)
    assert b"\0\0\0\0" in received, "an empty token answers"
    assert client.connection.principal == "User:alice"
    assert client.protocol is client.connection
    assert received[-60:].count(b"127.0.0.1") == 1, "the request behind it is served"


def test_bare_token_that_is_wrong_closes_without_an_answer(client):
    client.handshake("PLAIN", 0)
    before = len(client.transport.received)
    client.send_bytes(b"\0\0\0\x05\0a\0b1")
    client.world.run()
    assert client.closed
    assert len(client.transport.received) == before


def test_bare_token_of_a_wild_size_closes(client):
    client.handshake("PLAIN", 0)
    client.send_bytes(b"\x7f\0\0\0")
    client.world.run()
    assert client.closed


@pytest.mark.parametrize("version", [0, 1])
def test_sasl_on_a_plaintext_listener_is_an_error(version):
    client = Client(World())
    assert client.call(SaslHandshakeRequest(mechanism="PLAIN"), version).error_code == ErrorCode.ILLEGAL_SASL_STATE
    answer = client.call(SaslAuthenticateRequest(auth_bytes=b""), version)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_no_secret_is_logged_or_journaled(world, caplog):
    world.broker.keep_journal(1 << 20)
    with caplog.at_level(logging.DEBUG):
        SaslClient(world).plain("alice", "secret")
        SaslClient(world).plain("alice", "s3same")
        add_scram_user(world, "carol", "s3same")
        SaslClient(world).scram("carol", "s3same")
    kept = b"".join(frame for piece in world.broker.clients.journal.pieces for frame, _ in piece.each())
    assert b"secret" not in kept
    assert b"s3same" not in kept
    assert "secret" not in caplog.text
    assert "s3same" not in caplog.text


def test_failed_client_waits_for_its_answer():
    waits = []
    world = sasl_world(connection_failed_authentication_delay_ms="250")
    world.broker.security._later = lambda seconds, call: waits.append((seconds, call))
    client = SaslClient(world)
    client.handshake("PLAIN")
    client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    world.run()
    assert not client.replies()
    ((seconds, call),) = waits
    assert seconds == 0.25
    call()
    world.run()
    assert client.replies()[0].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("more", [frame(MetadataRequest(topics=[]), 9, 3), b"\xff" * 64, b"\0\0"])
def test_failed_client_learns_nothing_sooner_by_sending_more(more):
    """A guess that is right is answered at once; if one that is wrong closed at once, the delay would slow nobody."""
    waits = []
    world = sasl_world()
    world.broker.security._later = lambda seconds, call: waits.append(call)
    client = SaslClient(world)
    client.handshake("PLAIN")
    client.asked.append((36, 2))
    client.send_bytes(frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2, 2) + more)
    world.run()
    client.send_bytes(more)
    world.run()
    assert not client.closed
    assert len(waits) == 1
    waits[0]()
    world.run()
    assert client.replies()[0].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    waits[1]()
    assert client.closed


def test_client_that_does_not_authenticate_is_closed(client, world):
    admitted = SaslClient(world)
    admitted.plain("alice", "secret")
    others = [SaslClient(world) for _ in range(3)]
    world.clock.advance(30_001)
    assert world.broker.security.sweep(2)
    world.run()
    assert sum(each.closed for each in (client, *others)) == 2
    world.broker.security.sweep(2)
    world.run()
    assert not world.broker.security.sweep(2)
    assert all(each.closed for each in (client, *others))
    assert not admitted.closed


@pytest.mark.parametrize(
    "request_",
    [
        CreateDelegationTokenRequest(),
        RenewDelegationTokenRequest(hmac=b"", renew_period_ms=1),
        ExpireDelegationTokenRequest(hmac=b"", expiry_time_period_ms=1),
        DescribeDelegationTokenRequest(owners=None),
    ],
    ids=lambda each: type(each).__name__,
)
def test_tokens_are_disabled_for_who_has_authenticated(client, request_):
    client.plain("alice", "secret")
    assert client.call(request_).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
