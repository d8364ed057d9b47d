"""Fetch: answer record batches below the high watermark, at once or when there are enough bytes.

Fetch  v0-v3 (only with as.version below 4): message sets. v5: LogStartOffset. v7: sessions (KIP-227). v9: leader epoch
       checks (KIP-320). v12: diverging epochs (KIP-595). v13: topic ids (KIP-516). v15: ReplicaState (KIP-903). v16:
       CurrentLeader and NodeEndpoints (KIP-951).

Behaviour: whole batches, in request order, up to the size limits; the first batch of a response is whole even if it is
           larger. Without enough bytes the request is parked for up to max_wait_ms; an error of a partition is answered
           at once. Records are slices of segment files; the connection reads them.
Differs:   a Fetch of committed records names the aborted transactions that overlap the records it returns. Kafka goes
           by its sparse index, and names later ones too.
Absent:    fetches by followers (a log has one copy); preferred read replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.cluster.acls import READ, TOPIC
from broker.partitions.fetch_read import NO_EPOCH, READ_COMMITTED, FetchReader
from broker.partitions.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, Key, Wanted
from broker.requests.fetch_wait import Ask, View
from broker.requests.message_sets import FETCH_BATCHES_SINCE, MessageSetReader
from broker.requests.repeated import HotRequest
from broker.turn.decision import Decision
from broker.wire.route import encode_reply
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.shape import Shape

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.requests.kept import Kept
    from broker.wire.reply_stream import Reply

SESSIONS_SINCE: Final = 7
TOPIC_IDS_SINCE: Final = 13


class Fetch(HotRequest):
    """The rule, the general codec, and fetches of other offsets from the same partitions, with sessions or without."""

    REQUEST = Shape(FetchRequest, "session_epoch", "fetch_offset")
    REPLY = Shape(FetchResponse)
    HAS_TEMPLATE = False

    def __init__(self, broker: Any) -> None:
        super().__init__(broker)
        self._view: View = broker
        self._again = Decision(then=self._begin_again)  # the decision on a repeat; each is carried out before the next

    def decide(self, ask: Ask, ctx: Context) -> Decision:
        """Read at once, or when there is enough. The reply is a FetchResponse.

        Errors:  the whole request: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
                 FETCH_SESSION_TOPIC_ID_ERROR; INVALID_REQUEST: an unknown isolation level.
                 a partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID,
                 NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_OUT_OF_RANGE,
                 KAFKA_STORAGE_ERROR.
        Source:  Kafka's FetchManager.newContext, ReplicaManager.fetchMessages, DelayedFetch.
        """
        epoch = ask.session_epoch
        if ask.parked:  # what is kept for repeats serves one at a time
            return OTHERWISE
        session = None
        if epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            if ask.repeats and (epoch == INITIAL_EPOCH or ask.session_id):
                return OTHERWISE
        else:
            session = self._view.fetch_sessions.find(ask.session_id, ctx.node_id)
            if session is None:
                return Decision(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
            if session.epoch != epoch:
                return Decision(FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH))
            if session.uses_topic_ids != ask.reader.by_id:
                return Decision(FetchResponse(error_code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR))
        if ask.repeats:
            is_same = True
            if session is not None and (session is not ask.session or session.changes != ask.changes):
                is_same = ask.follow(session)
            if not is_same:
                return OTHERWISE
            decision = self._again
            decision.repeats = ask
            return decision
        ask.session = session
        if ctx.access is not None:
            ask.denied = self._denied(ask, ctx)
        return Decision(then=ask.begin, repeats=ask if ask.may_repeat() else None)

    def _begin_again(self) -> Any:
        ask: Ask = self._again.repeats
        self._again.repeats = None  # or the connection would be kept
        return ask.begin()

    def _denied(self, ask: Ask, ctx: Context) -> set[Key]:
        """The partitions that the client may not read. That an id is unknown is the reader's to tell."""
        topics = self._view.partitions.metadata.topics_by_id
        wanted = ask.named if ask.session is None else {**ask.session.wanted, **ask.named}
        names: dict[Key, str] = {}
        for key, each in wanted.items():
            found = topics.get(each.topic_id) if ask.reader.by_id else None
            name = found.name if found is not None else each.topic
            if name and key not in ask.forgotten:
                names[key] = name
        allowed = ctx.access.allowed(READ, TOPIC, names.values())
        return {key for key, name in names.items() if name not in allowed}

    def message(self, ctx: Context, request: FetchRequest) -> Decision:
        """See HotRequest."""
        view, version = self._view, ctx.api_version
        by_id = version >= TOPIC_IDS_SINCE
        named: dict[Key, Wanted] = {}
        count = 0
        for topic in request.topics:
            name, topic_id = topic.topic, topic.topic_id
            count += len(topic.partitions)
            for each in topic.partitions:
                named[topic_id if by_id else name, each.partition] = Wanted(
                    name,
                    topic_id,
                    each.partition,
                    each.fetch_offset,
                    each.partition_max_bytes,
                    max(each.current_leader_epoch, NO_EPOCH),  # any negative epoch means none
                    each.last_fetched_epoch,
                )
        reader = FetchReader(
            view.partitions,
            ctx.node_id,
            by_id=by_id,
            committed=request.isolation_level == READ_COMMITTED,
            max_bytes=min(request.max_bytes, view.config.fetch_max_bytes),
            replica_id=request.replica_id if request.replica_state is None else request.replica_state.replica_id,
        )
        if version < FETCH_BATCHES_SINCE:
            reader = MessageSetReader.of(reader, version)
        ask = Ask(view, ctx, request, named, reader)
        for forgotten in request.forgotten_topics_data:
            ask.forgotten += [
                (forgotten.topic_id if by_id else forgotten.topic, index) for index in forgotten.partitions
            ]
        decision = self.decide(ask, ctx)
        # one of them twice: the fields of a repeat would not be found by their places
        if count != len(named) or version < FETCH_BATCHES_SINCE:
            decision.repeats = None
        return decision

    def prepare(self, kept: Kept, decision: Decision) -> None:
        """Keep partitions that no session has: those of the first request may be in one now, or in a wait."""
        kept.ask = kept.ask.again()

    def fill(self, ask: Ask, fields: tuple[Any, ...], width: int) -> None:
        """See HotRequest. Before v7 there is no epoch. What is parked reads neither."""
        if ask.ctx.api_version >= SESSIONS_SINCE:
            ask.session_epoch, ask.offsets = fields[0], fields[2::2]
        else:
            ask.offsets = fields[::2]

    def write_reply(self, kept: Kept, reply: FetchResponse, correlation_id: int) -> Reply:
        """See HotRequest."""
        ask: Ask = kept.ask
        responder = ask.responder
        if not responder.is_clean:
            return None
        whole = encode_reply(self.route, ask.ctx.api_version, correlation_id, reply, ask.size)
        responder.forget_records()
        return whole


OTHERWISE: Final = Decision()  # the general codec serves it
