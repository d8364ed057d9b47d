"""Decision: what a handler or a timer has decided, before anything of it is done.

A rule reads state and returns a Decision. `executor.py` beside it, and nothing else, carries it out: it appends and
replays what is to be written, sets timers, answers parked requests, and holds the reply until what it depends on is
durable. A Decision that is thrown away has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from broker.turn.flush_state import FlushState, Owner
    from broker.turn.write import Write

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
# key, value, and record headers if any; a value of None is a tombstone
Record: TypeAlias = tuple[bytes | None, bytes | None] | tuple[bytes | None, bytes | None, Headers]
Token: TypeAlias = Hashable  # names a parked request
Writes: TypeAlias = "tuple[tuple[Owner, Write], ...]"


class _Later:
    """The reply of a request that is parked."""

    def __repr__(self) -> str:
        return "LATER"


class _NoReply:
    """The reply of a request that gets none: a Produce with acks=0."""

    def __repr__(self) -> str:
        return "NO_REPLY"


LATER: Final = _Later()
NO_REPLY: Final = _NoReply()
AGAIN: Final = "again"


class Decision:
    """What was decided for a request, a timer or a load.

    reply     the response; LATER: the request is parked, and a later Decision, timer or write answers it; NO_REPLY:
              none is sent.
    shard     the shard that `records`, `timers` and `wake` belong to. The reply depends on it and on the metadata;
              without one, on every shard that is not durable to its end. The router sets it for handlers of groups.
    records   for the shard's log: one batch, replayed in order.
    writes    for any logs: (shard or partition, Write), in order.
    apart     the writes do not depend on one another, and the rule has looked itself whether enough replicas are in
              sync. If one cannot be made, its target's `not_written` is told, the others are made, and `then` looks.
    reads     logs of partitions that the reply depends on too.
    timers    (name, deadline in Unix ms); a deadline of None cancels.
    wake      parked requests to answer: (their token, response).
    then      called when all that is written is in the logs. What it returns is the reply, or LATER; None: `reply` is.
    until     the log, that of `writes` if there are any, that must be durable to its end before `follow` is called.
    follow    makes the Decision that follows; called with False if what was to be durable was thrown away. The reply is
              that Decision's. Of this one only `writes` and `shard`, in which the request is parked, are used.
              Errors: KafkaError: the request is refused.
    close     the connection is closed without a reply, which tells a client that expects none.
    why       the sentence that says why the request is refused.
    repeats   what the request asked, where a repeat of it may be served from its bytes (requests/repeated.py); AGAIN in
              a Decision that is kept with the request: the two would be a circle, which only a rare collection frees.
    is_rare   whether there are records, requests to wake, or a Decision to follow: asked by one question.
    """

    __slots__ = (
        "apart",
        "close",
        "follow",
        "is_rare",
        "reads",
        "records",
        "repeats",
        "reply",
        "shard",
        "then",
        "timers",
        "until",
        "wake",
        "why",
        "writes",
    )

    def __init__(
        self,
        reply: Any = None,
        records: Sequence[Record] = (),
        *,
        shard: Any = None,
        writes: Writes = (),
        apart: bool = False,
        reads: tuple[FlushState, ...] = (),
        timers: Sequence[tuple[Hashable, int | None]] = (),
        wake: Sequence[tuple[Token, Any]] = (),
        then: Callable[[], Any] | None = None,
        until: FlushState | None = None,
        follow: Callable[[bool], Decision] | None = None,
        close: bool = False,
        why: str | None = None,
        repeats: Any = None,
    ) -> None:
        self.reply = reply
        self.records = records
        self.shard = shard
        self.writes = writes
        self.apart = apart
        self.reads = reads
        self.timers = timers
        self.wake = wake
        self.then = then
        self.until = until
        self.follow = follow
        self.close = close
        self.why = why
        self.repeats = repeats
        self.is_rare = bool(records or wake or follow)
