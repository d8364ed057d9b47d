"""What the next start has to look at: recovery points, log start offsets and the mark of a clean shutdown."""

from __future__ import annotations

from random import Random

import pytest
from core_broker import DATA, Client, World, make_topic
from core_requests import fetch_request, produce_request
from power_cut import power_cut

from protocol.errors import ErrorCode
from protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from storage.files import checkpoints

MINUTE_MS = 60_000
BIG = bytes(6000)  # larger than index.interval.bytes, so that the index has an entry a batch


def filled(flush: str = "os", batches: int = 5) -> tuple[World, Client]:
    """A broker whose topic t has one partition with some large batches."""
    world = World(flush)
    client = Client(world)
    make_topic(client)
    produce(client, batches)
    return world, client


def produce(client: Client, batches: int) -> None:
    for _ in range(batches):
        answer = client.call(produce_request("t", 0, BIG), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def recovery_points(world: World) -> dict:
    return checkpoints.read_offsets(world.files, f"{DATA}/{checkpoints.RECOVERY_POINTS}")


def log_of(world: World):
    return world.broker.partitions.get(world.broker.metadata.topics["t"], 0).log


def delete_topic(client: Client) -> None:
    answer = client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000), 6)
    assert answer.responses[0].error_code == 0


def delete_records(client: Client, offset: int):
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[partition])], timeout_ms=1000)
    answer = client.call(request, 2).topics[0].partitions[0]
    return answer.error_code, answer.low_watermark


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_start_after_kill_9_scans_only_what_came_after_the_last_minute(flush):
    world, client = filled(flush)
    assert ("t", 0) not in recovery_points(world)
    world.advance(MINUTE_MS)
    assert recovery_points(world)["t", 0] == 5
    produce(client, 1)
    scanned = log_of(world.crash()).report.scanned_bytes
    assert 0 < scanned < 3 * len(BIG)
    assert log_of(world.crash()).end_offset == 6


def test_start_after_kill_9_without_a_checkpoint_scans_all():
    world, _ = filled()
    assert log_of(world.crash()).report.scanned_bytes > 5 * len(BIG)


def test_what_a_checkpoint_names_survives_a_power_cut():
    world, client = filled()
    world.advance(MINUTE_MS)
    produce(client, 2)
    after = world.crash(lose_unsynced=True)
    assert log_of(after).end_offset >= 5
    assert Client(after).call(fetch_request("t", 0, 4), 12).responses[0].partitions[0].error_code == 0


def test_log_that_has_not_grown_is_left_alone():
    world, _ = filled()
    world.advance(MINUTE_MS)
    operations = world.files.operations
    world.advance(MINUTE_MS)
    assert world.files.operations == operations


def test_failed_sync_is_not_tried_again_and_its_log_is_scanned_at_the_next_start():
    world, client = filled()
    world.files.inject(1, kinds={"sync"})
    world.advance(MINUTE_MS)
    failed = {key for key in world.broker.directory.logs if key not in recovery_points(world)}
    assert failed, "nothing failed"
    world.files.heal()
    produce(client, 1)
    world.advance(MINUTE_MS)
    assert {key for key in world.broker.directory.logs if key not in recovery_points(world)} == failed


def test_memory_writes_no_checkpoints():
    world, _ = filled("memory")
    world.advance(2 * MINUTE_MS)
    assert recovery_points(world) == {}


def test_topic_made_again_does_not_inherit_the_recovery_point_of_its_name():
    world, client = filled()
    world.advance(MINUTE_MS)
    delete_topic(client)
    make_topic(client)
    produce(client, 2)
    after = world.crash()
    assert ("t", 0) not in recovery_points(after)
    assert log_of(after).report.scanned_bytes > 2 * len(BIG)


@pytest.mark.parametrize("lose_unsynced", [False, True])
def test_new_log_start_is_durable_when_it_is_answered(lose_unsynced):
    world, client = filled("fsync")
    assert delete_records(client, 3) == (0, 3)
    assert log_of(world.crash(lose_unsynced=lose_unsynced)).log_start_offset == 3


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_records_removed_by_retention_are_not_back_after_any_loss_of_power(flush, seed):
    """If some were and later ones were not, the log would have a hole. At os a clean stop comes first."""
    world, client = filled(flush, batches=0)
    for _ in range(6):
        produce(client, 1)
        log_of(world).roll()
    produce(client, 1)
    log_of(world).config = log_of(world).config._replace(retention_bytes=2 * len(BIG))
    world.advance(5 * MINUTE_MS)
    assert log_of(world).log_start_offset == 5
    if flush == "os":
        world.broker.close()
    after = world.again(power_cut(world.files, Random(seed)))
    log = log_of(after)
    assert (log.log_start_offset, log.end_offset) == (5, 7)
    produce(Client(after), 1)
    after.advance(5 * MINUTE_MS)
    assert [header.base_offset for header, _ in log.batches(0)] == [5, 6, 7]


def test_nothing_is_removed_by_retention_before_the_new_log_start_is_durable():
    world, client = filled("fsync")
    log_of(world).roll()
    produce(client, 1)
    log_of(world).config = log_of(world).config._replace(retention_bytes=0)
    world.files.inject(1, kinds={"replace"}, forever=True)
    world.advance(5 * MINUTE_MS)
    assert log_of(world).log_start_offset == 0
    world.files.heal()
    world.advance(5 * MINUTE_MS)
    assert log_of(world.crash(lose_unsynced=True)).log_start_offset == 6


def test_log_start_that_could_not_be_written_is_an_error_until_it_is():
    world, client = filled()
    world.files.inject(1, kinds={"replace"})
    assert delete_records(client, 3) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    assert delete_records(client, 3) == (0, 3)
    assert log_of(world.crash()).log_start_offset == 3


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_clean_stop_is_synced_and_the_next_start_scans_nothing(flush):
    world, _ = filled(flush)
    world.broker.close()
    after = world.again(world.files.crash(lose_unsynced=True))
    assert after.broker.directory.was_clean
    log = log_of(after)
    assert (log.end_offset, log.report.scanned_bytes) == (5, 0)


@pytest.mark.parametrize("starts", [1, 2])
def test_log_that_no_start_since_a_crash_has_opened_is_still_scanned(starts):
    world, _ = filled()
    files = world.files.crash()
    file = files.open_append(f"{DATA}/t-0/{0:020d}.log")
    last = file.pread(1, file.size - 1)
    file.truncate(file.size - 1)
    file.append([bytes([last[0] ^ 1])])  # of the length that was written, but not what was written
    after = world.again(files)
    for _ in range(starts):
        assert ("t", 0) not in after.broker.directory.logs
        after = after.restart()
        assert not after.broker.directory.was_clean
    assert log_of(after).end_offset == 4


def test_stop_on_a_slow_disk_is_in_time_and_not_clean():
    world, _ = filled()
    sync = type(world.files.open_append("x")).sync
    slow = world.clock

    def sync_slowly(file):
        slow.advance(3000)
        sync(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.files.open_append("x")), "sync", sync_slowly)
        world.broker.close()
    after = world.again(world.files.crash())
    assert not after.broker.directory.was_clean
    assert log_of(after).end_offset == 5


def test_stop_with_a_log_that_cannot_be_written_is_not_clean_and_closes_the_others():
    world, client = filled()
    client.send(produce_request("t", 0, BIG), 9)
    world.files.inject(1, kinds={"write", "truncate"}, forever=True)
    world.broker.turn.end()
    world.files.heal()
    world.files.inject(1, kinds={"sync"})
    world.broker.close()
    after = world.again(world.files.crash())
    assert not after.broker.directory.was_clean
    assert log_of(after).end_offset == 5


def test_recovery_point_behind_the_end_of_a_log_cut_by_hand_is_lowered():
    world, _ = filled()
    world.advance(MINUTE_MS)
    files = world.files.crash()
    name = f"{DATA}/t-0/{0:020d}"
    file = files.open_append(name + ".log")
    file.truncate(file.size - 100)
    after = world.again(files)
    assert log_of(after).end_offset == 4
    assert recovery_points(after)["t", 0] == 4


def test_topic_made_again_has_nothing_of_what_a_crash_left_under_its_name():
    world, client = filled()
    world.advance(MINUTE_MS)
    world.files.inject(1, kinds={"rename", "remove"}, forever=True)
    delete_topic(client)
    make_topic(client)
    after = world.crash()
    assert after.files.exists(f"{DATA}/t-0"), "nothing was left"
    assert log_of(after).end_offset == 0
    assert not after.files.exists(f"{DATA}/t-0")
    assert ("t", 0) not in recovery_points(after)
    produce(Client(after), 1)
    assert log_of(after.crash()).end_offset == 1


def test_stop_without_time_leaves_out_indexes_and_not_a_record():
    world, _ = filled()
    world.broker.turn.end()
    world.broker.partitions.close(0)
    world.broker.directory.close(0)
    assert not world.files.exists(f"{DATA}/t-0/{0:020d}.index")
    after = world.again(world.files.crash())
    assert not after.broker.directory.was_clean
    assert log_of(after).end_offset == 5


def test_small_log_is_closed_without_indexes():
    world = World()
    client = Client(world)
    make_topic(client)
    assert client.call(produce_request("t", 0, b"v"), 9).responses[0].partition_responses[0].error_code == 0
    after = world.restart()
    assert not after.files.exists(f"{DATA}/t-0/{0:020d}.index")
    assert log_of(after).end_offset == 1
