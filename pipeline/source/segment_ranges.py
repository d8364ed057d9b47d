"""Ranges of offsets in segment files: which ones make up a whole log, and reading one as Arrow record batches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.decode.batches import EVERYTHING, Bounds, Chunk, Damage, Source, chunks
from pipeline.decode.columnar import decode_columns
from pipeline.schema import view_fields
from pipeline.source.read_options import ReadOptions, spark_options
from pipeline.source.segment_files import SegmentFile, log_segments
from pipeline.source.topic_ids import is_same, read_topic_id

NO_STARTS: Final[Mapping[str, int]] = {}
_ATTEMPTS: Final = 5  # to open a file before it is renamed again


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """A range of offsets of one log, in the file that had them when the read was planned."""

    log: str
    segment: int  # base offset of the file
    path: str
    size: int  # bytes
    bounds: Bounds
    topic_id: str | None = None


def whole_segments(found: list[SegmentFile], starts: Mapping[str, int] = NO_STARTS) -> list[SegmentRange]:
    """All offsets of every log, from its start on: each segment ends where the next one begins.

    `found` is ordered by log and offset; `starts` are those of log_starts.
    """
    ranges = []
    for number, each in enumerate(found):
        following = found[number + 1] if number + 1 < len(found) else None
        is_tail = following is None or following.log != each.log
        end = EVERYTHING if following is None or is_tail else following.base_offset
        start = starts.get(each.log, 0)
        if start >= end:
            continue
        bounds = Bounds(max(each.base_offset, start), end, 0, is_tail, start)
        ranges.append(SegmentRange(each.log, each.base_offset, each.path, each.size, bounds, each.topic_id))
    return ranges


def read_range(options: ReadOptions, wanted: SegmentRange, attempts: int = _ATTEMPTS) -> Iterator[pa.RecordBatch]:
    """The records of a range, from whichever files hold them by now; none when they or their topic were deleted.

    Errors:  CorruptSegmentError: a file is damaged in the middle of its log, and the option skipDamaged is not set.
    """
    on_damage = _pass_over if options.skip_damaged else None
    try:
        file = options.files.open_input_file(wanted.path)
    except FileNotFoundError:
        # The segment was cleaned into another file or deleted since the plan: look its offsets up again.
        if attempts:
            for each in whole_segments(log_segments(options.files, options.root, wanted.log)):
                first, end = max(each.bounds.first, wanted.bounds.first), min(each.bounds.end, wanted.bounds.end)
                if first < end and is_same(each.topic_id, wanted.topic_id):
                    moved = replace(each, bounds=replace(wanted.bounds, first=first, end=end, position=0))
                    yield from read_range(options, moved, attempts - 1)
        return
    source = Source(wanted.log, wanted.segment, wanted.topic_id)
    with file:
        # The folder's id is read after the file is open: if they agree now, the file is of that topic.
        if not is_same(read_topic_id(options.files, f"{options.root}/{wanted.log}"), wanted.topic_id):
            return
        for chunk in chunks(file, source, wanted.bounds, on_damage=on_damage):
            yield from rows_of(chunk, options.records, options.columns, wanted.bounds.start)


def rows_of(chunk: Chunk, records: str, columns: Collection[str] | None, start: int) -> Iterator[pa.RecordBatch]:
    """The rows of a chunk in a view; of a batch that begins below the log's start, those from there on."""
    first = int.from_bytes(chunk.data[int(chunk.starts[0]) :][:8], "big")
    if first >= start:
        yield from decode_columns(chunk, records, columns)
        return
    names = view_fields(records, columns).names
    wanted = names if "offset" in names else [*names, "offset"]
    for batch in decode_columns(chunk, records, wanted):
        rows = batch.filter(pc.greater_equal(batch["offset"], start)).select(names)
        if rows.num_rows:
            yield rows


def _pass_over(damage: Damage) -> None:
    """The driver has listed it: see damaged."""


def damaged(path: str) -> Iterator[tuple[SegmentRange, Damage]]:
    """All damage in the logs of a data directory, by log and position: what skipDamaged passes over."""
    options = ReadOptions(spark_options(path, "raw"))
    for each in whole_segments(options.segments()):
        found: list[Damage] = []
        with options.files.open_input_file(each.path) as file:
            for _ in chunks(file, Source(each.log, each.segment), each.bounds, on_damage=found.append):
                continue
        yield from ((each, damage) for damage in found)


def scan(
    path: str, records: str = "raw", topic: str | None = None, columns: Iterable[str] = ()
) -> Iterator[pa.RecordBatch]:
    """The rows of the data source `momus` without Spark, in the order of log and offset. Errors: see read_range."""
    options = ReadOptions(spark_options(str(path), records, topic, columns))
    for each in whole_segments(options.segments(), options.log_starts()):
        yield from read_range(options, each)
