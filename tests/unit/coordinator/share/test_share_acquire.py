"""ShareFetch acquires records: how many, in which parts, from which offset on."""

from __future__ import annotations

import pytest
from unit.coordinator.share.kit import ShareWorld, acquired

from protocol.record_batch import iter_batches

ACCEPT = 1


@pytest.fixture
def world():
    with ShareWorld() as made:
        yield made


def test_fetch_acquires_what_there_is_and_names_the_lock(world):
    world.produce(3, 2)
    reply = world.reader().fetch()
    assert acquired(reply) == [(0, 4, 1)]
    assert reply.acquisition_lock_timeout_ms == 30_000
    assert [b.base_offset for _, b in iter_batches(reply.responses[0].partitions[0].records)] == [0, 3]


def test_acquired_records_are_not_given_to_others(world):
    world.produce(3)
    a, b = world.reader("a"), world.reader("b")
    assert a.acquired() == [(0, 2, 1)]
    assert b.acquired() == []
    world.produce(1)
    assert b.acquired() == [(3, 3, 1)]


def test_whole_batches_are_acquired_beyond_the_limit_of_records(world):
    world.produce(3, 3, 3)
    assert world.reader().acquired(max_records=4) == [(0, 5, 1)]


def test_batch_size_splits_what_is_acquired(world):
    world.produce(3, 3, 3)
    assert world.reader().acquired(batch_size=3) == [(0, 2, 1), (3, 5, 1), (6, 8, 1)]


def test_record_limit_acquires_exactly_so_many(world):
    world.produce(5)
    m = world.reader()
    assert m.acquired(max_records=2, share_acquire_mode=1) == [(0, 1, 1)]
    assert m.acquired(max_records=2, share_acquire_mode=1) == [(2, 3, 1)]
    assert m.acquired(max_records=2, share_acquire_mode=1) == [(4, 4, 1)]


def test_records_in_flight_are_limited(world):
    assert world.set(**{"share.partition.max.record.locks": "100"}) == 0
    world.produce(*[60] * 3)
    m = world.reader()
    assert m.acquired() == [(0, 119, 1)]
    assert m.acquired() == []
    assert m.ack_error((0, 59, [ACCEPT])) == 0
    assert m.acquired() == [(120, 179, 1)]


def test_latest_reads_what_comes_after_the_first_fetch():
    with ShareWorld(reset="latest") as world:
        world.produce(3)
        m = world.reader()
        assert m.acquired() == []
        world.produce(2)
        assert m.acquired() == [(3, 4, 1)]


def test_by_duration_reads_what_is_not_older():
    with ShareWorld(reset="by_duration:PT1H") as world:
        world.world.clock.advance(1_700_000_000_000 + 1_800_000 - world.world.clock.now_ms())
        world.produce(2)
        assert world.reader().acquired() == [(0, 1, 1)]


def test_max_bytes_is_kept(world):
    world.produce(5, 5)
    assert world.reader().acquired(max_bytes=0) == []
    assert world.reader().acquired(max_bytes=1) == [(0, 4, 1)]  # one batch at least
    assert world.reader().acquired(max_bytes=100) == [(5, 9, 1)]


def test_deleted_records_are_passed_over(world):
    from protocol.messages.topics import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic

    world.produce(5, 5)
    m = world.reader()
    assert m.acquired(max_records=5) == [(0, 4, 1)]
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=7)])],
        timeout_ms=1000,
    )
    assert world.client.call(request, 2).topics[0].partitions[0].error_code == 0
    assert m.acquired() == [(5, 9, 1)]  # whole batches, as in Kafka
    assert m.ack_error((0, 4, [ACCEPT])) == 0
