"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken.

CreateDelegationToken    v3: an owner beside the requester (KIP-373).
RenewDelegationToken     KIP-48.
ExpireDelegationToken    KIP-48.
DescribeDelegationToken  v3: requesters (KIP-373).

Behaviour: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED to clients who have not said who they are (PLAINTEXT, SSL without a
           certificate) or have authenticated with a token; without `delegation.token.secret.key`
           DELEGATION_TOKEN_AUTH_DISABLED to others. Expired tokens are removed each
           delegation.token.expiry.check.interval.ms; until then they are described, and cannot be used.
Source:    Kafka's KafkaApis.allowTokenRequests, DelegationTokenControlManager and DelegationTokenManager; a running
           4.3.1.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

from broker.base.context import Context
from broker.cluster.acls import CREATE_TOKENS, DELEGATION_TOKEN, DESCRIBE, DESCRIBE_TOKENS, USER
from broker.handlers.admin_view import after_metadata
from broker.security.delegation_tokens import concerns, is_expired, may_renew, secret_of, token_hmac
from broker.security.principals import ANONYMOUS
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delegation_tokens import (
    NOBODY,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    not_created,
)
from protocol.messages.metadata_records import DelegationTokenRecord, RemoveDelegationTokenRecord, encode_record

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig
    from broker.coordinator.runtime import Shard


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def config(self) -> BrokerConfig: ...
    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def metadata_shard(self) -> Shard: ...


def _check_allowed(ctx: Context) -> None:
    """Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: not for this client."""
    listener, connection = ctx.listener, ctx.connection
    is_named = connection is not None and connection.principal != ANONYMOUS
    by_token = is_named and connection.guard is not None and connection.guard.session.by_token
    if listener is None or listener.protocol == "PLAINTEXT" or not is_named or by_token:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def _secret(broker: View) -> bytes:
    """Errors: DELEGATION_TOKEN_AUTH_DISABLED: there are no tokens."""
    secret = secret_of(broker.config)
    if not secret:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return secret


def create_delegation_token(broker: View, ctx: Context, request: CreateDelegationTokenRequest) -> Decision:
    """Make a token.

    Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTHORIZATION_FAILED: another owner,
            INVALID_PRINCIPAL_TYPE: a renewer who is no User, DELEGATION_TOKEN_AUTH_DISABLED.
    """
    requester = ctx.connection.principal if ctx.connection is not None else ANONYMOUS
    owner, name = requester, request.owner_principal_name
    try:
        if name:
            if request.owner_principal_type is None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka
            owner = f"{request.owner_principal_type}:{name}"
        _check_allowed(ctx)
        if owner != requester and ctx.access is not None and not ctx.access.may(CREATE_TOKENS, USER, owner):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
        if any(each.principal_type != "User" for each in request.renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        secret = _secret(broker)
    except KafkaError as error:
        return Decision(_not_created(error.code, owner, requester))
    config = broker.config
    longest_ms = config.delegation_token_max_lifetime_ms
    lifetime_ms = min(request.max_lifetime_ms, longest_ms) if request.max_lifetime_ms > 0 else longest_ms
    most_ms = ctx.now_ms + lifetime_ms
    record = DelegationTokenRecord(
        owner=owner,
        requester=requester,
        renewers=[f"{each.principal_type}:{each.principal_name}" for each in request.renewers],
        issue_timestamp=ctx.now_ms,
        max_timestamp=most_ms,
        expiration_timestamp=min(ctx.now_ms + config.delegation_token_expiry_time_ms, most_ms),
        token_id=urlsafe_b64encode(ctx.rng.uuid_bytes()).rstrip(b"=").decode(),
    )
    response = _not_created(ErrorCode.NONE, owner, requester)
    response.issue_timestamp_ms, response.max_timestamp_ms = record.issue_timestamp, record.max_timestamp
    response.expiry_timestamp_ms = record.expiration_timestamp
    response.token_id, response.hmac = record.token_id, token_hmac(secret, record.token_id)
    return after_metadata(broker, response, [encode_record(record, 0)])


def _not_created(code: int, owner: str, requester: str) -> CreateDelegationTokenResponse:
    kind, _, name = owner.partition(":")
    response = not_created(ErrorCode(code), NOBODY if code == ErrorCode.UNKNOWN_SERVER_ERROR else (kind, name))
    if code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED:
        response.issue_timestamp_ms = response.expiry_timestamp_ms = response.max_timestamp_ms = 0
    if code != ErrorCode.UNKNOWN_SERVER_ERROR:
        kind, _, name = requester.partition(":")
        response.token_requester_principal_type, response.token_requester_principal_name = kind, name
    return response


def _usable(broker: View, ctx: Context, code: bytes) -> DelegationTokenRecord:
    """The token with this HMAC, which the client may change.

    Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_NOT_FOUND,
            DELEGATION_TOKEN_OWNER_MISMATCH, DELEGATION_TOKEN_EXPIRED.
    """
    _check_allowed(ctx)
    secret = _secret(broker)
    tokens = broker.metadata.clients.tokens.values()
    token = next((each for each in tokens if token_hmac(secret, each.token_id) == code), None)
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    if not may_renew(token, ctx.connection.principal):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    if is_expired(token, ctx.now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return token


def _moved(token: DelegationTokenRecord, expires_ms: int) -> bytes:
    """The record by which a token expires at another time."""
    changed = copy(token)
    changed.expiration_timestamp = expires_ms
    return encode_record(changed, 0)


def renew_delegation_token(broker: View, ctx: Context, request: RenewDelegationTokenRequest) -> Decision:
    """Have a token expire later, at most after delegation.token.expiry.time.ms. Errors: as `_usable`."""
    try:
        token = _usable(broker, ctx, request.hmac)
    except KafkaError as error:
        return Decision(RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=_no_time(error)))
    most_ms = broker.config.delegation_token_expiry_time_ms
    period_ms = min(request.renew_period_ms, most_ms) if request.renew_period_ms > 0 else most_ms
    expires_ms = min(token.max_timestamp, ctx.now_ms + period_ms)
    response = RenewDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
    return after_metadata(broker, response, [_moved(token, expires_ms)])


def expire_delegation_token(broker: View, ctx: Context, request: ExpireDelegationTokenRequest) -> Decision:
    """Have a token expire after a time; a negative one removes it at once. Errors: as `_usable`."""
    try:
        token = _usable(broker, ctx, request.hmac)
    except KafkaError as error:
        return Decision(ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=_no_time(error)))
    if request.expiry_time_period_ms < 0:
        gone = encode_record(RemoveDelegationTokenRecord(token_id=token.token_id), 0)
        return after_metadata(broker, ExpireDelegationTokenResponse(expiry_timestamp_ms=ctx.now_ms), [gone])
    expires_ms = min(token.max_timestamp, ctx.now_ms + request.expiry_time_period_ms)
    response = ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
    return after_metadata(broker, response, [_moved(token, expires_ms)])


def _no_time(error: KafkaError) -> int:
    return -1 if error.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED else 0


def describe_delegation_token(broker: View, ctx: Context, request: DescribeDelegationTokenRequest) -> Decision:
    """Answer the tokens that concern one of the owners, as far as the client may see them; null: of all owners."""
    try:
        _check_allowed(ctx)
        secret = _secret(broker)
    except KafkaError as error:
        return Decision(DescribeDelegationTokenResponse(error_code=error.code))
    owners = request.owners
    wanted = None if owners is None else [f"{each.principal_type}:{each.principal_name}" for each in owners]
    found = [
        token
        for token in broker.metadata.clients.tokens.values()
        if (wanted is None or any(concerns(token, each) for each in wanted)) and _may_see(ctx, token)
    ]
    return Decision(DescribeDelegationTokenResponse(tokens=[_described(token, secret) for token in found]))


def _may_see(ctx: Context, token: DelegationTokenRecord) -> bool:
    access: Any = ctx.access
    if access is None or concerns(token, ctx.connection.principal):
        return True
    return bool(
        access.may(DESCRIBE, DELEGATION_TOKEN, token.token_id, log=False)
        or access.may(DESCRIBE_TOKENS, USER, token.owner, log=False)
    )


def _described(token: DelegationTokenRecord, secret: bytes) -> DescribedDelegationToken:
    owner, requester = token.owner.partition(":"), token.requester.partition(":")
    renewers = [each.partition(":") for each in token.renewers]
    return DescribedDelegationToken(
        principal_type=owner[0],
        principal_name=owner[2],
        token_requester_principal_type=requester[0],
        token_requester_principal_name=requester[2],
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac(secret, token.token_id),
        renewers=[DescribedDelegationTokenRenewer(principal_type=k, principal_name=n) for k, _, n in renewers],
    )
