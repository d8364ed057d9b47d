"""Segments at their edges: exact boundaries, exact numbers of reads, indexes after every cut."""

from __future__ import annotations

import pytest
from log_kit import DIRECTORY, ONE_SEGMENT, SMALL, content, filled, put, reopened

from protocol.record_batch import HEADER_BYTES, build_batch
from storage.files.env import Env
from storage.files.errors import StorageError
from storage.files.sim_env import MemoryFile, sim_env
from storage.log.log import Log, LogConfig
from storage.segments import batches
from storage.segments.batches import read_batches
from storage.segments.index import decode
from storage.segments.segment import Segment

COLUMNS = ("offsets", "positions", "timestamps", "time_offsets")


@pytest.fixture
def env() -> Env:
    return sim_env()


def bare(offset: int) -> bytes:
    """A batch that is a header alone."""
    return build_batch([], base_offset=offset, leader_epoch=0, timestamp_ms=1000)


def log_with(env: Env, batches: list[bytes]) -> Segment:
    """A segment of these batches."""
    made = Segment(env.files, DIRECTORY, 0)
    env.files.makedirs(DIRECTORY)
    made.file.append(batches)
    made.size = made.file.size
    return made


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(position, bytes) of every read of a file."""
    found: list[tuple[int, int]] = []
    pread = MemoryFile.pread

    def counted(file: MemoryFile, n: int, at: int) -> bytes:
        found.append((at, n))
        return pread(file, n, at)

    monkeypatch.setattr(MemoryFile, "pread", counted)
    return found


def batch(offset: int, value: bytes = b"v") -> bytes:
    return build_batch([(b"k", value)], base_offset=offset, leader_epoch=0, timestamp_ms=1000)


# -- the walk over headers


def test_headers_are_read_in_one_read_of_a_small_file(env, reads):
    sizes = [batch(0), batch(1, b"x" * 50), bare(2), batch(3), bare(4)]
    segment = log_with(env, sizes)
    assert [header.base_offset for _, header in segment.headers(0)] == [0, 1, 2, 3, 4]
    assert reads == [(0, 8192)]
    reads.clear()
    last = segment.size - HEADER_BYTES
    assert [at for at, _ in segment.headers(last)] == [last]
    assert list(segment.headers(segment.size)) == []
    assert reads == [(last, 8192)]


@pytest.mark.parametrize("cut", [*range(1, 80), 120])
def test_headers_end_before_a_batch_that_is_not_whole(env, cut):
    whole = [batch(0), batch(1), batch(2, b"x" * 60)]
    data = b"".join(whole)
    segment = log_with(env, [data[:-cut]])
    assert [header.base_offset for _, header in segment.headers(0)] == [0, 1]
    assert [bytes(found) for *_, found in segment.batches(0)] == whole[:2]


@pytest.mark.parametrize("length", [48, 0, -1])
def test_headers_end_where_a_length_is_less_than_a_header(env, length):
    data = bytearray(batch(0) + bare(1) + bare(2))
    at = len(batch(0)) + HEADER_BYTES
    assert int.from_bytes(data[at + 8 : at + 12], "big") == 49
    data[at + 8 : at + 12] = length.to_bytes(4, "big", signed=True)
    segment = log_with(env, [bytes(data)])
    assert [header.base_offset for _, header in segment.headers(0)] == [0, 1]
    assert [header.base_offset for _, header, _ in segment.batches(0)] == [0, 1]


def test_headers_end_where_the_magic_is_another(env):
    data = bytearray(batch(0) + batch(1))
    data[len(batch(0)) + 16] = 1
    segment = log_with(env, [bytes(data)])
    assert [header.base_offset for _, header in segment.headers(0)] == [0]
    assert [header.base_offset for _, header, _ in segment.batches(0)] == [0]


@pytest.mark.parametrize("size", [61, 62, 100, 142, 143, 144, 145, 213, 1_000])
def test_batches_are_whole_however_reads_cut_them(env, size, monkeypatch):
    monkeypatch.setattr(batches, "_READ_BYTES", size)
    whole = [batch(0), batch(1, b"x" * 100), bare(2), batch(3), batch(4, b"y" * 400), bare(5)]
    segment = log_with(env, whole)
    for n in range(len(whole) + 1):
        start = sum(map(len, whole[:n]))
        assert [bytes(found) for *_, found in read_batches(segment.file, start, segment.size)] == whole[n:]
        assert [bytes(found) for *_, found in segment.batches(0, start)] == whole[:n]


# -- reading


def test_slice_below_the_first_limit_is_found_before_any_other(env):
    log = Log.open(env, DIRECTORY, ONE_SEGMENT)
    for _ in range(4):
        one = len(put(log))
    log.flush()
    for limit in (1, 2, 3, 4):
        fresh = reopened(sim_env(files=env.files.crash()), ONE_SEGMENT)
        assert len(fresh.read(0, 1 << 20, limit_offset=limit)) == one * limit
        fresh.cut_back(3)
        assert len(fresh.read(0, 1 << 20, limit_offset=1)) == one
        for other in (2, 1, 3, 2):
            assert len(fresh.read(0, 1 << 20, limit_offset=other)) == one * other


def test_slice_behind_the_start_is_read_in_any_pieces(env):
    log = filled(env, 3, ONE_SEGMENT)
    found = log.read(2, 1 << 20, limit_offset=6)
    whole = content(log)[found.position :]
    assert found.position > 0
    assert [found.pread(7, at) for at in range(len(whole))] == [whole[at : at + 7] for at in range(len(whole))]


def test_reading_on_and_on_forgets_old_hints_and_still_begins_at_the_start(env):
    log = filled(env, 200, ONE_SEGMENT)
    data, offset = b"", 0
    while offset < log.end_offset:
        found = log.read(offset, 1, limit_offset=log.end_offset)
        assert found.read() == log.read(offset, 1, limit_offset=log.end_offset).read()
        data += found.read()
        offset = found.end_offset
        assert len(log.segments[0].hints) <= 64
        assert log.segments[0].hints[0] == 0
    assert data == content(log)
    assert log.read(0, 1, limit_offset=log.end_offset).position == 0


def test_reader_that_goes_on_needs_no_walk(env, reads):
    log = filled(env, 40, LogConfig(index_interval_bytes=1 << 20))
    offset, walks = 0, []
    for _ in range(40):
        found = log.read(offset, 1, limit_offset=80)
        walks.append(len(reads))
        reads.clear()
        offset = found.end_offset
    assert offset == 80
    assert set(walks[:-1]) == {2}  # the header of the first batch, and the offset of the one behind it
    assert walks[-1] == 1


def test_slice_of_a_file_that_was_cut_says_how_much_is_missing(env):
    log = filled(env, 3, ONE_SEGMENT)
    found = log.read(0, 1 << 20, limit_offset=6)
    for keep in (0, 10):
        log.segments[0].file.truncate(keep)
        with pytest.raises(StorageError, match=f"ends {len(found) - keep} bytes before the slice") as raised:
            found.read() if keep == 0 else found.pread(len(found), 0)
        assert str(len(found) - keep) in str(raised.value)
        log.segments[0].file.append([b"?" * 10])


# -- cutting, and the index


def state(segment: Segment) -> dict[str, object]:
    """All but the entries of the time index: one may stay when its index entry goes, and must be true."""
    largest, true = -1, set()
    for _, header in segment.headers(0):
        if header.max_timestamp > largest:
            largest = header.max_timestamp
            true.add((largest, header.last_offset - segment.base_offset))
    index = segment.index
    assert set(time_entries(segment)) <= true
    columns = {name: list(getattr(index, name)) for name in ("offsets", "positions")}
    times = segment.max_timestamp, segment.max_timestamp_offset, segment.flushed_max, segment.indexed_position
    return {**columns, "base": segment.base_offset, "size": segment.size, "times": times}


def time_entries(segment: Segment) -> list[tuple[int, int]]:
    """(timestamp, relative offset)"""
    return list(zip(segment.index.timestamps, segment.index.time_offsets, strict=True))


def made_anew(env: Env, config: LogConfig) -> list[dict[str, object]]:
    """What a start finds that trusts no index."""
    files = env.files.crash()
    for name in files.listdir(DIRECTORY):
        if name.endswith("index"):
            files.remove(f"{DIRECTORY}/{name}")
    found = Log.open(sim_env(files=files), DIRECTORY, config)
    return [state(each) for each in found.segments]


# times that fall again, so that the largest is not the last
TIMES = [1000, 1010, 1005, 1040, 1020, 1030, 1060, 1050, 1055, 1070, 1001, 1002, 1003, 1080, 1004, 1006]


def log_of_times(env: Env, config: LogConfig, *, odd: bool = False) -> Log:
    log = Log.open(env, DIRECTORY, config)
    if odd:
        put(log, timestamp_ms=999)
    for time in TIMES:
        put(log, (b"k", b"v" * 10), (b"l", b"w" * 10), timestamp_ms=time)
        log.flush()
    return log


@pytest.mark.parametrize("config", [SMALL._replace(segment_bytes=450), ONE_SEGMENT])
def test_indexes_after_a_cut_are_those_of_a_log_that_was_never_longer(config):
    for offset in range(2 * len(TIMES) + 1):
        env = sim_env()
        log = log_of_times(env, config)
        assert [state(each) for each in log.segments] == made_anew(env, config)
        log.cut_back(offset)
        assert log.end_offset == offset - offset % 2
        assert [state(each) for each in log.segments] == made_anew(env, config), offset
        put(log, timestamp_ms=1100)
        put(log, timestamp_ms=1090)
        log.flush()
        assert [state(each) for each in log.segments] == made_anew(env, config), offset


@pytest.mark.parametrize("written", range(4))
@pytest.mark.parametrize("short_bytes", [0, 50])
def test_failed_write_takes_back_what_it_put_into_the_index(env, written, short_bytes):
    log = Log.open(env, DIRECTORY, ONE_SEGMENT)
    put(log, timestamp_ms=1)
    log.flush()
    for number in range(written):
        put(log, (b"k", b"v" * 150), timestamp_ms=1_000 + number)
        log.flush()
    before, times = state(log.segments[0]), time_entries(log.segments[0])
    for number in range(5):
        put(log, (b"k", b"v" * 150), timestamp_ms=900 + 200 * number)
    env.files.inject(1, short_bytes=short_bytes)
    with pytest.raises(OSError, match=r"\w"):
        log.flush()
    assert state(log.segments[0]) == before
    assert time_entries(log.segments[0])[: len(times)] == times
    env.files.heal()
    assert [state(each) for each in log.segments] == made_anew(env, ONE_SEGMENT)


def test_segments_of_a_failed_write_leave_no_index_when_the_next_write_succeeds(env):
    log = Log.open(env, DIRECTORY, LogConfig(segment_bytes=450, index_interval_bytes=100))
    put(log, (b"k", b"v" * 150))
    log.flush()
    while len(log.segments) < 4:
        put(log, (b"k", b"v" * 150))
    env.files.inject(1)
    with pytest.raises(OSError, match=r"\w"):
        log.flush()
    env.files.heal()
    put(log, (b"k", b"v" * 150))
    log.flush()
    assert len(log.segments) == 1
    names = [name for name in env.files.listdir(DIRECTORY) if name[:20].isdigit()]
    assert names == [f"{0:020d}.log"]


def saved(log: Log, segment: Segment) -> dict[str, list[int]]:
    files = log.env.files
    index = decode(files.read_file(f"{segment.stem}.index"), files.read_file(f"{segment.stem}.timeindex"), 1 << 30)
    return {name: list(getattr(index, name)) for name in COLUMNS}


@pytest.mark.parametrize("interval", [100, 10_000])
def test_sealed_index_ends_with_the_largest_time_and_one_of_a_checkpoint_does_not(env, interval):
    log = log_of_times(env, LogConfig(segment_bytes=450, index_interval_bytes=interval), odd=True)
    assert [each.base_offset for each in log.segments] == [0, 7, 15, 23, 31]
    log.config = log.config._replace(segment_bytes=10_000)
    put(log, (b"k", b"v" * 150), timestamp_ms=1_500)
    put(log, timestamp_ms=1_600)
    log.config = log.config._replace(index_interval_bytes=10_000)
    put(log, timestamp_ms=2_000)
    log.flush()
    log.checkpoint()
    for segment in log.segments[:-1]:
        times = {header.max_timestamp: header.last_offset for _, header in segment.headers(0)}
        found = saved(log, segment)
        assert (found["timestamps"][-1], found["time_offsets"][-1] + segment.base_offset) == max(times.items())
    if interval == 100:
        last = log.segments[-1]
        assert saved(log, last) == {name: list(getattr(last.index, name)) for name in COLUMNS}
        assert last.index.timestamps[-1] < 2_000


def test_checkpoint_writes_no_index_that_tells_a_start_nothing(env):
    log = filled(env, 3, ONE_SEGMENT._replace(index_interval_bytes=10_000))
    log.checkpoint()
    assert f"{0:020d}.index" not in env.files.listdir(DIRECTORY)
    log.config = log.config._replace(index_interval_bytes=100)
    put(log)
    assert len(log.segments[0].index.offsets) == 1
    log.checkpoint()  # while a batch is pending that the index names
    assert f"{0:020d}.index" not in env.files.listdir(DIRECTORY)
    log.flush()
    log.checkpoint()
    assert len(env.files.read_file(f"{DIRECTORY}/{0:020d}.index")) == 8
    log.roll()
    log.checkpoint()
    assert f"{log.end_offset:020d}.index" not in env.files.listdir(DIRECTORY)
