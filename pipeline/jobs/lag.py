"""The job `lag`: how far every group was behind, over time.

    momus pipeline lag --input ./data                                    # 200 moments from the first commit to the last
    momus pipeline lag --input ./archive --since 2026-01-31T12:00:00 --until 2026-01-31T13:00:00 --step 60 --sum
    momus pipeline lag --input ./archive --bootstrap-server 127.0.0.1:9092     # the lag now, by the broker's log ends
    momus pipeline lag --input kafka://127.0.0.1:9092                          # a running broker, by Kafka's protocol
    momus pipeline lag --input ./data --follow --step 60 --output ./lag        # only what is new: OUTPUT/lag grows

Log ends are taken from the records of the topics: in the data directory, in the archive (`archive --topics`), or at
another path, --ends.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Final

from pipeline import tables
from pipeline.broker_address import is_broker
from pipeline.connection_options import add_client_arguments, connect_with
from pipeline.decode.batches import EVERYTHING
from pipeline.engine import is_local
from pipeline.errors import PipelineError
from pipeline.files import open_directory
from pipeline.jobs import lag_follow
from pipeline.jobs.time_argument import time_argument
from pipeline.live.live_source import open_input
from pipeline.output import emit
from pipeline.report.share_progress import share_changes
from pipeline.source.cleaned_logs import cleaned_logs
from pipeline.source.segment_files import list_segments, older
from pipeline.streaming.follow import add_follow_arguments
from pipeline.transforms import commits
from pipeline.transforms import lag as lags
from pipeline.transforms.globs import matches

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pipeline.live.cut import Cut

READS_BROKER: Final = True
MOST_TOPICS: Final = 20  # that are read one by one
FOR_BOTH: Final = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this job."""
    parser.add_argument("--since", type=time_argument, metavar="TIME", help="the first moment [the first commit]")
    parser.add_argument("--until", type=time_argument, metavar="TIME", help="the last moment [the last record]")
    parser.add_argument("--as-of", type=time_argument, metavar="TIME", help="that moment alone")
    parser.add_argument("--last", action="store_true", help="the last moment alone")
    parser.add_argument(
        "--step", type=float, metavar="SECONDS", help=f"between moments [for {lags.SLOTS} moments; --follow: 60]"
    )
    parser.add_argument("--group", metavar="GLOB", help="only these groups")
    parser.add_argument("--topic", metavar="GLOB", help="only these topics")
    parser.add_argument("--stable", action="store_true", help="to the last stable offset, as read_committed reads")
    parser.add_argument(
        "--stalled", type=float, metavar="SECONDS",
        help="only partitions with records to read whose offset has not moved for so long, at the last moment",
    )  # fmt: skip  # the help on one line
    parser.add_argument("--sum", action="store_true", help="one row a group and topic")
    parser.add_argument("--ends", metavar="PATH", help="where the logs of the topics are [--input]")
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="the lag now: ask this broker for log ends")
    add_client_arguments(parser)
    add_follow_arguments(parser)


_ONCE: Final = ("as_of", "last", "group", "topic", "stable", "stalled")  # not with --follow


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Print or write rows of transforms.lag.lag, or its sums; returns 0. Errors: PipelineError."""
    if args.follow:
        if any(getattr(args, name) for name in _ONCE):
            words = ", ".join("--" + name.replace("_", "-") for name in _ONCE)
            raise PipelineError(f"--follow reports every moment of all groups: use it without {words}")
        return lag_follow.run(spark, args)
    cut = open_input(spark, args)
    changes = _changes(spark, args)
    if args.bootstrap_server:
        if args.since or args.until or args.step or args.ends or args.as_of or args.stable or args.stalled:
            raise PipelineError(
                "a broker knows its log ends only as of now: use --bootstrap-server without --since, --until, --step, "
                "--ends, --as-of, --stable, --stalled"
            )
        connect_with(args)
        rows = now(spark, changes, args.bootstrap_server)
    else:
        found = _over_time(spark, args, changes, cut)
        if found is None:
            return 0
        rows = found
    rows = lags.sums(rows) if args.sum else rows
    labels = [name for name in ("time", *lags.LABELS) if name in rows.columns]
    emit(spark, rows.orderBy(*labels), args)
    return 0


def _changes(spark: SparkSession, args: argparse.Namespace) -> DataFrame:
    """The commits of the groups and topics asked for, and the positions of share groups."""
    rows = tables.offsets(spark, args.input, lags.COMMITS)
    independent = not is_local() and commits.all_independent(
        tables.offsets(spark, args.input, commits.DEPENDENCY_COLUMNS)
    )
    made = commits.effective(rows, independent=independent)
    shares = share_changes(spark, args.input)
    if shares is not None:
        made = made.select(*shares.columns).unionByName(shares)
    for column in ("group", "topic"):
        if pattern := getattr(args, column):
            made = made.where(matches(column, pattern))
    return made.localCheckpoint()


def _records(
    spark: SparkSession, path: str, changes: DataFrame, columns: Sequence[str], without: Mapping[str, Collection[int]]
) -> DataFrame:
    """The records of the topics for which offsets were committed; of many topics, of all. without: see tables.view."""
    named = changes.select("topic").distinct().limit(MOST_TOPICS + 1).collect()
    topics = [row["topic"] for row in named] if 0 < len(named) <= MOST_TOPICS else ["*"]
    found = (tables.raw(spark, path, topic, columns, without) for topic in topics)
    return reduce(lambda one, other: one.unionByName(other), found)


def _older(path: str, changes: DataFrame, args: argparse.Namespace) -> dict[str, list[int]]:
    """Key of a log -> base offsets of the segments that --since or --as-of leaves out; it prints their number.

    What is committed at that time or later decides how old an unread record was, so nothing from there on is left out.
    With --stable all is read, as a transaction may have begun long before, and with --skip-damaged, to list all damage.
    """
    since = args.as_of or args.since
    if since is None or args.stable or args.skip_damaged or is_broker(path) or tables.is_archive(path):
        return {}
    cleaned = cleaned_logs(path)
    if cleaned is None:
        return {}
    rows = lags.first_wanted(changes, since).collect()
    wanted = {f"{row['topic']}-{row['partition']}": EVERYTHING if args.sum else row["wanted"] or 0 for row in rows}
    below = {log: offset for log, offset in wanted.items() if log not in cleaned}
    files, _ = open_directory(path)
    there = list_segments(path, logs=below)
    found = older(files, there, round(since.timestamp() * 1000), below)
    count = sum(map(len, found.values()))
    print(f"momus pipeline: {count} of {len(there)} segments are older than that time: not read", file=sys.stderr)
    return found


def _over_time(spark: SparkSession, args: argparse.Namespace, changes: DataFrame, cut: Cut | None) -> DataFrame | None:
    columns = lags.STABLE_RECORDS if args.stable else lags.RECORDS
    path = args.ends or args.input
    records = _records(spark, path, changes, columns, _older(path, changes, args))
    wanted = lags.of_interest(records, changes)
    until = args.as_of or args.until
    newest = None if until else lags.newest_record(wanted, datetime.now(UTC))
    slots = lags.slots_of(changes, args.as_of or args.since, until, args.step, newest)
    if slots is None:
        return None
    if args.last or args.stalled:
        slots = lags.Slots(slots.time_of(slots.count), slots.time_of(slots.count), slots.step)
    known = [] if cut is None else [(each.place.topic, each.place.partition, each.end) for each in cut.logs]
    floors = spark.createDataFrame(known or tables.log_floors(path), "topic string, partition int, end long")
    rows = lags.lag_over_time(changes, records, slots, floors=floors, to_end=until is None, stable=args.stable)
    if not args.sum:
        rows = lags.with_seconds(rows, wanted)
    return rows if args.stalled is None else lags.stalled(rows, changes, slots, args.stalled)


def now(spark: SparkSession, changes: DataFrame, bootstrap: str) -> DataFrame:
    """The lag now, with the log ends that a broker reports."""
    from pipeline.group_offsets import end_offsets  # 9 ms

    moment = datetime.now(UTC)
    topics = [row["topic"] for row in changes.where("not removed").select("topic").distinct().collect()]
    found = [(t, p, end, 0) for (t, p), end in end_offsets(bootstrap, topics).items()]
    ends = spark.createDataFrame(found, f"topic string, partition int, {lags.END} long, slot int")
    slots = lags.Slots(moment, moment, timedelta(seconds=1))
    return lags.lag(lags.committed(changes, slots), ends, slots)
