"""The job `offsets`: what groups have committed, now or at a time, what changed between two times, and by whom.

momus pipeline offsets --input ./data
momus pipeline offsets --input ./archive --as-of 2026-01-31T12:00:00
momus pipeline offsets --input ./archive --diff 2026-01-31T12:00:00 2026-01-31T13:00:00+01:00
momus pipeline offsets --input ./archive --history --group bar --output ./history
momus pipeline offsets --input ./archive --as-of 2026-01-31T12:00:00 --import-file before.jsonl
momus pipeline offsets --input kafka://127.0.0.1:9092                     # of a running broker, by Kafka's protocol
momus pipeline offsets --input ./archive --follow --output ./commits      # adds to the history
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from pipeline import tables
from pipeline.connection_options import add_client_arguments
from pipeline.engine import is_local
from pipeline.errors import PipelineError
from pipeline.jobs.time_argument import time_argument
from pipeline.live.live_source import open_input
from pipeline.migrate.offset_files import starting_offsets, write_import_file
from pipeline.output import emit
from pipeline.streaming.follow import Folded, View, add_follow_arguments, follow
from pipeline.transforms import commits
from pipeline.transforms.globs import matches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pipeline.streaming.position_table import Ends

READS_BROKER: Final = True
FOR_BOTH: Final = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this job."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--as-of", type=time_argument, metavar="TIME", help="the offsets committed at that time (ISO 8601, UTC)"
    )
    what.add_argument("--history", action="store_true", help="every change, by log and offset")
    what.add_argument(
        "--diff", type=time_argument, nargs=2, metavar=("TIME", "TIME"), help="what differs at the second time"
    )
    parser.add_argument("--import-file", metavar="FILE", help="write the offsets as momus offsets import takes them")
    parser.add_argument(
        "--starting-offsets", action="store_true", help="print those of a group as Spark's option startingOffsets"
    )
    parser.add_argument("--group", metavar="GLOB", help="only these groups")
    parser.add_argument("--topic", metavar="GLOB", help="only offsets of these topics")
    add_client_arguments(parser)
    add_follow_arguments(parser)


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Print or write rows of the functions of transforms.commits; returns 0. Errors: PipelineError."""
    if args.follow:
        if args.as_of or args.diff or args.history or args.group or args.topic:
            raise PipelineError(
                "--follow writes the history of all groups: use it without --as-of, --diff, --history, --group, --topic"
            )
        return follow(spark, args, {"offsets": View("offsets", commits.COLUMNS)}, _step)
    if (args.import_file or args.starting_offsets) and (args.history or args.diff or args.output):
        raise PipelineError(
            "--import-file and --starting-offsets are for one time: use them without --history, --diff, --output"
        )
    open_input(spark, args)
    rows = choose(*_changes(spark, args))
    if args.import_file:
        count = write_import_file(rows, args.import_file)
        print(f"{args.import_file}: {count} offsets, for momus offsets import")
    elif args.starting_offsets:
        print(starting_offsets(rows))
    else:
        emit(spark, rows, args)
    return 0


def _changes(spark: SparkSession, args: argparse.Namespace) -> tuple[DataFrame, argparse.Namespace, DataFrame | None]:
    """The changes, the options, and the keys that last_changes asks for."""
    until = args.as_of or (max(args.diff) if args.diff else None)  # later segments are not read

    def offsets(columns: Sequence[str]) -> DataFrame:
        return tables.offsets(spark, args.input, columns, until)

    if is_local():  # a table is read once, and memory that is short is DuckDB's concern
        return commits.effective(offsets(commits.COLUMNS)), args, None
    independent = commits.all_independent(offsets(commits.DEPENDENCY_COLUMNS))
    changes, keys = (
        commits.effective(offsets(columns), independent=independent) for columns in (commits.COLUMNS, commits.DECIDING)
    )
    return changes, args, keys


def choose(changes: DataFrame, args: argparse.Namespace, keys: DataFrame | None = None) -> DataFrame:
    """The rows that the command line selects. `keys`: see commits.last_changes."""
    for column in ("group", "topic"):
        if pattern := getattr(args, column):
            wanted = matches(column, pattern)
            changes, keys = changes.where(wanted), None if keys is None else keys.where(wanted)
    if args.diff:
        since, until = args.diff
        return commits.diff(changes, since, until, keys).orderBy("group", "topic", "partition")
    if args.history:
        return commits.history(changes).orderBy("log", "effective_offset", "log_offset")
    return commits.latest(changes, args.as_of, keys).orderBy("group", "topic", "partition")


def _step(rows: dict[str, DataFrame], state: dict[str, DataFrame], _: Ends) -> Folded:
    added, left = fold(rows["offsets"], state)
    return Folded(left, added)


def fold(rows: DataFrame, state: dict[str, DataFrame]) -> tuple[dict[str, DataFrame], dict[str, DataFrame]]:
    """New rows on top of the state of earlier ones: (tables of rows to add, the new state).

    State: `latest`, the last change of every key, and `open`, the records of transactions without a marker yet and of
    incomplete commits.
    """
    known = rows.unionByName(state["open"]) if "open" in state else rows
    changes = commits.effective(known)
    before = state.get("latest")
    both = changes if before is None else changes.unionByName(before)
    fresh = commits.history(both)
    if before is not None:
        old = before.select("log", "log_offset", "effective_offset")
        fresh = fresh.join(old, ["log", "log_offset", "effective_offset"], "left_anti")
    return {"history": fresh}, {"latest": commits.last_changes(both), "open": commits.undecided(known)}
