"""The quotas in force: finds the one of a client, measures, and says how long the client is to wait.

    key                        measured                                         the answer
    producer_byte_rate         bytes of records in Produce                      throttle_time_ms
    consumer_byte_rate         bytes of records in answers to Fetch             throttle_time_ms and no records
    request_percentage         time in handlers; 100 is all of the loop         throttle_time_ms, of Fetch no records
    controller_mutation_rate   partitions made and deleted                      throttle_time_ms, and for newer versions
                                                                                89 for what is beyond the quota

A client that is to wait gets its answer at once, and is not read from until the time is over. The most specific entity
with the key counts: user and client id, then user, then client id, each before its default. Time is the cluster's.

Differs: the bytes of records are counted, not those of whole requests and responses.
Source:  KIP-13, KIP-124, KIP-219, KIP-257, KIP-599; Kafka's ClientQuotaManager and its kin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from broker.authorization.split import Merge, refuse_parts
from broker.partitions.fetch_session import INITIAL_EPOCH, NO_SESSION
from broker.security.principals import INTERNAL
from broker.turn.rate import Credits, Rate
from protocol.api import ApiKey
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.client_records import Entity
    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig
    from broker.partitions.fetch_session import FetchSessions
    from broker.turn.turn import Turn

PRODUCE, FETCH, REQUEST, MUTATION = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
USER, CLIENT = "user", "client-id"
STRICT_SINCE: Final = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}
EXEMPT: Final = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS)
MOST_MEASURES: Final = 10_000  # clients that are measured at a time


class ClientQuotas:
    """The quotas of one cluster."""

    def __init__(
        self,
        turn: Turn,
        config: BrokerConfig,
        metadata: Callable[[], ClusterMetadata],
        fetch_sessions: FetchSessions,
    ) -> None:
        self._turn = turn
        self._metadata = metadata
        self._fetch_sessions = fetch_sessions
        self._window = window_of(config)
        key = "controller.quota.window"
        self._mutation_window = (
            int(config.unknown.get(f"{key}.num", 11)),
            1000 * int(config.unknown.get(f"{key}.size.seconds", 1)),
        )
        self._rates: dict[tuple[str, Entity], Rate] = {}
        self._credits: dict[Entity, Credits] = {}
        self._muted: dict[Any, int] = {}  # connection -> until when, by the steady clock

    # -- which quota

    def find(self, key: str, user: str, client_id: str) -> tuple[float, Entity] | None:
        """The quota of a client, and whose measure it is: of the user, the client id, or both together."""
        quotas = self._metadata().clients.quotas
        for names in (
            ((CLIENT, client_id), (USER, user)),
            ((CLIENT, None), (USER, user)),
            ((USER, user),),
            ((CLIENT, client_id), (USER, None)),
            ((CLIENT, None), (USER, None)),
            ((USER, None),),
            ((CLIENT, client_id),),
            ((CLIENT, None),),
        ):
            limit = quotas.get(names, {}).get(key)
            if limit is not None:
                actual = {USER: user, CLIENT: client_id}
                return limit, tuple((kind, actual[kind]) for kind, _ in names)
        return None

    def _throttle_ms(self, key: str, ctx: Context, value: float) -> int:
        found = self.find(key, *_who(ctx))
        if found is None:
            return 0
        limit, entity = found
        rate = self._rates.get((key, entity))
        if rate is None:
            if len(self._rates) >= MOST_MEASURES:
                self._rates.clear()
            rate = self._rates[key, entity] = Rate(*self._window)
        now_ms = self._turn.steady_ms
        if value:
            rate.record(value, now_ms)
        throttle_ms = rate.throttle_ms(limit, now_ms)
        return min(throttle_ms, self._window[1]) if key == REQUEST else throttle_ms

    # -- before and after a handler

    def check(self, ctx: Context, request: Any) -> Merge | None:
        """Count what a request changes. Returns what measures the rest, and tells the client to wait."""
        if ctx.connection.principal is INTERNAL or ctx.api_key in EXEMPT:
            return None
        refused, mutation_ms = self._count_mutations(ctx, request)
        produced = _bytes_of_produce(request) if ctx.api_key == ApiKey.PRODUCE else 0

        def merge(response: Any) -> Any:
            response = response if refused is None else refused(response)
            throttle_ms = max(mutation_ms, self._throttle_ms(REQUEST, ctx, 0))
            if produced:
                throttle_ms = max(throttle_ms, self._throttle_ms(PRODUCE, ctx, produced))
            elif ctx.api_key == ApiKey.FETCH and response is not None:
                size = _bytes_of_fetch(response)
                throttle_ms = max(throttle_ms, self._throttle_ms(FETCH, ctx, size))
                if throttle_ms > 0:
                    self._unrecord(ctx, size)
                    self._empty(ctx, request, response)
            if throttle_ms > 0:
                if hasattr(response, "throttle_time_ms"):
                    response.throttle_time_ms = throttle_ms
                self._mute(ctx.connection, throttle_ms)
            return response

        return merge

    def took(self, ctx: Context, elapsed_us: int) -> None:
        """A handler took so long."""
        if ctx.connection.principal is not INTERNAL and ctx.api_key not in EXEMPT:
            self._throttle_ms(REQUEST, ctx, elapsed_us / 10_000)  # percent of a second

    def _unrecord(self, ctx: Context, size: int) -> None:
        """The records are not sent after all."""
        found = self.find(FETCH, *_who(ctx))
        if found is not None:
            self._rates[FETCH, found[1]].record(-size, self._turn.steady_ms)

    def _empty(self, ctx: Context, request: Any, response: Any) -> None:
        """Take all partitions out of an answer and out of what its session has sent. No session begins with it."""
        if request.session_epoch == INITIAL_EPOCH:
            self._fetch_sessions.remove(response.session_id)
            response.session_id = NO_SESSION
        session = self._fetch_sessions.find(response.session_id, ctx.node_id)
        if session is not None:
            session.take_back(
                (topic.topic_id if session.uses_topic_ids else topic.topic, each.partition_index)
                for topic in response.responses
                for each in topic.partitions
            )
        response.responses = []

    def _mute(self, connection: Any, throttle_ms: int) -> None:
        until_ms = self._turn.steady_ms + throttle_ms
        if connection.closed or until_ms <= self._muted.get(connection, 0):  # it waits longer for another answer
            return
        self._muted[connection] = until_ms
        connection.throttle(True)
        self._turn.timers.at(until_ms, lambda due_ms, now_ms: self._unmute(connection, until_ms))

    def _unmute(self, connection: Any, until_ms: int) -> None:
        if self._muted.get(connection) == until_ms:
            del self._muted[connection]
            connection.throttle(False)

    # -- changes of topics

    def _count_mutations(self, ctx: Context, request: Any) -> tuple[Merge | None, int]:
        """Take out what is beyond the quota, for versions that know the error. Returns the wait as well."""
        if ctx.api_key not in STRICT_SINCE or (found := self.find(MUTATION, *_who(ctx))) is None:
            return None, 0
        limit, entity = found
        if len(self._credits) >= MOST_MEASURES and entity not in self._credits:
            self._credits.clear()
        credits_ = self._credits.setdefault(entity, Credits(*self._mutation_window))
        credits_.refill(limit, self._turn.steady_ms)
        field, answered, sizes = self._mutations(ctx, request)
        kept, refused = [], []
        is_strict = ctx.api_version >= STRICT_SINCE[ApiKey(ctx.api_key)]
        for item, size in sizes:
            if is_strict and credits_.is_overdrawn:
                refused.append(item)
            else:
                credits_.take(size)
                kept.append(item)
        setattr(request, field, kept)
        text = "The throttling quota has been exceeded."
        code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        throttle_ms = credits_.throttle_ms() if refused or not is_strict else 0
        return refuse_parts(ctx, request, field, refused, answered, code, text), throttle_ms

    def _mutations(self, ctx: Context, request: Any) -> tuple[str, str, list[tuple[Any, int]]]:
        """The list in the request, that in the response, and how many partitions each item changes."""
        metadata = self._metadata()
        if ctx.api_key == ApiKey.CREATE_TOPICS:
            default = metadata.config.num_partitions
            sizes = [
                (topic, len(topic.assignments) or (topic.num_partitions if topic.num_partitions > 0 else default))
                for topic in request.topics
            ]
            return "topics", "topics", sizes
        if ctx.api_key == ApiKey.CREATE_PARTITIONS:
            known = metadata.topics
            return (
                "topics",
                "results",
                [
                    (t, max(0, t.count - len(known[t.name].partitions)) if t.name in known else 0)
                    for t in request.topics
                ],
            )
        if ctx.api_version < 6:
            return (
                "topic_names",
                "responses",
                [(n, len(metadata.topics[n].partitions) if n in metadata.topics else 0) for n in request.topic_names],
            )
        found = [(t, metadata.topics.get(t.name) or metadata.topics_by_id.get(t.topic_id)) for t in request.topics]
        return "topics", "responses", [(item, len(topic.partitions) if topic else 0) for item, topic in found]


def _who(ctx: Context) -> tuple[str, str]:
    return ctx.connection.principal.partition(":")[2], ctx.client_id


def window_of(config: BrokerConfig) -> tuple[int, int]:
    """How many windows a rate is over, and the milliseconds of one."""
    return _number(config, "quota.window.num"), 1000 * _number(config, "quota.window.size.seconds")


def _number(config: BrokerConfig, key: str) -> int:
    value = config.value(key)
    assert isinstance(value, int)
    return value


def _bytes_of_produce(request: Any) -> int:
    return sum(len(each.records or b"") for topic in request.topic_data for each in topic.partition_data)


def _bytes_of_fetch(response: Any) -> int:
    return sum(_size(each.records) for topic in response.responses for each in topic.partitions)


def _size(records: Any) -> int:
    return len(records) if records else 0
