"""Runs a job on new rows only: each micro-batch and what earlier ones left make rows of tables and a new remainder.

    OUTPUT/TABLE/batch=N/            the rows that micro-batch N has added
    OUTPUT/_state/batch=N/NAME/      what the next one needs of all before
    OUTPUT/_checkpoint/              Spark's

A micro-batch that was killed is done again from the same rows and the same state, and replaces what it had written:
no row is lost or there twice.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from pyarrow import fs

from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.files import open_directory
from pipeline.jobs.output import write
from pipeline.streams import add_stream_arguments, run_until_done, stream_of, trigger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Tables: TypeAlias = dict[str, DataFrame]
    Fold: TypeAlias = Callable[[DataFrame, Tables], tuple[Tables, Tables]]

STATE: Final = "_state"


def add_follow_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a job that can go on where it stopped."""
    parser.add_argument("--follow", action="store_true", help="only what is new since the last time, added to --output")
    add_stream_arguments(parser)


def follow(spark: SparkSession, args: argparse.Namespace, records: str, fold: Fold) -> int:
    """Fold the rows of a view that are new, once or until stopped."""
    if not args.output:
        raise PipelineError("--follow adds to tables: it needs --output")
    output, kind = args.output, args.format

    def step(rows: DataFrame, batch: int) -> None:
        session = rows.sparkSession
        before: Tables = {}
        if batch > 0:
            folder = f"{output}/{STATE}/batch={batch - 1}"
            before = {name: session.read.format(kind).load(f"{folder}/{name}") for name in _names(folder)}
        rows.persist()
        try:
            added, state = fold(rows, before)
            for name, table in added.items():
                write(session, table, f"{output}/{name}/batch={batch}", kind)
            for name, table in state.items():
                write(session, table, f"{output}/{STATE}/batch={batch}/{name}", kind)
        finally:
            rows.unpersist()
        _remove(f"{output}/{STATE}/batch={batch - 2}")  # the one before may be needed again

    stream = stream_of(spark, args.input, records, max_bytes=args.max_bytes)
    writer = stream.writeStream.foreachBatch(step).option("checkpointLocation", f"{output}/_checkpoint")
    run_until_done([trigger(writer, args.every).start])
    return 0


def _names(folder: str) -> list[str]:
    files, root = open_directory(tables.arrow_address(folder))
    return [each.base_name for each in files.get_file_info(fs.FileSelector(root))]


def _remove(folder: str) -> None:
    files, root = open_directory(tables.arrow_address(folder))
    if files.get_file_info(root).type == fs.FileType.Directory:
        files.delete_dir(root)
