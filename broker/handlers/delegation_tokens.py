"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken: refused.

CreateDelegationToken    v3: an owner beside the requester (KIP-373).
RenewDelegationToken     KIP-48.
ExpireDelegationToken    KIP-48.
DescribeDelegationToken  v3: requesters (KIP-373).

Behaviour: as Kafka without `delegation.token.secret.key`: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED to clients who have not
           said who they are (PLAINTEXT, SSL without a certificate), DELEGATION_TOKEN_AUTH_DISABLED to others.
Absent:    delegation tokens: `delegation.token.secret.key` is refused at the start.
Source:    Kafka's KafkaApis.allowTokenRequests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.principals import ANONYMOUS
from protocol.errors import ErrorCode
from protocol.messages.delegation_tokens import (
    NOBODY,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    not_created,
)

if TYPE_CHECKING:
    from broker.coordinator.result import Context


def _code(ctx: Context) -> ErrorCode:
    """Why there is no token for this client."""
    listener = ctx.listener
    is_named = ctx.connection is not None and ctx.connection.principal != ANONYMOUS
    if listener is None or listener.protocol == "PLAINTEXT" or not is_named:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def create_delegation_token(
    broker: object, ctx: Context, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Refuse to create; the owner that was asked for is in the response."""
    name = request.owner_principal_name
    return not_created(_code(ctx), (request.owner_principal_type or "", name) if name else NOBODY)


def renew_delegation_token(
    broker: object, ctx: Context, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Refuse to renew."""
    return RenewDelegationTokenResponse(error_code=_code(ctx), expiry_timestamp_ms=-1)


def expire_delegation_token(
    broker: object, ctx: Context, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Refuse to expire."""
    return ExpireDelegationTokenResponse(error_code=_code(ctx), expiry_timestamp_ms=-1)


def describe_delegation_token(
    broker: object, ctx: Context, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Refuse to describe."""
    return DescribeDelegationTokenResponse(error_code=_code(ctx))
