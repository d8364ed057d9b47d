"""One ShareFetch: acquires records now, or is parked until there are some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.base.context import Context
from broker.cluster.acls import READ, TOPIC
from broker.coordinator.share.acquire import BATCH_OPTIMIZED, Wish
from broker.coordinator.share.reader import Taken, peek, take
from broker.turn.decision import LATER, _Later
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_fetch import (
    ShareFetchableTopicResponse,
    ShareFetchResponse,
    ShareFetchResponseAcquiredRecords,
    ShareFetchResponseLeaderIdAndEpoch,
    ShareFetchResponseNodeEndpoint,
    ShareFetchResponsePartitionData,
)
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.coordinator.share.sessions import Place, ShareSession
    from broker.coordinator.share.table import Live
    from broker.partitions.partition import Partition
    from broker.turn.durability import FlushState
    from protocol.messages.share_fetch import ShareFetchRequest
    from storage.log.log import FileSlice

LEADER_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class Asked(NamedTuple):
    """What a ShareFetch asks for."""

    group_id: str
    member_id: str
    session_epoch: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    mode: int

    @classmethod
    def of(cls, request: ShareFetchRequest, group_id: str, member_id: str) -> Asked:
        """The fields of a request whose names are checked."""
        return cls(
            group_id,
            member_id,
            request.share_session_epoch,
            request.min_bytes,
            request.max_bytes,
            request.max_records,
            request.batch_size,
            request.share_acquire_mode,
        )


class Readable(NamedTuple):
    """A partition that may be read, and its share partition."""

    place: Place
    partition: Partition
    live: Live


class ShareFetchWait:
    """One ShareFetch, parked if it has to wait.

    While it is parked, its partitions and share partitions poll it, its connection holds it in `fetch_waits`, and it
    has a deadline.
    """

    __slots__ = (
        "_acknowledged",
        "_alarm",
        "_asked",
        "_broker",
        "_committed",
        "_ctx",
        "_epoch",
        "_errors",
        "_is_usual",
        "_places",
        "_readable",
        "_ready",
        "_refusal",
        "_seen",
        "_session",
        "parked",
    )

    def __init__(
        self,
        broker: Any,
        ctx: Context,
        asked: Asked,
        places: Sequence[Place],
        session: ShareSession | None,
        acknowledged: Mapping[Place, KafkaError | None],
    ) -> None:
        """`session`: one that goes on with this request. `acknowledged`: what came of the acknowledgements with it."""
        self._broker = broker
        self._ctx = ctx
        self._asked = asked
        self._places = places
        self._session = session
        self._epoch = 0 if session is None else session.epoch  # of the session after this request
        self._acknowledged = acknowledged
        self._committed = broker.share.value(asked.group_id, "share.isolation.level") == "read_committed"
        self._readable: list[Readable] = []
        self._ready: set[Place] = set()  # from which something could be acquired at the last look
        self._errors: dict[Place, KafkaError] = {}
        self._seen: list[FlushState] = []  # the logs of shards that the acknowledgements may have written
        self._refusal: KafkaError | None = None
        self._alarm = 0
        self.parked = False
        self._is_usual = False  # whether a shortcut may answer it

    # ---------------------------------------------------------------- waiting

    def first_answer(self, max_wait_ms: int) -> ShareFetchResponse | None:
        """The response, if it can be made now. None: the request is parked."""
        asked = self._asked
        self._open()
        reads = bool(self._readable) and asked.max_records > 0 and asked.max_bytes > 0
        found = self._find(enough=asked.min_bytes) if reads else {}
        if not reads or found is not None or max_wait_ms <= 0:
            return self._answer(found or (self._find(enough=0) if reads else {}) or {})
        self._park(max_wait_ms)
        return None

    def refuse_later(self, error: KafkaError, max_wait_ms: int) -> _Later:
        """Refuse the request when its wait is over: else a client without a session would ask again at once."""
        self._refusal = error
        self._park(max_wait_ms)
        return LATER

    def _park(self, max_wait_ms: int) -> None:
        turn, connection = self._broker.turn, self._ctx.connection
        for _, partition, live in self._readable:
            partition.watch(self, committed=self._committed)
            live.waiters[self] = None
        self.parked = True
        self._is_usual = (
            self._broker.share.wake is not None
            and len(self._readable) == len(self._places) == 1
            and not self._committed
            and self._asked.mode == BATCH_OPTIMIZED
            and all(place == self._places[0] and error is None for place, error in self._acknowledged.items())
        )
        if self._acknowledged:
            self._seen = turn.durability.unsettled_shards()
        if connection.fetch_waits is None:
            connection.fetch_waits = {}
        connection.fetch_waits[id(self)] = self
        self._alarm = turn.timers.at(turn.steady_ms + max_wait_ms, self.expire)

    def poll(self) -> None:
        """A partition has new records, or records were given back, or a share partition was forgotten."""
        if not self.parked:
            return
        if any(live.gone or partition.closed for _, partition, live in self._readable):
            self._wake(self._reopened())
            return
        if self._is_usual and self._answer_quickly():
            return
        found = self._find(enough=self._asked.min_bytes)
        if found is not None:
            self._wake(found)

    def _answer_quickly(self) -> bool:
        """Answer by the shortcut. False: nothing has changed."""
        share, session, token = self._broker.share, self._session, self._ctx.token
        parked = self._broker.parked.find(token)
        if session is None or session.epoch != self._epoch or parked is None:
            return False
        reply = share.wake(parked, self._asked, session, self._readable[0])
        if reply is None:
            return False
        self._unpark()
        share.settle(self._readable[0].live)
        self._broker.parked.fill(token, reply, *self._seen)
        return True

    def look_again(self) -> ShareFetchResponse | None:
        """The response of a request that is about to be parked, if it can be made now after all."""
        found = self._find(enough=self._asked.min_bytes)
        if found is None:
            return None
        self._unpark()
        return self._answer(found)

    def expire(self, due_ms: int, now_ms: int) -> None:
        """max_wait_ms is over: answer with what there is."""
        if self.parked:
            self._wake(self._find(enough=0) or {} if self._refusal is None else {})

    def cancel(self) -> None:
        """The connection is closed."""
        if self.parked:
            self._unpark()

    def _reopened(self) -> dict[Place, FileSlice]:
        """What there is to read after share partitions were forgotten: they are made again, or have an error."""
        for _, partition, live in self._readable:
            partition.unwatch(self)
            live.waiters.pop(self, None)
        self._open()
        return self._find(enough=0) or {}

    def _wake(self, found: Mapping[Place, FileSlice]) -> None:
        self._unpark()
        if self._refusal is not None:
            response = ShareFetchResponse(error_code=self._refusal.code, error_message=self._refusal.message)
        else:
            response = self._answer(found)
        self._broker.parked.answer(self._ctx.token, response, *self._seen)

    def _unpark(self) -> None:
        self.parked = False
        self._broker.turn.timers.cancel(self._alarm)
        for _, partition, live in self._readable:
            partition.unwatch(self)
            live.waiters.pop(self, None)
        self._ctx.connection.fetch_waits.pop(id(self), None)

    # ---------------------------------------------------------------- reading

    def _open(self) -> None:
        """Find the partitions and their share partitions; what cannot be read has an error."""
        broker, self._readable, self._errors = self._broker, [], {}
        denied = self._denied() if self._ctx.access is not None else ()
        for place in self._places:
            try:
                if place[0] in denied:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                topic = broker.share.metadata.topics_by_id.get(place[0])
                if topic is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
                if not 0 <= place[1] < len(topic.partitions):
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                if topic.partitions[place[1]].leader != self._ctx.node_id:
                    raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                live = broker.share.get(self._asked.group_id, topic, place[1])
                partition = broker.partitions.get(topic, place[1])
                if partition.info is not topic.partitions[place[1]]:
                    partition.configure(topic, broker.partitions.metadata)
            except KafkaError as error:
                # Kafka's brokers try five times before they answer that the state cannot be read; by their own code for
                # it Java's consumer fails, with "Unexpected error code 15", and after this one it asks again
                is_unread = error.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
                self._errors[place] = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) if is_unread else error
            except (StorageError, OSError):
                self._errors[place] = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
            else:
                self._readable.append(Readable(place, partition, live))

    def _denied(self) -> set[bytes]:
        """The topics that the client may not read, or not any more. A session has them from earlier requests."""
        topics = self._broker.share.metadata.topics_by_id
        names = {place[0]: topics[place[0]].name for place in self._places if place[0] in topics}
        allowed = self._ctx.access.allowed(READ, TOPIC, names.values())
        return {each for each, name in names.items() if name not in allowed}

    def _find(self, *, enough: int) -> dict[Place, FileSlice] | None:
        """What could be acquired, by partition; None: that is less than `enough` bytes."""
        broker, asked = self._broker, self._asked
        limits = broker.share.limits(asked.group_id)
        ready = [each for each in self._readable if each.live.state.can_acquire(limits)]
        self._ready = {each.place for each in ready}
        if not ready:
            return None
        left = min(asked.max_bytes, broker.config.fetch_max_bytes)
        enough = min(enough, left)
        share = left // len(ready)
        found: dict[Place, FileSlice] = {}
        size = 0
        for place, partition, live in ready:
            try:
                part = peek(partition, live.state, min(share, left), committed=self._committed, min_one=not found)
            except (StorageError, OSError, KafkaError):
                self._errors[place] = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
                enough = 0
                continue
            if part is not None:
                found[place] = part
                size += len(part)
                left = max(0, left - len(part))
        return None if size < enough else found

    def _take(self, found: Mapping[Place, FileSlice]) -> dict[Place, Taken]:
        """Acquire of what was found, up to the limit of records of the whole request."""
        broker, asked = self._broker, self._asked
        limits = broker.share.limits(asked.group_id)
        left, taken = asked.max_records, {}
        deadline_ms = broker.turn.steady_ms + limits.lock_ms
        changed = []
        for place, partition, live in self._readable:
            part = found.get(place)
            if part is None or left <= 0:
                continue
            wish = Wish(asked.member_id, deadline_ms, left, asked.batch_size, asked.mode)
            try:
                got = take(partition, live.state, limits, wish, part, committed=self._committed)
            except (StorageError, OSError):
                self._errors[place] = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
                continue
            changed.append(live)
            if got.acquired:
                taken[place] = got
                left -= got.total
        for live in changed:
            broker.share.settle(live)
        return taken

    # ---------------------------------------------------------------- answering

    def _answer(self, found: Mapping[Place, FileSlice]) -> ShareFetchResponse:
        session, asked = self._session, self._asked
        if session is not None and session.epoch != self._epoch:  # a later request of the session has come
            return ShareFetchResponse(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        taken = self._take(found)
        answers: dict[Place, ShareFetchResponsePartitionData] = {}
        endpoints: dict[int, ShareFetchResponseNodeEndpoint] = {}
        for place in sorted(self._places):  # not in turn: that order would bring the same one to the front again
            got, error = taken.get(place), self._errors.get(place)
            if got is None and error is None and place not in self._ready:
                continue
            if session is not None and not session.must_answer(
                place, has_records=got is not None, has_error=error is not None
            ):
                continue
            answers[place] = self._partition(place, got, error, endpoints)
        for place, refused in self._acknowledged.items():
            answer = answers.get(place)
            if answer is None:
                answer = answers[place] = ShareFetchResponsePartitionData(partition_index=place[1], records=b"")
            if refused is not None:
                answer.acknowledge_error_code, answer.acknowledge_error_message = refused.code, refused.message
        topics: dict[bytes, ShareFetchableTopicResponse] = {}
        for (topic_id, _), answer in answers.items():
            topics.setdefault(topic_id, ShareFetchableTopicResponse(topic_id=topic_id)).partitions.append(answer)
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=self._broker.share.limits(asked.group_id).lock_ms,
            responses=list(topics.values()),
            node_endpoints=list(endpoints.values()),
        )

    def _partition(
        self,
        place: Place,
        got: Taken | None,
        error: KafkaError | None,
        endpoints: dict[int, ShareFetchResponseNodeEndpoint],
    ) -> ShareFetchResponsePartitionData:
        answer = ShareFetchResponsePartitionData(partition_index=place[1], records=b"")
        if got is not None:
            answer.records = got.records
            answer.acquired_records = [
                ShareFetchResponseAcquiredRecords(
                    first_offset=each.first, last_offset=each.last, delivery_count=each.delivery_count
                )
                for each in got.acquired
            ]
        elif error is not None:
            answer.error_code = error.code
            if error.code in LEADER_ERRORS:
                leader, found = name_leader(self._broker, self._ctx, place)
                answer.current_leader = ShareFetchResponseLeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
                if found is not None:
                    endpoints[leader[0]] = ShareFetchResponseNodeEndpoint(
                        node_id=leader[0], host=found[0], port=found[1]
                    )
        return answer


def name_leader(broker: Any, ctx: Context, place: Place) -> tuple[tuple[int, int], tuple[str, int] | None]:
    """(id, epoch) of a partition's leader, and its host and port if the client can reach it."""
    info = broker.share.metadata.topics_by_id[place[0]].partitions[place[1]]
    host, port = broker.nodes.endpoint(info.leader, ctx)
    return (info.leader, info.leader_epoch), (host, port) if port >= 0 else None
