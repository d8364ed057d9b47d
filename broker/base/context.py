"""Context: what a handler gets beside the request's body. It has no socket, no file and no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.turn.decision import Token
    from storage.files.env import Rng


class Context:
    """What a handler gets beside the request's body.

    Units: now_ms is Unix milliseconds, read once for all requests of a turn.
    """

    __slots__ = (
        "access",
        "api_key",
        "api_version",
        "client_host",
        "client_id",
        "connection",
        "listener",
        "local_host",
        "node_id",
        "now_ms",
        "prepared",
        "rng",
        "token",
    )

    def __init__(
        self,
        now_ms: int,
        rng: Rng,
        *,
        api_key: int = -1,
        api_version: int = 0,
        client_id: str = "",
        client_host: str = "",
        node_id: int = 0,
        token: Token = None,
        listener: Any = None,
    ) -> None:
        self.now_ms = now_ms
        self.rng = rng
        self.api_key = api_key
        self.api_version = api_version
        self.client_id = client_id
        self.client_host = client_host  # as Kafka writes it: "/127.0.0.1"
        self.node_id = node_id  # the virtual broker that the client connected to
        self.token = token
        self.listener = listener  # the listener that the client connected to
        self.local_host = ""  # the broker's address that the client connected to
        self.connection: Any = None
        self.access: Any = None  # what the client may do; None: there is no authorizer
        self.prepared: Any = None  # for repeats of a kept request; it names the Ask, so it is not there
