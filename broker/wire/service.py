"""What a connection uses of the broker behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from broker.turn.metrics import Metrics
    from broker.turn.turn import Turn
    from broker.wire.backlog import Backlog

# (form, connection, data, position, stop) -> the whole reply; TAKEN: the shortcut took the slot itself; None: the
# shortcut does not serve this frame and has changed nothing, so the general handler serves it. The form is the one that
# the connection has under the frame's first bytes.
Shortcut: TypeAlias = Callable[[Any, Any, bytes, int, int], bytes | None]
TAKEN: Final = b""


class Service(Protocol):
    """What serves the requests of connections."""

    turn: Turn
    backlog: Backlog
    metrics: Metrics
    shortcuts: dict[int, Shortcut]  # by API key
    request_limit: int  # bytes of a frame
    backlog_limit: int  # bytes of replies that may wait on one connection
    journal: Any  # what is received and sent is kept there; None: nowhere
    later: Callable[[float, Callable[[], None]], object]  # calls after so many seconds by the machine's clock
    watchers: tuple[Any, ...]  # see what is received and sent: the journal, a meter

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
        """Serve one frame by its general handler. It takes the next slot."""

    def connected(self, connection: Any) -> None:
        """A client has connected."""

    def disconnected(self, connection: Any) -> None:
        """A client's connection is closed."""
