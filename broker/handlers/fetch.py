"""Fetch: answer record batches below the high watermark, at once or when there are enough bytes.

Fetch  v5: LogStartOffset. v7: sessions (KIP-227). v9: leader epoch checks (KIP-320). v12: diverging epochs (KIP-595).
       v13: topic ids (KIP-516). v15: ReplicaState (KIP-903). v16: CurrentLeader and NodeEndpoints (KIP-951).

Behaviour: whole batches, in request order, up to the size limits; the first batch of a response is whole even if it is
           larger. Without enough bytes the request is parked for up to max_wait_ms; an error of a partition is answered
           at once. Records are slices of segment files; the connection reads them.
Differs:   a Fetch of committed records names the aborted transactions that overlap the records it returns. Kafka goes
           by its sparse index, and names later ones too.
Absent:    fetches by followers (a log has one copy); preferred read replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from broker.cluster.acls import READ, TOPIC
from broker.partitions.fetch_read import (
    FENCED,
    NO_EPOCH,
    NOT_LEADER,
    READ_COMMITTED,
    UNKNOWN,
    FetchReader,
    Found,
    check_isolation_level,
)
from broker.partitions.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    FetchSessions,
    Key,
    Wanted,
    next_epoch,
)
from broker.turn.decision import LATER, Decision
from protocol.errors import ErrorCode
from protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    PartitionData,
)

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.nodes import Nodes
    from broker.config.settings import BrokerConfig
    from broker.partitions.fetch_session import FetchSessions
    from broker.partitions.partition import Partition
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection
    from broker.wire.parked import ParkedRequests

TOPIC_IDS_SINCE: Final = 13
DENIED: Final = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
NO_WAIT: Final = UNKNOWN | {DENIED}  # errors that do not count when a Fetch decides whether to wait
LEADER_SINCE: Final = 16


class View(Protocol):
    """What these handlers use of the broker."""

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


def fetch(broker: View, ctx: Context, request: FetchRequest) -> Decision:
    """Answer now, or LATER: the FetchWait answers later.

    Errors:  the whole request: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR;
             INVALID_REQUEST: an unknown isolation level (Kafka: UNKNOWN_SERVER_ERROR).
             a partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID, NOT_LEADER_OR_FOLLOWER,
             FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR.
    Source:  Kafka's FetchManager.newContext, ReplicaManager.fetchMessages, DelayedFetch.
    """
    wanted: dict[Key, Wanted] = {}
    by_id = ctx.api_version >= TOPIC_IDS_SINCE
    for topic in request.topics:
        name, topic_id = topic.topic, topic.topic_id
        for p in topic.partitions:
            wanted[topic_id if by_id else name, p.partition] = Wanted(
                name,
                topic_id,
                p.partition,
                p.fetch_offset,
                p.partition_max_bytes,
                max(p.current_leader_epoch, NO_EPOCH),  # any negative epoch means none
                p.last_fetched_epoch,
            )
    session: FetchSession | None = None
    sessions, epoch = sessions_of(broker), request.session_epoch
    if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if sessions.find(request.session_id, ctx.node_id) is not None:
            sessions.remove(request.session_id)
    else:
        session = sessions.find(request.session_id, ctx.node_id)
        if session is None:
            return Decision(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
        if session.epoch != epoch:
            return Decision(FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH))
        if session.uses_topic_ids != by_id:
            return Decision(FetchResponse(error_code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR))
        session.update(
            wanted,
            [
                (forgotten.topic_id if by_id else forgotten.topic, index)
                for forgotten in request.forgotten_topics_data
                for index in forgotten.partitions
            ],
        )
        if session.wanted:
            sessions.touch(session, broker.turn.steady_ms)
            session.epoch = epoch = next_epoch(epoch)
            wanted = session.wanted
        else:
            sessions.remove(session.session_id)
            session = None
            epoch = FINAL_EPOCH
    wait = FetchWait(broker, ctx, request, wanted, session, epoch)
    response = wait.first_answer(request.max_wait_ms)
    return Decision(LATER if response is None else response)


def sessions_of(broker: View) -> FetchSessions:
    """The broker's cache of sessions."""
    return broker.fetch_sessions


class FetchWait:
    """One Fetch, parked if it has to wait.

    While it is parked, its partitions poll it, its connection holds it in `fetch_waits`, and it has a deadline.
    """

    __slots__ = (
        "_alarm",
        "_broker",
        "_by_id",
        "_ctx",
        "_denied",
        "_epoch",
        "_is_follower",
        "_isolation_level",
        "_min_bytes",
        "_missing_bytes",
        "_read_committed",
        "_reader",
        "_session",
        "_size_when_parked",
        "_wanted",
        "_watched",
        "parked",
    )

    def __init__(
        self,
        broker: View,
        ctx: Context,
        request: FetchRequest,
        wanted: dict[Key, Wanted],
        session: FetchSession | None,
        epoch: int,
    ) -> None:
        self._broker = broker
        self._ctx = ctx
        self._wanted = wanted
        self._denied = _denied(broker, ctx, wanted) if ctx.access is not None else None
        self._session = session
        self._epoch = epoch  # of the session after this request; INITIAL_EPOCH: the response begins a session
        self._by_id = ctx.api_version >= TOPIC_IDS_SINCE
        self._isolation_level = request.isolation_level
        replica_id = request.replica_id if request.replica_state is None else request.replica_state.replica_id
        self._is_follower = replica_id >= 0
        self._read_committed = request.isolation_level == READ_COMMITTED
        max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
        self._min_bytes = min(request.min_bytes, max_bytes)
        self._reader = FetchReader(
            broker.partitions,
            ctx.node_id,
            ctx.api_version,
            by_id=self._by_id,
            read_committed=self._read_committed,
            max_bytes=max_bytes,
            replica_id=replica_id,
        )
        self._watched: list[tuple[Partition, Wanted]] = []
        self._missing_bytes = 0
        self._size_when_parked = 0
        self._alarm = 0  # the number of its timer
        self.parked = False

    # ---------------------------------------------------------------- waiting

    def first_answer(self, max_wait_ms: int) -> FetchResponse | None:
        """The response, if it can be answered now. None: it is parked."""
        found, size, failed = self._read()
        known = [f for f in found if f.error_code not in NO_WAIT]
        if known:
            check_isolation_level(self._isolation_level)
        if max_wait_ms <= 0 or size >= self._min_bytes or failed or not known:
            return self._answer(found)
        self._watched = [(f.partition, f.wanted) for f in known if f.partition is not None]
        self._missing_bytes = self._min_bytes - size
        self._size_when_parked = sum(partition.log.size_bytes for partition, _ in self._watched)
        if any(partition.high_watermark < partition.log.end_offset for partition, _ in self._watched):
            self._missing_bytes = 0  # what the logs hold already is still to become readable
        for partition, _ in self._watched:
            partition.watch(self, committed=self._read_committed)
        self.parked = True
        ctx = self._ctx
        connection: Connection = ctx.connection
        if connection.fetch_waits is None:
            connection.fetch_waits = {}
        connection.fetch_waits[id(self)] = self
        self._alarm = self._broker.turn.timers.at(self._broker.turn.steady_ms + max_wait_ms, self.expire)
        return None

    def _read(self) -> tuple[list[Found], int, bool]:
        """What there is to read, and the errors of what the client may not read."""
        if not self._denied:
            return self._reader.read(self._wanted.values())
        denied = self._denied
        found, size, failed = self._reader.read([each for key, each in self._wanted.items() if key not in denied])
        return [*found, *(Found(each, DENIED) for key, each in self._wanted.items() if key in denied)], size, failed

    def poll(self) -> None:
        """A partition has new records or was closed: answer if there are enough bytes."""
        if not self.parked:
            return
        node_id = self._ctx.node_id
        fresh = False
        for partition, wanted in self._watched:
            if partition.closed or partition.info.leader != node_id:
                self._wake(self._read()[0])
                return
            if partition.high_watermark != wanted.fetch_offset:
                fresh = True
                break
        if not fresh:
            return
        if self._min_bytes > 1 and not self._read_committed:  # no read before enough bytes can have arrived
            logs_size = sum(partition.log.size_bytes for partition, _ in self._watched)
            if logs_size - self._size_when_parked < self._missing_bytes:
                return
        found, size, failed = self._read()
        if size >= self._min_bytes or failed:
            self._wake(found)

    def expire(self, due_ms: int, now_ms: int) -> None:
        """max_wait_ms is over: answer with the present records."""
        if self.parked:
            self._wake(self._read()[0])

    def cancel(self) -> None:
        """The connection is closed."""
        if self.parked:
            self._unpark()

    def _wake(self, found: list[Found]) -> None:
        self._unpark()
        self._broker.parked.answer(self._ctx.token, self._answer(found))

    def _unpark(self) -> None:
        self.parked = False
        self._broker.turn.timers.cancel(self._alarm)
        for partition, _ in self._watched:
            partition.unwatch(self)
        self._watched = []
        self._ctx.connection.fetch_waits.pop(id(self), None)

    # ---------------------------------------------------------------- answering

    def _answer(self, found: list[Found]) -> FetchResponse:
        session = self._session
        if session is not None and session.epoch != self._epoch:  # a later Fetch of the session has come
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
        topics: list[FetchableTopicResponse] = []
        endpoints: dict[int, FetchResponseNodeEndpoint] = {}
        last: FetchableTopicResponse | None = None
        for f in found:
            wanted, partition = f.wanted, f.partition
            if partition is None:
                answer = PartitionData(
                    partition_index=wanted.partition, error_code=f.error_code, high_watermark=-1, records=b""
                )
                if f.error_code not in NO_WAIT:
                    answer.aborted_transactions = None
                if f.error_code in (NOT_LEADER, FENCED) and self._ctx.api_version >= LEADER_SINCE:
                    self._name_leader(answer, wanted, endpoints)
            else:
                answer = PartitionData(
                    partition_index=wanted.partition,
                    high_watermark=partition.high_watermark,
                    last_stable_offset=partition.last_stable_offset,
                    log_start_offset=partition.log.log_start_offset,
                    aborted_transactions=self._aborted(f),
                    records=b"" if f.records is None else f.records,
                )
                if f.diverging is not None:
                    answer.diverging_epoch = FetchResponseEpochEndOffset(
                        epoch=f.diverging[0], end_offset=f.diverging[1]
                    )
            if session is not None:
                if not _is_news(f, answer):
                    continue
                if f.records is not None:
                    session.serve_last((wanted.topic_id if self._by_id else wanted.topic, wanted.partition))
            wanted.high_watermark = answer.high_watermark
            wanted.log_start_offset = answer.log_start_offset
            if last is None or last.topic_id != wanted.topic_id or last.topic != wanted.topic:
                last = FetchableTopicResponse(topic=wanted.topic, topic_id=wanted.topic_id)
                topics.append(last)
            last.partitions.append(answer)
        session_id = NO_SESSION
        if session is not None:
            session_id = session.session_id
        elif self._epoch == INITIAL_EPOCH:
            ctx = self._ctx
            session_id = sessions_of(self._broker).create(
                self._wanted, self._by_id, self._broker.turn.steady_ms, ctx.rng, ctx.node_id
            )
        return FetchResponse(session_id=session_id, responses=topics, node_endpoints=list(endpoints.values()))

    def _aborted(self, found: Found) -> list[AbortedTransaction] | None:
        """As in Kafka, null where nothing was read although there is something: a diverging log, a batch too large."""
        partition = found.partition
        if not self._read_committed or found.diverging is not None or found.is_cut:
            return None
        if partition is None or found.records is None:
            return []
        return [
            AbortedTransaction(producer_id=producer_id, first_offset=offset)
            for producer_id, offset in partition.aborted_transactions(
                found.wanted.fetch_offset, found.records.end_offset
            )
        ]

    def _name_leader(
        self, answer: PartitionData, wanted: Wanted, endpoints: dict[int, FetchResponseNodeEndpoint]
    ) -> None:
        topic = self._reader.topic(wanted)
        assert not isinstance(topic, int)
        info = topic.partitions[wanted.partition]
        answer.current_leader = FetchResponseLeaderIdAndEpoch(leader_id=info.leader, leader_epoch=info.leader_epoch)
        if info.leader not in endpoints and not self._is_follower:  # a follower knows where the leader is
            host, port = self._broker.nodes.endpoint(info.leader, self._ctx)
            if port >= 0:
                endpoints[info.leader] = FetchResponseNodeEndpoint(node_id=info.leader, host=host, port=port)


def _denied(broker: View, ctx: Context, wanted: dict[Key, Wanted]) -> set[Key]:
    """The partitions that the client may not read. A topic that nobody knows by its id is the reader's to tell."""
    topics = broker.partitions.metadata.topics_by_id
    names: dict[Key, str] = {}
    for key, each in wanted.items():
        found = topics.get(each.topic_id) if ctx.api_version >= TOPIC_IDS_SINCE else None
        name = found.name if found is not None else each.topic
        if name:
            names[key] = name
    allowed = ctx.access.allowed(READ, TOPIC, names.values())
    return {key for key, name in names.items() if name not in allowed}


def _is_news(found: Found, answer: PartitionData) -> bool:
    """Whether an incremental response includes this partition. After an error it does: the high watermark was reset."""
    wanted = found.wanted
    return bool(
        found.records is not None
        or found.error_code
        or found.diverging is not None
        or wanted.high_watermark != answer.high_watermark
        or wanted.log_start_offset != answer.log_start_offset
    )
