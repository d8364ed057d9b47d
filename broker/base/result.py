"""Context and Result: what a handler is given and what it returns. Neither has a socket, a file or a clock."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from storage.files.env import Rng

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
# key, value, and record headers if any; a value of None is a tombstone
Record: TypeAlias = tuple[bytes | None, bytes | None] | tuple[bytes | None, bytes | None, Headers]
Token: TypeAlias = Hashable  # names a parked request


class _Parked:
    """The placeholder response of a parked request, which a later Result wakes."""

    def __repr__(self) -> str:
        return "PARKED"


PARKED: Final = _Parked()


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
        "close_connection",
        "connection",
        "flush_states",
        "listener",
        "local_host",
        "node_id",
        "now_ms",
        "rng",
        "shard",
        "sources",
        "token",
        "why",
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
        self.shard: Any = None  # set when the reply depends only on this shard and the metadata
        self.flush_states: Sequence[Any] = ()  # of the partitions that the request wrote to
        self.sources: Any = None  # what a reply that may be kept was made from (OffsetFetch)
        self.why: str | None = None  # the handler's words for a refusal
        self.close_connection = False  # set to refuse a request that has no reply (as acks=0)


class Commit(Protocol):
    """Offsets to commit: see offsets/commit_run.py."""

    def append_to(self, shard: Any, now_ms: int) -> None:
        """Append the records to the shard's log and replay them."""


class Result:
    """A handler's decision: one batch of records, the reply, the parked requests to wake, and timers to set.

    records   land in the shard's log as one batch, and are replayed in order.
    wake      parked requests to answer: (their Context.token, response).
    timers    (name, deadline in Unix ms); a deadline of None cancels.
    appends   records for other shards, by handlers that serve several at once.
    commits   offsets to commit, with the shard of their group.
    """

    __slots__ = ("appends", "commits", "records", "response", "timers", "wake")

    def __init__(
        self,
        response: Any = None,
        records: Sequence[Record] = (),
        wake: Sequence[tuple[Token, Any]] = (),
        timers: Sequence[tuple[Hashable, int | None]] = (),
        appends: Sequence[tuple[Any, Sequence[Record]]] = (),
        commits: Sequence[tuple[Any, Commit]] = (),
    ) -> None:
        self.response = response
        self.records = records
        self.wake = wake
        self.timers = timers
        self.appends = appends
        self.commits = commits
