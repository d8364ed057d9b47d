"""The counters of errors: each error code in a reply counts, of whole requests and of single partitions."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request, fetch_request, produce_request
from txn_kit import Producer

from broker.handlers import make_routes
from broker.wire.error_counts import errors_in
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.classic_group import HeartbeatRequest
from protocol.messages.group_admin import DeleteGroupsRequest
from protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from protocol.messages.topics import DeleteTopicsRequest

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def client() -> Client:
    client = Client(World("os"))
    make_topic(client, partitions=3)
    return client


def errors(client: Client) -> dict[tuple[int, int], int]:
    """What was counted since the last call."""
    counted = client.world.broker.turn.metrics.errors
    found = dict(counted)
    counted.clear()
    return found


def test_each_partition_that_is_refused_counts(client):
    client.call(commit_request("g", {0: 1, 7: 1, 8: 1}), 8)
    assert errors(client) == {(ApiKey.OFFSET_COMMIT, UNKNOWN): 2}
    client.call(produce_request("nope.", 0, b"x"), 9)
    client.call(fetch_request("t", 9, 0), 12)
    assert errors(client) == {(ApiKey.PRODUCE, UNKNOWN): 1, (ApiKey.FETCH, UNKNOWN): 1}


def test_each_group_that_is_refused_counts(client):
    client.call(DeleteGroupsRequest(groups_names=["a", "b"]), 2)
    assert errors(client) == {(ApiKey.DELETE_GROUPS, ErrorCode.GROUP_ID_NOT_FOUND): 2}


def test_request_that_is_refused_whole_counts_once(client):
    client.call(HeartbeatRequest(group_id="g", member_id="m"), 4)
    assert errors(client) == {(ApiKey.HEARTBEAT, ErrorCode.UNKNOWN_MEMBER_ID): 1}


def test_requests_without_an_error_count_nothing(client):
    for _ in range(3):
        client.call(commit_request("g", {0: 1}), 8)
        client.call(produce_request("t", 0, b"x"), 9)
        client.call(fetch_request("t", 0, 0), 12)
    assert errors(client) == {}


def test_parked_request_counts_when_it_is_answered(client):
    client.send(fetch_request("t", 0, 0, max_wait_ms=1000), 12)
    client.world.run()
    assert errors(client) == {}
    Client(client.world).call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    assert errors(client) == {(ApiKey.FETCH, UNKNOWN): 1}


def test_repeated_offset_fetch_counts_each_time(client):
    """A reply with an error is not kept for the next request of the kind."""
    producer = Producer(client)
    producer.init()
    producer.send_offsets({0: 1})
    errors(client)
    topic = OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=[topic])], require_stable=True)
    for _ in range(3):
        client.call(request, 8)
    assert errors(client) == {(ApiKey.OFFSET_FETCH, ErrorCode.UNSTABLE_OFFSET_COMMIT): 3}


def test_errors_are_found_at_every_depth():
    partitions = [OffsetFetchResponsePartitions(error_code=code) for code in (0, 3, 88, 3)]
    groups = [
        OffsetFetchResponseGroup(topics=[OffsetFetchResponseTopics(partitions=partitions)]),
        OffsetFetchResponseGroup(error_code=15),
    ]
    assert sorted(errors_in(OffsetFetchResponse(groups=groups))) == [3, 3, 15, 88]


def test_every_response_can_be_counted():
    for route in make_routes():
        route.load()
        assert errors_in(route.response()) == []
