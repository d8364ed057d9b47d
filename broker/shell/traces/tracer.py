"""Makes a span of each request, from what connections receive and send; a watcher of connections, as the journal is.

    name        the API: Produce, Fetch, OffsetCommit, ...
    times       from the turn that served the request to the reply's write, by the machine's clock
    parent      of a Produce: the first `traceparent` in the headers of its records; more of them are links
    links       of a Fetch or ShareFetch: the spans of the Produces whose batches it returns
    attributes  API key and version, client id, correlation id, principal, address, topics, errors

Everything is bounded: MOST_OPEN requests that wait for a reply, MOST_PLACES batches whose spans are known, and the
lists of a span (contexts.py).
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from broker.shell.traces import contexts
from protocol.api import ApiKey, api_label

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from broker.broker import Broker
    from broker.wire.connection import Connection
    from broker.wire.reply_stream import Reply

MOST_OPEN: Final = 10_000  # spans of a connection that wait for their reply
MOST_PLACES: Final = 10_000
_HEAD: Final = Struct(">ihhi")  # size, API key, version, correlation id
_FETCHES: Final = (ApiKey.FETCH, ApiKey.SHARE_FETCH)
_PROPAGATOR: Final = TraceContextTextMapPropagator()


class _Open:
    """A request that was not answered yet."""

    __slots__ = ("api_key", "correlation_id", "span", "version")

    def __init__(self, api_key: int, version: int, correlation_id: int, span: Span) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.span = span


class RequestTracer:
    """Traces the requests of one broker. `now_ns`: Unix nanoseconds."""

    def __init__(self, tracer: Tracer, topic_name: contexts.TopicName, now_ns: Callable[[], int]) -> None:
        self._tracer = tracer
        self._topic_name = topic_name
        self._now_ns = now_ns
        self._began_ns = now_ns()
        self._open: dict[Connection, deque[_Open]] = {}
        self._producers: OrderedDict[contexts.BatchKey, SpanContext] = OrderedDict()

    def begin(self) -> None:
        """A turn begins."""
        self._began_ns = self._now_ns()

    # -- what connections receive

    def took(self, connection: Connection, data: bytes, stop: int) -> None:
        """A connection has received whole frames: data[:stop]."""
        waiting = self._open.setdefault(connection, deque())
        position = 0
        while position < stop:
            size, api_key, version, correlation_id = _HEAD.unpack_from(data, position)
            if len(waiting) < MOST_OPEN:
                frame = data[position + 4 : position + 4 + size]
                span = self._begin(connection, frame, api_key, version, correlation_id)
                waiting.append(_Open(api_key, version, correlation_id, span))
            position += 4 + size

    def _begin(self, connection: Connection, frame: bytes, api_key: int, version: int, correlation_id: int) -> Span:
        client_id, request = contexts.request_of(frame, api_key, version)
        parents = [_PROPAGATOR.extract({"traceparent": each}) for each in contexts.parents_of(request)]
        made = [_span_context(each) for each in parents]
        valid = [each for each in made if each.is_valid]
        context = next((each for each, one in zip(parents, made, strict=True) if one.is_valid), None)
        attributes: dict[str, Any] = {
            "messaging.system": "kafka",
            "messaging.client.id": client_id,
            "network.peer.address": connection.host.removeprefix("/"),
            "enduser.id": connection.principal,
            "kafka.api.key": api_key,
            "kafka.api.version": version,
            "kafka.correlation_id": correlation_id,
            "kafka.broker.id": connection.node_id,
        }
        if request is not None and (topics := contexts.topics_of(request, self._topic_name)):
            attributes["kafka.topics"] = topics
            if len(topics) == 1:
                attributes["messaging.destination.name"] = topics[0]
        return self._tracer.start_span(
            api_label(api_key),
            context=context,
            kind=SpanKind.SERVER,
            attributes=attributes,
            links=[Link(each) for each in valid[1 : contexts.MOST_NAMES]],
            start_time=self._began_ns,
        )

    # -- what they send

    def sent(self, connection: Connection, data: bytes) -> None:
        """A connection sends whole replies."""
        position = 0
        while position < len(data):
            size = 4 + int.from_bytes(data[position : position + 4], "big")
            self._answered(connection, data[position : position + size])
            position += size

    def sent_in_parts(self, connection: Connection, replies: list[Reply]) -> None:
        """A connection sends replies, slices of files among them."""
        for reply in replies:
            if isinstance(reply, bytes):
                self.sent(connection, reply)
            elif reply:
                self._answered(connection, contexts.whole(reply))

    def _answered(self, connection: Connection, frame: bytes) -> None:
        waiting = self._open.get(connection)
        correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
        if not waiting or not any(each.correlation_id == correlation_id for each in waiting):
            return
        while (found := waiting.popleft()).correlation_id != correlation_id:
            found.span.end(self._now_ns())  # a request without a reply, as acks=0
        response = contexts.response_of(frame[4:], found.api_key, found.version)
        span = found.span
        if errors := contexts.errors_of(response):
            span.set_attribute("kafka.errors", errors)
            span.set_attribute("error.type", errors[0])
            span.set_status(Status(StatusCode.ERROR, ", ".join(errors)))
        if found.api_key == ApiKey.PRODUCE:
            for place in contexts.appended(response, self._topic_name):
                self._producers[place] = span.get_span_context()
                if len(self._producers) > MOST_PLACES:
                    self._producers.popitem(last=False)
        elif found.api_key in _FETCHES:
            for context in self._producers_of(response):
                span.add_link(context)
        span.end(self._now_ns())

    def _producers_of(self, response: Any) -> list[SpanContext]:
        places = contexts.delivered(response, self._topic_name)
        found = {each.span_id: each for place in places if (each := self._producers.get(place)) is not None}
        return list(found.values())[: contexts.MOST_NAMES]

    def disconnected(self, connection: Connection) -> None:
        """End what will not be answered any more."""
        for each in self._open.pop(connection, ()):
            each.span.end(self._now_ns())


def _span_context(context: Any) -> SpanContext:
    return get_current_span(context).get_span_context()


def trace(broker: Broker, tracer: Tracer) -> None:
    """Trace the requests of a broker from now on."""

    def topic_name(topic_id: bytes) -> str:
        topic = broker.topics_by_id.get(topic_id)
        return "" if topic is None else topic.name

    made = RequestTracer(tracer, topic_name, time.time_ns)
    metrics = broker.turn.metrics
    broker.measure()
    measured = metrics.turn_begins

    def begin() -> None:
        made.begin()
        if measured is not None:
            measured()

    metrics.turn_begins = begin
    broker.clients.watch(made)
