"""Runs a job on new rows only: each micro-batch and what earlier ones left make rows of tables and a new remainder.

    OUTPUT/TABLE/batch=N/            the rows that micro-batch N has added: of one table, `batch` its last column
    OUTPUT/TABLE/                    or all rows of a table that each micro-batch replaces
    OUTPUT/_state/batch=N/NAME/      what the next one needs of all before
    OUTPUT/_checkpoint/              Spark's: one position for all views together

A micro-batch that was killed is done again from the same rows and the same state, and replaces what it had written:
no row is lost or there twice.
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
from pipeline.schema import LOCATION_COLUMNS, TOPICS, VIEWS, spark_schema
from pipeline.streaming.checkpoint import committed_position
from pipeline.streaming.transient_errors import TRANSIENT_ERRORS
from pipeline.streaming.view_streams import add_stream_arguments, run_queries, trigger, view_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Tables: TypeAlias = "dict[str, DataFrame]"
STATE: Final = "_state"
CHECKPOINT: Final = "_checkpoint"


class View(NamedTuple):
    """Rows to follow: a view of the logs, only the columns that are looked at, of the topics that match a glob."""

    records: str
    columns: tuple[str, ...]
    topic: str | None = None  # None: the view's own
    path: str | None = None  # None: --input


class Folded(NamedTuple):
    """What a micro-batch comes to."""

    state: Tables  # for the next one
    added: Tables  # table -> rows that are new in it
    replaced: Tables | None = None  # table -> all of its rows


# The new rows of each view, the state that the last micro-batch has left (none: {}), and the micro-batch's number.
Fold: TypeAlias = Callable[[Tables, Tables, int], Folded]


def add_follow_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a job that can go on where it stopped."""
    parser.add_argument("--follow", action="store_true", help="only what is new since the last time, added to --output")
    add_stream_arguments(parser)


def follow(spark: SparkSession, args: argparse.Namespace, views: Mapping[str, View], fold: Fold) -> int:
    """Fold the rows of views that are new, once or until stopped.

    Errors: PipelineError: there is no place for them, they are others than before, or the stream has failed.
    """
    if not args.output:
        raise PipelineError("--follow adds to tables: it needs --output")
    output = args.output
    streams = {name: found for name, view in views.items() if (found := _streams(spark, args, view))}
    if not streams:
        raise PipelineError(f"{args.input} has nothing to follow yet: its tables come with its first rows")
    begun = committed_position(f"{output}/{CHECKPOINT}")
    if begun is not None and len(begun[1]) != sum(map(len, streams.values())):
        raise PipelineError(f"{args.input} has other tables than when {output} was begun: it needs another --output")

    failed: list[Exception] = []

    def step(rows: DataFrame, batch: int) -> None:
        try:
            _fold(args, rows, batch, fold, lambda: _parts(rows.sparkSession, rows, views, list(streams)))
        except Exception as error:
            failed.append(error)
            # Spark searches the text of what it gets by an expression that overflows its stack on a whole Java trace.
            raise PipelineError(_brief(error)) from None

    writer = _union(streams).writeStream.foreachBatch(step).option("checkpointLocation", f"{output}/{CHECKPOINT}")

    def start() -> StreamingQuery:
        failed.clear()  # what has passed is not what the next one fails for
        return trigger(writer, args.every).start()

    try:
        run_queries([start])
    except PipelineError:
        if failed:
            raise PipelineError(f"the stream has ended: {_brief(failed[-1])}") from failed[-1]
        raise
    return 0


def _fold(args: argparse.Namespace, rows: DataFrame, batch: int, fold: Fold, parts: Callable[[], Tables]) -> None:
    """One micro-batch, from its rows to what it leaves."""
    session, output, kind = rows.sparkSession, args.output, args.format
    before: Tables = {}
    if batch > 0:
        folder = f"{output}/{STATE}/batch={batch - 1}"
        before = {name: session.read.format(kind).load(f"{folder}/{name}") for name in _names(folder)}
    rows.persist()
    try:
        found = fold(parts(), before, batch)
        for name, table in found.added.items():
            write_part(session, table, f"{output}/{name}", kind, batch)
        for name, table in (found.replaced or {}).items():
            write(session, table, f"{output}/{name}", kind)
        for name, table in found.state.items():
            write(session, table, f"{output}/{STATE}/batch={batch}/{name}", kind)
    finally:
        rows.unpersist()
    _remove(f"{output}/{STATE}/batch={batch - 2}")  # the one before may be needed again


def _brief(error: Exception) -> str:
    """One line that names what passes, if it is that; of a Java trace, the two that say what is wrong."""
    text = str(error) or type(error).__name__
    return next((each for each in TRANSIENT_ERRORS if each in text), " ".join(text.splitlines()[:2]))


def _streams(spark: SparkSession, args: argparse.Namespace, view: View) -> list[DataFrame]:
    """The streams that make a view, one a table where it comes from an archive; none: there is no table yet.

    An archive has the internal topics decoded: of the view `raw`, only their places are there.
    """
    path = view.path or args.input
    if not tables.is_archive(path):
        return [view_stream(spark, path, view.records, view.topic, args.max_bytes, view.columns)]
    found = []
    for records in VIEWS if view.records == "raw" else [view.records]:
        topic = view.topic or "*"
        if is_directory(f"{path}/{records}") and (records == "raw" or fnmatchcase(TOPICS[records], topic)):
            there = [name for name in view.columns if records == view.records or name in LOCATION_COLUMNS]
            found.append(view_stream(spark, path, records, view.topic, columns=there))
    return found


def _union(streams: Mapping[str, list[DataFrame]]) -> DataFrame:
    """All views as one stream, so that they have one position: each row is in the column of its view."""
    joined = {name: reduce(_both, found) for name, found in streams.items()}
    if len(joined) == 1:
        return next(iter(joined.values()))
    return reduce(_both, (rows.select(F.struct("*").alias(name)) for name, rows in joined.items()))


def _both(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionByName(other, allowMissingColumns=True)


def _parts(session: SparkSession, rows: DataFrame, views: Mapping[str, View], streamed: list[str]) -> Tables:
    """The rows of each view; of one that has no stream, none."""
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
