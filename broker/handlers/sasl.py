"""SaslHandshake and SaslAuthenticate.

SaslHandshake     v0: bare tokens follow (KIP-43). v1: SaslAuthenticate requests follow (KIP-152).
SaslAuthenticate  v1: lifetime of the session (KIP-368). v2: flexible.

Behaviour: on a listener without SASL both are answered with ILLEGAL_SASL_STATE, as in Kafka. The answer to a failed
           attempt waits for connection.failed.authentication.delay.ms, and the connection closes behind it.
Differs:   a user whom nobody knows takes the same steps in SCRAM as one with a wrong password; Kafka ends the exchange
           one step earlier.
Source:    Kafka's SaslServerAuthenticator and KafkaApis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from broker.base.context import Context
from broker.security.session import DONE, FAILED
from broker.turn.decision import LATER, Decision
from protocol.errors import ErrorCode
from protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

if TYPE_CHECKING:
    from broker.security.security import Security
    from broker.security.session import Answer
    from broker.wire.parked import ParkedRequests


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def security(self) -> Security: ...
    @property
    def parked(self) -> ParkedRequests: ...


def sasl_handshake(broker: View, ctx: Context, request: SaslHandshakeRequest) -> Decision:
    """Choose the mechanism of an exchange. Errors: UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE."""
    guard = ctx.connection.guard
    if guard is None:
        return Decision(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
    code, mechanisms = guard.session.handshake(request.mechanism, ctx.api_version)
    response = SaslHandshakeResponse(error_code=code, mechanisms=mechanisms)
    if guard.session.state == FAILED:
        return Decision(_fail(broker, ctx, response, f"SASL mechanism {request.mechanism:.100} is not enabled"))
    if code == ErrorCode.NONE:
        broker.security.hold_back(ctx.connection)
        if guard.session.takes_bare_tokens:
            broker.security.read_bare_tokens(ctx.connection)
    return Decision(response)


def sasl_authenticate(broker: View, ctx: Context, request: SaslAuthenticateRequest) -> Decision:
    """Take a token. Errors: SASL_AUTHENTICATION_FAILED, ILLEGAL_SASL_STATE."""
    guard = ctx.connection.guard
    if guard is None:
        message = "SaslAuthenticate request received after successful authentication"
        return Decision(SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message))
    was_done = guard.session.state == DONE

    def looked(answer: Answer) -> None:
        response = _authenticated(broker, ctx, answer, was_done=was_done)
        if response is not LATER:
            broker.parked.answer(ctx.token, response)

    answer = broker.security.step(ctx.connection, request.auth_bytes, looked)
    return Decision(LATER if answer is None else _authenticated(broker, ctx, answer, was_done=was_done))


def _authenticated(broker: View, ctx: Context, answer: Answer, *, was_done: bool) -> Any:
    """What a token is answered; LATER: it has failed."""
    guard: Any = ctx.connection.guard
    response = SaslAuthenticateResponse(
        error_code=answer.code,
        error_message=answer.message,
        auth_bytes=answer.token,
        session_lifetime_ms=answer.lifetime_ms,
    )
    if guard.session.state == FAILED:
        return _fail(broker, ctx, response, answer.message or "")
    if guard.session.state == DONE and not was_done:
        broker.security.admit(ctx.connection)
    return response


def _fail(broker: View, ctx: Context, response: Any, why: str) -> Any:
    token = ctx.token
    broker.security.fail(ctx.connection, why, lambda: broker.parked.answer(token, response))
    return LATER
