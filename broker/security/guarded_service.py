"""What serves a connection of a SASL listener while its client is not authenticated.

It stands in the place of Clients (`connection.service`) and serves what Session allows: nothing but the requests that
authentication needs. Once the client is authenticated, Clients takes its place again, and the path of a request is that
of any other connection. It comes back when the client authenticates again, or when its session expires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.security.session import DONE, EXCHANGING, OPENED
from protocol.api import ApiKey, api_label

if TYPE_CHECKING:
    from broker.security.session import Session
    from broker.turn.metrics import Metrics
    from broker.turn.turn import Turn
    from broker.wire.backlog import Backlog
    from broker.wire.service import Service

HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE)
AUTHENTICATE: Final = int(ApiKey.SASL_AUTHENTICATE)
API_VERSIONS: Final = int(ApiKey.API_VERSIONS)


class GuardedService:
    """Serves one connection.

    service         serves it once it is authenticated.
    request_limit   bytes of a request before that.
    """

    def __init__(self, service: Service, session: Session, request_limit: int) -> None:
        self.service = service
        self.session = session
        self.request_limit = request_limit
        self.shortcuts: dict[int, Any] = {}
        self.turn: Turn = service.turn
        self.backlog: Backlog = service.backlog
        self.metrics: Metrics = service.metrics
        self.backlog_limit = service.backlog_limit
        self.alarm = 0  # the timer that ends the session
        self.opened_ms = service.turn.env.clock.monotonic_ms()

    @property
    def journal(self) -> Any:
        """Where what is received and sent is kept."""
        return self.service.journal

    @property
    def watchers(self) -> tuple[Any, ...]:
        """Those who see what is received and sent."""
        return self.service.watchers

    def connected(self, connection: Any) -> None:
        """A client has connected."""
        self.service.connected(connection)

    def disconnected(self, connection: Any) -> None:
        """A client's connection is closed."""
        self.service.disconnected(connection)

    def dispatch(
        self,
        connection: Any,
        data: bytes,
        position: int,
        stop: int,
        api_key: int,
        api_version: int,
        correlation_id: int,
    ) -> None:
        """Serve one frame if the state of the session allows it; else close the connection."""
        state = self.session.state
        is_expired = self.session.is_expired()
        if state == DONE and not is_expired:
            allowed = True
        elif state == DONE:
            allowed = api_key == HANDSHAKE and self.session.may_reauthenticate()
        elif state == OPENED:
            allowed = api_key in (HANDSHAKE, API_VERSIONS)
        else:
            allowed = state == EXCHANGING and api_key == AUTHENTICATE and not self.session.takes_bare_tokens
        if allowed:
            self.service.dispatch(connection, data, position, stop, api_key, api_version, correlation_id)
        elif is_expired:
            connection.refuse("its SASL session has expired, and it has not authenticated again")
        else:
            what = "handshake" if state == OPENED else "authentication"
            connection.refuse(f"Unexpected Kafka request of type {api_label(api_key)} during SASL {what}.")
