"""Clients that exceed their quota are told to wait, and are not read from meanwhile; on the cluster's clock."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, frame, make_topic
from core_requests import fetch_request, produce_request
from quotas_kit import alteration, set_quota

from broker.quotas.client_quotas import ClientQuotas
from broker.turn.rate import Credits, Rate
from protocol.errors import ErrorCode
from protocol.messages.cluster import ApiVersionsRequest, MetadataRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)


def produce(client: Client, size: int = 9_900) -> int:
    answer = client.call(produce_request("t", 0, b"x" * size), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return int(answer.throttle_time_ms)


def test_producer_above_its_rate_is_throttled_and_muted(client):
    set_quota(client, "producer_byte_rate", 1000, client_id="client")
    assert produce(client) == 0, "10,000 bytes in the ten seconds that a rate is over"
    throttle_ms = produce(client)
    assert 9_000 < throttle_ms < 11_500
    client.send(MetadataRequest(topics=[]), 9)
    client.world.run()
    assert not client.replies(), "it is not read from"
    assert Client(client.world).call(ApiVersionsRequest(), 0).error_code == 0
    client.world.clock.advance(throttle_ms)
    client.world.run()
    assert len(client.replies()) == 1


def test_wait_that_is_longer_than_an_answer_can_tell_is_cut_to_the_longest(client):
    """Three megabytes at a byte a second."""
    set_quota(client, "producer_byte_rate", 1, client_id="client")
    for _ in range(3):
        throttle_ms = produce(Client(client.world), 900_000)
    assert throttle_ms == (1 << 31) - 1


def test_shorter_wait_does_not_end_a_longer_one(client):
    """A Fetch that was under way is answered during the wait of a Produce."""
    set_quota(client, "producer_byte_rate", 1000, client_id="client")
    quotas: Any = client.world.broker.router.quotas
    for throttle_ms in (10_000, 1000, 5000):
        quotas._mute(client.connection, throttle_ms)
    client.world.advance(5000)
    assert not client.transport.reading
    client.world.advance(5000)
    assert client.transport.reading
    assert not quotas._muted


def test_frames_that_came_together_wait_as_well(client):
    set_quota(client, "producer_byte_rate", 1, client_id="client")
    client.send(produce_request("t", 0, b"x" * 1000), 9)
    client.pending.clear()
    both = [produce_request("t", 0, b"x" * 1000), produce_request("t", 0, b"y")]
    client.asked += [(0, 9), (0, 9)]
    client.connection.data_received(b"".join(frame(each, 9, 7 + i) for i, each in enumerate(both)))
    client.world.run()
    assert client.world.broker.partitions.size("t", 0) < 2200


def test_frames_in_one_segment_with_the_first_quota_are_measured(client):
    produce(client)
    quota = alteration("consumer_byte_rate", 1, client_id="client")
    requests = [(quota, 1), (fetch_request("t", 0, 1), 11), (fetch_request("t", 0, 0), 11)]
    client.asked += [(request.API_KEY, version) for request, version in requests]
    client.connection.data_received(b"".join(frame(request, version) for request, version in requests))
    client.world.run()
    *_, answer = client.replies()
    assert (answer.throttle_time_ms > 0, answer.responses) == (True, [])


def test_consumer_above_its_rate_gets_no_records(client):
    for _ in range(3):
        produce(client)
    set_quota(client, "consumer_byte_rate", 1000, client_id="client")
    answer = client.call(fetch_request("t", 0, 0), 12)
    assert answer.throttle_time_ms > 10_000
    assert answer.responses == []
    client.world.clock.advance(answer.throttle_time_ms)
    client.world.run()
    set_quota(client, "consumer_byte_rate", 1_000_000, client_id="client")
    assert client.call(fetch_request("t", 0, 0), 12).responses[0].partitions[0].records


def test_fetch_that_waited_is_measured_when_it_is_answered(client):
    set_quota(client, "consumer_byte_rate", 1, client_id="client")
    client.send(fetch_request("t", 0, 0, max_wait_ms=500), 12)
    client.world.run()
    assert not client.replies()
    other = Client(client.world)
    other.call(produce_request("t", 0, b"x" * 1000), 9, client_id="other")
    client.world.run()
    (answer,) = client.replies()
    assert answer.responses == []
    assert answer.throttle_time_ms > 0


def fetch_in_session(client: Client, session_id: int, epoch: int, *fetched: tuple[int, int]) -> Any:
    """Partitions with their offsets; the client's answer, with what it tells of each partition."""
    wanted = [FetchPartition(partition=p, fetch_offset=at, partition_max_bytes=1 << 26) for p, at in fetched]
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 26,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic="two", partitions=wanted)] if wanted else [],
    )
    return client.call(request, 12)


def high_watermarks(answer: Any) -> dict[int, int]:
    return {p.partition_index: p.high_watermark for topic in answer.responses for p in topic.partitions}


def produce_to_two(client: Client, index: int, size: int) -> None:
    Client(client.world).call(produce_request("two", index, b"x" * size), 9, client_id="other")


def lift_quota(client: Client) -> None:
    client.world.clock.advance(20_000_000)
    client.world.run()
    set_quota(client, "consumer_byte_rate", 1e9, client_id="client")


def test_session_tells_later_what_an_emptied_answer_would_have_told(client):
    """The client reads on from the end, as after a seek: only the session can tell it of the high watermark."""
    make_topic(client, "two", partitions=2)
    session = fetch_in_session(client, 0, 0, (0, 0), (1, 0)).session_id
    produce_to_two(client, 0, 9_900)
    set_quota(client, "consumer_byte_rate", 1, client_id="client")
    emptied = fetch_in_session(client, session, 1)
    assert (emptied.throttle_time_ms > 0, emptied.responses, emptied.session_id) == (True, [], session)
    lift_quota(client)
    assert high_watermarks(fetch_in_session(client, session, 2, (0, 1))) == {0: 1}
    assert high_watermarks(fetch_in_session(client, session, 3)) == {}


def test_no_session_begins_with_an_emptied_answer(client):
    make_topic(client, "two", partitions=2)
    produce_to_two(client, 0, 9_900)
    set_quota(client, "consumer_byte_rate", 1, client_id="client")
    emptied = fetch_in_session(client, 0, 0, (0, 0), (1, 0))
    assert (emptied.throttle_time_ms > 0, emptied.responses, emptied.session_id) == (True, [], 0)
    assert len(client.world.broker.fetch_sessions) == 0
    lift_quota(client)
    assert high_watermarks(fetch_in_session(client, 0, 0, (0, 0), (1, 0))) == {0: 1, 1: 0}


def test_time_in_handlers_counts_in_percent_of_the_loop(client):
    set_quota(client, "request_percentage", 0.01, client_id="client")
    quotas: Any = client.world.broker.router.quotas
    real = quotas.took
    quotas.took = lambda ctx, elapsed_us: real(ctx, 500_000)
    assert client.call(MetadataRequest(topics=[]), 9).throttle_time_ms == 1000, "one window at most"


def test_fetch_of_a_client_that_takes_too_much_time_has_no_records(client):
    make_topic(client, "two", partitions=2)
    produce_to_two(client, 0, 100)
    set_quota(client, "request_percentage", 0.01, client_id="client")
    quotas: Any = client.world.broker.router.quotas
    real = quotas.took
    quotas.took = lambda ctx, elapsed_us: real(ctx, 500_000)
    emptied = fetch_in_session(client, 0, 0, (0, 0), (1, 0))
    assert (emptied.throttle_time_ms, emptied.responses, emptied.session_id) == (1000, [], 0)
    quotas.took = real
    client.world.advance(60_000)
    assert high_watermarks(fetch_in_session(client, 0, 0, (0, 0), (1, 0))) == {0: 1, 1: 0}


@pytest.mark.parametrize("num", ["2", "11"])
def test_rate_is_over_the_windows_that_are_set(num):
    client = Client(World("memory", quota_window_num=num, quota_window_size_seconds="2"))
    make_topic(client)
    set_quota(client, "producer_byte_rate", 1000, client_id="client")
    assert (produce(client) > 0) == (num == "2"), "of 2 s, or 20 s"


@pytest.mark.parametrize("version", [5, 6])
def test_topics_beyond_the_quota_of_changes(client, version):
    """Eleven windows of one a second: eleven partitions at once, and then the one that overdraws."""
    other = Client(World("memory", controller_quota_window_num="2", controller_quota_window_size_seconds="3"))
    set_quota(other, "controller_mutation_rate", 1, client_id="client")
    one = [CreatableTopic(name=name, num_partitions=7, replication_factor=1) for name in "ab"]
    codes = [each.error_code for each in other.call(CreateTopicsRequest(topics=one, timeout_ms=1000), 6).topics]
    assert codes == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED], "six credits, overdrawn by one"
    set_quota(client, "controller_mutation_rate", 1, client_id="client")
    names = [CreatableTopic(name=f"n{i}", num_partitions=6, replication_factor=1) for i in range(4)]
    answer = client.call(CreateTopicsRequest(topics=names, timeout_ms=1000), version)
    codes = [each.error_code for each in answer.topics]
    if version == 5:
        assert codes == [0] * 4
        assert answer.throttle_time_ms == 13_000
    else:
        assert codes == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        assert answer.throttle_time_ms == 1000


def test_deleted_and_added_partitions_count(client):
    set_quota(client, "controller_mutation_rate", 0.1, client_id="client")
    more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=4, assignments=None)], timeout_ms=1000)
    assert client.call(more, 3).results[0].error_code == 0
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
    assert client.call(gone, 6).responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert "t" in client.world.broker.metadata.topics


def test_quota_that_is_removed_lets_shortcuts_serve_again(client):
    table = client.world.broker.clients.shortcuts
    set_quota(client, "producer_byte_rate", 1000, client_id="client")
    assert client.world.broker.clients.shortcuts == {}
    again = client.world.crash()
    assert again.broker.clients.shortcuts == {}, "after a start as well"
    set_quota(client, "producer_byte_rate", None, client_id="client")
    assert client.world.broker.clients.shortcuts is table
    assert produce(client, 100_000) == 0


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        ({}, None),
        ({(("client-id", None),): 1.0}, (1.0, (("client-id", "c"),))),
        ({(("client-id", None),): 1.0, (("client-id", "c"),): 2.0}, (2.0, (("client-id", "c"),))),
        ({(("client-id", "c"),): 2.0, (("user", None),): 3.0}, (3.0, (("user", "u"),))),
        (
            {(("user", None),): 3.0, (("client-id", "c"), ("user", None)): 4.0},
            (4.0, (("client-id", "c"), ("user", "u"))),
        ),
        ({(("user", "u"),): 5.0, (("client-id", "c"), ("user", None)): 4.0}, (5.0, (("user", "u"),))),
        (
            {(("user", "u"),): 5.0, (("client-id", None), ("user", "u")): 6.0},
            (6.0, (("client-id", "c"), ("user", "u"))),
        ),
        ({(("user", "other"),): 5.0}, None),
    ],
)
def test_most_specific_quota_counts(client, quotas, expected):
    broker = client.world.broker
    broker.metadata.clients.quotas.update({entity: {"producer_byte_rate": value} for entity, value in quotas.items()})
    found = ClientQuotas(broker.turn, broker.config, lambda: broker.metadata, broker.fetch_sessions)
    assert found.find("producer_byte_rate", "u", "c") == expected


def test_rate_is_over_all_windows():
    rate = Rate(11, 1000)
    rate.record(5000, 0)
    assert rate.throttle_ms(500, 0) == 0
    rate.record(1000, 500)
    assert rate.throttle_ms(500, 500) == 1500, "600 a second over 10.5 s, less what is allowed"
    assert rate.throttle_ms(5e-324, 500) == (1 << 31) - 1
    assert rate.throttle_ms(500, 30_000) == 0


def test_credits_are_overdrawn_once_and_come_back():
    credits_ = Credits(11, 1000)
    credits_.refill(2.0, 0)
    credits_.take(22)
    assert not credits_.is_overdrawn
    credits_.take(4)
    assert credits_.is_overdrawn
    assert credits_.throttle_ms() == 2000
    credits_.refill(2.0, 2000)
    assert not credits_.is_overdrawn


def test_clients_that_change_topics_are_measured_in_bounded_memory(client, monkeypatch):
    monkeypatch.setattr("broker.quotas.client_quotas.MOST_MEASURES", 3)
    set_quota(client, "controller_mutation_rate", 100, client_id=None)
    for number in range(10):
        topics = [CreatableTopic(name=f"of-{number}", num_partitions=1, replication_factor=1)]
        client.call(CreateTopicsRequest(topics=topics), client_id=f"client-{number}")
    assert len(client.world.broker.router.quotas._credits) <= 3
