"""Runs a job on new rows only: micro-batches with state, whose results and state are ordinary tables.

    OUTPUT/TABLE/batch=N/            the rows that micro-batch N has added; in Delta one table with a column `batch`
    OUTPUT/TABLE/                    or all rows of a table that each micro-batch replaces
    OUTPUT/_state/batch=N/NAME/      the state that micro-batch N leaves to the next one
    OUTPUT/_checkpoint/              Spark's: one position for all views together

A micro-batch that was killed runs again on the same rows and the same state, and replaces what it had written. So no
row is lost or written twice.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from pyarrow import fs
from pyspark.sql import functions as F

from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.files import is_directory, open_directory
from pipeline.output import write, write_part
from pipeline.output_guard import grown_output
from pipeline.schema import LOCATION_COLUMNS, TOPICS, VIEWS, spark_schema
from pipeline.streaming.checkpoint import committed_position
from pipeline.streaming.transient_errors import TRANSIENT_ERRORS
from pipeline.streaming.view_streams import add_stream_arguments, run_queries, view_stream, with_trigger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Tables: TypeAlias = "dict[str, DataFrame]"
STATE: Final = "_state"
CHECKPOINT: Final = "_checkpoint"


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


# The new rows of each view, the state that the last micro-batch left (none: {}), and the micro-batch's number.
Fold: TypeAlias = Callable[[Tables, Tables, int], Folded]


def add_follow_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a job that can resume where it stopped."""
    parser.add_argument("--follow", action="store_true", help="only what is new since the last run, added to --output")
    add_stream_arguments(parser)


def follow(spark: SparkSession, args: argparse.Namespace, views: Mapping[str, View], fold: Fold) -> int:
    """Fold the new rows of the views into the tables of --output, once or until stopped; returns 0.

    Errors:  PipelineError: --output is missing or was begun with other tables, --input has no rows yet, or the stream
             has failed.
    """
    output = grown_output(args)
    streams = {name: found for name, view in views.items() if (found := _streams(spark, args, view))}
    if not streams:
        raise PipelineError(f"{args.input} has nothing to follow yet: an archive's tables appear with its first rows")
    begun = committed_position(f"{output}/{CHECKPOINT}")
    if begun is not None and len(begun[1]) != sum(map(len, streams.values())):
        raise PipelineError(f"{args.input} now has other tables than when {output} was begun: use another --output")

    failed: list[Exception] = []

    def step(rows: DataFrame, batch: int) -> None:
        try:
            _run_batch(args, rows, batch, fold, lambda: _split(rows.sparkSession, rows, views, list(streams)))
        except Exception as error:
            failed.append(error)
            # Spark matches a regular expression against this text, and a whole Java trace overflows its stack.
            raise PipelineError(_summary_line(error)) from None

    writer = _union(streams).writeStream.foreachBatch(step).option("checkpointLocation", f"{output}/{CHECKPOINT}")

    def start() -> StreamingQuery:
        failed.clear()  # the failure of an earlier start, which was transient
        return with_trigger(writer, args.every).start()

    try:
        run_queries([start])
    except PipelineError:
        if failed:
            raise PipelineError(f"the stream has failed: {_summary_line(failed[-1])}") from failed[-1]
        raise
    return 0


def _run_batch(args: argparse.Namespace, rows: DataFrame, batch: int, fold: Fold, split: Callable[[], Tables]) -> None:
    """Read the state, fold one micro-batch's rows into it, and write the tables and the new state."""
    session, output, kind = rows.sparkSession, args.output, args.format
    before: Tables = {}
    if batch > 0:
        folder = f"{output}/{STATE}/batch={batch - 1}"
        before = {name: session.read.format(kind).load(f"{folder}/{name}") for name in _names(folder)}
    rows.persist()
    try:
        found = fold(split(), before, batch)
        for name, table in found.added.items():
            write_part(session, table, f"{output}/{name}", kind, batch)
        for name, table in (found.replaced or {}).items():
            write(session, table, f"{output}/{name}", kind)
        for name, table in found.state.items():
            write(session, table, f"{output}/{STATE}/batch={batch}/{name}", kind)
    finally:
        rows.unpersist()
    _remove(f"{output}/{STATE}/batch={batch - 2}")  # the one after it is still needed if this one runs again


def _summary_line(error: Exception) -> str:
    """The name of a transient error if it is one; else the first two lines, which say what is wrong in a Java trace."""
    text = str(error) or type(error).__name__
    return next((each for each in TRANSIENT_ERRORS if each in text), " ".join(text.splitlines()[:2]))


def _streams(spark: SparkSession, args: argparse.Namespace, view: View) -> list[DataFrame]:
    """The streams that make up a view, one a table of an archive; an empty list if there is no table yet.

    An archive holds the internal topics decoded: the view `raw` has only their location columns.
    """
    path = view.path or args.input
    if not tables.is_archive(path):
        return [view_stream(spark, path, view.records, view.topic, args.max_bytes, view.columns)]
    found = []
    for records in VIEWS if view.records == "raw" else [view.records]:
        topic = view.topic or "*"
        if is_directory(f"{path}/{records}") and (records == "raw" or fnmatchcase(TOPICS[records], topic)):
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
