"""The views of the logs as tables of the local engine: of a data directory, an archive, or a running broker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import fs

from pipeline.broker_address import is_broker
from pipeline.errors import PipelineError
from pipeline.files import join_path, open_directory
from pipeline.live.cut import connected
from pipeline.live.fetched_logs import read_range as fetch_range
from pipeline.live.fetched_logs import tasks
from pipeline.schema import TOPICS, view_fields
from pipeline.source.read_options import ReadOptions, spark_options
from pipeline.source.segment_index import divided
from pipeline.source.segment_ranges import read_range
from pipeline.source.stream_planner import ranges_of

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.local.frame import DataFrame
    from pipeline.local.session import LocalSession
    from pipeline.source.segment_ranges import SegmentRange

_AHEAD: Final = 2  # ranges that are decoded while one is stored: what numpy does, it does beside Python


def local_view(
    session: LocalSession,
    path: str,
    records: str,
    topic: str | None,
    columns: Sequence[str] | None,
    until: datetime | None = None,
    without: Mapping[str, Collection[int]] | None = None,
    ends: Mapping[str, int] | None = None,
) -> DataFrame:
    """One view, with the columns of pipeline/schema.py or only the named ones, in that order.

    Of an archive all rows of its table, those of earlier topics included. until, without, ends: see tables.view.
    Errors: PipelineError.
    """
    fields = view_fields(records, columns)
    if is_broker(path):
        return live_view(session, records, topic, columns)
    texts = spark_options(
        path, records, topic, columns, skip_damaged=session.skip_damaged, until=until, without=without, ends=ends
    )
    options = ReadOptions(texts)
    key = (path, records, options.topic, tuple(fields.names), options.until_ms, texts["without"], texts["ends"])
    ranges = list(divided(options.files, ranges_of(options)))
    total, done = sum(each.size for each in ranges), 0

    def rows() -> Iterator[pa.RecordBatch]:
        nonlocal done
        for each, batches in _ahead(ranges, lambda each: list(read_range(options, each))):
            done += each.size
            yield from batches

    what = f"{records} of {'all topics' if options.topic == '*' else options.topic}"
    return session.table(key, what, fields, rows(), lambda: (done, total))


def archived_view(session: LocalSession, path: str, records: str, columns: Sequence[str]) -> DataFrame:
    """All rows of an archive's table. Errors: PipelineError: it is in Delta Lake's format, or not on a local disk."""
    table = join_path(path, records)
    files, root = open_directory(table)
    if files.type_name != "local":
        raise PipelineError("the local engine reads archives on local disks: --engine spark reads this one")
    found = files.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    if any("/_delta_log/" in each.path for each in found):
        raise PipelineError(f"{table} is a Delta Lake table: --engine spark --format delta reads it")
    hidden = (f"{root}/_", f"{root}/.")
    paths = [each.path for each in found if each.path.endswith(".parquet") and not each.path.startswith(hidden)]
    if paths:
        return session.files((path, records, tuple(columns)), sorted(paths), columns)
    return session.table(("none", records), records, view_fields(records, None), iter(()))


def live_view(
    session: LocalSession,
    records: str,
    topic: str | None = None,
    columns: Collection[str] | None = None,
    without: Collection[str] = (),
) -> DataFrame:
    """One view of the cut that the session reads; see live_source.live_view."""
    cut, fields = session.cut, view_fields(records, columns)
    pattern = topic or TOPICS[records]

    def rows() -> Iterator[pa.RecordBatch]:
        assert cut is not None
        with connected(cut.bootstrap, cut.settings) as client:
            for ranges in tasks(cut.logs, pattern, tuple(without)):
                for each in ranges:
                    for batch in fetch_range(client, each, records, columns):
                        yield batch.select(fields.names)

    key = (id(cut), records, pattern, tuple(fields.names), tuple(without))
    return session.table(key, f"{records} of {pattern}", fields, rows())


def _ahead(
    items: Iterable[SegmentRange], read: Callable[[SegmentRange], list[pa.RecordBatch]]
) -> Iterator[tuple[SegmentRange, list[pa.RecordBatch]]]:
    """Each range with its rows, in order, while the next ones are read already. Errors: those of `read`."""
    with ThreadPoolExecutor(_AHEAD) as pool:
        waiting: deque[tuple[SegmentRange, Future[list[pa.RecordBatch]]]] = deque()
        for each in items:
            waiting.append((each, pool.submit(read, each)))
            if len(waiting) > _AHEAD:
                item, result = waiting.popleft()
                yield item, result.result()
        for item, result in waiting:
            yield item, result.result()
