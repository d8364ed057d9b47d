"""Messages that describe and change the SCRAM credentials of users (KIP-554)."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bytes, Int8, Int16, Int32, String


@nested
class UserName(Message):
    name: str = field(String)


@message(api_key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest(Message):
    """Ask for credentials by user; null and an empty list mean all users."""

    users: list[UserName] | None = field(Array(UserName), nullable="0+")


@nested
class CredentialInfo(Message):
    mechanism: int = field(Int8)
    iterations: int = field(Int32)


@nested
class DescribeUserScramCredentialsResult(Message):
    user: str = field(String)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    credential_infos: list[CredentialInfo] = field(Array(CredentialInfo))


@message(api_key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse(Message):
    """Mechanisms and iterations of each user; never salts or keys."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = field(Array(DescribeUserScramCredentialsResult))


@nested
class ScramCredentialDeletion(Message):
    name: str = field(String)
    mechanism: int = field(Int8)


@nested
class ScramCredentialUpsertion(Message):
    name: str = field(String)
    mechanism: int = field(Int8)
    iterations: int = field(Int32)
    salt: bytes = field(Bytes)
    salted_password: bytes = field(Bytes)


@message(api_key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest(Message):
    """Delete, insert and replace credentials."""

    deletions: list[ScramCredentialDeletion] = field(Array(ScramCredentialDeletion))
    upsertions: list[ScramCredentialUpsertion] = field(Array(ScramCredentialUpsertion))


@nested
class AlterUserScramCredentialsResult(Message):
    user: str = field(String)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")


@message(api_key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse(Message):
    """One result a user."""

    throttle_time_ms: int = field(Int32)
    results: list[AlterUserScramCredentialsResult] = field(Array(AlterUserScramCredentialsResult))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case DescribeUserScramCredentialsRequest():
            return DescribeUserScramCredentialsResponse(
                error_code=code,
                error_message=message,
                results=[  # without names, as Kafka's
                    DescribeUserScramCredentialsResult(error_code=code, error_message=message)
                    for _ in request.users or ()
                ],
            )
        case AlterUserScramCredentialsRequest():
            users = {each.name for each in request.deletions} | {each.name for each in request.upsertions}
            return AlterUserScramCredentialsResponse(
                results=[
                    AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
                    for user in sorted(users)
                ]
            )
    raise TypeError(f"not a request of this family: {request!r}")
