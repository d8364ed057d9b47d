"""How a connection becomes authenticated, and stays so: a pure machine, from requests and a clock to answers.

A connection of a SASL listener has one Session for its life. Requests come to it in order:

    state       SaslHandshake            SaslAuthenticate / token      any other request
    ---------   ----------------------   ---------------------------   ------------------------------------
    OPENED      EXCHANGING, or FAILED    FAILED                        ApiVersions: served; else FAILED
    EXCHANGING  FAILED                   EXCHANGING, DONE, or FAILED   FAILED
    DONE        EXCHANGING (KIP-368)*    ILLEGAL_SASL_STATE            served, until the session has expired
    FAILED      -                        -                             -

    * ILLEGAL_SASL_STATE if the session does not expire, or within a second of the last re-authentication

OPENED allows what a client needs to begin. In EXCHANGING version 0 of SaslHandshake is followed by bare tokens, later
versions by SaslAuthenticate requests. An exchange that follows DONE is a re-authentication: mechanism and principal
must stay, and until it is complete nothing else is served. FAILED closes the connection, after the answer and after a
delay. A session expires by the cluster's clock when its credentials do, or after connections.max.reauth.ms.

Source: KIP-43, KIP-152, KIP-368; Kafka's SaslServerAuthenticator, whose words to clients these are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.security.mechanisms import RefusedError
from broker.security.principals import ANONYMOUS
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.security.mechanisms import Exchange, Work

OPENED: Final = "OPENED"
EXCHANGING: Final = "EXCHANGING"
DONE: Final = "DONE"
FAILED: Final = "FAILED"
REAUTHENTICATE_AFTER_MS: Final = 1000  # a re-authentication that follows another one sooner is an error


class Mechanism(NamedTuple):
    """A mechanism of a listener: how an exchange begins, and its connections.max.reauth.ms."""

    begin: Callable[[], Exchange]
    max_reauth_ms: int = 0


class Answer(NamedTuple):
    """What a client is answered."""

    code: int
    message: str | None = None
    token: bytes = b""
    lifetime_ms: int = 0


class Session:
    """The authentication of one connection.

    now_ms   Unix milliseconds by the cluster's wall clock.
    """

    __slots__ = (
        "_exchange",
        "_mechanisms",
        "_now_ms",
        "_reauthenticated_ms",
        "_wanted",
        "began_ms",
        "by_token",
        "expires_ms",
        "mechanism",
        "principal",
        "state",
        "takes_bare_tokens",
        "user",
    )

    def __init__(self, mechanisms: Mapping[str, Mechanism], now_ms: Callable[[], int]) -> None:
        self._mechanisms = mechanisms
        self._now_ms = now_ms
        self._exchange: Exchange | None = None
        self._wanted = ""  # the mechanism of the exchange
        self._reauthenticated_ms: int | None = None  # when the last exchange that followed DONE began
        self.state = OPENED
        self.takes_bare_tokens = False
        self.mechanism = ""  # that of the last authentication
        self.principal = ANONYMOUS
        self.user = ""
        self.by_token = False
        self.began_ms = 0  # when the last exchange was complete
        self.expires_ms: int | None = None

    @property
    def is_authenticated(self) -> bool:
        """Whether the connection has a principal other than ANONYMOUS."""
        return self.principal is not ANONYMOUS

    def is_expired(self) -> bool:
        """Whether the client should have authenticated again."""
        return self.expires_ms is not None and self._now_ms() > self.expires_ms

    def may_reauthenticate(self) -> bool:
        """Whether a handshake now begins a re-authentication: only where sessions expire, and not too soon."""
        if self.state != DONE or self.expires_ms is None:
            return False
        last_ms = self._reauthenticated_ms
        return last_ms is None or self._now_ms() - last_ms >= REAUTHENTICATE_AFTER_MS

    def handshake(self, mechanism: str, version: int) -> tuple[int, list[str]]:
        """The client chooses a mechanism: error code, and the mechanisms there are."""
        names = list(self._mechanisms)
        if self.state == DONE and not self.may_reauthenticate():
            return ErrorCode.ILLEGAL_SASL_STATE, []
        if self.state not in (OPENED, DONE):
            self.state = FAILED
            return ErrorCode.ILLEGAL_SASL_STATE, []
        if mechanism not in self._mechanisms:
            self.state = FAILED
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, names
        if self.state == DONE:
            self._reauthenticated_ms = self._now_ms()
        self._wanted = mechanism
        self._exchange = self._mechanisms[mechanism].begin()
        self.takes_bare_tokens = version == 0
        self.state = EXCHANGING
        return ErrorCode.NONE, names

    def work(self, token: bytes) -> Work | None:
        """What `step` will do with this token that takes milliseconds; see Exchange."""
        return self._exchange.work(token) if self.state == EXCHANGING and self._exchange is not None else None

    def step(self, token: bytes) -> Answer:
        """The client's next token."""
        if self.state == DONE:
            return Answer(
                ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication"
            )
        if self.state != EXCHANGING or self._exchange is None:
            self.state = FAILED
            return Answer(ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received before a SaslHandshake")
        if self.is_authenticated and self._wanted != self.mechanism:
            return self._fail(
                f"SASL mechanism '{self._wanted}' requested by client is not supported for re-authentication of"
                f" mechanism '{self.mechanism}'"
            )
        try:
            step = self._exchange.step(token)
        except RefusedError as error:
            what = "re-authentication" if self.is_authenticated else "authentication"
            hidden = (
                f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self._wanted}"
            )
            return self._fail(str(error) or hidden)
        if not step.user:
            return Answer(ErrorCode.NONE, token=step.challenge)
        principal = f"User:{step.user}"
        if self.is_authenticated and principal != self.principal:
            before, after = self.principal.replace(":", ".", 1), principal.replace(":", ".", 1)
            return self._fail(f"Cannot change principals during re-authentication from {before}: {after}")
        self.principal, self.user, self.mechanism, self.by_token = principal, step.user, self._wanted, step.by_token
        self._exchange = None
        self.state = DONE
        return Answer(ErrorCode.NONE, token=step.challenge, lifetime_ms=self._end_of_session(step.expires_ms))

    def _end_of_session(self, credentials_expire_ms: int | None) -> int:
        """Set when the session expires. Returns in how many milliseconds; 0: never."""
        self.began_ms = self._now_ms()
        limits = [credentials_expire_ms - self.began_ms] if credentials_expire_ms is not None else []
        if self._mechanisms[self._wanted].max_reauth_ms > 0:
            limits.append(self._mechanisms[self._wanted].max_reauth_ms)
        if not limits:
            self.expires_ms = None
            return 0
        lifetime_ms = max(0, min(limits))
        self.expires_ms = self.began_ms + lifetime_ms
        return lifetime_ms

    def _fail(self, message: str) -> Answer:
        self.state = FAILED
        return Answer(ErrorCode.SASL_AUTHENTICATION_FAILED, message)
