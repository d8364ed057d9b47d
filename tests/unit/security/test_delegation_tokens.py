"""Delegation tokens (KIP-48): who makes, renews, expires and sees them, and how a client authenticates by one."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from core_broker import Client
from scramp import ScramClient
from unit.security.security_kit import SaslClient, sasl_world, serves

from broker.config.authorizer_setting import CLASS
from protocol.errors import ErrorCode
from protocol.messages.acls import AclCreation, CreateAclsRequest
from protocol.messages.delegation_tokens import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)

DAY_MS = 86_400_000
DISABLED, NOT_ALLOWED, NOT_FOUND, MISMATCH = 61, 64, 62, 63
EXPIRED, WRONG_TYPE, DENIED = 66, 67, 65


class Tokens:
    """A cluster with tokens, and two users."""

    def __init__(self, **settings: str) -> None:
        self.world = sasl_world(**{"delegation_token_secret_key": "s3same", **settings})
        self.alice, self.bob = self.of("alice", "secret"), self.of("bob", "b")

    def of(self, user: str, password: str) -> SaslClient:
        client = SaslClient(self.world)
        assert client.plain(user, password).error_code == 0
        return client

    def now_ms(self) -> int:
        return self.world.clock.now_ms()


@pytest.fixture
def tokens() -> Tokens:
    return Tokens()


def create(client: Client, version: int = 3, *, renewers: tuple[str, ...] = (), **fields: Any) -> Any:
    named = [CreatableRenewers(principal_type=n.split(":")[0], principal_name=n.split(":")[1]) for n in renewers]
    given = {"max_lifetime_ms": -1, **fields}
    if version >= 3:
        given = {"owner_principal_type": None, "owner_principal_name": None, **given}
    return client.call(CreateDelegationTokenRequest(renewers=named, **given), version)


def renew(client: Client, token: Any, period_ms: int = -1) -> tuple[int, int]:
    answer = client.call(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=period_ms), 2)
    return answer.error_code, answer.expiry_timestamp_ms


def expire(client: Client, token: Any, period_ms: int) -> tuple[int, int]:
    answer = client.call(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=period_ms), 2)
    return answer.error_code, answer.expiry_timestamp_ms


def seen(client: Client, *owners: str) -> list[str]:
    asked = [DescribeDelegationTokenOwner(principal_type="User", principal_name=each) for each in owners]
    answer = client.call(DescribeDelegationTokenRequest(owners=asked or None), 3)
    assert answer.error_code == 0
    return [each.token_id for each in answer.tokens]


def authenticate(client: SaslClient, token: Any, mechanism: str = "SCRAM-SHA-256", told: str = "true") -> Any:
    """As Kafka's clients do: SCRAM with the id and the HMAC, and an extension that says so."""
    assert client.handshake(mechanism).error_code == 0
    peer = ScramClient([mechanism], token.token_id, base64.b64encode(token.hmac).decode())
    first = peer.get_client_first()
    peer.client_first_bare += f",tokenauth={told}"
    answer = client.token(f"{first},tokenauth={told}".encode())
    if answer.error_code:
        return answer
    peer.set_server_first(answer.auth_bytes.decode())
    return client.token(peer.get_client_final().encode())


@pytest.mark.parametrize(
    ("asked_ms", "expires_ms", "most_ms"),
    [(-1, DAY_MS, 7 * DAY_MS), (0, DAY_MS, 7 * DAY_MS), (5000, 5000, 5000), (1 << 60, DAY_MS, 7 * DAY_MS)],
)
def test_token_lives_as_long_as_is_allowed(tokens, asked_ms, expires_ms, most_ms):
    made, now_ms = create(tokens.alice, max_lifetime_ms=asked_ms), tokens.now_ms()
    assert (made.error_code, made.issue_timestamp_ms, len(made.token_id), len(made.hmac)) == (0, now_ms, 22, 64)
    assert (made.expiry_timestamp_ms - now_ms, made.max_timestamp_ms - now_ms) == (expires_ms, most_ms)
    assert (made.principal_name, made.token_requester_principal_name) == ("alice", "alice")


def test_settings_bound_the_life_of_a_token():
    tokens = Tokens(delegation_token_expiry_time_ms="1000", delegation_token_max_lifetime_ms="3000")
    made = create(tokens.alice)
    assert (made.expiry_timestamp_ms - tokens.now_ms(), made.max_timestamp_ms - tokens.now_ms()) == (1000, 3000)
    assert renew(tokens.alice, made, 1 << 60) == (0, tokens.now_ms() + 1000)
    for _ in range(2):
        tokens.world.advance(900)
        assert renew(tokens.alice, made) == (0, tokens.now_ms() + 1000)
    tokens.world.advance(900)
    assert renew(tokens.alice, made) == (0, made.max_timestamp_ms)


def test_answers_without_a_key_are_those_of_kafka():
    tokens = Tokens(delegation_token_secret_key="")
    made = create(tokens.alice, owner_principal_type="User", owner_principal_name="bob")
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (DISABLED, "bob", "alice")
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms) == (0, 0, 0)
    assert renew(tokens.alice, made) == expire(tokens.alice, made, 1) == (DISABLED, 0)
    wrong = create(tokens.alice, renewers=("Group:g",))
    assert (wrong.error_code, wrong.issue_timestamp_ms) == (WRONG_TYPE, -1)


def test_owner_and_renewers_change_a_token_and_others_do_not(tokens):
    made = create(tokens.alice, renewers=("User:bob",))
    assert renew(tokens.bob, made, 60_000) == (0, tokens.now_ms() + 60_000)
    other = create(tokens.alice, owner_principal_type="User", owner_principal_name="bob")
    assert (other.principal_name, other.token_requester_principal_name) == ("bob", "alice")
    assert renew(tokens.alice, other) == expire(tokens.alice, other, 1) == (MISMATCH, 0), "who asked is not the owner"
    assert expire(tokens.bob, other, 1 << 60)[1] == other.max_timestamp_ms
    made.hmac = b"x"
    assert renew(tokens.alice, made) == expire(tokens.alice, made, -1) == (NOT_FOUND, 0)


def test_wrong_principals_make_no_token(tokens):
    assert create(tokens.alice, renewers=("Group:g",)).error_code == WRONG_TYPE
    assert create(tokens.alice, owner_principal_name="bob").error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert create(tokens.alice, owner_principal_type="User", owner_principal_name="").principal_name == "alice"
    assert len(seen(tokens.alice)) == 1


@pytest.mark.parametrize(("mechanism", "told"), [("SCRAM-SHA-256", "true"), ("SCRAM-SHA-512", "TRUE")])
def test_client_authenticates_by_a_token_as_its_owner(tokens, mechanism, told):
    made = create(tokens.alice, max_lifetime_ms=60_000)
    client = SaslClient(tokens.world)
    answer = authenticate(client, made, mechanism, told)
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 60_000)
    assert client.connection.principal == "User:alice"
    assert serves(client)
    for request in (CreateDelegationTokenRequest(), DescribeDelegationTokenRequest(owners=None)):
        assert client.call(request).error_code == NOT_ALLOWED, "a token makes no token"
    made.hmac = bytes(64)
    assert authenticate(SaslClient(tokens.world), made).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_token_is_no_password_without_the_extension(tokens):
    made = create(tokens.alice)
    password = base64.b64encode(made.hmac).decode()
    for log_in in (SaslClient(tokens.world).scram, SaslClient(tokens.world).plain):
        assert log_in(made.token_id, password).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_token_ends_by_the_clock_of_the_cluster(tokens):
    made = create(tokens.alice)
    assert expire(tokens.alice, made, 5000) == (0, tokens.now_ms() + 5000)
    client = SaslClient(tokens.world)
    assert authenticate(client, made).session_lifetime_ms == 5000
    tokens.world.advance(5001)
    assert renew(tokens.alice, made) == expire(tokens.alice, made, 1) == (EXPIRED, 0)
    assert authenticate(SaslClient(tokens.world), made).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert seen(tokens.alice) == [made.token_id], "until the next look for what has expired"
    tokens.world.advance(3_600_000)
    assert not seen(tokens.alice)
    client.send(CreateDelegationTokenRequest(), 1)
    tokens.world.run()
    assert client.closed, "its session has expired with the token"


def test_interval_of_the_look_is_set():
    tokens = Tokens(delegation_token_expiry_check_interval_ms="1000")
    create(tokens.alice, max_lifetime_ms=10)
    tokens.world.advance(2000)
    assert not seen(tokens.alice)


def test_token_that_is_removed_is_gone(tokens):
    made = create(tokens.alice)
    assert expire(tokens.alice, made, -1) == (0, tokens.now_ms())
    assert renew(tokens.alice, made) == (NOT_FOUND, 0)
    assert authenticate(SaslClient(tokens.world), made).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_tokens_survive_a_restart_and_an_image(tokens):
    made = create(tokens.alice, renewers=("User:bob",))
    gone = create(tokens.alice)
    renew(tokens.bob, made, 60_000)
    expire(tokens.alice, gone, -1)
    state = tokens.world.broker.metadata
    image = type(state)(state.config, state.node_ids)
    for value in state.image_records():
        image.replay(None, value)
    assert image.clients.tokens == state.clients.tokens
    world = tokens.world.restart()
    assert list(world.broker.metadata.clients.tokens) == [made.token_id]
    client = SaslClient(world)
    assert 50_000 < authenticate(client, made).session_lifetime_ms <= 60_000
    world.check_replay()


def test_tokens_are_seen_by_whom_they_concern(tokens):
    mine, shared = create(tokens.alice), create(tokens.alice, renewers=("User:bob",))
    theirs = create(tokens.bob)
    assert seen(tokens.alice) == [mine.token_id, shared.token_id, theirs.token_id], "there is no authorizer"
    assert seen(tokens.alice, "bob") == [shared.token_id, theirs.token_id]
    asked = create(tokens.bob, owner_principal_type="User", owner_principal_name="carol")
    assert seen(tokens.alice, "bob")[-1] == asked.token_id, "he has asked for it"
    answer = tokens.alice.call(DescribeDelegationTokenRequest(owners=[]), 3)
    assert (answer.error_code, answer.tokens) == (0, [])


def allow(tokens: Tokens, operation: int, kind: int, name: str) -> None:
    rule = AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=3,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=3,
    )
    root = Client(tokens.world)
    root.connection.principal = "User:root"
    assert root.call(CreateAclsRequest(creations=[rule])).results[0].error_code == 0


def test_acls_decide_over_tokens_of_others():
    tokens = Tokens(authorizer_class_name=CLASS, super_users="User:root")
    for_bob = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    assert create(tokens.alice, **for_bob).error_code == DENIED
    allow(tokens, 13, 7, "User:bob")
    assert create(tokens.alice, **for_bob).error_code == 0
    first, second = create(tokens.bob), create(tokens.bob)
    assert len(seen(tokens.bob)) == 3
    assert len(seen(tokens.alice)) == 1, "the one that she has asked for"
    allow(tokens, 8, 6, first.token_id)
    assert first.token_id in seen(tokens.alice)
    assert second.token_id not in seen(tokens.alice)
    allow(tokens, 14, 7, "User:bob")
    assert len(seen(tokens.alice)) == 3


def test_no_secret_of_a_token_is_journaled_or_logged(tokens, caplog):
    tokens.world.broker.keep_journal(1 << 20)
    with caplog.at_level("DEBUG"):
        made = create(tokens.alice)
        renew(tokens.alice, made)
        seen(tokens.alice)
        authenticate(SaslClient(tokens.world), made)
        expire(tokens.alice, made, -1)
    kept = b"".join(frame for piece in tokens.world.broker.clients.journal.pieces for frame, _ in piece.each())
    for text in (made.hmac, base64.b64encode(made.hmac), b"s3same"):
        assert text not in kept
        assert text.decode("latin-1") not in caplog.text
