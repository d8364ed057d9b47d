"""Sessions that expire, and clients that authenticate again (KIP-368)."""

from __future__ import annotations

import pytest
from core_broker import frame, make_topic
from core_requests import produce_request
from unit.security.security_kit import SaslClient, sasl_world, serves

from protocol.errors import ErrorCode
from protocol.messages.cluster import MetadataRequest
from protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest


@pytest.fixture
def short(request) -> SaslClient:
    world = sasl_world(connections_max_reauth_ms="5000")
    client = SaslClient(world)
    assert client.plain("alice", "secret").session_lifetime_ms == 5000
    return client


def test_session_that_has_expired_serves_nothing_but_a_handshake(short):
    short.world.clock.advance(5001)
    short.world.run()
    assert short.plain("alice", "secret").error_code == 0, "late, and yet accepted"
    short.world.clock.advance(5002)
    short.world.run()
    short.send(MetadataRequest(topics=[]), 9)
    short.world.run()
    assert short.closed


def test_reauthentication_in_time_keeps_the_connection(short):
    for _ in range(4):
        short.world.clock.advance(4000)
        short.world.run()
        assert short.plain("alice", "secret").session_lifetime_ms == 5000
        assert serves(short)


def test_reauthentication_as_somebody_else_is_refused(short):
    short.world.clock.advance(2000)
    answer = short.plain("bob", "b")
    assert answer.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    short.world.run()
    assert short.closed


def test_reauthentication_by_another_mechanism_is_refused(short):
    short.world.clock.advance(2000)
    short.handshake("SCRAM-SHA-256")
    answer = short.token(b"n,,n=alice,r=1")
    assert answer.error_message == (
        "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for re-authentication of mechanism 'PLAIN'"
    )


def test_reauthentication_with_a_wrong_password_is_refused(short):
    short.world.clock.advance(2000)
    assert short.plain("alice", "wrong").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    short.world.run()
    assert short.closed


def test_nothing_else_is_served_between_the_steps_of_a_reauthentication(short):
    short.world.clock.advance(2000)
    short.handshake("PLAIN")
    short.send(MetadataRequest(topics=[]), 9)
    short.world.run()
    assert short.closed


def test_frames_in_one_segment_with_the_handshake_of_a_reauthentication_are_not_served(short):
    make_topic(short)
    for _ in range(2):  # the shortcut has learnt the topic
        short.call(produce_request("t", 0, b"v"), 9)
    short.world.clock.advance(2000)
    handshake = frame(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    short.protocol.data_received(handshake + frame(produce_request("t", 0, b"v"), 9))
    short.world.run()
    assert short.closed
    assert short.world.broker.partitions.end_of(short.world.broker.metadata.topics["t"], 0) == 2


def test_frames_in_one_segment_with_the_end_of_an_authentication_are_served(short):
    make_topic(short)
    short.world.clock.advance(2000)
    assert short.handshake("PLAIN").error_code == 0
    token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")
    requests = [(token, 2)] + [(produce_request("t", 0, b"v"), 9)] * 3
    short.asked += [(request.API_KEY, version) for request, version in requests]
    short.protocol.data_received(b"".join(frame(request, version) for request, version in requests))
    short.world.run()
    first, *others = short.replies()
    assert (first.error_code, len(others)) == (0, 3)
    assert not short.connection.read_paused


def test_handshake_within_a_second_of_the_last_reauthentication_is_an_error(short):
    assert short.plain("alice", "secret").error_code == 0, "the first one may come at once"
    short.world.clock.advance(999)
    assert short.handshake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert serves(short)
    short.world.clock.advance(1)
    assert short.plain("alice", "secret").error_code == 0


def test_handshake_where_sessions_do_not_expire_is_an_error():
    client = SaslClient(sasl_world())
    client.plain("alice", "secret")
    client.world.clock.advance(5000)
    assert client.handshake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert serves(client)


def test_token_without_a_handshake_on_an_authenticated_connection_is_an_error(short):
    answer = short.token(b"\0alice\0secret")
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert serves(short)


def test_client_that_is_gone_leaves_no_timer(short):
    timers = short.world.broker.turn.timers
    before = len(timers._calls)
    short.connection.connection_lost(None)
    assert len(timers._calls) == before - 1
