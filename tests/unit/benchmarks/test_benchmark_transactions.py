"""The load of transactions: what it sends is one transaction after the other, and a repeated request begins none."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
from core_broker import Client, World, make_topic, split_frames
from txn_kit import committed, visible

from benchmarks.load_requests import Requests
from benchmarks.transactions import VERSIONS, Producer, Step
from protocol.errors import ErrorCode
from protocol.messages.transactions import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


@pytest.fixture
def client():
    client = Client(World("os"))
    make_topic(client, "t", 1)
    return client


def begun(client: Client, flow: str) -> tuple[Producer, list[float]]:
    """A producer with its id, and where the times of its cycles are kept."""
    producer = Producer(flow, Requests("t", "g", 1), 0, client.world.clock.now_ms())
    for request, version, is_good in producer.setting_up():
        assert is_good(client.call(request, version))
    took: list[float] = []
    producer.clock = SimpleNamespace(end=math.inf, add=lambda begin, end: took.append(end - begin))
    return producer, took


def answer(client: Client, data: bytes) -> bytes:
    """What the broker sends back, behind the correlation id."""
    before = len(client.transport.received)
    client.send_bytes(data)
    client.world.run()
    (body,) = split_frames(bytes(client.transport.received[before:]))
    return body[4:]


@pytest.mark.parametrize("flow", VERSIONS)
def test_each_cycle_commits_one_record_and_one_offset(client, flow):
    producer, took = begun(client, flow)
    for _ in range(3 * len(VERSIONS[flow])):
        producer.took(answer(client, producer.next()))
    assert (len(took), producer.cycle, producer.again) == (3, 3, 0)
    reader = Client(client.world)
    assert len(visible(reader)) == 3
    assert committed(reader, "g-0") == {0: (3, 0)}
    producer.clock.end = -math.inf
    assert producer.next() == b""


def test_request_that_is_sent_again_belongs_to_the_same_cycle(client):
    producer, took = begun(client, "v1")
    first = producer.next()
    busy = SimpleNamespace(look=lambda reply: (None, ErrorCode.CONCURRENT_TRANSACTIONS))
    adding, producer.steps[0] = producer.steps[0], busy
    producer.took(b"")
    producer.steps[0] = adding
    producer.clock.end = -math.inf  # the time is over, but the cycle has begun
    assert producer.next() == first
    assert (producer.cycle, producer.again, took) == (1, 1, [])


def test_error_that_no_client_retries_ends_the_run(client):
    producer, _ = begun(client, "v1")
    producer.next()
    producer.steps[0] = SimpleNamespace(look=lambda reply: (None, ErrorCode.PRODUCER_FENCED), api_key=24)
    with pytest.raises(SystemExit, match="PRODUCER_FENCED"):
        producer.took(b"")


def test_reply_with_an_error_is_not_taken_for_a_good_one():
    from protocol.codegen import codec

    step = Step(AddOffsetsToTxnRequest(transactional_id="x", group_id="g"), 3, lambda answer: [answer.error_code])
    replies = [
        b"\0" + codec(AddOffsetsToTxnResponse, 3).encode(AddOffsetsToTxnResponse(error_code=code))
        for code in (0, 51, 51, 0)
    ]
    assert [step.look(reply)[1] for reply in replies] == [0, 51, 51, 0]
