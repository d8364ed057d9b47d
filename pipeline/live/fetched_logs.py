"""Fetches ranges of a broker's logs and decodes them into the rows of a view. Without Spark.

A range is one of offsets. A batch belongs to the range that holds its last offset, so to exactly one of adjacent
ranges. There are no files here: the columns `segment` and `position` are -1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from momus.client.kafka_client import RequestFailedError
from pipeline.decode.batches import Bounds, Chunk, Ints, Source, walk
from pipeline.errors import PipelineError
from pipeline.source.segment_ranges import rows_of
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from momus.client.log_client import LogClient
    from pipeline.live.cut import LogCut

TASK_OFFSETS: Final = 1 << 20
TASK_LOGS: Final = 100  # one request each, even if they are empty
NO_FILE: Final = -1


@dataclass(frozen=True, slots=True)
class LogRange:
    """The offsets from begin up to end of a log."""

    cut: LogCut
    begin: int
    end: int


def tasks(logs: Iterable[LogCut], topic: str = "*", without: Collection[str] = ()) -> list[tuple[LogRange, ...]]:
    """The ranges of the topics that match a glob, grouped into tasks: small logs share one, a large one has several.

    without: names of topics that are left out.
    """
    found: list[tuple[LogRange, ...]] = []
    group: list[LogRange] = []
    size = 0
    for each in logs:
        if each.place.topic in without or not fnmatchcase(each.place.topic, topic):
            continue
        for begin in range(each.first, each.end, TASK_OFFSETS):
            part = LogRange(each, begin, min(begin + TASK_OFFSETS, each.end))
            if group and (size + part.end - part.begin > TASK_OFFSETS or len(group) >= TASK_LOGS):
                found.append(tuple(group))
                group, size = [], 0
            group.append(part)
            size += part.end - part.begin
    return [*found, tuple(group)] if group else found


def read_range(
    client: LogClient, wanted: LogRange, records: str, columns: Collection[str] | None
) -> Iterator[pa.RecordBatch]:
    """The rows of a range that the broker still has, in the order of offsets, with the columns of the view.

    Errors:  PipelineError: the log was cut below the range's end, its topic was deleted, or a batch is damaged.
    """
    source = Source(wanted.cut.log, NO_FILE, wanted.cut.topic_id)
    for data, starts in _fetched(client, wanted):
        for batch in rows_of(Chunk(source, 0, data, starts), records, columns, wanted.cut.first):
            yield _without_position(batch)


def _fetched(client: LogClient, wanted: LogRange) -> Iterator[tuple[bytes, Ints]]:
    """Responses to Fetch, and where in them the batches of the range begin."""
    log, place = wanted.cut.log, wanted.cut.place
    bounds = Bounds(wanted.begin, wanted.end)
    at = wanted.begin
    while at < wanted.end:
        try:
            answer = client.fetch(place, at)
        except RequestFailedError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise PipelineError(_changed(log, error)) from None
            first = client.first_offsets([place])[place]
            if first <= at:
                raise PipelineError(_changed(log, error)) from None
            at = first  # retention or DeleteRecords has been faster
            continue
        if not answer.records:
            if answer.high_watermark < wanted.end:
                raise PipelineError(_changed(log, f"it ends at {answer.high_watermark}, and ended at {wanted.end}"))
            return  # the cleaner has removed the rest
        found = walk(answer.records, bounds)
        if found.next_offset <= at and not found.is_past_end:
            what = found.damage or "a batch that is not whole"
            raise PipelineError(f"{log}: the broker sends {what} at offset {at}")
        if found.starts.size:
            yield answer.records, found.starts
        if found.is_past_end:
            return
        at = found.next_offset


def _changed(log: str, why: object) -> str:
    return f"{log} was deleted or cut while it was read, run the job again: {why}"


def _without_position(batch: pa.RecordBatch) -> pa.RecordBatch:
    number = batch.schema.get_field_index("position")
    if number < 0:
        return batch
    return batch.set_column(number, batch.schema.field(number), pa.repeat(pa.scalar(NO_FILE), batch.num_rows))
