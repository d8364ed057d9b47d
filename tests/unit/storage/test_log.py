"""A log on memory files: append, flush, read, roll, cut back."""

from __future__ import annotations

import os

import pytest
from log_kit import DIRECTORY, ONE_SEGMENT, SMALL, content, filled, put, reopened

from protocol.errors import ErrorCode, KafkaError
from protocol.record_batch import iter_batches
from storage.files import checkpoints
from storage.files.disk import SystemFiles
from storage.files.env import system_env
from storage.files.sim_env import sim_env
from storage.log.log import Log, LogConfig


@pytest.fixture
def env():
    return sim_env()


def test_log_before_first_append_leaves_nothing_on_disk(env):
    log = Log.open(env, DIRECTORY, SMALL)
    log.set_leader_epoch(0)
    log.flush()
    log.close()
    assert not env.files.exists("/data")


def test_append_alone_is_not_readable(env):
    log = Log.open(env, DIRECTORY, SMALL)
    put(log)
    assert (log.end_offset, log.flushed_offset, log.dirty) == (1, 0, True)
    assert log.read(0, 1000, limit_offset=1) is None
    log.flush()
    assert (log.flushed_offset, log.dirty) == (1, False)
    assert len(log.read(0, 1000, limit_offset=1)) == log.size_bytes


def test_append_at_another_offset_is_refused(env):
    log = filled(env, 2)
    with pytest.raises(ValueError, match="does not follow"):
        log.append([b"x" * 61], base_offset=3, last_offset=3, max_timestamp_ms=0, size=61)


def test_flush_writes_batches_given_in_parts_unchanged(env):
    log = Log.open(env, DIRECTORY, SMALL)
    whole = put(log)
    log.flush()
    base = log.end_offset
    other = whole[:7] + b"\x01" + whole[8:]
    parts = [other[:16], memoryview(other)[16:]]
    log.append(parts, base_offset=base, last_offset=base, max_timestamp_ms=0, size=len(other))
    log.flush()
    assert content(log) == whole + other


def test_batch_never_spans_segments_and_large_one_gets_its_own(env):
    log = Log.open(env, DIRECTORY, SMALL)
    put(log)
    put(log, (b"k", b"x" * 3000))
    put(log)
    log.flush()
    assert [segment.base_offset for segment in log.segments] == [0, 1, 2]


def test_segment_rolls_when_its_first_batch_is_too_old(env):
    log = Log.open(env, DIRECTORY, LogConfig(segment_ms=100))
    for timestamp_ms in (1000, 1100, 1101, 1150, 1202):
        put(log, timestamp_ms=timestamp_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]


def test_segment_rolls_when_its_index_is_full(env):
    log = Log.open(env, DIRECTORY, LogConfig(index_interval_bytes=1, segment_index_bytes=48))
    for _ in range(12):
        put(log)
    log.flush()
    assert all(len(segment.index.offsets) <= 3 for segment in log.segments)
    assert len(log.segments) == 3


def test_segment_rolls_before_relative_offsets_overflow(env):
    log = Log.open(env, DIRECTORY, LogConfig())
    put(log)
    last = 1 << 31
    log.append([b"x" * 61], base_offset=1, last_offset=last, max_timestamp_ms=0, size=61)
    assert [segment.base_offset for segment in log.segments] == [0, 1]


@pytest.mark.parametrize("max_bytes", [1, 150, 400, 1 << 20])
@pytest.mark.parametrize("from_offset", [0, 1, 17, 38])
def test_read_step_by_step_gives_every_batch_once(env, max_bytes, from_offset):
    log = filled(env, 40)
    offset, read = from_offset, b""
    while (found := log.read(offset, max_bytes, limit_offset=log.end_offset)) is not None:
        data = found.read()
        headers = [header for _, header in iter_batches(data)]
        assert headers[0].base_offset <= offset
        assert len(data) <= max_bytes or len(headers) == 1
        assert sum(header.size for header in headers) == len(data) == len(found)
        offset, read = headers[-1].next_offset, read + data
    assert read == content(log, from_offset)


@pytest.mark.parametrize("limit_offset", range(0, 24, 3))
def test_read_stops_before_limit(env, limit_offset):
    log = filled(env, 12)
    offset = 0
    while (found := log.read(offset, 300, limit_offset=limit_offset)) is not None:
        for _, header in iter_batches(found.read()):
            assert header.last_offset < limit_offset
            offset = header.next_offset
    assert offset == limit_offset - limit_offset % 2


def test_read_without_min_one_gives_nothing_when_first_batch_is_larger(env):
    log = filled(env, 3)
    assert log.read(0, 50, limit_offset=6, min_one=False) is None
    assert log.read(0, 50, limit_offset=6, min_one=True) is not None


@pytest.mark.parametrize("offset", [-1, 7])
def test_read_outside_the_log_is_out_of_range(env, offset):
    log = filled(env, 3)
    with pytest.raises(KafkaError) as raised:
        log.read(offset, 50, limit_offset=100)
    assert raised.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_slice_reads_any_part_of_itself(env):
    log = filled(env, 5, ONE_SEGMENT)
    found = log.read(2, 1 << 20, limit_offset=10)
    whole = found.read()
    assert whole == content(log, 2)
    assert found.pread(10, 5) == whole[5:15]
    assert found.pread(1000, len(found) - 3) == whole[-3:]


def test_index_lookup_equals_linear_scan(env):
    log = filled(env, 60, ONE_SEGMENT)
    segment = log.segments[0]
    for offset in range(120):
        segment.hints = {}
        expected = next(at for at, header in segment.headers(0) if header.last_offset >= offset)
        assert segment.position_of(offset) == expected
    assert len(segment.index.offsets) > 10


@pytest.mark.parametrize("offset", range(25))
def test_cut_back_drops_the_batch_that_holds_the_offset(env, offset):
    log = filled(env, 12)
    before = [(header.base_offset, bytes(batch)) for header, batch in log.batches(0)]
    log.cut_back(offset)
    end = min(24, offset - offset % 2)
    assert (log.end_offset, log.flushed_offset) == (end, end)
    assert content(log) == b"".join(batch for base, batch in before if base < end)
    put(log)
    log.flush()
    assert log.end_offset == end + 1
    after = reopened(env)
    assert (after.end_offset, content(after), after.report.dropped_bytes) == (end + 1, content(log), 0)


def test_cut_back_forgets_timestamps_of_what_it_dropped(env):
    log = filled(env, 12, ONE_SEGMENT)
    log.cut_back(10)
    assert log.max_timestamp() == (1040, 8, 0)
    assert log.offset_for_timestamp(1041) is None


def test_config_change_applies_to_the_active_segment(env):
    log = filled(env, 3, ONE_SEGMENT)
    log.config = log.config._replace(segment_bytes=200)
    put(log)
    assert len(log.segments) == 2


def test_delete_removes_the_directory_and_ends_the_log(env):
    log = filled(env, 3)
    found = log.read(0, 100, limit_offset=6)
    log.delete()
    assert env.files.listdir("/data") == []
    assert len(found.read()) == len(found)
    with pytest.raises(Exception, match="was deleted"):
        put(log)


def test_delete_closes_files_when_the_last_slice_is_read_though_the_log_lives_on(tmp_path):
    log = filled(system_env(), 3, directory=f"{tmp_path}/t-0")
    files = log.env.files
    assert isinstance(files, SystemFiles)
    found = log.read(0, 100, limit_offset=6)
    descriptor = files.handle(log.segments[0].file).fd
    log.delete()
    assert os.fstat(descriptor).st_nlink == 0
    assert len(found.read()) == len(found)
    del found
    closed = files.start(lambda: None)  # behind what closes it
    while not closed():
        pass
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(descriptor)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="/proc tells which files are open")
def test_delete_takes_names_away_while_the_files_are_open_so_that_others_free_them(tmp_path, monkeypatch):
    log = filled(system_env(), 3, directory=f"{tmp_path}/t-0")
    files, counts = log.env.files, []
    remove_tree = files.remove_tree

    def removed(path):
        closed = files.start(lambda: None)  # behind all that is being closed
        while not closed():
            pass
        names = (os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd"))
        counts.append(sum(os.path.dirname(name) == os.path.realpath(path) for name in names))
        remove_tree(path)

    monkeypatch.setattr(files, "remove_tree", removed)
    segments = len(log.segments)
    log.delete()
    assert counts == [segments]


def test_topic_id_is_written_with_the_first_batch(env):
    from storage.files.checkpoints import read_partition_metadata

    topic_id = env.rng.uuid_bytes()
    log = Log.open(env, DIRECTORY, SMALL, topic_id=topic_id)
    put(log)
    log.flush()
    assert read_partition_metadata(env.files, DIRECTORY) == topic_id


def test_clean_open_scans_nothing_and_finds_the_end(env):
    log = filled(env, 40)
    log.close()
    after = reopened(env, clean=True)
    assert (after.end_offset, after.synced_offset) == (80, 80)
    assert after.report == type(after.report)()
    assert content(after) == content(log)


def test_open_scans_only_behind_the_recovery_point(env):
    log = filled(env, 40, ONE_SEGMENT)
    log.sync()
    point = log.checkpoint()
    put(log)
    log.flush()
    after = reopened(env, ONE_SEGMENT, recovery_point=point)
    assert after.end_offset == 81
    assert 0 < after.report.scanned_bytes < 600 < log.size_bytes
    assert after.max_timestamp() == log.max_timestamp()
    assert after.segments[0].index.offsets == log.segments[0].index.offsets


def test_recovered_log_has_the_same_indexes_as_the_one_written(env):
    log = filled(env, 40, ONE_SEGMENT)
    after = reopened(env, ONE_SEGMENT)
    for column in ("offsets", "positions", "timestamps", "time_offsets"):
        assert getattr(after.segments[0].index, column) == getattr(log.segments[0].index, column)


def test_rolled_segments_have_their_indexes_on_disk_at_once(env):
    log = filled(env, 40)
    names = env.files.listdir(DIRECTORY)
    for segment in log.segments[:-1]:
        assert {f"{segment.base_offset:020d}.index", f"{segment.base_offset:020d}.timeindex"} <= set(names)
    assert f"{log.segments[-1].base_offset:020d}.index" not in names


def test_index_that_is_gone_or_damaged_is_made_again(env):
    log = filled(env, 40)
    log.close()
    for name in env.files.listdir(DIRECTORY):
        if name.endswith(".index"):
            env.files.write_file_atomic(f"{DIRECTORY}/{name}", b"\x7f" * 24)
        elif name.endswith(".timeindex"):
            env.files.remove(f"{DIRECTORY}/{name}")
    after = reopened(env, clean=True)
    for offset in range(80):
        assert next(iter(after.batches(offset)))[0].base_offset == offset - offset % 2
    assert after.offset_for_timestamp(1105) == log.offset_for_timestamp(1105) == (1110, 22, 0)


def log_of_two_epochs(env):
    """Three records of epoch 2, and three of epoch 5."""
    log = Log.open(env, DIRECTORY, SMALL)
    for epoch in (2, 5):
        log.set_leader_epoch(epoch)
        for _ in range(3):
            put(log)
        log.flush()
    return log


def test_leader_epochs_answer_as_kafka_and_survive_a_crash(env):
    log = log_of_two_epochs(env)
    assert log.leader_epoch == 5
    expected = {-1: (-1, -1), 1: (1, 0), 2: (2, 3), 3: (2, 3), 5: (5, 6), 6: (-1, -1)}
    assert {epoch: log.epoch_end_offset(epoch) for epoch in expected} == expected
    env.files.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    after = reopened(env)
    assert {epoch: after.epoch_end_offset(epoch) for epoch in expected} == expected


@pytest.mark.parametrize("start", ["killed", "given up"])
def test_leader_epochs_whose_records_are_deleted_are_unknown_after_a_start_too(env, start):
    log = log_of_two_epochs(env)
    assert log.delete_records_before(4) == 4
    expected = {epoch: log.epoch_end_offset(epoch) for epoch in range(7)}
    assert expected[2] == (2, 4)
    if start == "killed":
        log = reopened(env, log_start_offset=4)
    else:
        log.give_up("is to be read again")
        log.reopen(6)
    assert {epoch: log.epoch_end_offset(epoch) for epoch in range(7)} == expected


def test_many_logs_share_few_descriptors(tmp_path):
    from storage.files.env import Env, Rng, SystemClock, SystemFiles

    files = SystemFiles(max_open_files=4)
    env = Env(SystemClock(), Rng(1), files)
    logs = [filled(env, 2, directory=f"{tmp_path}/topic-{n}") for n in range(20)]
    for _ in range(3):
        for log in logs:
            put(log)
            log.flush()
            assert log.read(0, 1 << 20, limit_offset=99) is not None
    assert files.open_handles <= 4
    assert [log.end_offset for log in logs] == [7] * 20


def test_two_threads_may_say_at_once_whose_a_log_is(tmp_path):
    """One syncs the log for the first time, while the loop begins its second segment."""
    files, directory = system_env().files, str(tmp_path)
    topic_id = bytes(range(16))
    checkpoints.write_partition_metadata(files, directory, topic_id)
    replaced = files.write_file_atomic
    files.write_file_atomic = None  # what replaces a file takes it from under the other's hands
    checkpoints.sync_partition_metadata(files, directory, topic_id)
    files.write_file_atomic = replaced
    checkpoints.sync_partition_metadata(files, directory, bytes(16))  # what is there is another's, or was cut short
    assert checkpoints.read_partition_metadata(files, directory) == bytes(16)
