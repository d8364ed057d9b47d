"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken: refused.

CreateDelegationToken    v3: an owner beside the requester (KIP-373).
RenewDelegationToken     KIP-48.
ExpireDelegationToken    KIP-48.
DescribeDelegationToken  v3: requesters (KIP-373).

Behaviour: as Kafka on a listener without authentication: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
Absent:    delegation tokens, with all authentication.
Source:    Kafka's KafkaApis.allowTokenRequests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def create_delegation_token(
    broker: object, ctx: Context, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Refuse to create; the owner that was asked for is in the response."""
    name = request.owner_principal_name
    return not_created(NOT_ALLOWED, (request.owner_principal_type or "", name) if name else NOBODY)


def renew_delegation_token(
    broker: object, ctx: Context, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Refuse to renew."""
    return RenewDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=-1)


def expire_delegation_token(
    broker: object, ctx: Context, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Refuse to expire."""
    return ExpireDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=-1)


def describe_delegation_token(
    broker: object, ctx: Context, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Refuse to describe."""
    return DescribeDelegationTokenResponse(error_code=NOT_ALLOWED)
