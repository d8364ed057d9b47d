"""Messages that create, renew, expire and describe delegation tokens (KIP-48; owners: KIP-373)."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bytes, Int16, Int32, Int64, String

NOBODY = ("User", "ANONYMOUS")  # the principal of a client that has not authenticated: type and name


@nested
class CreatableRenewers(Message):
    principal_type: str = field(String)
    principal_name: str = field(String)


@message(api_key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenRequest(Message):
    """Create a token; without an owner it is the client's own."""

    owner_principal_type: str | None = field(String, "3+", nullable="3+")
    owner_principal_name: str | None = field(String, "3+", nullable="3+")
    renewers: list[CreatableRenewers] = field(Array(CreatableRenewers))
    max_lifetime_ms: int = field(Int64)


@message(api_key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenResponse(Message):
    """The token, its owner and its requester."""

    error_code: int = field(Int16)
    principal_type: str = field(String)
    principal_name: str = field(String)
    token_requester_principal_type: str = field(String, "3+")
    token_requester_principal_name: str = field(String, "3+")
    issue_timestamp_ms: int = field(Int64)
    expiry_timestamp_ms: int = field(Int64)
    max_timestamp_ms: int = field(Int64)
    token_id: str = field(String)
    hmac: bytes = field(Bytes)
    throttle_time_ms: int = field(Int32)


@message(api_key=39, versions="1-2", flexible="2+")
class RenewDelegationTokenRequest(Message):
    """Renew the token with this HMAC."""

    hmac: bytes = field(Bytes)
    renew_period_ms: int = field(Int64)


@message(api_key=39, versions="1-2", flexible="2+")
class RenewDelegationTokenResponse(Message):
    """When the token expires now."""

    error_code: int = field(Int16)
    expiry_timestamp_ms: int = field(Int64)
    throttle_time_ms: int = field(Int32)


@message(api_key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenRequest(Message):
    """Expire the token with this HMAC."""

    hmac: bytes = field(Bytes)
    expiry_time_period_ms: int = field(Int64)


@message(api_key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse(Message):
    """When the token expires now."""

    error_code: int = field(Int16)
    expiry_timestamp_ms: int = field(Int64)
    throttle_time_ms: int = field(Int32)


@nested
class DescribeDelegationTokenOwner(Message):
    principal_type: str = field(String)
    principal_name: str = field(String)


@message(api_key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenRequest(Message):
    """Ask for the tokens of owners; null: of all."""

    owners: list[DescribeDelegationTokenOwner] | None = field(Array(DescribeDelegationTokenOwner), nullable="0+")


@nested
class DescribedDelegationTokenRenewer(Message):
    principal_type: str = field(String)
    principal_name: str = field(String)


@nested
class DescribedDelegationToken(Message):
    principal_type: str = field(String)
    principal_name: str = field(String)
    token_requester_principal_type: str = field(String, "3+")
    token_requester_principal_name: str = field(String, "3+")
    issue_timestamp: int = field(Int64)
    expiry_timestamp: int = field(Int64)
    max_timestamp: int = field(Int64)
    token_id: str = field(String)
    hmac: bytes = field(Bytes)
    renewers: list[DescribedDelegationTokenRenewer] = field(Array(DescribedDelegationTokenRenewer))


@message(api_key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse(Message):
    """The tokens."""

    error_code: int = field(Int16)
    tokens: list[DescribedDelegationToken] = field(Array(DescribedDelegationToken))
    throttle_time_ms: int = field(Int32)


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case CreateDelegationTokenRequest():
            return not_created(code, NOBODY)
        case RenewDelegationTokenRequest():
            return RenewDelegationTokenResponse(error_code=code)
        case ExpireDelegationTokenRequest():
            return ExpireDelegationTokenResponse(error_code=code)
        case DescribeDelegationTokenRequest():
            return DescribeDelegationTokenResponse(error_code=code)
    raise TypeError(f"not a request of this family: {request!r}")


def not_created(code: ErrorCode, owner: tuple[str, str]) -> CreateDelegationTokenResponse:
    """The response when no token was created for an owner (principal type and name)."""
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=NOBODY[0],
        token_requester_principal_name=NOBODY[1],
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
