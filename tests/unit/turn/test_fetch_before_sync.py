"""Fetch between a write and its sync: nobody is given a record that a crash could still take back."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, count_repeats, make_topic
from core_requests import fetch_bytes, fetch_request, produce_request
from txn_kit import Producer

from protocol.api import ApiKey


def world_with_records(*, shortcuts: bool) -> tuple[World, Client, Client]:
    """One record is durable, and nothing is synced any more unless a test does it; a reader and a writer."""
    world = World("fsync", shortcuts=shortcuts)
    reader, writer = Client(world), Client(world)
    make_topic(writer)
    writer.call(produce_request("t", 0, b"durable"), 9)
    world.auto_sync = False
    return world, reader, writer


def partition_of(answer: Any) -> Any:
    return answer.responses[0].partitions[0]


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("shortcuts", [False, True])
def test_record_is_shown_only_after_its_sync(shortcuts, isolation_level):
    world, reader, writer = world_with_records(shortcuts=shortcuts)
    ask = fetch_request("t", 0, 0, isolation_level=isolation_level)
    durable = fetch_bytes(reader.call(ask, 12))
    writer.send(produce_request("t", 0, b"written"), 9)
    world.run()
    assert writer.replies() == []
    for _ in range(2):
        answer = reader.call(ask, 12)
        assert fetch_bytes(answer) == durable
        assert (partition_of(answer).high_watermark, partition_of(answer).last_stable_offset) == (1, 1)
        assert fetch_bytes(reader.call(fetch_request("t", 0, 1, isolation_level=isolation_level), 12)) == b""
    world.sync()
    world.run()
    answer = reader.call(ask, 12)
    assert len(fetch_bytes(answer)) > len(durable)
    assert (partition_of(answer).high_watermark, partition_of(answer).last_stable_offset) == (2, 2)


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("shortcuts", [False, True])
def test_parked_fetch_is_answered_by_the_sync_and_not_by_the_write(shortcuts, isolation_level):
    world, reader, writer = world_with_records(shortcuts=shortcuts)
    ask = fetch_request("t", 0, 1, max_wait_ms=1000, isolation_level=isolation_level)
    for _ in range(2):  # the second time by the shortcut, if there is one
        reader.send(ask, 12)
        world.run()
        assert reader.replies() == []
        world.advance(1000)
        (empty,) = reader.replies()
        assert fetch_bytes(empty) == b""
    reader.send(ask, 12)
    writer.send(produce_request("t", 0, b"written"), 9)
    world.run()
    assert reader.replies() == []
    world.sync()
    world.run()
    (answer,) = reader.replies()
    assert fetch_bytes(answer) != b""


@pytest.mark.parametrize("shortcuts", [False, True])
def test_committed_transaction_is_shown_only_after_the_sync_of_its_marker(shortcuts):
    world, reader, _ = world_with_records(shortcuts=shortcuts)
    world.auto_sync = True
    producer = Producer(Client(world))
    assert producer.init() == 0
    if not shortcuts:
        world.broker.clients.shortcuts = {}
    assert producer.produce(b"in a transaction") == 0
    ask = fetch_request("t", 0, 1, isolation_level=1)
    assert [fetch_bytes(reader.call(ask, 12)) for _ in range(2)] == [b"", b""]
    world.auto_sync = False
    producer.client.send(producer.end_request(), 5)
    world.run()
    log = world.broker.directory.logs["t", 0]
    for _ in range(10):
        if log.end_offset == 3:
            break
        world.sync()
        world.run()
    assert log.end_offset == 3  # the marker is written, and not synced
    answer = reader.call(ask, 12)
    assert (fetch_bytes(answer), partition_of(answer).last_stable_offset) == (b"", 1)
    world.auto_sync = True
    world.run()
    answer = reader.call(ask, 12)
    assert partition_of(answer).last_stable_offset == 3
    assert fetch_bytes(answer) != b""
    world.auto_sync = False  # a write behind the transaction is no more stable than it is durable
    producer.client.send(produce_request("t", 0, b"written"), 9)
    world.run()
    again = partition_of(reader.call(ask, 12))
    assert (again.last_stable_offset, again.high_watermark) == (3, 3)
    assert fetch_bytes(reader.call(fetch_request("t", 0, 3, isolation_level=1), 12)) == b""


def test_these_fetches_reach_the_shortcut():
    """Or the tests above, run with shortcuts, say nothing of it."""
    world, reader, _ = world_with_records(shortcuts=True)
    taken = count_repeats(world, ApiKey.FETCH)
    for offset in (0, 1, 0):
        reader.call(fetch_request("t", 0, offset, isolation_level=1), 12)
    assert taken == [False, True, True]
