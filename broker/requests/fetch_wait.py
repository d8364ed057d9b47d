"""One Fetch: what it asks, the reads for it, and its wait while it is parked.

While it is parked its partitions poll it, its connection holds it in `fetch_waits`, and it has a deadline. That of a
request that may be repeated keeps its alarm when it is answered: most repeats wait again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.partitions.fetch_read import ISOLATION_LEVELS, FetchReader, Found, Unusual, check_isolation_level
from broker.partitions.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    FetchSessions,
    Key,
    Wanted,
    next_epoch,
)
from broker.requests.fetch_reply import Responder
from broker.turn.decision import LATER
from broker.wire.route import encode_reply
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.nodes import Nodes
    from broker.config.settings import BrokerConfig
    from broker.partitions.partition import Partition
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn
    from broker.wire.parked import ParkedRequests
    from protocol.messages.fetch import FetchRequest

_DENIED: Final = Unusual(int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
NO_KEYS: Final[frozenset[Key]] = frozenset()


class View(Protocol):
    """What a Fetch uses of the broker."""

    @property
    def config(self) -> BrokerConfig: ...
    @property
    def nodes(self) -> Nodes: ...
    @property
    def parked(self) -> ParkedRequests: ...
    @property
    def partitions(self) -> Partitions: ...
    @property
    def turn(self) -> Turn: ...
    @property
    def fetch_sessions(self) -> FetchSessions: ...


class Ask:
    """What one Fetch asks, and where it is. The names of what a request has are the request's.

    named      the partitions in the request.
    wants      all that it reads: `named`, or those of its session.
    repeats    whether it is kept for repeats (requests/repeated.py). Then `offsets` are those of the present one, for
               `places`: the named ones as the session knows them, if there is one, when it had `changes`.
    size       bytes of the records in the present response.
    epoch      of the session after this request; INITIAL_EPOCH: the response begins one.
    """

    __slots__ = (
        "_alarm",
        "_deadline_ms",
        "_missing_bytes",
        "_size_when_parked",
        "_token",
        "_view",
        "_watched",
        "changes",
        "ctx",
        "denied",
        "epoch",
        "forgotten",
        "isolation_level",
        "max_wait_ms",
        "min_bytes",
        "named",
        "offsets",
        "parked",
        "places",
        "reader",
        "repeats",
        "responder",
        "session",
        "session_epoch",
        "session_id",
        "size",
        "wants",
    )

    def __init__(
        self, view: View, ctx: Context, of: FetchRequest | Ask, named: dict[Key, Wanted], reader: FetchReader
    ) -> None:
        self._view = view
        self.ctx = ctx
        self.max_wait_ms: int = of.max_wait_ms
        self.min_bytes: int = min(of.min_bytes, reader.max_bytes)
        self.isolation_level: int = of.isolation_level
        self.session_id: int = of.session_id
        self.session_epoch: int = of.session_epoch
        self.named = named
        self.reader = reader
        self.forgotten: list[Key] = []
        self.denied: Collection[Key] = NO_KEYS
        self.session: FetchSession | None = None
        self.epoch = FINAL_EPOCH
        self.wants: Collection[Wanted] = named.values()
        self.repeats = False
        self.offsets: tuple[int, ...] = ()
        self.places: list[Wanted] = []
        self.changes = -1
        self.responder = Responder(ctx, reader, view.nodes)
        self.size = 0
        self.parked = False
        self._token: Any = None
        self._alarm = 0  # the number of its timer; 0: none is set
        self._deadline_ms = self._missing_bytes = self._size_when_parked = 0
        self._watched: list[tuple[Partition, Wanted]] = []

    def again(self) -> Ask:
        """The same to be kept for repeats, with partitions of its own: no session has them."""
        named = {key: each.again() for key, each in self.named.items()}
        made = Ask(self._view, self.ctx, self, named, self.reader.again())
        made.repeats = True
        made.places = list(named.values())
        session = self.session
        if session is not None:
            made.session, made.changes = session, session.changes
            made.places = [session.wanted[key] for key in named]
        return made

    def may_repeat(self) -> bool:
        """Whether repeats may be served alike: it neither begins, changes nor ends a session, and gets all it asks."""
        in_session = self.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH)
        return (
            self.reader.replica_id < 0
            and self.isolation_level in ISOLATION_LEVELS
            and (in_session or (self.session_epoch == FINAL_EPOCH and not self.session_id))
            and not self.forgotten
            and not self.denied
        )

    def follow(self, session: FetchSession) -> bool:
        """Find the partitions of a repeat in its session, which has changed. False: one is not in it any more, or one
        that is there now may have to be denied."""
        known = session.wanted
        places = [known[key] for key in self.named if key in known]
        if len(places) < len(self.named) or self.ctx.access is not None:
            return False
        self.session, self.changes, self.places = session, session.changes, places
        return True

    # ---------------------------------------------------------------- serving

    def begin(self) -> Any:
        """Tell the session what is asked now, and read. The response, or LATER: it is parked.

        Errors: INVALID_REQUEST: an unknown isolation level (Kafka: UNKNOWN_SERVER_ERROR).
        """
        view, session = self._view, self.session
        if self.repeats:
            for new, place, offset in zip(self.named.values(), self.places, self.offsets, strict=True):
                new.fetch_offset = offset
                if place is not new:
                    place.update(new)
        if session is not None:
            if not self.repeats:
                session.update(self.named, self.forgotten)
            self.wants = session.wanted.values()
            if session.wanted:
                view.fetch_sessions.touch(session, view.turn.steady_ms)
                session.epoch = self.epoch = next_epoch(self.session_epoch)
            else:
                view.fetch_sessions.remove(session.session_id)
                self.session = None
        elif not self.repeats:
            self.epoch = self.session_epoch
            if view.fetch_sessions.find(self.session_id, self.ctx.node_id) is not None:
                view.fetch_sessions.remove(self.session_id)
        found, unknown, size, failed = self._read() if self.denied else self.reader.read(self.wants)
        self.size = size
        if found and not self.repeats:
            check_isolation_level(self.isolation_level)
        if size >= self.min_bytes or self.max_wait_ms <= 0 or failed or not found:
            if self.repeats and not unknown:
                return self.responder.respond(found, session)
            return self._response(found, unknown)
        self._park(found, size)
        return LATER

    def _read(self) -> tuple[list[Found], list[Found], int, bool]:
        """What there is to read, and apart from that unknown partitions, and those that the client may not read."""
        if not self.denied:
            return self.reader.read(self.wants)
        known = self.named if self.session is None else self.session.wanted
        found, unknown, size, failed = self.reader.read([each for key, each in known.items() if key not in self.denied])
        unknown += [(each, None, None, _DENIED) for key, each in known.items() if key in self.denied]
        return found, unknown, size, failed

    def _response(self, found: list[Found], unknown: list[Found]) -> FetchResponse:
        """Those that are not known come last, as in Kafka's responses."""
        session, responder = self.session, self.responder
        if session is not None and session.epoch != self.epoch:  # a later Fetch of the session has come
            responder.is_clean = False
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
        response = responder.respond(found + unknown if unknown else found, session)
        if session is None and self.epoch == INITIAL_EPOCH:
            ctx, view = self.ctx, self._view
            response.session_id = view.fetch_sessions.create(
                self.named, self.reader.by_id, view.turn.steady_ms, ctx.rng, ctx.node_id
            )
        return response

    # ---------------------------------------------------------------- waiting

    def _park(self, found: list[Found], size: int) -> None:
        turn, connection = self._view.turn, self.ctx.connection
        self.parked = True
        self._token = self.ctx.token
        committed, missing_bytes = self.reader.committed, self.min_bytes - size
        watched: list[tuple[Partition, Wanted]] = []
        for wanted, partition, _, _ in found:
            if partition is not None:
                watched.append((partition, wanted))
                partition.watch(self, committed=committed)
                if partition.high_watermark < partition.log.end_offset:
                    missing_bytes = 0  # what the logs hold already is still to become readable
        self._watched, self._missing_bytes = watched, missing_bytes
        if missing_bytes > 1:
            self._size_when_parked = sum(partition.log.size_bytes for partition, _ in watched)
        self._deadline_ms = turn.env.clock.wait_ms() + self.max_wait_ms
        if not self._alarm:
            if connection.fetch_waits is None:
                connection.fetch_waits = {}
            connection.fetch_waits[id(self)] = self
            self._alarm = turn.waits.at(self._deadline_ms, self._ring)

    def poll(self) -> None:
        """A partition has new records or was closed: answer if there are enough bytes."""
        if not self.parked:
            return
        node_id = self.ctx.node_id
        is_new = has_moved = False
        for partition, wanted in self._watched:
            if partition.closed or partition.info.leader != node_id:
                has_moved = True
            elif partition.high_watermark != wanted.fetch_offset:
                is_new = True
        if not has_moved:
            if not is_new:
                return
            if self._missing_bytes > 1 and not self.reader.committed:  # no read before enough bytes can have arrived
                logs_size = sum(partition.log.size_bytes for partition, _ in self._watched)
                if logs_size - self._size_when_parked < self._missing_bytes:
                    return
        found, unknown, size, failed = self._read()
        if has_moved or failed or size >= self.min_bytes:
            self._wake(found, unknown, size)

    def _ring(self, due_ms: int, now_ms: int) -> None:
        """max_wait_ms is over, unless the alarm was set for a request that has been answered since."""
        turn = self._view.turn
        if self.parked and self._deadline_ms > now_ms:
            self._alarm = turn.waits.at(self._deadline_ms, self._ring)
            return
        self._alarm = 0
        self.ctx.connection.fetch_waits.pop(id(self), None)
        if self.parked:
            found, unknown, size, _ = self._read()
            self._wake(found, unknown, size)

    def cancel(self) -> None:
        """The connection is closed: leave nothing that refers to it."""
        if self.parked:
            self._unpark()
        self._view.turn.waits.cancel(self._alarm)

    def _wake(self, found: list[Found], unknown: list[Found], size: int) -> None:
        if not self.parked:  # the read has found new metadata, which has woken it
            return
        self._unpark()
        self.size = size
        response, waiting, token = self._response(found, unknown), self._view.parked, self._token
        parked = waiting.find(token) if self.responder.is_clean else None
        if parked is not None and parked.merge is None:
            reply = encode_reply(parked.route, parked.api_version, parked.correlation_id, response, size)
            waiting.fill(token, reply)
        else:
            waiting.answer(token, response)
        if self.repeats:
            self.responder.forget_records()

    def _unpark(self) -> None:
        self.parked = False
        for partition, _ in self._watched:
            partition.unwatch(self)
        self._watched = []
        if not self.repeats:
            self._view.turn.waits.cancel(self._alarm)
            self._alarm = 0
            self.ctx.connection.fetch_waits.pop(id(self), None)
