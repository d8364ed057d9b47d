"""Producers of a partition whose records were all deleted are kept, as others are."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import DATA, Client, World, make_topic
from core_requests import produce_request
from txn_kit import Producer

from protocol.errors import ErrorCode
from protocol.messages.topics import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic


def world_with_topic(flush: str = "os", **settings: str) -> tuple[World, Client]:
    world = World(flush, **settings)
    client = Client(world)
    make_topic(client, "t")
    return world, client


def send(client: Client, seq: int, epoch: int = 0) -> tuple[int, int]:
    """One batch of producer 7: its error code and offset."""
    request = produce_request("t", 0, b"x", producer_id=7, producer_epoch=epoch, base_sequence=seq)
    answer = client.call(request, 9).responses[0].partition_responses[0]
    return answer.error_code, answer.base_offset


def delete_all(client: Client) -> int:
    """The new start of the log."""
    rows = [DeleteRecordsPartition(partition_index=0, offset=-1)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=rows)], timeout_ms=100)
    return int(client.call(request, 2).topics[0].partitions[0].low_watermark)


def let_all_expire(client: Client) -> int:
    """The same, as the records are older than retention.ms."""
    partition = partition_of(client.world)
    partition.log.config = partition.log.config._replace(retention_ms=1000)
    for _ in partition.maintenance(client.world.clock.now_ms() + 2000):
        pass
    return int(partition.log_start_offset)


def partition_of(world: World) -> Any:
    return world.broker.partitions.get(world.broker.metadata.topics["t"], 0)


def snapshots(world: World) -> list[str]:
    return sorted(name for name in world.files.listdir(f"{DATA}/t-0") if name.endswith(".snapshot"))


def test_log_without_records_and_producers_gets_no_snapshot():
    world, client = world_with_topic()
    client.call(produce_request("t", 0, b"x"), 9)
    assert delete_all(client) == 1
    assert snapshots(world.restart()) == []


@pytest.mark.parametrize("flush", ["os", "fsync"])
@pytest.mark.parametrize("state", ["lookup", "latest", "batches"])
@pytest.mark.parametrize("delete", [delete_all, let_all_expire])
def test_batch_sent_again_after_all_records_were_deleted_and_a_clean_stop_is_not_appended_again(flush, state, delete):
    world, client = world_with_topic(flush, producer_state=state)
    assert [send(client, 0), send(client, 1)] == [(0, 0), (0, 1)]
    assert delete(client) == 2
    for _ in range(2):  # the second start finds the snapshot of the first
        assert send(client, 1) == (0, 1)
        world = world.restart()
        client = Client(world)
    assert send(client, 1) == (0, 1)
    assert send(client, 3) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert send(client, 2) == (0, 2)


@pytest.mark.parametrize("is_loaded", [True, False])
@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_producer_whose_records_were_deleted_goes_on_after_kill_9_though_its_marker_is_left(flush, is_loaded):
    world, client = world_with_topic(flush)
    producer = Producer(client, v2=False)
    producer.init()
    assert producer.add({"t": [0]}) == {("t", 0): 0}
    assert producer.produce(b"a") == 0
    assert producer.end(commit=False) == 0
    if not is_loaded:
        world = world.restart()
        client = producer.client = Client(world)
    rows = [DeleteRecordsPartition(partition_index=0, offset=1)]
    client.call(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=rows)], timeout_ms=100), 2)
    producer.client = Client(world.crash())
    assert producer.add({"t": [0]}) == {("t", 0): 0}
    assert producer.produce(b"b") == 0


@pytest.mark.parametrize("state", ["lookup", "latest", "batches"])
@pytest.mark.parametrize("delete", [delete_all, let_all_expire])
def test_batch_sent_again_after_a_kill_and_the_deletion_of_all_records_is_not_appended_again(state, delete):
    world, client = world_with_topic(producer_state=state)
    assert [send(client, 0), send(client, 1)] == [(0, 0), (0, 1)]
    client = Client(world.crash())
    assert delete(client) == 2  # before anything else needs to know the producers
    assert send(client, 1) == (0, 1)
    assert send(client, 3) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert send(client, 2) == (0, 2)


def test_producer_that_was_fenced_in_deleted_records_stays_fenced():
    world, client = world_with_topic()
    send(client, 0)
    assert send(client, 0, epoch=1) == (0, 1)
    delete_all(client)
    client = Client(world.restart())
    assert send(client, 1, epoch=0) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert send(client, 1, epoch=1) == (0, 2)


def test_transaction_whose_records_were_all_deleted_is_still_open_after_a_clean_stop():
    world, client = world_with_topic()
    producer = Producer(client)
    producer.init()
    assert producer.produce(b"a") == 0
    delete_all(client)
    before = partition_of(world).last_stable_offset
    world = world.restart()
    producer.client = Client(world)
    assert partition_of(world).last_stable_offset == before
    assert producer.produce(b"b") == 0
    assert producer.end() == 0
    assert partition_of(world).last_stable_offset == 3


def test_aborted_transactions_of_deleted_records_do_not_spoil_the_snapshot(caplog):
    world, client = world_with_topic()
    producer = Producer(client)
    producer.init()
    producer.produce(b"a")
    producer.end(commit=False)
    send(client, 0)
    world = world.restart()
    client = Client(world)
    delete_all(client)
    client = Client(world.restart())
    assert send(client, 0) == (0, 2)
    assert "unusable" not in caplog.text
