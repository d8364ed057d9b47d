"""Share partitions over logs with missing records: what retention, the cleaner and a restart leave behind."""

from __future__ import annotations

from broker.coordinator.share.acquire import RECORD_LIMIT, AcquireRequest, ReadBatch, acquire
from broker.coordinator.share.limits import Limits
from broker.coordinator.share.share_partition import SharePartition
from broker.coordinator.share.state import ShareState, StateBatch

LIMITS = Limits(most_deliveries=4, most_in_flight=12, lock_ms=100)


def stored(*batches):
    return ShareState(0, 0, 0, 0, 0, 0, 0, tuple(StateBatch(*each) for each in batches))


def test_gap_of_the_stored_state_does_not_begin_below_the_log():
    """Or the next fetch asks for a record that is gone, again and again, and nothing is delivered any more."""
    partition = SharePartition.from_state(stored((4, 4, 0, 1)), 0, 0)
    partition.log_start_moved(2)
    assert partition.next_fetch_offset() == 2
    found, count = acquire(partition, LIMITS, AcquireRequest("m", 100, 1, 1), 2, [ReadBatch(2, 3), ReadBatch(4, 4)])
    assert [(each.first, each.last) for each in found] == [(2, 3)]
    assert count == 2


def test_start_offset_does_not_go_back_below_the_log():
    partition = SharePartition.from_state(stored((0, 0, 0, 1), (4, 4, 0, 1)), 0, 0)
    acquire(partition, LIMITS, AcquireRequest("m", 100, 1, 1), 0, [ReadBatch(0, 0)])
    partition.log_start_moved(3)
    partition.release("m", LIMITS)
    partition.move_start()
    assert partition.start_offset == 3


def test_rest_of_a_batch_below_the_log_is_passed_over():
    """A member got one record of a batch across the log's start: the next ones of it are gone, too."""
    partition = SharePartition(0)
    acquire(partition, LIMITS, AcquireRequest("m", 100, 1, 1), 0, [ReadBatch(0, 3)])
    partition.log_start_moved(6)
    found, _ = acquire(partition, LIMITS, AcquireRequest("m", 100, 1, 1, RECORD_LIMIT), 6, [ReadBatch(4, 7)])
    assert [(each.first, each.last) for each in found] == [(4, 4)]  # of whole batches, as in Kafka
    assert partition.next_fetch_offset() == 5
    partition.log_start_moved(6)
    assert partition.next_fetch_offset() == 6


def test_full_partition_whose_records_the_cleaner_has_removed_acquires_nothing():
    partition = SharePartition(0)
    log = [ReadBatch(0, 0), ReadBatch(21, 21)]
    acquire(partition, LIMITS, AcquireRequest("m", 100, 12, 1), 0, log)
    partition.release("m", LIMITS)
    acquire(partition, LIMITS, AcquireRequest("m", 100, 1, 1, 1), 0, log)  # offset 0 alone
    assert acquire(partition, LIMITS, AcquireRequest("m", 100, 1, 1), 1, log[1:]) == ([], 0)
