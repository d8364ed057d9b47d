"""Damage to the bytes of a log: a torn tail is cut and reported, anything else is refused with a clear text."""

from __future__ import annotations

import itertools

import pytest
from cases import each_case
from log_kit import DIRECTORY, ONE_SEGMENT, SMALL, content, filled, put, reopened

from storage.files.errors import StorageError
from storage.files.sim_env import Env, sim_env
from storage.log.log import Log
from storage.log.repair import repair


def batches_of(log: Log) -> list[bytes]:
    return [bytes(batch) for _, batch in log.batches(0)]


def copy_with(env: Env, path: str, data: bytes) -> Env:
    """What a start finds when one file holds other bytes."""
    files = env.files.crash()
    files.write_file_atomic(path, data)
    return sim_env(files=files)


def test_log_cut_at_every_byte_of_the_last_segment_keeps_whole_batches():
    env = sim_env()
    log = filled(env, 20)
    assert len(log.segments) > 1
    last = log.segments[-1]
    earlier = last.base_offset // 2
    whole = batches_of(log)
    path, data = last.file.path, env.files.read_file(last.file.path)
    for cut in range(len(data) + 1):
        after = reopened(copy_with(env, path, data[:cut]))
        kept, size = earlier, 0
        while kept < len(whole) and size + len(whole[kept]) <= cut:
            size += len(whole[kept])
            kept += 1
        assert batches_of(after) == whole[:kept]
        assert after.end_offset == 2 * kept
        assert after.report.dropped_bytes == cut - size
        assert bool(after.report.reason) == (cut != size)
        put(after)
        after.flush()
        assert reopened(after.env).end_offset == 2 * kept + 1


@each_case("byte, bit", itertools.product(range(0, 130, 3), [0, 5, 7]))
def test_flipped_bit_in_the_last_batch_is_a_torn_tail(byte, bit):
    env = sim_env()
    log = filled(env, 5, ONE_SEGMENT)
    whole = batches_of(log)
    path = log.segments[0].file.path
    data = bytearray(env.files.read_file(path))
    position = len(data) - len(whole[-1]) + byte % len(whole[-1])
    data[position] ^= 1 << bit
    in_batch = byte % len(whole[-1])
    if in_batch < 8 or 12 <= in_batch < 16:  # outside the CRC: base offset and leader epoch
        return
    after = reopened(copy_with(env, path, bytes(data)), ONE_SEGMENT)
    assert batches_of(after) == whole[:-1]
    assert after.report.dropped_bytes == len(whole[-1])
    assert after.report.path == path


@each_case("byte, bit", itertools.product([*range(8, 12), *range(16, 61), 70, 90], [0, 6]))
def test_flipped_bit_in_the_middle_is_refused_and_nothing_is_changed(byte, bit):
    env = sim_env()
    log = filled(env, 5, ONE_SEGMENT)
    path = log.segments[0].file.path
    data = bytearray(env.files.read_file(path))
    position = len(batches_of(log)[0])
    data[position + byte] ^= 1 << bit
    damaged = copy_with(env, path, bytes(data))
    with pytest.raises(StorageError, match=f"damaged at position {position}") as raised:
        reopened(damaged, ONE_SEGMENT)
    assert path in str(raised.value)
    assert "Restore" in str(raised.value)
    assert damaged.files.read_file(path) == data


def test_damage_before_a_later_segment_is_refused_even_at_the_end_of_its_segment():
    env = sim_env()
    log = filled(env, 20)
    path = log.segments[0].file.path
    data = env.files.read_file(path)
    with pytest.raises(StorageError, match="a later segment exists"):
        reopened(copy_with(env, path, data[:-1]))


def test_offsets_that_go_back_are_damage():
    env = sim_env()
    log = filled(env, 5, ONE_SEGMENT)
    path = log.segments[0].file.path
    data = env.files.read_file(path)
    with pytest.raises(StorageError, match="come after"):
        reopened(copy_with(env, path, data + batches_of(log)[1]), ONE_SEGMENT)


def test_torn_batch_whose_record_holds_a_batch_is_still_a_torn_tail():
    env = sim_env()
    log = filled(env, 3, ONE_SEGMENT)
    inner = batches_of(log)[0]
    put(log, (b"mirrored", inner * 3))
    log.flush()
    path = log.segments[0].file.path
    data = env.files.read_file(path)
    after = reopened(copy_with(env, path, data[:-5]), ONE_SEGMENT)
    assert after.end_offset == 6
    assert after.report.dropped_bytes > 200


def test_zeros_behind_the_last_batch_are_a_torn_tail():
    env = sim_env()
    log = filled(env, 3, ONE_SEGMENT)
    path = log.segments[0].file.path
    data = env.files.read_file(path)
    after = reopened(copy_with(env, path, data + bytes(5000)), ONE_SEGMENT)
    assert (after.end_offset, after.report.dropped_bytes) == (6, 5000)


def test_clean_mark_does_not_hide_a_cut_file():
    env = sim_env()
    log = filled(env, 20)
    log.close()
    path = log.segments[-1].file.path
    data = env.files.read_file(path)
    after = reopened(copy_with(env, path, data[:-1]), clean=True)
    assert after.end_offset == 38
    assert after.report.dropped_bytes > 0


def test_recovery_point_does_not_hide_damage_behind_it():
    env = sim_env()
    log = filled(env, 14, ONE_SEGMENT)
    log.sync()
    point = log.checkpoint()
    for _ in range(3):
        put(log)
    log.flush()
    whole = batches_of(log)
    path = log.segments[0].file.path
    data = bytearray(env.files.read_file(path))
    data[len(data) - len(whole[-1]) - 5] ^= 1
    with pytest.raises(StorageError, match="wrong CRC, but a whole batch follows"):
        reopened(copy_with(env, path, bytes(data)), ONE_SEGMENT, recovery_point=point)


def test_leftovers_of_interrupted_work_are_tidied():
    env = sim_env()
    log = filled(env, 14, SMALL)
    expected = content(log)
    for name in (
        "00000000000000000099.index",
        "00000000000000000000.log.cleaned",
        "00000000000000000000.log.deleted",
        "00000000000000000000.index.tmp",
    ):
        env.files.write_file_atomic(f"{DIRECTORY}/{name}", b"1234567")
    after = reopened(env)
    assert content(after) == expected
    assert all(name.endswith((".log", ".index", ".timeindex", "checkpoint")) for name in env.files.listdir(DIRECTORY))


@pytest.mark.parametrize("segment", [0, 1, -1])
def test_repair_gives_up_what_follows_the_damage_and_says_how_much(segment):
    env = sim_env()
    log = filled(env, 30)
    path = log.segments[segment].file.path
    data = bytearray(env.files.read_file(path))
    data[130] ^= 1
    damaged = copy_with(env, path, bytes(data))
    with pytest.raises(StorageError, match="damaged"):
        reopened(damaged)
    report = repair(damaged, DIRECTORY)
    after = reopened(damaged)
    assert (report.path, report.dropped_bytes) == (path, log.size_bytes - after.size_bytes)
    assert content(log).startswith(content(after))
    assert after.end_offset == log.segments[segment].base_offset + 2
    assert after.report.dropped_bytes == 0
    assert repair(damaged, DIRECTORY).dropped_bytes == 0
