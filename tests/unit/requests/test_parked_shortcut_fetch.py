"""A Fetch that its shortcut has parked, and that only the general handler can answer: its topic is deleted."""

from __future__ import annotations

import pytest
from core_broker import Client, World, count_repeats, make_topic
from core_requests import fetch_request, produce_request

from broker.shell.metrics.gauges import own_gauges
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState


def delete_topic(world: World) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1)
    assert Client(world).call(request, 6).responses[0].error_code == 0


@pytest.fixture
def client() -> Client:
    made = Client(World("os"))
    make_topic(made)
    return made


def test_fetch_without_a_session_is_answered_when_its_topic_is_deleted(client):
    taken = count_repeats(client.world, ApiKey.FETCH)
    request = fetch_request("t", 0, 0, max_wait_ms=500)
    client.send(request, 12)
    client.world.advance(500)
    client.send(request, 12)
    client.world.run()
    assert (taken, len(client.replies())) == ([False, True], 1)
    delete_topic(client.world)
    (answer,) = client.replies()
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not client.closed


def test_parked_fetch_counts_as_one_parked_request(client):
    for _ in range(2):  # by the general codec, and from its bytes
        client.send(fetch_request("t", 0, 0, max_wait_ms=500), 12)
        client.world.run()
        gauges = {name: value for name, value, tags in own_gauges(client.world.broker) if not tags}
        assert gauges["momus_parked_requests"] == 1
        client.world.advance(500)
        assert len(client.replies()) == 1


def test_fetch_of_a_session_is_answered_when_its_topic_is_deleted_and_the_session_goes_on(client):
    wanted = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])]
    limits = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20}
    first = client.call(FetchRequest(session_epoch=0, topics=wanted, **{**limits, "max_wait_ms": 0}), 12)
    assert first.session_id
    taken = count_repeats(client.world, ApiKey.FETCH)
    for epoch in (1, 2):
        assert client.replies() == []
        client.send(FetchRequest(session_id=first.session_id, session_epoch=epoch, **limits), 12)
        client.world.run()
        if epoch == 1:
            client.world.advance(500)
            assert client.replies()[0].error_code == 0
    assert taken == [False, True]
    delete_topic(client.world)
    (answer,) = client.replies()
    assert answer.error_code == 0
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    again = client.call(FetchRequest(session_id=first.session_id, session_epoch=3, **limits), 12)
    assert again.error_code == 0


def test_parked_fetch_of_a_session_that_another_request_has_advanced_is_refused_and_the_session_goes_on(client):
    wanted = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])]
    limits = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20}
    first = client.call(FetchRequest(session_epoch=0, topics=wanted, **{**limits, "max_wait_ms": 0}), 12)
    taken = count_repeats(client.world, ApiKey.FETCH)
    for epoch in (1, 2):
        client.send(FetchRequest(session_id=first.session_id, session_epoch=epoch, **limits), 12)
        client.world.run()
        if epoch == 1:
            client.world.advance(500)
            assert client.replies()[0].error_code == 0
    assert taken == [False, True]
    other = Client(client.world)
    for epoch in (3, 4):
        request = FetchRequest(session_id=first.session_id, session_epoch=epoch, **{**limits, "max_wait_ms": 0})
        assert other.call(request, 12).error_code == 0
    other.call(produce_request("t", 0, b"v"), 9)
    (answer,) = client.replies()
    assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    request = FetchRequest(session_id=first.session_id, session_epoch=5, **{**limits, "max_wait_ms": 0})
    assert other.call(request, 12).error_code == 0


def test_parked_fetch_of_a_session_is_served_from_bytes_after_records_and_after_its_time(client):
    wanted = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])]
    limits = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20}
    first = client.call(FetchRequest(session_epoch=0, topics=wanted, **{**limits, "max_wait_ms": 0}), 12)
    other, taken = Client(client.world), count_repeats(client.world, ApiKey.FETCH)
    for epoch in range(1, 7):
        client.send(FetchRequest(session_id=first.session_id, session_epoch=epoch, **limits), 12)
        client.world.run()
        if epoch % 2:
            client.world.advance(500)
        else:
            other.call(produce_request("t", 0, b"v"), 9)
        assert client.replies()[0].error_code == 0
    assert taken == [False] + [True] * 5
