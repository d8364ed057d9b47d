"""One ShareFetch: what it asks, its session and acknowledgements, and its wait while it is parked.

While it is parked, its partitions and share partitions poll it, its connection holds it in `fetch_waits`, and it has a
deadline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from broker.coordinator.share.acknowledge import make_available
from broker.coordinator.share.acquire import BATCH_OPTIMIZED, RECORD_LIMIT
from broker.coordinator.share.sessions import FINAL_EPOCH, INITIAL_EPOCH
from broker.handlers.share_acknowledge import acknowledge
from broker.requests.share_fetch_read import ShareReader
from broker.requests.share_fetch_reply import Responder
from broker.turn.decision import LATER
from broker.wire.route import encode_reply
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.coordinator.share.acknowledge import Acknowledgement
    from broker.coordinator.share.in_flight import Delivery
    from broker.coordinator.share.sessions import PartitionKey, ShareSession
    from broker.coordinator.share.table import LivePartition
    from broker.requests.share_fetch_read import Found, View
    from broker.turn.flush_state import FlushState
    from protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse


class Ask(ShareReader):
    """What one ShareFetch asks, and where it is.

    named      the partitions in the request, each with its acknowledgements.
    """

    __slots__ = (
        "_acknowledged",
        "_alarm",
        "_epoch",
        "_refusal",
        "_seen",
        "_token",
        "forgotten",
        "is_renew_ack",
        "max_wait_ms",
        "min_bytes",
        "named",
        "parked",
        "responder",
        "session",
        "share_session_epoch",
    )

    def __init__(
        self, view: View, ctx: Context, of: ShareFetchRequest | Ask, named: dict[PartitionKey, list[Acknowledgement]]
    ) -> None:
        super().__init__(view, ctx, of)
        self.share_session_epoch: int = of.share_session_epoch
        self.max_wait_ms: int = of.max_wait_ms
        self.min_bytes: int = of.min_bytes
        self.is_renew_ack: bool = of.is_renew_ack
        self.named = named
        self.forgotten: Sequence[PartitionKey] = ()
        self.session: ShareSession | None = None  # one that goes on with this request
        self.responder = Responder(view, ctx)
        self.parked = False
        self._epoch = 0  # of the session after this request
        self._acknowledged: Mapping[PartitionKey, KafkaError | None] = {}
        self._seen: list[FlushState] = []  # the logs of shards that the acknowledgements may have written
        self._refusal: KafkaError | None = None
        self._alarm = 0
        self._token: Any = None

    def again(self) -> Ask:
        """The same to be kept for repeats."""
        made = Ask(self.view, self.ctx, self, self.named)
        made.repeats = True
        return made

    # ---------------------------------------------------------------- serving

    def begin(self) -> Any:
        """Tell the session what is asked now, take the acknowledgements, and read. Returns the response, or LATER.

        Errors: UNKNOWN_SERVER_ERROR: an unknown acquire mode.
        """
        share, ctx, epoch, session = self.share, self.ctx, self.share_session_epoch, self.session
        if session is not None:
            session.update(self.named, self.forgotten)
            session.advance()
            self._epoch = session.epoch
            self.places = _in_turn(list(session.partitions), epoch)
        elif epoch == INITIAL_EPOCH:
            self.places = list(self.named)
            try:
                share.sessions.begin(ctx.node_id, self.group_id, self.member_id, self.places, ctx.connection)
            except KafkaError as error:  # told when the wait is over: else the client would ask again at once
                self._refusal = error
                self._park()
                return LATER
        released: dict[LivePartition, list[Delivery]] = {}
        self._acknowledged = {}
        if any(self.named.values()):
            self._acknowledged = acknowledge(
                share,
                ctx,
                self.group_id,
                self.member_id,
                self.named,
                self.limits,
                is_renewal=self.is_renew_ack,
                released=released,
            )
        if self.places and not self.is_renew_ack and self.share_acquire_mode not in (BATCH_OPTIMIZED, RECORD_LIMIT):
            for live, deliveries in released.items():
                make_available(live.state, deliveries)
                share.poll(live)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "there is no such acquire mode")
        if epoch == FINAL_EPOCH:
            share.end_session(ctx.node_id, self.group_id, self.member_id)
        response = self._read_first()
        if any(released.values()):  # as in Kafka, which reads before what is given back is stored
            response = self._give_back(released, response)
        return LATER if response is None else response

    def _read_first(self) -> ShareFetchResponse | None:
        """The response, if it can be made now. None: the request is parked."""
        self.open()
        found: Found | None = None
        if self.wants_records:
            found = self.find(self.min_bytes)
            if found is None:
                if self.max_wait_ms > 0 and not self.is_renew_ack:
                    self._park()
                    return None
                found = self.find(0)
        return self._response(found or {})

    def _give_back(
        self, released: Mapping[LivePartition, Sequence[Delivery]], response: ShareFetchResponse | None
    ) -> ShareFetchResponse | None:
        """Make available what was given back. A request that was parked is answered, if it can be now."""
        for live, deliveries in released.items():
            make_available(live.state, deliveries)
        if response is None:
            found = self.find(self.min_bytes)
            if found is not None:
                self._unpark()
                response = self._response(found)
        for live in released:
            self.share.poll(live)
        return response

    # ---------------------------------------------------------------- waiting

    def _park(self) -> None:
        turn, connection = self.view.turn, self.ctx.connection
        self.watch(self)
        self.parked = True
        self._token = self.ctx.token
        self._seen = turn.durability.unsettled_shards() if self._acknowledged else []
        if connection.fetch_waits is None:
            connection.fetch_waits = {}
        connection.fetch_waits[id(self)] = self
        self._alarm = turn.waits.at(turn.env.clock.wait_ms() + self.max_wait_ms, self.expire)

    def poll(self) -> None:
        """A partition has new records, or records were given back, or a share partition was forgotten."""
        if not self.parked:
            return
        for _, partition, live in self.readable:
            if live.gone or partition.closed:
                self._wake(self._reopened())
                return
        self.limits = self.share.limits(self.group_id)
        found = self.find(self.min_bytes)
        if found is not None:
            self._wake(found)

    def expire(self, due_ms: int, now_ms: int) -> None:
        """max_wait_ms is over: answer with what there is."""
        if self.parked:
            self.limits = self.share.limits(self.group_id)
            self._wake(self.find(0) or {} if self._refusal is None else {})

    def cancel(self) -> None:
        """The connection is closed."""
        if self.parked:
            self._unpark()

    def _reopened(self) -> Found:
        """What there is to read after share partitions were forgotten: they are made again, or have an error."""
        self.unwatch(self)
        self.limits = self.share.limits(self.group_id)
        self.open()
        return self.find(0) or {}

    def _wake(self, found: Found) -> None:
        self._unpark()
        waiting, token, refusal = self.view.parked, self._token, self._refusal
        if refusal is not None:
            waiting.answer(token, self.responder.refuse(refusal.code, refusal.message), *self._seen)
            return
        response = self._response(found)
        parked = waiting.find(token) if self.responder.is_clean else None
        if parked is None or parked.merge is not None:
            waiting.answer(token, response, *self._seen)
            return
        reply = encode_reply(
            parked.route, parked.api_version, parked.correlation_id, response, self.responder.records_bytes
        )
        waiting.fill(token, reply, *self._seen)

    def _unpark(self) -> None:
        self.parked = False
        self.view.turn.waits.cancel(self._alarm)
        self.unwatch(self)
        self.ctx.connection.fetch_waits.pop(id(self), None)

    def _response(self, found: Found) -> ShareFetchResponse:
        session, responder = self.session, self.responder
        if session is not None and session.epoch != self._epoch:  # a later request of the session has come
            return responder.refuse(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        taken, errors = self.take(found) if found else {}, self.errors
        if self.unloaded and taken:
            errors = {place: error for place, error in errors.items() if place not in self.unloaded}
        return responder.respond(
            session, self.limits.lock_ms, self.places, taken, errors, self.ready, self._acknowledged
        )


def _in_turn(places: list[PartitionKey], epoch: int) -> list[PartitionKey]:
    """The partitions, another one first each time."""
    if len(places) < 2:
        return places
    at = epoch % len(places)
    return places[at:] + places[:at]
