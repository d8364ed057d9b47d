"""Runs a job on new rows only: micro-batches with state, whose results and state are ordinary tables.

    OUTPUT/TABLE/batch=N/            the rows that micro-batch N has added; in Delta one table with a column `batch`
    OUTPUT/TABLE/                    or all rows of a table that each micro-batch replaces
    OUTPUT/_state/batch=N/NAME/      the state that micro-batch N leaves to the next one, in Parquet
    OUTPUT/_position.json            the last finished micro-batch: one position for all views (position_table.py)
    OUTPUT/_checkpoint/              Spark's

A micro-batch that was killed runs again on the same state and the same range of offsets, and replaces what it had
written. So no row is lost or written twice. In Delta it replaces by `replaceWhere`. Delta's own way, to pass over a
write whose txnVersion is known, would keep the rows of the first try beside the state of the second; the two differ
where the cleaner has been in between.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from pyarrow import fs

from pipeline import tables
from pipeline.engine import F
from pipeline.errors import PipelineError
from pipeline.files import is_directory, open_directory
from pipeline.output import write, write_part
from pipeline.output_guard import grown_output
from pipeline.schema import LOCATION_COLUMNS, TOPICS, VIEWS, spark_schema
from pipeline.streaming.position_table import CHECKPOINT, DATA_DIRECTORY, STATE, Ends, PositionTable
from pipeline.streaming.transient_errors import TRANSIENT_ERRORS
from pipeline.streaming.view_streams import add_stream_arguments, run_queries, view_stream, with_trigger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Tables: TypeAlias = "dict[str, DataFrame]"
STATE_FORMAT: Final = "parquet"  # whatever --format: only the next micro-batch reads it


class View(NamedTuple):
    """Rows to follow: a view of the logs, with the columns that the job needs, of the topics that match a glob."""

    records: str
    columns: tuple[str, ...]
    topic: str | None = None  # None: the view's default
    path: str | None = None  # None: --input


class Folded(NamedTuple):
    """The result of a micro-batch."""

    state: Tables  # for the next micro-batch
    added: Tables  # table -> its new rows
    replaced: Tables | None = None  # table -> all of its rows


# The new rows of each view, the state that the last micro-batch left (none: {}), and how far the views of data
# directories are read with this one.
Fold: TypeAlias = Callable[[Tables, Tables, Ends], Folded]


def add_follow_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a job that can resume where it stopped."""
    parser.add_argument("--follow", action="store_true", help="only what is new since the last run, added to --output")
    add_stream_arguments(parser)


def follow(spark: SparkSession, args: argparse.Namespace, views: Mapping[str, View], fold: Fold) -> int:
    """Fold the new rows of the views into the tables of --output, once or until stopped; returns 0.

    Errors:  PipelineError: --output is missing or was begun with other tables, --input has no rows yet, or the stream
             has failed; or see read_position.
    """
    output = grown_output(args)
    sources = {name: found for name, view in views.items() if (found := _sources(args, view))}
    if not sources:
        raise PipelineError(f"{args.input} has nothing to follow yet: an archive's tables appear with its first rows")
    table = PositionTable(output, sources)
    streams = {
        name: _streams(spark, args, views[name], found, table.plan_path(name)) for name, found in sources.items()
    }
    failed: list[Exception] = []

    def step(rows: DataFrame, spark_batch: int) -> None:
        try:
            batch = table.number(spark_batch)
            if batch is not None:
                _run_batch(
                    args, table, rows, batch, fold, lambda: _split(rows.sparkSession, rows, views, list(streams))
                )
        except Exception as error:
            failed.append(error)
            # Spark matches a regular expression against this text, and a whole Java trace overflows its stack.
            raise PipelineError(_summary_line(error)) from None

    writer = _union(streams).writeStream.foreachBatch(step).option("checkpointLocation", f"{output}/{CHECKPOINT}")

    def start() -> StreamingQuery:
        failed.clear()  # the failure of an earlier start, which was transient
        if not table.needs_checkpoint:
            _remove(f"{output}/{CHECKPOINT}")
            table.prepare()
        return with_trigger(writer, args.every).start()

    try:
        run_queries([start])
    except PipelineError:
        if failed:
            raise PipelineError(f"the stream has failed: {_summary_line(failed[-1])}") from failed[-1]
        raise
    return 0


def _run_batch(
    args: argparse.Namespace,
    table: PositionTable,
    rows: DataFrame,
    batch: int,
    fold: Fold,
    split: Callable[[], Tables],
) -> None:
    """Read the state, fold one micro-batch's rows into it, write the tables and the new state, then the position."""
    session, output, kind = rows.sparkSession, args.output, args.format
    ends, states = table.planned(), f"{output}/{STATE}"
    before: Tables = {}
    if batch > 0:
        folder = f"{states}/batch={batch - 1}"
        before = {name: session.read.format(STATE_FORMAT).load(f"{folder}/{name}") for name in _names(folder)}
    rows.persist()
    try:
        found = fold(split(), before, ends)
        for name, made in found.added.items():
            write_part(session, made, f"{output}/{name}", kind, batch)
        for name, made in (found.replaced or {}).items():
            write(session, made, f"{output}/{name}", kind)
        for name, made in found.state.items():
            write(session, made, f"{states}/batch={batch}/{name}", STATE_FORMAT)
    finally:
        rows.unpersist()
    table.finish(batch, ends)
    for name in _names(states):
        if name != f"batch={batch}":
            _remove(f"{states}/{name}")


def _summary_line(error: Exception) -> str:
    """The name of a transient error if it is one; else the first two lines, which say what is wrong in a Java trace."""
    text = str(error) or type(error).__name__
    return next((each for each in TRANSIENT_ERRORS if each in text), " ".join(text.splitlines()[:2]))


def _sources(args: argparse.Namespace, view: View) -> list[str]:
    """What a view is read from: the logs of a data directory, or tables of an archive; empty if there is none yet."""
    path, topic = view.path or args.input, view.topic or "*"
    if not tables.is_archive(path):
        return [DATA_DIRECTORY]
    return [
        records
        for records in (VIEWS if view.records == "raw" else [view.records])
        if is_directory(f"{path}/{records}") and (records == "raw" or fnmatchcase(TOPICS[records], topic))
    ]


def _streams(
    spark: SparkSession, args: argparse.Namespace, view: View, sources: list[str], plan: str
) -> list[DataFrame]:
    """The streams that make up a view, one a source.

    An archive holds the internal topics decoded: the view `raw` has only their location columns.
    """
    path = view.path or args.input
    if sources == [DATA_DIRECTORY]:
        return [view_stream(spark, path, view.records, view.topic, args.max_bytes, view.columns, plan)]
    found = []
    for records in sources:
        columns = [name for name in view.columns if records == view.records or name in LOCATION_COLUMNS]
        found.append(view_stream(spark, path, records, view.topic, columns=columns))
    return found


def _union(streams: Mapping[str, list[DataFrame]]) -> DataFrame:
    """All views as one stream with one position: each row is a struct in the column of its view."""
    joined = {name: reduce(_both, found) for name, found in streams.items()}
    if len(joined) == 1:
        return next(iter(joined.values()))
    return reduce(_both, (rows.select(F.struct("*").alias(name)) for name, rows in joined.items()))


def _both(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionByName(other, allowMissingColumns=True)


def _split(session: SparkSession, rows: DataFrame, views: Mapping[str, View], streamed: list[str]) -> Tables:
    """The rows of each view, the inverse of _union; an empty table for a view without a stream."""
    found: Tables = {}
    for name, view in views.items():
        if name not in streamed:
            found[name] = session.createDataFrame([], spark_schema(view.records, view.columns))
        else:
            found[name] = rows if len(streamed) == 1 else rows.where(F.col(name).isNotNull()).select(f"{name}.*")
    return found


def _names(folder: str) -> list[str]:
    files, root = open_directory(folder)
    return [each.base_name for each in files.get_file_info(fs.FileSelector(root))]


def _remove(folder: str) -> None:
    if is_directory(folder):
        files, root = open_directory(folder)
        files.delete_dir(root)
