"""Messages of SASL authentication, declared so that they can be refused by name."""

from __future__ import annotations

from protocol.declare import Message, field, message
from protocol.errors import ErrorCode
from protocol.wire import Array, Bytes, Int16, Int64, String


@message(api_key=17, versions="0-1")
class SaslHandshakeRequest(Message):
    """Choose a SASL mechanism."""

    mechanism: str = field(String)


@message(api_key=17, versions="0-1")
class SaslHandshakeResponse(Message):
    """The mechanisms the broker has."""

    error_code: int = field(Int16)
    mechanisms: list[str] = field(Array(String))


@message(api_key=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest(Message):
    """One step of a SASL exchange."""

    auth_bytes: bytes = field(Bytes)


@message(api_key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Message):
    """The broker's side of the step.

    1 session lifetime.
    """

    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    auth_bytes: bytes = field(Bytes)
    session_lifetime_ms: int = field(Int64, "1+")


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    if isinstance(request, SaslHandshakeRequest):
        return SaslHandshakeResponse(error_code=code)
    return SaslAuthenticateResponse(error_code=code, error_message=message)
