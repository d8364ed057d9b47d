"""Opening, cutting and rolling a log at their edges: exact offsets, reads, epochs and texts."""

from __future__ import annotations

import pytest
from log_kit import DIRECTORY, ONE_SEGMENT, SMALL, content, filled, put, reopened

from protocol.record_batch import HEADER_BYTES, build_batch
from storage.files.env import Env
from storage.files.errors import StorageError
from storage.files.sim_env import MemoryFile, sim_env
from storage.log.log import Log, LogConfig
from storage.segments import recovery, scan
from storage.segments.leader_epochs import LeaderEpochs
from storage.segments.segment import MAX_RELATIVE_OFFSET

PATH = f"{DIRECTORY}/{0:020d}.log"


@pytest.fixture
def env() -> Env:
    return sim_env()


def copy_with(env: Env, path: str, data: bytes) -> Env:
    """What a start finds when one file holds other bytes."""
    files = env.files.crash()
    files.write_file_atomic(path, data)
    return sim_env(files=files)


def copied(env: Env) -> Env:
    return sim_env(files=env.files.crash())


def index_of(log: Log) -> list[object]:
    found: list[object] = []
    for segment in log.segments:
        index = segment.index
        found += [list(index.offsets), list(index.positions), list(index.timestamps), list(index.time_offsets)]
        found += [segment.max_timestamp, segment.max_timestamp_offset, segment.indexed_position, segment.flushed_max]
    return found


# -- the recovery point


@pytest.mark.parametrize("batches", [1, 2, 3, 5, 12])
def test_start_scans_from_the_last_index_entry_below_the_recovery_point(env, batches):
    log = filled(env, batches, ONE_SEGMENT)
    log.sync()
    log.checkpoint()
    index = log.segments[0].index
    for point in range(2 * batches + 1):
        after = reopened(copied(env), ONE_SEGMENT, recovery_point=point)
        begins = max([p for o, p in zip(index.offsets, index.positions, strict=True) if o < point], default=0)
        assert after.report.scanned_bytes == log.size_bytes - begins, point
        assert index_of(after) == index_of(log)
        assert after.end_offset == 2 * batches
        assert after.synced_offset == point
        put(after)
        after.flush()
        assert after.end_offset == 2 * batches + 1


@pytest.mark.parametrize("batches", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("config", [ONE_SEGMENT, SMALL])
def test_start_after_a_clean_stop_reads_from_the_last_index_entry_on(env, batches, config, monkeypatch):
    log = filled(env, batches, config)
    put(log, timestamp_ms=5_000)
    log.close()
    reads: list[int] = []
    pread = MemoryFile.pread

    def counted(file: MemoryFile, n: int, at: int) -> bytes:
        if n > HEADER_BYTES:
            reads.append(at)
        return pread(file, n, at)

    monkeypatch.setattr(MemoryFile, "pread", counted)
    after = reopened(copied(env), config, clean=True)
    positions = log.segments[-1].index.positions
    assert reads[0] == (positions[-1] if positions else 0)
    assert after.end_offset == log.end_offset
    last = after.segments[-1]
    assert (last.max_timestamp, last.max_timestamp_offset) == (5_000, log.end_offset - 1)
    assert last.flushed_max == (5_000, log.end_offset - 1)


# -- leader epochs


def with_epochs(env: Env) -> Log:
    """Epochs 1, 4 and 6 from offsets 0, 4 and 8 on; one batch of two records at each even offset up to 12."""
    log = Log.open(env, DIRECTORY, ONE_SEGMENT)
    for offset in range(0, 12, 2):
        epoch = {0: 1, 4: 4, 8: 6}.get(offset)
        if epoch is not None:
            log.set_leader_epoch(epoch)
        put(log, (b"k", b"v"), (b"l", b"w"))
        log.flush()
    log.sync()
    log.checkpoint()
    return log


def test_epoch_that_has_not_written_yet_survives_a_start_and_a_cut(env):
    log = with_epochs(env)
    log.set_leader_epoch(9)
    log.checkpoint()
    after = reopened(copied(env), ONE_SEGMENT, clean=True)
    assert (after.epochs.epochs, after.epochs.start_offsets) == ([1, 4, 6, 9], [0, 4, 8, 12])
    for offset, epochs in ((12, 4), (10, 3), (8, 3), (7, 2), (4, 2), (3, 1), (0, 1)):
        after.cut_back(offset)
        assert len(after.epochs.epochs) == epochs, offset


def test_epoch_is_in_its_file_once_its_first_batch_is_written(env):
    log = Log.open(env, DIRECTORY, ONE_SEGMENT)
    for epoch in (1, 4):
        log.set_leader_epoch(epoch)
        put(log)
        log.flush()
        put(log)
        log.flush()
    found = LeaderEpochs()
    found.load(env.files, DIRECTORY)
    assert (found.epochs, found.start_offsets) == ([1, 4], [0, 2])


@pytest.mark.parametrize("point", [0, 5, 8, 9, 10, 12])
def test_torn_tail_takes_no_epoch_of_what_is_left(env, point):
    with_epochs(env)
    data = env.files.read_file(PATH)
    for bad, end_offset in ((data + b"torn", 12), (data[:-1], 10)):
        after = reopened(copy_with(env, PATH, bad), ONE_SEGMENT, recovery_point=min(point, end_offset))
        assert after.report.dropped_bytes > 0
        assert after.end_offset == end_offset
        assert (after.epochs.epochs, after.epochs.start_offsets) == ([1, 4, 6], [0, 4, 8])


# -- damage


def test_text_says_where_offsets_go_back(env):
    log = filled(env, 5, ONE_SEGMENT)
    again = next(bytes(batch) for header, batch in log.batches(0) if header.base_offset == 2)
    data = env.files.read_file(PATH)
    with pytest.raises(StorageError, match=f"position {len(data)}: offsets 2 to 3 come after 9"):
        reopened(copy_with(env, PATH, data + again), ONE_SEGMENT)


def test_offset_may_be_as_far_as_an_index_can_say_and_no_farther(env):
    for base, wrong in ((MAX_RELATIVE_OFFSET - 1, False), (MAX_RELATIVE_OFFSET, True)):
        log = filled(sim_env(), 1, ONE_SEGMENT)
        far = build_batch([(b"k", b"v"), (b"l", b"w")], base_offset=base, leader_epoch=0, timestamp_ms=5_000)
        broken = copy_with(log.env, PATH, log.env.files.read_file(PATH) + far)
        if wrong:
            with pytest.raises(StorageError, match=f"offset {base + 1} is too far from its segment's"):
                reopened(broken, ONE_SEGMENT)
        else:
            assert reopened(broken, ONE_SEGMENT).end_offset == base + 2


@pytest.mark.parametrize("search_bytes", [61, 62, 100, 1 << 20])
def test_whole_batch_behind_damage_is_found_wherever_it_begins(env, search_bytes, monkeypatch):
    monkeypatch.setattr(scan, "_SEARCH_BYTES", search_bytes)
    filled(env, 3, ONE_SEGMENT)
    data = env.files.read_file(PATH)
    later = build_batch([(b"k", b"v")], base_offset=20, leader_epoch=0, timestamp_ms=5_000)
    for gap in (*range(1, 130), 1_000):
        for after in (b"", b"?" * 70):
            broken = copy_with(env, PATH, data + b"?" * gap + later + after)
            with pytest.raises(StorageError, match=f"a whole batch follows at {len(data) + gap}\\."):
                reopened(broken, ONE_SEGMENT)


def test_damage_is_searched_with_each_byte_read_about_once(env, monkeypatch):
    monkeypatch.setattr(scan, "_SEARCH_BYTES", 1_000)
    filled(env, 3, ONE_SEGMENT)
    data = env.files.read_file(PATH)
    reads: list[int] = []
    pread = MemoryFile.pread

    def counted(file: MemoryFile, n: int, at: int) -> bytes:
        if at > len(data) and n > HEADER_BYTES:
            reads.append(at)
        return pread(file, n, at)

    monkeypatch.setattr(MemoryFile, "pread", counted)
    after = reopened(copy_with(env, PATH, data + b"?" * 3_000), ONE_SEGMENT)
    assert after.report.dropped_bytes == 3_000
    step = 1_000 - HEADER_BYTES + 1
    assert reads == [len(data) + 1 + n * step for n in range(4)]


@pytest.mark.parametrize(
    ("offset", "delta", "found"), [(6, 0, False), (7, 0, True), (7, -1, False), (MAX_RELATIVE_OFFSET + 1, 0, False)]
)
def test_only_a_later_batch_with_a_right_crc_proves_damage(env, offset, delta, found):
    filled(env, 3, ONE_SEGMENT)
    data = env.files.read_file(PATH)
    later = bytearray(build_batch([(b"k", b"v")], base_offset=offset, leader_epoch=0, timestamp_ms=5_000))
    if delta:
        later[23:27] = delta.to_bytes(4, "big", signed=True)
        later[17:21] = scan.crc32c(bytes(later[21:])).to_bytes(4, "big")
    broken = copy_with(env, PATH, data + b"?" + bytes(later))
    if found:
        with pytest.raises(StorageError, match="a whole batch follows"):
            reopened(broken, ONE_SEGMENT)
    else:
        assert reopened(broken, ONE_SEGMENT).end_offset == 6
    later[-1] ^= 1
    assert reopened(copy_with(env, PATH, data + b"?" + bytes(later)), ONE_SEGMENT).end_offset == 6


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (b"?" * 60, "60 bytes are less than a batch header"),
        (bytes(8) + (48).to_bytes(4, "big") + bytes(60), "a batch of 48 bytes is less than a header"),
        (bytes(8) + (49).to_bytes(4, "big") + bytes(49), "a batch has magic 0"),
        (bytes(8) + (60).to_bytes(4, "big") + bytes(59), "a batch of 72 bytes has only 71 bytes"),
    ],
)
def test_report_says_why_no_batch_begins(env, tail, reason):
    filled(env, 3, ONE_SEGMENT)
    data = env.files.read_file(PATH)
    whole = reopened(copied(env), ONE_SEGMENT).report
    assert (whole.reason, whole.position, whole.dropped_bytes) == ("", 0, 0)
    report = reopened(copy_with(env, PATH, data + tail), ONE_SEGMENT).report
    assert (report.reason, report.position, report.dropped_bytes) == (reason, len(data), len(tail))


# -- a log that was given up


@pytest.mark.parametrize("batches", [0, 1, 15])
def test_log_that_is_taken_back_into_use_goes_on_in_its_last_segment(env, batches):
    env.files.makedirs(DIRECTORY)
    log = filled(env, batches)
    log.give_up("is given up")
    log.reopen(log.end_offset)
    before = len(log.segments)
    assert (log.broken, log.end_offset, log.flushed_offset) == (None, 2 * batches, 2 * batches)
    put(log)
    log.flush()
    assert len(log.segments) == max(1, before)
    assert log.end_offset == 2 * batches + 1


def test_log_with_gaps_is_taken_back_into_use(env):
    log = filled(env, 2, ONE_SEGMENT)
    later = build_batch([(b"k", b"v")], base_offset=9, leader_epoch=0, timestamp_ms=5_000)
    log = reopened(copy_with(env, PATH, env.files.read_file(PATH) + later), ONE_SEGMENT)
    log.give_up("is given up")
    log.reopen(10)
    assert (log.broken, log.end_offset, content(log)[-len(later) :]) == (None, 10, later)


# -- cutting and appending


@pytest.mark.parametrize(("offset", "syncs"), [(39, 0), (21, 0), (20, 1), (12, 2), (1, 2)])
def test_names_are_synced_before_a_cut_that_removes_segments(env, offset, syncs, monkeypatch):
    log = filled(env, 20)
    assert log.segments[-1].base_offset == 20
    done: list[str] = []
    sync_dir, truncate = env.files.sync_dir, MemoryFile.truncate

    def counted(path: str) -> None:
        done.append("names")
        sync_dir(path)

    def noted(file: MemoryFile, n: int) -> None:
        done.append("cut")
        truncate(file, n)

    monkeypatch.setattr(env.files, "sync_dir", counted)
    monkeypatch.setattr(MemoryFile, "truncate", noted)
    log.cut_back(offset)
    assert done == ["names"] * syncs + ["cut"] * (offset != 20)


def test_text_says_which_offset_a_batch_does_not_follow(env):
    log = filled(env, 2)
    with pytest.raises(ValueError, match=r"batch at offset 9 does not follow 3$"):
        log.append([b"x" * 61], base_offset=9, last_offset=9, max_timestamp_ms=0, size=61)


@pytest.mark.parametrize("together", [False, True])
def test_segment_that_was_begun_by_a_roll_takes_times_from_its_first_batch_on(env, together):
    log = Log.open(env, DIRECTORY, LogConfig(segment_ms=100))
    put(log, timestamp_ms=10)
    log.roll()
    assert len(log.segments) == 2
    for timestamp_ms, segments in ((1_037, 2), (1_137, 2), (1_138, 3), (1_238, 3), (1_239, 4)):
        if together:
            base = log.end_offset
            batch = build_batch([(b"k", b"v")], base_offset=base, leader_epoch=0, timestamp_ms=timestamp_ms)
            log.append_together([(batch, base)], max_timestamp_ms=timestamp_ms)
        else:
            put(log, timestamp_ms=timestamp_ms)
        assert len(log.segments) == segments, timestamp_ms
    log.flush()
    assert content(reopened(copied(env))) == content(log)


@pytest.mark.parametrize("counts", [(1,), (1, 2), (3, 1, 4)])
def test_batches_appended_together_do_not_go_beyond_what_an_index_can_say(env, counts):
    records = sum(counts)
    for room, segments in ((records, 1), (records - 1, 2)):
        log = Log.open(sim_env(), DIRECTORY, LogConfig())
        first = build_batch([(b"k", b"v")], base_offset=0, leader_epoch=0, timestamp_ms=1)
        last_offset = MAX_RELATIVE_OFFSET - room
        log.append([first], base_offset=0, last_offset=last_offset, max_timestamp_ms=1, size=len(first))
        batches, base = [], log.end_offset
        for n in counts:
            batches.append(
                (build_batch([(b"k", b"v")] * n, base_offset=base, leader_epoch=0, timestamp_ms=1), base + n - 1)
            )
            base += n
        log.append_together(batches, max_timestamp_ms=1)
        assert len(log.segments) == segments
        assert log.end_offset == base


@pytest.mark.parametrize("last", [b"", b"torn"])
@pytest.mark.parametrize("clean", [True, False])
def test_epochs_whose_file_is_lost_are_read_from_batches_before_a_last_segment_that_has_none(env, last, clean):
    log = Log.open(env, DIRECTORY, SMALL)
    for epoch in range(3):
        log.set_leader_epoch(epoch)
        put(log)
        put(log)
    log.roll()
    log.sync()
    end = log.end_offset
    after = copy_with(env, f"{DIRECTORY}/{end:020d}.log", last)
    after.files.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    again = reopened(after, recovery_point=0 if clean else end, clean=clean)
    assert (again.epochs.epochs, again.epochs.start_offsets) == ([0, 1, 2], [0, 2, 4])


@pytest.mark.parametrize(("batches", "steps"), [(3, 0), (4, 1), (7, 1), (9, 2)])
def test_lost_epochs_are_read_in_slices(env, batches, steps, monkeypatch):
    monkeypatch.setattr(recovery, "SLICE", 4)
    log = Log.open(env, DIRECTORY, ONE_SEGMENT)
    log.set_leader_epoch(5)
    for _ in range(batches):
        put(log)
    log.flush()
    epochs = LeaderEpochs()
    assert sum(1 for _ in recovery._missing_epochs(log.segments, epochs, log.end_offset)) == steps
    assert (epochs.epochs, epochs.start_offsets) == ([5], [0])
