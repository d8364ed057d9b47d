"""The file of the leader epochs is not synced: after a loss of power it may be missing, short, or an older one."""

from __future__ import annotations

import pytest
from log_kit import DIRECTORY, durable_env, put

from storage.files.env import Env
from storage.log.log import Log, LogConfig
from storage.segments.leader_epochs import FILE_NAME

PATH = f"{DIRECTORY}/{FILE_NAME}"
EPOCHS = (0, 1, 3, 4, 7)
SEGMENTS = LogConfig(segment_bytes=1000, index_interval_bytes=100)
ONE_SEGMENT = LogConfig(index_interval_bytes=100)
COARSE = LogConfig(index_interval_bytes=1500)  # the last epoch begins behind the last entry


def with_epochs(config: LogConfig) -> tuple[Log, list[bytes]]:
    """A log below its recovery point, and its file of epochs as it was with each epoch."""
    log, versions = Log.open(durable_env(), DIRECTORY, config), []
    for epoch in EPOCHS:
        log.set_leader_epoch(epoch)
        for _ in range(5):
            put(log)
            log.flush()
        versions.append(log.env.files.read_file(PATH))
    log.sync()
    log.checkpoint()
    return log, versions


def answers(log: Log) -> list[tuple[int, int]]:
    return [log.epoch_end_offset(epoch) for epoch in range(EPOCHS[-1] + 3)]


@pytest.mark.parametrize("config", [SEGMENTS, ONE_SEGMENT, COARSE])
@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("deleted", [0, 7])
def test_epochs_are_known_whatever_is_left_of_their_file(config: LogConfig, clean: bool, deleted: int) -> None:
    _, versions = with_epochs(config)
    whole = versions[-1]
    damaged = [whole[:size] for size in range(len(whole))] + [whole.replace(b"3 10", b"3x10")]
    for left in (None, *damaged, *versions):
        log, _ = with_epochs(config)
        files = log.env.files
        log.delete_records_before(deleted)
        if left is None:
            files.remove(PATH)
        else:
            files.write_file_atomic(PATH, left)
        for point in {log.end_offset, log.end_offset if clean else 13}:
            env = Env(log.env.clock, log.env.rng, files.crash())
            opened = Log.open(
                env, DIRECTORY, config, recovery_point=point, log_start_offset=log.log_start_offset, clean=clean
            )
            assert answers(opened) == answers(log), (left, point)


@pytest.mark.parametrize("config", [SEGMENTS, ONE_SEGMENT])
def test_kill_moves_no_epoch_to_where_the_scan_begins(config: LogConfig) -> None:
    log, _ = with_epochs(config)
    for point in range(log.end_offset + 1):
        env = Env(log.env.clock, log.env.rng, log.env.files.crash())
        assert answers(Log.open(env, DIRECTORY, config, recovery_point=point)) == answers(log), point


def test_epoch_of_another_life_is_forgotten() -> None:
    log, versions = with_epochs(SEGMENTS)
    log.cut_back(18)
    log.set_leader_epoch(9)
    for _ in range(12):
        put(log)
        log.flush()
    log.sync()
    log.checkpoint()
    files = log.env.files.crash()
    files.write_file_atomic(PATH, versions[-1])
    opened = Log.open(Env(log.env.clock, log.env.rng, files), DIRECTORY, SEGMENTS, recovery_point=log.synced_offset)
    assert answers(opened) == answers(log)
