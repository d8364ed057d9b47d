"""A base offset that is wrong, which no CRC covers: found in a log that was never cleaned, where no gap can be."""

from __future__ import annotations

import pytest
from core_broker import DATA, Client, World, make_topic
from core_requests import produce_request
from log_kit import DIRECTORY, ONE_SEGMENT, SMALL, filled, put

from protocol.errors import ErrorCode
from protocol.record_batch import iter_batches
from storage.files.env import Env
from storage.files.errors import StorageError
from storage.files.sim_env import MemoryFiles, sim_env
from storage.log.log import Log
from storage.log.repair import repair

FLIPPED = 0x1000000  # one bit of a base offset


def flipped(files: MemoryFiles, path: str, number: int) -> Env:
    """What a start finds after a bit of the base offset of one batch has flipped. A number of -1: the last batch."""
    data = bytearray(files.read_file(path))
    position = [position for position, _ in iter_batches(data)][number]
    base_offset = int.from_bytes(data[position : position + 8], "big") ^ FLIPPED
    data[position : position + 8] = base_offset.to_bytes(8, "big")
    left = files.crash()
    left.write_file_atomic(path, bytes(data))
    return sim_env(files=left)


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("batches", [1, 2, 3, 11, 12, 13])
@pytest.mark.parametrize("config", [ONE_SEGMENT, SMALL], ids=["one-segment", "segments"])
def test_flipped_base_offset_of_the_last_batch_is_damage(config, batches, clean, has_index):
    env = sim_env()
    log = filled(env, batches, config)
    log.sync()
    log.close(clean=has_index)
    last = log.segments[-1].base_offset
    wrong = flipped(env.files, f"{DIRECTORY}/{last:020d}.log", -1)
    end = 2 * batches
    with pytest.raises(StorageError, match=f"offset {FLIPPED + end - 2} comes where {end - 2} should"):
        Log.open(wrong, DIRECTORY, config, clean=clean, may_have_gaps=False)
    assert Log.open(wrong, DIRECTORY, config, clean=clean).end_offset == FLIPPED + end  # it cannot be told there


@pytest.mark.parametrize("clean", [True, False])
def test_flipped_base_offset_is_damage_where_the_index_was_made_again_from_it(clean):
    env = sim_env()
    log = Log.open(env, DIRECTORY)
    for _ in range(4):
        put(log, (b"k", b"v" * 5000))
        log.flush()
    log.sync()
    log.close()
    wrong = flipped(env.files, f"{DIRECTORY}/{0:020d}.log", -1)
    with pytest.raises(StorageError, match=f"offset {FLIPPED + 3} comes where 3 should"):
        Log.open(wrong, DIRECTORY, clean=clean, may_have_gaps=False)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("batches", [1, 2, 3, 11, 12, 13])
def test_log_without_gaps_opens(batches, clean):
    env = sim_env()
    log = filled(env, batches, SMALL)
    log.sync()
    log.close()
    again = Log.open(sim_env(files=env.files.crash()), DIRECTORY, SMALL, clean=clean, may_have_gaps=False)
    assert again.end_offset == 2 * batches


@pytest.mark.parametrize(("is_cleaned", "error"), [(False, ErrorCode.KAFKA_STORAGE_ERROR), (True, ErrorCode.NONE)])
def test_partition_opens_with_a_gap_only_if_the_cleaner_was_there(is_cleaned, error):
    """Whatever its policy is now, and though the broker was killed as soon as the cleaner had begun."""
    world = World("os")
    client = Client(world)
    make_topic(client, partitions=1)
    for _ in range(3):
        client.call(produce_request("t", 0, b"x"), 9)
    if is_cleaned:
        world.broker.directory.will_clean(("t", 0))
    again = World("os", flipped(world.env.files, f"{DATA}/t-0/{0:020d}.log", -1))
    answer = Client(again).call(produce_request("t", 0, b"y"), 9).responses[0].partition_responses[0]
    assert answer.error_code == error


@pytest.mark.parametrize(("may_have_gaps", "end"), [(False, 4), (True, FLIPPED + 6)])
def test_repair_gives_up_what_comes_after_a_gap_where_there_can_be_none(may_have_gaps, end):
    env = sim_env()
    log = filled(env, 3)
    log.close()
    wrong = flipped(env.files, f"{DIRECTORY}/{0:020d}.log", -1)
    report = repair(wrong, DIRECTORY, may_have_gaps=may_have_gaps)
    assert bool(report.dropped_bytes) is not may_have_gaps
    assert Log.open(wrong, DIRECTORY, may_have_gaps=may_have_gaps).end_offset == end
