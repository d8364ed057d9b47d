"""Each kind of fault that meets requests, at a proxy: what the client sees, and what has reached the cluster."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from cluster_kit import Wire

from momus import Broker
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import build_batch

NUMBERS = itertools.count()
ANSWER, CUT, SILENCE = "answer", "cut", "silence"
# fault, its words -> what the client sees, the error in it, records in the cluster
KINDS: list[tuple[str, dict[str, Any], str, int, int]] = [
    ("inject_error", {"error": "NOT_LEADER_OR_FOLLOWER"}, ANSWER, 6, 0),
    ("delay_on", {"ms": 1, "when": "before"}, ANSWER, 0, 1),
    ("delay_on", {"ms": 1, "when": "after"}, ANSWER, 0, 1),
    ("disconnect_on", {"when": "before"}, CUT, 0, 0),
    ("disconnect_on", {"when": "after"}, CUT, 0, 1),
    ("disconnect_on", {"when": "middle"}, CUT, 0, 1),
    ("blackhole_client", {}, SILENCE, 0, 0),
    ("throttle", {"bytes_per_second": 100_000}, ANSWER, 0, 1),
    ("corrupt_reply", {"at": 20}, ANSWER, -1, 1),
    ("deliver_twice", {}, ANSWER, 0, 2),
]


def produce(topic: str) -> ProduceRequest:
    records = build_batch([(None, b"x")], timestamp_ms=0)
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])


def records_in(broker: Broker, topic: str) -> int:
    return len(broker.consume(topic))


@pytest.mark.parametrize(
    ("kind", "words", "seen", "error", "records"), KINDS, ids=[f"{row[0]} {row[1].get('when', '')}" for row in KINDS]
)
def test_a_fault_at_the_proxy_does_what_it_does_at_a_broker(proxy, upstream, kind, words, seen, error, records):
    topic = f"faulty-{next(NUMBERS)}"
    upstream.create_topic(topic)
    leader = upstream.control.ask("GET", f"/_admin/topics/{topic}")["partitions"][0]["leader"]
    wire = Wire(proxy.bootstrap_servers.split(",")[leader - 1])
    (fault,) = proxy.faults.load([{"fault": kind, "api": "Produce", "topic": topic, **words}])
    if seen == ANSWER:
        whole = produce(topic)
        wire.send(whole, 9)
        body = wire.receive_bytes()
        code = int.from_bytes(body[len(topic) + 12 :][:2], "big") if error < 0 else _code(whole, body)
        assert error in (-1, code)
    elif seen == CUT:
        wire.send(produce(topic), 9)
        with pytest.raises((EOFError, ConnectionResetError)):
            wire.receive_bytes()
    else:
        wire.send(produce(topic), 9)
        fault.wait_until_hit()
    assert fault.hits == 1
    fault.remove()
    assert records_in(upstream, topic) == records
    wire.close()


def _code(request: ProduceRequest, body: bytes) -> int:
    from protocol.api import ApiKey, response_class
    from protocol.codegen import codec
    from protocol.header import decode_response_header

    _, at = decode_response_header(body, ApiKey.PRODUCE, 9)
    response: Any = codec(response_class(ApiKey.PRODUCE), 9).decode(body, at)[0]
    code: int = response.responses[0].partition_responses[0].error_code
    return code
