"""Transactions that a producer snapshot calls open, and that have ended and been cleaned since, at a start."""

from __future__ import annotations

import itertools
from typing import Any

from core_broker import Client, SimulatedCrash, World
from core_requests import fetch_request, produce_request
from txn_kit import Producer, fetched

from protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.record_batch import TRANSACTIONAL, build_batch


def world_with_topic(policy: str) -> World:
    """A topic of small segments that is cleaned at once."""
    world = World(
        "os",
        log_cleaner_backoff_ms="1000",
        log_retention_check_interval_ms="1000",
        producer_id_expiration_ms="5000",
        transaction_state_log_num_partitions="1",
    )
    settings = {
        "cleanup.policy": policy,
        "internal.segment.bytes": "200",
        "min.cleanable.dirty.ratio": "0",
        "delete.retention.ms": "2000",
        "retention.ms": "-1",
    }
    rows = [CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=rows)
    assert not Client(world).call(CreateTopicsRequest(topics=[topic], timeout_ms=1), 7).topics[0].error_code
    return world


def send(client: Client, key: bytes, value: bytes, by: Producer | None = None) -> None:
    request, who = produce_request("t", 0, b""), {}
    if by is not None:
        assert set(by.add({"t": [0]}).values()) == {0}
        request = by.produce_request(b"")
        who = {"producer_id": by.id, "producer_epoch": by.epoch, "attributes": TRANSACTIONAL}
        who["base_sequence"] = by.sequences["t", 0] - 1
    now_ms = client.world.clock.now_ms()
    batch = build_batch([(key, value)], leader_epoch=-1, timestamp_ms=now_ms, **who)
    request.topic_data[0].partition_data[0].records = batch
    assert client.call(request, 11).responses[0].partition_responses[0].error_code == 0


def partition_of(world: World) -> Any:
    return world.broker.partitions.get(world.broker.metadata.topics["t"], 0)


def test_transaction_is_open_after_a_start_though_a_snapshot_calls_an_older_one_of_its_producer_open():
    """The older one has ended, and the cleaner has removed all of it: its records, and its marker after a while."""
    world = world_with_topic("compact")
    client = Client(world)
    producer = Producer(client, v2=False)
    producer.init(timeout_ms=600_000)
    send(client, b"a", b"first", producer)
    world = world.restart()  # the snapshot of the stop has it open
    client = producer.client = Client(world)
    assert producer.end(commit=False) == 0
    for n in range(16):
        send(client, b"k%d" % (n % 3), b"plain" * 20)
        world.advance(1500)
    producer.init(timeout_ms=600_000)
    before = fetched(client).high_watermark
    send(client, b"a", b"uncommitted", producer)
    again = world.crash()
    client = producer.client = Client(again)
    assert fetched(client).last_stable_offset == before
    assert producer.end(commit=False) == 0
    answer = client.call(fetch_request("t", 0, before, isolation_level=1), 12).responses[0].partitions[0]
    (aborted,) = answer.aborted_transactions
    assert (aborted.producer_id, aborted.first_offset) == (producer.id, before)


def test_transaction_whose_first_records_were_deleted_is_not_open_again():
    """Its marker has been cleaned away; readers of committed records would wait for it for ever."""
    world = world_with_topic("compact,delete")
    client = Client(world)
    producer = Producer(client, v2=False)
    producer.init(timeout_ms=600_000)
    send(client, b"a", b"first", producer)
    send(client, b"b", b"x")
    world = world.restart()
    client = producer.client = Client(world)
    rows = [DeleteRecordsPartition(partition_index=0, offset=1)]
    client.call(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=rows)], timeout_ms=1), 2)
    assert producer.end(commit=False) == 0
    for n in range(16):
        send(client, b"k%d" % (n % 3), b"plain" * 20)
        world.advance(1500)
    partition = partition_of(world.crash())
    assert partition.last_stable_offset == partition.high_watermark == 19


def test_marker_behind_a_snapshot_aborts_what_a_killed_cleaner_has_left():
    """The cleaner is killed at each of its changes; the first records of the transaction may be gone, others not."""
    kills = left = 0
    for nth in itertools.count(1):
        world = world_with_topic("compact")
        producer = Producer(Client(world), v2=False)
        producer.init()
        for n in range(3):
            send(producer.client, b"a%d" % n, b"aborted", producer)
            send(producer.client, b"b%d" % n, b"plain" * 20)
        world = world.restart()
        producer.client = Client(world)
        assert producer.end(commit=False) == 0
        send(producer.client, b"k", b"plain" * 20)
        world.files.kill_at(nth)
        try:
            world.advance(4000)
        except SimulatedCrash:
            kills += 1
        else:
            break
        partition = partition_of(world.crash())
        transactional = {
            header.base_offset
            for header, _ in partition.log.batches(0)
            if header.is_transactional and not header.is_control and header.record_count
        }
        left += bool(transactional)
        aborted = [(each.first_offset, each.last_offset) for each in partition.producers.aborted]
        for offset in transactional:
            assert any(first <= offset < last for first, last in aborted), (nth, offset, aborted)
    assert kills > 5
    assert left > 5
