"""Passwords and tokens are looked at beside the broker's thread: what takes milliseconds holds up no other client."""

from __future__ import annotations

import hashlib

import pytest
from core_broker import World, frame
from unit.security.security_kit import SaslClient, add_scram_user, sasl_world, serves
from unit.security.test_delegation_tokens import authenticate, create

from protocol.messages.cluster import MetadataRequest
from protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

PLAIN = b"\0alice\0secret"
WRONG = b"\0alice\0guess"


class Beside:
    """Keeps the work; PBKDF2 anywhere else is an error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: list[tuple] = []
        self.is_working = False
        derive = hashlib.pbkdf2_hmac

        def watched(*given: object) -> bytes:
            assert self.is_working, "on the broker's thread"
            return derive(*given)

        monkeypatch.setattr(hashlib, "pbkdf2_hmac", watched)

    def __call__(self, work, done) -> None:
        self.jobs.append((work, done))

    def do(self, world: World) -> None:
        work, done = self.jobs.pop(0)
        self.is_working = True
        work()
        self.is_working = False
        done()
        world.run()


@pytest.fixture
def beside(monkeypatch):
    return Beside(monkeypatch)


@pytest.fixture
def client(beside):
    world = sasl_world(delegation_token_secret_key="s")
    world.broker.beside = beside
    return SaslClient(world)


def send_token(client, token, *more):
    """A token of PLAIN in a request, with what follows it at once."""
    client.handshake("PLAIN")
    client.correlation_id += 1 + len(more)
    client.asked += [(36, 2), *((3, 9) for _ in more)]
    frames = [frame(SaslAuthenticateRequest(auth_bytes=token), 2, 2)]
    client.send_bytes(b"".join(frames + [frame(MetadataRequest(topics=[]), 9, 3) for _ in more]))
    client.world.run()


def test_password_is_looked_at_beside_while_the_client_is_read_no_more(client, beside):
    send_token(client, PLAIN, "metadata")
    assert not client.replies()
    assert not client.transport.reading
    beside.do(client.world)
    assert [type(each).__name__ for each in client.replies()] == ["SaslAuthenticateResponse", "MetadataResponse"]
    assert serves(client)


def test_others_are_served_while_a_password_is_looked_at(client, beside):
    send_token(client, PLAIN)
    other = SaslClient(client.world)
    assert other.handshake("PLAIN").error_code == 0
    assert not client.replies()


def test_wrong_password_is_refused_once_it_was_looked_at(client, beside):
    send_token(client, WRONG)
    beside.do(client.world)
    (refused,) = client.replies()
    assert "Invalid username or password" in refused.error_message
    assert client.closed


def test_client_that_goes_meanwhile_is_forgotten(client, beside):
    send_token(client, PLAIN)
    client.connection.connection_lost(None)
    beside.do(client.world)
    assert client.connection.guard.session.state == "EXCHANGING"


@pytest.mark.parametrize("cut", [5, 1 << 10])
@pytest.mark.parametrize(("token", "is_right"), [(PLAIN, True), (WRONG, False)])
def test_bare_token_is_looked_at_beside_and_what_follows_waits(client, beside, token, is_right, cut):
    client.handshake("PLAIN", 0)
    client.transport.received.clear()
    follows = frame(MetadataRequest(topics=[]), 9, 7)
    data = len(token).to_bytes(4, "big") + token + follows
    client.send_bytes(data[:-cut])
    client.send_bytes(data[-cut:])
    client.world.run()
    assert not client.transport.received
    beside.do(client.world)
    client.deliver()
    client.world.run()
    assert client.connection.guard.session.is_authenticated is is_right
    assert (b"\0\0\0\x07" in bytes(client.transport.received)) is is_right


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_credential_of_a_delegation_token_is_made_beside_and_once(client, beside, mechanism):
    send_token(client, PLAIN)
    beside.do(client.world)
    client.replies()
    token = create(client)
    beside.is_working = True  # each exchange here is played to its end
    soon, made = client.world.broker.turn.call_soon, []
    client.world.broker.security._beside = lambda work, done: soon(lambda: (made.append(work()), done()))
    for _ in range(2):
        assert authenticate(SaslClient(client.world), token, mechanism).error_code == 0
    assert len(made) == 1


def test_users_with_scram_credentials_are_looked_at_beside_for_plain(client, beside):
    beside.is_working = True
    add_scram_user(client.world, "carol", "pw")
    beside.is_working = False
    send_token(client, b"\0carol\0pw")
    beside.do(client.world)
    assert client.replies()[0].error_code == 0


@pytest.mark.parametrize("token", [b"", b"\0alice", b"\0\0secret", b"\0alice\0", b"a\0b\0c\0d"])
def test_token_that_names_no_password_is_refused_at_once(client, beside, token):
    send_token(client, token)
    assert not beside.jobs
    assert client.replies()[0].error_code == 58


def test_handshake_is_not_looked_at_beside(client, beside):
    assert client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    assert not beside.jobs
