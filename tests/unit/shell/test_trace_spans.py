"""What becomes a span, seen in this process; and what it costs while there are no traces."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import fetch_request, produce_request
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from unit.coordinator.share.kit import ShareWorld

from broker.config.settings import ConfigError
from broker.shell.traces import address, contexts, tracer
from protocol.record_batch import build_batch

TRACE, PARENT, OTHER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "b7ad6b7169203331"


class Bench:
    """A broker whose spans are kept here."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        tracer.trace(world.broker, provider.get_tracer("test"))

    def spans(self, name: str) -> list[Any]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]


@pytest.fixture
def bench() -> Bench:
    world = World("os")
    made = Bench(world)
    make_topic(Client(world), "t", 2)
    return made


def traceparent(span_id: str = PARENT) -> tuple[str, bytes]:
    return "traceparent", f"00-{TRACE}-{span_id}-01".encode()


def produce_of(*records: Any, acks: int = 1, compression: int = 0) -> Any:
    request = produce_request("t", 0, b"x", acks=acks)
    request.topic_data[0].partition_data[0].records = build_batch(list(records), timestamp_ms=1, attributes=compression)
    return request


def test_span_is_named_after_the_api_and_says_what_the_journal_says(bench):
    client = Client(bench.world)
    client.connection.principal = "User:alice"
    client.call(produce_request("t", 0, b"x"), 9)
    (span,) = bench.spans("Produce")
    assert dict(span.attributes) == {
        "messaging.system": "kafka",
        "messaging.client.id": "client",
        "messaging.destination.name": "t",
        "network.peer.address": "127.0.0.1",
        "enduser.id": "User:alice",
        "kafka.api.key": 0,
        "kafka.api.version": 9,
        "kafka.correlation_id": 1,
        "kafka.broker.id": 1,
        "kafka.topics": ("t",),
    }


def test_first_traceparent_is_the_parent_and_others_are_links(bench):
    headers = [[], [traceparent()], [traceparent()], [traceparent(OTHER)]]
    client = Client(bench.world)
    for compression in (0, 4):  # none, zstd
        client.call(produce_of(*[(b"k", b"v", each) for each in headers], compression=compression), 9)
        span = bench.spans("Produce")[-1]
        assert f"{span.context.trace_id:x}" == TRACE
        assert f"{span.parent.span_id:016x}" == PARENT
        assert [f"{link.context.span_id:016x}" for link in span.links] == [OTHER]


def test_fetch_is_linked_to_each_produce_that_it_returns(bench):
    client = Client(bench.world)
    for _ in range(3):
        client.call(produce_request("t", 0, b"x" * 100), 9)
    client.call(produce_request("t", 1, b"x" * 100), 9)
    spans = [span.context.span_id for span in bench.spans("Produce")]
    for offset, wanted in ((0, spans[:3]), (2, spans[2:3]), (3, [])):
        client.call(fetch_request("t", 0, offset), 12)
        assert [link.context.span_id for link in bench.spans("Fetch")[-1].links] == wanted


def test_fetch_that_is_sent_as_slices_of_files_is_linked_up_to_a_megabyte(bench):
    client = Client(bench.world)
    for _ in range(2):
        client.call(produce_request("t", 0, b"x" * 400_000), 9)
    client.call(fetch_request("t", 0, 0, max_bytes=10 << 20), 12)
    assert len(bench.spans("Fetch")[-1].links) == 2
    client.call(produce_request("t", 0, b"x" * 400_000), 9)
    client.call(fetch_request("t", 0, 0, max_bytes=10 << 20), 12)
    assert not bench.spans("Fetch")[-1].links


def test_large_slices_of_files_are_not_read():
    class Large:
        def __len__(self) -> int:
            return contexts.MOST_BYTES

        def pread(self, n: int, at: int) -> bytes:
            raise AssertionError("read")

    parts: Any = [b"head", Large()]
    assert contexts.whole(parts) == b"head"


def test_share_fetch_is_linked_as_well():
    with ShareWorld() as world:
        bench = Bench(world.world)
        world.produce(2)
        assert world.reader().acquired() == [(0, 1, 1)]
        assert [link.context for link in bench.spans("ShareFetch")[-1].links] == [bench.spans("Produce")[0].context]


def test_request_without_a_reply_has_a_span(bench):
    client = Client(bench.world)
    client.send(produce_request("t", 0, b"x", acks=0), 9)
    client.asked.clear()
    client.call(fetch_request("t", 0, 0), 12)
    assert len(bench.spans("Produce")) == len(bench.spans("Fetch")) == 1


def test_request_that_waits_ends_with_its_connection(bench):
    client = Client(bench.world)
    client.send(fetch_request("t", 0, 0, max_wait_ms=500), 12)
    bench.world.run()
    assert bench.spans("Fetch") == []
    client.leave()
    bench.world.run()
    assert len(bench.spans("Fetch")) == 1


def test_what_is_known_of_producers_is_bounded(bench, monkeypatch):
    monkeypatch.setattr(tracer, "MOST_PLACES", 2)
    client = Client(bench.world)
    for _ in range(5):
        client.call(produce_request("t", 0, b"x"), 9)
    client.call(fetch_request("t", 0, 0), 12)
    last = [span.context.span_id for span in bench.spans("Produce")[-2:]]
    assert [link.context.span_id for link in bench.spans("Fetch")[-1].links] == last


def test_lists_of_a_span_are_bounded(bench):
    client = Client(bench.world)
    for _ in range(contexts.MOST_NAMES + 4):
        client.call(produce_request("t", 0, b"x"), 9)
    client.call(fetch_request("t", 0, 0), 12)
    assert len(bench.spans("Fetch")[-1].links) == contexts.MOST_NAMES
    many = [(b"k", b"v", [traceparent(f"{number:016x}")]) for number in range(1, 90)]
    client.call(produce_of(*many), 9)
    assert len(bench.spans("Produce")[-1].links) == contexts.MOST_NAMES - 1


def calls_of(client: Client) -> Counter[str]:
    """The Python functions that one repeated Produce calls."""
    found: Counter[str] = Counter()

    def count(frame: Any, what: str, _: Any) -> None:
        if what == "call":
            found[f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"] += 1

    sys.setprofile(count)
    try:
        client.call(produce_request("t", 0, b"x"), 9)
    finally:
        sys.setprofile(None)
    return found


def test_without_traces_no_function_is_called_for_them():
    """The same calls as in a broker that never had any; `watchers` is what the journal and the meter hang on."""
    world = World("memory")
    client = Client(world)
    make_topic(client, "t")
    for _ in range(5):
        client.call(produce_request("t", 0, b"x"), 9)
    plain = calls_of(client)
    assert world.broker.clients.watchers == ()
    assert world.broker.turn.metrics.turn_begins is None
    bench = Bench(world)
    assert calls_of(client) != plain
    for watcher in world.broker.clients.watchers:
        world.broker.clients.unwatch(watcher)
    world.broker.turn.metrics.turn_begins = None
    assert calls_of(client) == plain
    assert not any("traces" in name for name in plain)
    assert len(bench.spans("Produce")) == 1


@pytest.mark.parametrize(
    "url", ["", "localhost:4318", "ftp://h", "http://", "http://h:x", "grpc://h:4317", "http://h:99999"]
)
def test_bad_address_is_refused_in_a_sentence(url):
    with pytest.raises(ConfigError, match="not the address of an OTLP receiver, as http://HOST:4318 is"):
        address.endpoint_of(url)


def test_missing_extra_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr(address, "NEEDED", ("opentelemetry_absent.sdk",))
    with pytest.raises(ConfigError, match=r"pip install 'momus\[otel\]'"):
        address.endpoint_of("http://h")


def test_address_without_a_path_gets_that_of_otlp():
    assert address.endpoint_of("http://h:4318") == "http://h:4318/v1/traces"
    assert address.endpoint_of("https://h/") == "https://h/v1/traces"
    assert address.endpoint_of("https://h/other") == "https://h/other"
