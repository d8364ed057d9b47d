"""Whole logs of a running broker as a client reads them: where they begin and end, their batches, leaders that move."""

from __future__ import annotations

import pytest

from momus import Broker
from momus.client.kafka_client import RequestFailedError
from momus.client.log_client import NO_ID, LogClient, LogPlace
from protocol.errors import ErrorCode
from protocol.record_batch import iter_batches, iter_records


@pytest.fixture
def client(trio: Broker):
    with LogClient(trio.bootstrap_servers) as client:
        yield client


@pytest.fixture
def place(trio: Broker, name: str) -> LogPlace:
    """A partition of three records, without the id of its topic."""
    trio.create_topic(name, partitions=2)
    for value in "abc":
        trio.produce(name, value, partition=1)
    return LogPlace(name, 1)


def values(records: bytes) -> list[bytes | None]:
    data = memoryview(records)
    return [each.value for at, head in iter_batches(data) for each in iter_records(data[at : at + head.size])]


def test_every_partition_is_listed_with_the_id_of_its_topic(client, place):
    places = client.places()
    rows = sorted(client.topics(), key=lambda row: row["name"])
    assert [each[:2] for each in places] == [(row["name"], at) for row in rows for at in range(row["partitions"])]
    (topic_id,) = {each.topic_id for each in places if each.topic == place.topic}
    assert topic_id != NO_ID


def test_logs_begin_and_end_where_a_consumer_may_read(trio, client, place):
    places = [each for each in client.places() if each.topic == place.topic]
    assert client.first_offsets(places) == dict.fromkeys(places, 0)
    assert client.ends(places) == {places[0]: 0, places[1]: 3}
    assert client.ends([]) == {}


def test_batches_are_read_from_an_offset_by_name_or_by_id(client, place):
    (by_id,) = (each for each in client.places() if each[:2] == place[:2])
    assert by_id.topic_id != NO_ID
    for each in (by_id, place):
        found = client.fetch(each, 1)
        assert (values(found.records), found.high_watermark) == ([b"b", b"c"], 3)
        assert client.fetch(each, 3) == (b"", 3)


def test_offset_that_is_not_there_is_refused_at_once(client, place, monkeypatch):
    client.places()
    monkeypatch.setattr(client, "_look_again", lambda _: pytest.fail("it asks again"))
    with pytest.raises(RequestFailedError, match=f"{place.topic}-1: OFFSET_OUT_OF_RANGE") as refused:
        client.fetch(place, 4)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_leader_that_moved_and_one_that_is_not_known_yet_are_asked_for_again(trio, client, place):
    assert values(client.fetch(place, 2).records) == [b"c"]  # it has never asked who leads
    leader = client._leaders[place.topic, 1]
    trio.stop_broker(leader)
    try:
        assert values(client.fetch(place, 2).records) == [b"c"]
        now = client._leaders[place.topic, 1]
        assert now != leader
        client._leaders[place.topic, 1] = next(node for node in client._nodes if node != now)  # as it once was
        assert client.ends([place]) == {place: 3}
        assert client._leaders[place.topic, 1] == now
    finally:
        trio.start_broker(leader)


def test_partition_that_does_not_come_is_given_up_in_time(client):
    client._timeout_s = 0
    with pytest.raises(RequestFailedError, match="nowhere-0: LEADER_NOT_AVAILABLE"):
        client.fetch(LogPlace("nowhere", 0), 0)
    with pytest.raises(RequestFailedError, match="nowhere-0: LEADER_NOT_AVAILABLE"):
        client.ends([LogPlace("nowhere", 0)])
