"""The aborted transactions that Fetch names: in the first answer, and in every one after it."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import fetch_request
from txn_kit import Producer

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic


def aborting_world(*, shortcuts: bool) -> tuple[World, Producer]:
    """Offset 0 is aborted, offset 1 its marker; 2 is committed, 3 its marker; 4 aborted, 5 its marker."""
    world = World("os")
    client = Client(world)
    make_topic(client)
    producer = Producer(client, v2=False)
    assert producer.init() == 0
    if not shortcuts:
        world.broker.clients.shortcuts = {}
    for commit in (False, True, False):
        assert producer.add({"t": [0]}) == {("t", 0): 0}
        assert producer.produce(b"value") == 0
        assert producer.end(commit=commit) == 0
    return world, producer


def aborted(answer: Any) -> list[tuple[int, int]]:
    partition = answer.responses[0].partitions[0]
    assert partition.records
    return [(each.producer_id, each.first_offset) for each in partition.aborted_transactions]


@pytest.mark.parametrize("version", [7, 11, 12, 17])
@pytest.mark.parametrize("shortcuts", [False, True])
def test_every_read_committed_fetch_of_a_range_names_its_aborted_transactions(shortcuts, version):
    world, producer = aborting_world(shortcuts=shortcuts)
    client = Client(world)
    ids = world.broker.metadata.topics["t"].topic_id
    for _ in range(4):
        for offset, named in ((0, [0, 4]), (2, [4]), (4, [4])):
            request = fetch_request("t", 0, offset, isolation_level=1)
            request.topics[0].topic_id = ids
            assert aborted(client.call(request, version)) == [(producer.id, first) for first in named]


@pytest.mark.parametrize("shortcuts", [False, True])
def test_later_fetches_of_a_session_name_aborted_transactions(shortcuts):
    world, producer = aborting_world(shortcuts=shortcuts)
    client = Client(world)
    wanted = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])]
    session = {"isolation_level": 1, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20}
    answer = client.call(FetchRequest(session_epoch=0, topics=wanted, **session), 12)
    assert aborted(answer) == [(producer.id, 0), (producer.id, 4)]
    for epoch in range(1, 5):
        request = FetchRequest(session_id=answer.session_id, session_epoch=epoch, **session)
        assert aborted(client.call(request, 12)) == [(producer.id, 0), (producer.id, 4)]


@pytest.mark.parametrize("shortcuts", [False, True])
def test_transaction_that_is_aborted_between_two_fetches_is_named_by_the_second(shortcuts):
    world, producer = aborting_world(shortcuts=shortcuts)
    client = Client(world)
    request = fetch_request("t", 0, 2, isolation_level=1)
    for _ in range(2):
        assert aborted(client.call(request, 12)) == [(producer.id, 4)]
    assert producer.add({"t": [0]}) == {("t", 0): 0}
    assert producer.produce(b"value") == 0
    assert producer.end(commit=False) == 0
    for _ in range(2):
        assert aborted(client.call(request, 12)) == [(producer.id, 4), (producer.id, 6)]
