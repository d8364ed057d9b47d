"""PLAIN, SCRAM and bearer tokens on a SASL listener: whom each admits, and what it refuses."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from unit.security.security_kit import MECHANISMS, SaslClient, add_scram_user, sasl_world, serves, unsigned

from protocol.errors import ErrorCode
from protocol.messages.cluster import MetadataRequest


@pytest.mark.parametrize("version", [0, 1, 2])
def test_authenticate_with_the_right_password_admits(client, version):
    assert client.handshake("PLAIN").mechanisms == MECHANISMS.split(",")
    assert client.token(b"\0alice\0secret", version).error_code == 0
    assert client.connection.principal == "User:alice"
    assert client.connection.service is client.world.broker.clients
    assert serves(client)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0alice\0\xff", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
def test_plain_that_is_wrong_is_answered_and_the_connection_closed(client, token, message):
    client.handshake("PLAIN")
    answer = client.token(token)
    assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)
    client.world.run()
    assert client.closed
    assert client.connection.principal == "User:ANONYMOUS"


@pytest.mark.parametrize(("mechanism", "number"), [("SCRAM-SHA-256", 1), ("SCRAM-SHA-512", 2)])
@pytest.mark.parametrize("user", ["carol", "a,b=c"])
def test_scram_admits_a_user_of_the_records(client, world, mechanism, number, user):
    add_scram_user(world, user, "pencil", number, salt=b"0")
    assert client.scram(user, "pencil", mechanism).error_code == 0
    assert client.connection.principal == f"User:{user}"


@pytest.mark.parametrize("user", ["carol", "nobody"])
def test_scram_fails_alike_for_a_wrong_password_and_for_nobody(client, world, user):
    """At the same step, after the same work."""
    add_scram_user(world, "carol", "pencil")
    answer = client.scram(user, "pen")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )
    assert len(client.asked) == 0
    assert client.correlation_id == 3, "both get a challenge first"


def test_made_up_salt_is_the_same_at_each_attempt(world):
    salts = set()
    for _ in range(3):
        client = SaslClient(world)
        client.handshake("SCRAM-SHA-256")
        salts.add(client.token(b"n,,n=nobody,r=abc").auth_bytes.split(b",")[1])
    assert len(salts) == 1


def test_plain_takes_the_password_of_a_scram_user(client, world):
    add_scram_user(world, "carol", "pencil", 2)
    assert client.plain("carol", "pencil").error_code == 0


def test_plain_refuses_the_password_of_another_user(client, world):
    add_scram_user(world, "carol", "pencil")
    assert client.plain("alice", "pencil").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_unsigned_token_admits_until_it_expires(client, world):
    now_s = world.clock.now_ms() // 1000
    answer = client.oauth(sub="dora", iat=now_s - 1, exp=now_s + 60)
    assert answer.error_code == 0
    assert client.connection.principal == "User:dora"
    assert 59_000 <= answer.session_lifetime_ms <= 60_000
    world.clock.advance(61_000)
    world.run()
    client.send(MetadataRequest(topics=[]), 9)
    world.run()
    assert client.closed


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "dora", "exp": -5},
        {"sub": "dora"},
        {"exp": 60},
        {"sub": "dora", "exp": 60, "iat": 50},
        {"sub": "dora", "exp": True},
        {"sub": "", "exp": 60},
        {"sub": " ", "exp": 60},
        {"sub": "dora", "exp": 60, "scope": 5},
        {"sub": 7, "exp": 60},
    ],
)
def test_token_that_is_not_valid_is_told_and_then_refused(client, world, claims):
    now_s = world.clock.now_ms() // 1000
    moved = {
        key: value + now_s if key in ("exp", "iat", "nbf") and value is not True else value
        for key, value in claims.items()
    }
    assert client.oauth(**moved).auth_bytes == b'{"status":"invalid_token"}'
    answer = client.token(b"\1")
    assert (answer.error_code, answer.error_message) == (58, '{"status":"invalid_token"}')


@pytest.mark.parametrize("claims", [{"nbf": 1 << 40}, {"nbf": "x"}, {"scope": None}, {"scope": ["a", 5]}])
def test_unsigned_token_is_taken_as_kafka_takes_it(client, world, claims):
    assert client.oauth(sub="dora", exp=world.clock.now_ms() // 1000 + 60, **claims).auth_bytes == b""
    assert client.connection.principal == "User:dora"


def test_token_without_the_scope_is_told_which(world):
    module = 'x.OAuthBearerLoginModule required unsecuredValidatorRequiredScope="a b";'
    world = sasl_world(sasl_enabled_mechanisms="OAUTHBEARER", sasl_jaas_config=module)
    now_s = world.clock.now_ms() // 1000
    client = SaslClient(world)
    assert (
        client.oauth(sub="d", exp=now_s + 9, scope="a").auth_bytes == b'{"status":"insufficient_scope", "scope":"a b"}'
    )
    assert SaslClient(world).oauth(sub="d", exp=now_s + 9, scope=["b", "a"]).auth_bytes == b""


def test_mechanism_that_is_not_enabled_is_refused_with_those_that_are():
    client = SaslClient(sasl_world(sasl_enabled_mechanisms="SCRAM-SHA-512"))
    answer = client.handshake("PLAIN")
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["SCRAM-SHA-512"])
    client.world.run()
    assert client.closed


def test_scram_for_another_authorization_id_is_refused(client, world):
    add_scram_user(world, "carol", "pencil")
    client.handshake("SCRAM-SHA-256")
    answer = client.token(b"n,a=alice,n=carol,r=abc")
    assert answer.error_message == (
        "Authentication failed: Client requested an authorization id that is different from username"
    )


@pytest.mark.parametrize(
    "first",
    [
        "y,,n=carol,r=abc",
        "n,,n=car\u00f6l,r=abc",
        "n,,n=carol,r=a b",
        "n,,n=carol,r=\u00e9",
        "n,,n=carol,r=abc,ext",
        "n,,n=carol,r=abc,e1=x",
        "n,,m=x,n=carol,r=abc",
        "n,,n=ca=20rol,r=abc",
        "n,a=,n=carol,r=abc",
    ],
)
def test_scram_message_that_kafka_does_not_take_is_refused(client, world, first):
    add_scram_user(world, "carol", "pencil")
    add_scram_user(world, "car\u00f6l", "pencil")
    client.handshake("SCRAM-SHA-256")
    assert client.token(first.encode()).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize(("name", "is_taken"), [("plain", True), ("a=3Dc", False)])
def test_scram_authorization_id_is_compared_as_it_stands_with_the_user(client, world, name, is_taken):
    add_scram_user(world, "a=c", "pencil")
    add_scram_user(world, "plain", "pencil")
    client.handshake("SCRAM-SHA-256")
    assert bool(client.token(f"n,a={name},n={name},r=abc".encode()).auth_bytes) is is_taken


@pytest.mark.parametrize(("more", "is_taken"), [("", True), (",ext=x", False)])
def test_scram_final_message_is_taken_without_extensions_alone(client, world, more, is_taken):
    add_scram_user(world, "carol", "pencil")
    client.handshake("SCRAM-SHA-256")
    first = "n=carol,r=abc"
    challenge = client.token(f"n,,{first}".encode()).auth_bytes.decode()
    unsigned_part = f"c=biws,{challenge.split(',')[0]}{more}"
    client_key = hmac.digest(hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4096), b"Client Key", "sha256")
    stored_key = hashlib.sha256(client_key).digest()
    signature = hmac.digest(stored_key, f"{first},{challenge},{unsigned_part}".encode(), "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    assert (client.token(f"{unsigned_part},p={proof}".encode()).error_code == 0) is is_taken


def test_token_of_another_algorithm_is_not_taken_as_unsigned(client, world):
    now_s = world.clock.now_ms() // 1000
    head, claims, _ = unsigned(sub="dora", exp=now_s + 60).split(".")
    assert head == "eyJhbGciOiAibm9uZSJ9"
    client.handshake("OAUTHBEARER")
    other = base64.urlsafe_b64encode(b'{"alg": "HS256"}').rstrip(b"=").decode()
    answer = client.token(f"n,,\1auth=Bearer {other}.{claims}.\1\1".encode())
    assert answer.auth_bytes == b'{"status":"invalid_token"}'
