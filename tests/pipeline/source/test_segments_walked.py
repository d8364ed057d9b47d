"""Segments as they are found: torn tails, damage, neighbours, names that are no segments."""

from __future__ import annotations

import os
import struct
from datetime import UTC, datetime

import made_batches as made
import pytest
from pyarrow import fs

from pipeline.decode.batches import Bounds, CorruptSegmentError, Source, chunks, ends
from pipeline.errors import PipelineError
from pipeline.source import read_options, segment_files
from pipeline.source.cleaned_logs import cleaned_logs
from pipeline.source.segment_files import list_segments
from pipeline.source.segment_ranges import SegmentRange, damaged, read_range, scan, whole_segments

SOURCE = Source("t-0", 0)
METADATA = "version: 0\ntopic_id: Zm9ydHktdHdvLWlzLWl0IQ\n"  # partition.metadata
BATCHES = [
    made.batch_of([(b"k", b"v" * 5 * n, ()) for _ in range(2)], base_offset=2 * n) for n in range(20)
]  # offsets 0 to 39


def opened(path):
    return fs.LocalFileSystem().open_input_file(str(path))


def first_offsets(path, bounds=Bounds(), chunk_bytes=200):  # noqa: B008  # Bounds is frozen, so sharing one is safe
    found = []
    for chunk in chunks(opened(path), SOURCE, bounds, chunk_bytes):
        found += [int.from_bytes(chunk.data[at : at + 8], "big") for at in chunk.starts]
    return found


@pytest.mark.parametrize("chunk_bytes", [1, 61, 100, 1000, 1 << 20])
def test_chunks_of_any_size_hold_every_batch_once(tmp_path, chunk_bytes):
    path = made.write_segment(tmp_path, "t-0", 0, *BATCHES)
    assert first_offsets(path, chunk_bytes=chunk_bytes) == list(range(0, 40, 2))


@pytest.mark.parametrize("cut", [1, 20, 60, 61, 70])
def test_walk_ends_before_a_batch_that_is_cut_short(tmp_path, cut):
    path = made.write_segment(tmp_path, "t-0", 0, *BATCHES[:3], BATCHES[3][:cut])
    assert first_offsets(path) == [0, 2, 4]


def test_walk_ends_before_zeros_that_were_allocated_ahead(tmp_path):
    path = made.write_segment(tmp_path, "t-0", 0, *BATCHES[:3], bytes(500))
    assert first_offsets(path) == [0, 2, 4]


def test_walk_ends_before_a_last_batch_with_a_wrong_crc(tmp_path):
    path = made.write_segment(tmp_path, "t-0", 0, *BATCHES[:3], BATCHES[3][:-1] + b"\7")
    assert first_offsets(path) == [0, 2, 4]


def test_walk_tells_a_flipped_byte_before_good_batches_by_file_and_position(tmp_path):
    bad = BATCHES[1][:-1] + b"\7"
    path = made.write_segment(tmp_path, "t-0", 0, BATCHES[0], bad, BATCHES[2])
    with pytest.raises(CorruptSegmentError, match=f"t-0, segment 0: .*CRC at position {len(BATCHES[0])}"):
        first_offsets(path)


@pytest.mark.parametrize("chunk_bytes", [61, 200, 1 << 20])
def test_damaged_header_before_good_batches_is_told_wherever_the_damage_is(tmp_path, chunk_bytes):
    at = len(BATCHES[0])
    for byte in (8, 9, 10, 11, 16, 17, 20):  # length, magic, CRC
        bad = bytearray(BATCHES[1])
        bad[byte] ^= 0x7F
        path = made.write_segment(tmp_path, "t-0", 0, BATCHES[0], bytes(bad), *BATCHES[2:5])
        with pytest.raises(
            CorruptSegmentError, match=f"at position {at}, and a whole batch follows at {at + len(bad)}"
        ):
            first_offsets(path, chunk_bytes=chunk_bytes)


def test_old_batch_behind_a_torn_tail_does_not_make_it_damage(tmp_path):
    path = made.write_segment(tmp_path, "t-0", 0, *BATCHES[:3], BATCHES[3][:50], BATCHES[0])
    assert first_offsets(path) == [0, 2, 4]


def test_damage_is_passed_over_and_told_when_asked(tmp_path):
    bad = b"\0" * len(BATCHES[1])
    made.write_segment(tmp_path, "t-0", 0, BATCHES[0], bad, *BATCHES[2:5], BATCHES[5][:30])
    made.write_segment(tmp_path, "t-0", 12, *BATCHES[6:8], BATCHES[8][:40])
    end = sum(map(len, BATCHES[:5]))
    told = [(each.log, each.segment, damage.position, damage.size) for each, damage in damaged(str(tmp_path))]
    assert told == [("t-0", 0, len(BATCHES[0]), len(bad)), ("t-0", 0, end, 30)]  # the end of the log is not damage

    options = read_options.ReadOptions(read_options.spark_options(str(tmp_path), "raw", skip_damaged=True))
    rows: list[int] = []
    for each in whole_segments(options.segments()):
        for batch in read_range(options, each):
            rows += batch["offset"].to_pylist()
    assert rows == [0, 1, *range(4, 10), *range(12, 16)]


def test_scan_refuses_a_segment_that_is_cut_short_before_another(tmp_path):
    made.write_segment(tmp_path, "t-0", 0, *BATCHES[:3], BATCHES[3][:50])
    made.write_segment(tmp_path, "t-0", 8, BATCHES[4])
    with pytest.raises(CorruptSegmentError, match="a truncated batch at position"):
        list(scan(str(tmp_path)))


@pytest.mark.parametrize(("first", "end"), [(0, 6), (6, 12), (6, 7), (5, 100), (38, 40), (40, 50)])
def test_bounds_are_offsets_of_batches_by_their_last(tmp_path, first, end):
    path = made.write_segment(tmp_path, "t-0", 0, *BATCHES)
    assert first_offsets(path, Bounds(first, end)) == [n for n in range(0, 40, 2) if first <= n + 1 < end]


@pytest.mark.parametrize("chunk_bytes", [100, 1 << 20])
def test_damage_behind_the_bounds_is_nobodys_concern(tmp_path, chunk_bytes):
    path = made.write_segment(tmp_path, "t-0", 0, *BATCHES[:3], b"garbage" * 20)
    assert first_offsets(path, Bounds(0, 6, is_tail=False), chunk_bytes) == [0, 2, 4]


def test_hint_is_followed_only_where_a_batch_begins_that_is_not_too_late(tmp_path):
    path = made.write_segment(tmp_path, "t-0", 0, *BATCHES)
    at = [sum(map(len, BATCHES[:n])) for n in range(21)]
    for hint in (at[5], at[3], at[9], at[5] + 1, at[20], at[20] + 5):
        assert first_offsets(path, Bounds(10, 16, position=hint)) == ([] if hint == at[20] else [10, 12, 14])


def test_ends_say_where_a_step_may_be_cut(tmp_path):
    path = made.write_segment(tmp_path, "t-0", 0, *BATCHES, BATCHES[3][:30])
    whole = list(ends(opened(path), SOURCE, Bounds()))
    assert whole[-1] == (sum(map(len, BATCHES)), 40)
    small = list(ends(opened(path), SOURCE, Bounds(), 1))
    assert [offset for _, offset in small] == list(range(2, 41, 2))


def test_listing_passes_over_what_is_being_deleted_cleaned_or_no_segment(tmp_path):
    made.write_segment(tmp_path, "b.c-10", 0, b"x")
    made.write_segment(tmp_path, "b.c-9", 7, b"x")
    made.write_segment(tmp_path, "b.c-9", 100, b"xy")
    made.write_segment(tmp_path, "b.c-9.0123abcd-delete", 0, b"x")
    for name in ("1.log", f"{7:020d}.log.cleaned", f"{8:020d}.log.deleted", f"{9:020d}.index"):
        (tmp_path / "b.c-9" / name).write_bytes(b"x")
    (tmp_path / "meta.properties").write_text("version=1")
    found = [(each.log, each.base_offset, each.size) for each in segment_files.list_segments(str(tmp_path))]
    assert found == [("b.c-9", 7, 1), ("b.c-9", 100, 2), ("b.c-10", 0, 1)]
    assert [each.log for each in segment_files.list_segments(str(tmp_path), "b.?", ["b.c-10", "none-0"])] == ["b.c-10"]
    assert segment_files.list_segments(str(tmp_path), "c*") == []


def test_swap_file_stands_for_the_segments_that_it_replaces(tmp_path):
    made.write_segment(tmp_path, "t-0", 0, *BATCHES[:2])
    made.write_segment(tmp_path, "t-0", 4, *BATCHES[2:4])
    made.write_segment(tmp_path, "t-0", 8, *BATCHES[4:6])
    cleaned = (tmp_path / "t-0" / f"{0:020d}.log").with_suffix(".log.swap")
    cleaned.write_bytes(BATCHES[1] + BATCHES[3])
    (tmp_path / "t-0" / f"{0:020d}.log").unlink()
    both = [row["offset"] for row in made.rows(scan(str(tmp_path)))]
    assert both == [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]  # what is still there of the old ones counts
    (tmp_path / "t-0" / f"{4:020d}.log").unlink()
    assert [row["offset"] for row in made.rows(scan(str(tmp_path)))] == [2, 3, 6, 7, 8, 9, 10, 11]


def settings(path) -> read_options.ReadOptions:
    return read_options.ReadOptions({"path": str(path)})


def planned(path) -> list[SegmentRange]:
    return whole_segments(settings(path).segments())


def offsets_read(path, plan) -> list[int]:
    return [row["offset"] for each in plan for row in made.rows(read_range(settings(path), each))]


def test_ranges_planned_before_a_cleaning_read_each_record_once_after_it(tmp_path):
    for n in range(0, 12, 3):
        made.write_segment(tmp_path, "t-0", 2 * n, *BATCHES[n : n + 3])
    plan = planned(tmp_path)
    made.write_segment(tmp_path, "t-0", 0, *BATCHES[1:9:2])  # three segments are one now
    for base in (6, 12):
        (tmp_path / "t-0" / f"{base:020d}.log").unlink()
    assert offsets_read(tmp_path, plan) == [n + i for n in (2, 6, 10, 14, 18, 20, 22) for i in (0, 1)]


def test_ranges_of_a_log_that_is_deleted_meanwhile_read_nothing(tmp_path):
    path = made.write_segment(tmp_path, "t-0", 0, *BATCHES)
    plan = planned(tmp_path)
    path.unlink()
    assert offsets_read(tmp_path, plan) == []
    path.parent.rmdir()
    assert offsets_read(tmp_path, plan) == []


def test_scan_of_an_address_equals_that_of_a_path(tmp_path):
    made.write_segment(tmp_path, "t-0", 0, *BATCHES)
    made.write_segment(tmp_path, "__x-1", 5, BATCHES[9])
    assert made.rows(scan(f"file://{tmp_path}")) == made.rows(scan(str(tmp_path))) != []


def test_scan_reads_a_file_system_that_is_not_the_local_one(tmp_path, monkeypatch):
    store = fs._MockFileSystem()
    store.create_dir("bucket/t-0")
    with store.open_output_stream(f"bucket/t-0/{0:020d}.log") as file:
        file.write(b"".join(BATCHES))
    monkeypatch.setattr(read_options, "open_directory", lambda path: (store, path.partition("://")[2]))
    monkeypatch.setattr(segment_files, "open_directory", lambda path: (store, path.partition("://")[2]))
    assert len(made.rows(scan("mock://bucket"))) == 40


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "option `path` is missing"),
        ({"path": "/nowhere/at/all"}, "/nowhere/at/all is not a directory"),
        ({"path": "/tmp", "records": "rows"}, "must be one of raw, offsets, transactions, not 'rows'"),
        ({"path": "/tmp", "maxBytesPerTrigger": "much"}, "must be a number of bytes .*, not 'much'"),
    ],
)
def test_options_that_are_wrong_are_said_in_one_sentence(options, said):
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        read_options.ReadOptions(options).segments()


def starts(directory, text):
    (directory / "log-start-offset-checkpoint").write_text(text)


@pytest.mark.parametrize("columns", [(), ("value",), ("offset", "log")])
def test_rows_below_the_start_of_a_log_are_deleted(tmp_path, columns):
    made.write_segment(tmp_path, "t-0", 0, *BATCHES[:3])
    made.write_segment(tmp_path, "t-0", 6, *BATCHES[3:6])
    made.write_segment(tmp_path, "u-0", 0, *BATCHES[:3])
    assert sum(batch.num_rows for batch in scan(str(tmp_path), columns=columns)) == 18
    for start in range(13):
        starts(tmp_path, f"0\n1\nt 0 {start}\n")
        found = list(scan(str(tmp_path), columns=columns))
        assert sum(batch.num_rows for batch in found) == 12 - start + 6
        if "offset" in columns:
            offsets = [n for batch in found for n in batch["offset"].to_pylist()]
            assert offsets == [*range(start, 12), *range(6)]


@pytest.mark.parametrize("text", ["0\n", "1\n0\n", "0\n2\nt 0 5\n", "0\n1\nt 0\n", "0\n1\nt x 5\n", "\xff"])
def test_damaged_checkpoint_of_starts_is_an_error(tmp_path, text):
    made.write_segment(tmp_path, "t-0", 0, *BATCHES[:3])
    starts(tmp_path, text)
    with pytest.raises(PipelineError, match="log-start-offset-checkpoint is damaged"):
        list(scan(str(tmp_path)))


def test_empty_checkpoint_says_as_little_as_none(tmp_path):
    """Apache Kafka makes its checkpoints empty and writes them a minute later."""
    made.write_segment(tmp_path, "t-0", 0, *BATCHES[:3])
    names = (
        "log-start-offset-checkpoint", "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
        "cleaner-offset-checkpoint",
    )  # fmt: skip  # several to a line
    for name in names:
        (tmp_path / name).touch()
    assert sum(batch.num_rows for batch in scan(str(tmp_path))) == 6
    assert cleaned_logs(str(tmp_path)) is None
    (tmp_path / "meta.properties").touch()
    assert cleaned_logs(str(tmp_path)) == ()


def test_folders_and_files_of_what_goes_or_comes_are_passed_over(tmp_path):
    made.write_segment(tmp_path, "t-0", 0, *BATCHES[:3])
    tag = "0123456789abcdef0123456789abcdef"
    for suffix in ("delete", "future", "stray"):
        made.write_segment(tmp_path, f"t-1.{tag}-{suffix}", 0, *BATCHES[:3])
    for suffix in ("log.deleted", "log.cleaned", "index.swap"):
        (tmp_path / "t-0" / f"00000000000000000000.{suffix}").write_bytes(b"x" * 9)
    for name in ("partition.metadata.tmp", "leader-epoch-checkpoint.tmp"):
        (tmp_path / "t-0" / name).touch()
    assert sum(batch.num_rows for batch in scan(str(tmp_path))) == 6


@pytest.mark.parametrize("cut", range(len(METADATA)))
def test_topic_id_that_is_being_written_is_not_known_yet(tmp_path, cut):
    made.write_segment(tmp_path, "t-0", 0, *BATCHES[:3])
    (tmp_path / "t-0" / "partition.metadata").write_text(METADATA[:cut])
    known = METADATA[-23:-1] if cut >= len(METADATA) - 1 else None
    assert {each.topic_id for each in list_segments(str(tmp_path))} == {known}


HOUR_MS = 3_600_000
BEGIN_MS = 1_800_000_000_000


def timed(folder, log, hours, **kind):
    """A log whose segments end at these hours after BEGIN_MS; None: without a time index."""
    for number, hour in enumerate(hours):
        path = made.write_segment(folder, log, 10 * number, made.batch_of([(b"k", b"v", ())], base_offset=10 * number))
        if hour is not None:
            entries = [(BEGIN_MS, 1), (BEGIN_MS + hour * HOUR_MS, 2), *kind.get("after", ())]
            path.with_suffix(".timeindex").write_bytes(b"".join(struct.pack(">qi", *each) for each in entries))


def read_until(folder, hours):
    until = datetime.fromtimestamp((BEGIN_MS + hours * HOUR_MS) / 1000, UTC)
    options = read_options.ReadOptions(read_options.spark_options(str(folder), "raw", until=until))
    return [(each.log, each.base_offset) for each in options.segments()]


def test_segments_after_one_that_is_an_hour_later_are_left_out(tmp_path):
    timed(tmp_path, "a-0", [1, 2, 3, 4])
    timed(tmp_path, "b-0", [None, 9, None])
    timed(tmp_path, "c-0", [9, 9], after=[(0, 0)] * 3)  # allocated ahead

    assert read_until(tmp_path, 1.5) == [("a-0", 0), ("a-0", 10), ("a-0", 20), ("b-0", 0), ("b-0", 10), ("c-0", 0)]
    assert len(read_until(tmp_path, 9)) == 9
    assert read_until(tmp_path, -2) == [("a-0", 0), ("b-0", 0), ("b-0", 10), ("c-0", 0)]


def test_listing_is_repeated_only_where_a_directory_has_just_changed(tmp_path, monkeypatch):
    made.write_segment(tmp_path, "a-0", 0, BATCHES[0])
    counted, listing = [], segment_files._listing

    def listed(*words):
        counted.append(words)
        return listing(*words)

    monkeypatch.setattr(segment_files, "_listing", listed)

    assert len(segment_files.list_segments(str(tmp_path))) == 1
    just_changed = len(counted)
    os.utime(tmp_path / "a-0", (1, 1))
    assert len(segment_files.list_segments(str(tmp_path))) == 1
    assert (just_changed, len(counted)) == (2, 3)


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_path_of_a_local_directory_is_found_in_each_form_that_spark_gives(tmp_path, form):
    made.write_segment(tmp_path, "a-0", 0, BATCHES[0])
    assert [each.log for each in segment_files.list_segments(form.format(tmp_path))] == ["a-0"]
