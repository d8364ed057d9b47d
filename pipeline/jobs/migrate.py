"""The job `migrate`: copies topics, groups and settings into a Kafka cluster, and compares the copy record by record.

    momus pipeline migrate --input ./data --bootstrap-server kafka:9092 --dry-run       # lists all of it, makes nothing
    momus pipeline migrate --input ./data --bootstrap-server kafka:9092 --output proof.json
    momus pipeline migrate --input ./data --bootstrap-server kafka:9092 --offsets-only --as-of 2026-01-31T12:00:00

After any interruption it can be run again: it resumes after the records that the target holds.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from pipeline import tables
from pipeline.audit.log_coverage import BATCH_COLUMNS
from pipeline.connection_options import add_client_arguments, connect_with, for_librdkafka, given_settings
from pipeline.engine import F
from pipeline.errors import PipelineError
from pipeline.jobs.time_argument import time_argument
from pipeline.migrate import cluster_settings, plan, record_copy
from pipeline.migrate.groups import Groups
from pipeline.migrate.proof import opened
from pipeline.migrate.settings import NotCopied
from pipeline.migrate.share_groups import share_positions
from pipeline.migrate.source import AS_ASKED, Wanted, source_of
from pipeline.migrate.target import Target
from pipeline.migrate.target_settings import TargetSettings
from pipeline.source.log_starts import starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pipeline.migrate.proof import Proof
    from pipeline.migrate.record_copy import Sizes
    from pipeline.migrate.source import Source
    from pipeline.source.log_starts import LogStarts

MOST_POSITIONS: Final = 20_000  # of groups, that the driver holds at once

# In the proof: whether the checkpoint of log starts may be older than the last DeleteRecords.
KNOWN_STARTS: Final = "known: the broker had stopped cleanly"
OLDER_STARTS: Final = (
    "as of the last checkpoint: the broker had not stopped cleanly, newer DeleteRecords cannot be seen"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this job."""
    parser.add_argument("-b", "--bootstrap-server", required=True, metavar="HOST:PORT", help="the target cluster")
    parser.add_argument("-t", "--topic", action="append", metavar="GLOB", help="only these topics; may be repeated")
    parser.add_argument("--exclude", action="append", default=[], metavar="GLOB", help="not these topics")
    parser.add_argument(
        "--exclude-config", action="append", default=[], metavar="GLOB", help="not these settings of topics and groups"
    )
    parser.add_argument(
        "--topic-config", action="append", default=[], metavar="KEY=VALUE", type=_pair, help="a setting of all topics"
    )
    add_client_arguments(parser)
    parser.add_argument("--replication-factor", type=int, default=-1, metavar="N", help="of new topics")
    parser.add_argument("--no-groups", action="store_true", help="do not copy the groups' offsets")
    parser.add_argument(
        "--without", action="append", default=[], choices=cluster_settings.PARTS, help="leave this out; may be repeated"
    )
    parser.add_argument(
        "--offsets-only", action="store_true", help="set the offsets of groups alone: the records are there"
    )
    parser.add_argument(
        "--as-of", type=time_argument, metavar="TIME", help="the groups' offsets of that time (ISO 8601, UTC)"
    )
    parser.add_argument("--dry-run", action="store_true", help="list all that would be made, and make nothing")


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return name, value


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Run the migration and write the proof to --output, or print it; returns 1 if the copy is not equal, else 0.

    Errors:  PipelineError: Spark may run two attempts of a task at once; see migrate.
    """
    if spark.sparkContext.getConf().get("spark.speculation", "false") == "true":
        raise PipelineError(
            "migrate cannot run with spark.speculation=true: two attempts of a task would write the same partition at "
            "once; give --conf spark.speculation=false"
        )
    if args.offsets_only and args.no_groups:
        raise PipelineError("--offsets-only and --no-groups leave nothing to copy")
    connect_with(args)
    client = for_librdkafka(given_settings(args)) | {"bootstrap.servers": args.bootstrap_server}
    wanted = Wanted(
        topics=args.topic or ["*"],
        groups=not args.no_groups,
        **{name: getattr(args, name) for name in Wanted.__slots__ if name not in ("topics", "groups")},
    )
    with opened(args.output) as proof:
        is_equal = migrate(spark, args.input, client, proof, wanted)
    return 0 if is_equal else 1


def migrate(spark: SparkSession, path: str, client: dict[str, Any], proof: Proof, wanted: Wanted) -> bool:
    """Copy topics, verify the copy, then set and verify offsets and settings; returns whether all is equal.

    client: settings of confluent-kafka. proof: where it is written. Of a dry run: whether nothing would be refused.

    Errors:  PipelineError: there is nothing to copy, the target refuses something (before anything is made there, as
             far as it can tell), or it does not answer.
    """
    source = source_of(spark, path, wanted)
    topics, starts = source.topics, starts_of(path)
    locations, records = _readable(spark, path, source, starts, wanted)
    sizes = {row["log"]: row.asDict() for row in plan.counts(locations).collect()}
    positions = None
    if wanted.groups:
        offsets = tables.offsets(spark, path, plan.COMMITS, wanted.as_of)
        positions = plan.positions(offsets, locations, topics, wanted.as_of).persist()
        source.not_copied.extend(_elsewhere(offsets, list(topics), wanted.as_of))
    shares = _shares(spark, path, locations, source, wanted)
    target = Target(client)
    with TargetSettings(client["bootstrap.servers"]) as settings_of_target:
        refused = _refusals(target, settings_of_target, source, records, client, sizes, positions, shares, wanted)
        if refused and not wanted.dry_run:
            raise PipelineError("nothing was made: " + "; ".join(refused))
        is_copied = not wanted.offsets_only and not wanted.dry_run
        partitions = _listed(sizes, source)
        if is_copied:
            target.open_topics(topics.values(), wanted.replication_factor)
            copied = record_copy.copied_records(records, client, sizes)
            partitions = record_copy.verified(records, client, sizes, copied, target.ends(topics.values()))
        is_equal = all(each.get("equal", True) for each in partitions) and not refused
        proof.begin({
            **_head(source, path, client, starts, wanted),
            **({"refused": refused} if wanted.dry_run else {}),
            "compared": is_copied,
            "partitions": partitions,
            "records": sum(each["records"] for each in partitions),
        })  # fmt: skip  # one argument, no indent of its own
        if positions is not None and (is_equal or wanted.dry_run):
            is_equal = _move_groups(positions, None if wanted.dry_run else client, proof) and is_equal
        more: dict[str, Any] = {}
        if is_equal or wanted.dry_run:
            made = None if wanted.dry_run else settings_of_target
            more = cluster_settings.entries_of(made, source.settings, shares)
            is_equal = is_equal and all(each.get("equal", True) for part in more.values() for each in part)
    if is_equal and is_copied:
        for topic in topics.values():
            target.close_topic(topic)
    not_copied = [*source.not_copied, *_again(shares)]
    proof.end(equal=is_equal, **more, not_copied=[each.as_json() for each in not_copied])
    _tell(not_copied)
    return is_equal


def _head(source: Source, path: str, client: dict[str, Any], starts: LogStarts, wanted: Wanted) -> dict[str, Any]:
    topics = source.topics.values()
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "dry_run": wanted.dry_run,
        "source": path,
        "source_starts": KNOWN_STARTS if starts.was_clean else OLDER_STARTS,
        "target": client["bootstrap.servers"],
        "offsets_as_of": wanted.as_of.isoformat() if wanted.as_of else None,
        "topics": [{"topic": each.name, "partitions": each.partitions, "configs": each.configs} for each in topics],
    }


def _tell(not_copied: Sequence[NotCopied]) -> None:
    for each in not_copied:
        print(f"momus pipeline: not copied: {each.kind} {each.name}: {each.why}", file=sys.stderr)


def _readable(
    spark: SparkSession, path: str, source: Source, starts: LogStarts, wanted: Wanted
) -> tuple[DataFrame, DataFrame]:
    """Rows of plan.marked: where records are, and the records."""

    def raw(columns: Sequence[str]) -> DataFrame:
        pattern = wanted.topics[0] if len(wanted.topics) == 1 else "*"
        return tables.raw(spark, path, pattern, columns).where(F.col("topic").isin(list(source.topics)))

    uncommitted = plan.uncommitted(raw(BATCH_COLUMNS)).persist()
    locations, records = (
        plan.marked(plan.from_starts(spark, raw(columns), starts.offsets), uncommitted)
        for columns in (plan.LOCATION_COLUMNS, plan.RECORDS)
    )
    return locations, records


def _shares(spark: SparkSession, path: str, locations: DataFrame, source: Source, wanted: Wanted) -> list[Any]:
    """The start offsets of share groups; the driver holds them."""
    found = share_positions(spark, path, locations, source.topics.values(), wanted.as_of)
    rows = [] if found is None else found.collect()
    if rows and (not wanted.groups or cluster_settings.SHARE_GROUPS in wanted.without):
        named = ", ".join(sorted({row["group"] for row in rows}))
        source.not_copied.append(NotCopied("share groups", named, AS_ASKED))
        return []
    return rows


def _again(shares: Sequence[Any]) -> list[NotCopied]:
    why = "{} records beyond the start offset are done there, which cannot be set: they are delivered again"
    return [
        NotCopied("share group progress", f"{row['group']} on {row['log']}", why.format(row["done"]))
        for row in shares
        if row["done"]
    ]


def _elsewhere(offsets: DataFrame, source_topics: Sequence[str], as_of: datetime | None) -> list[NotCopied]:
    """Offsets on topics that are not copied."""
    rows = plan.elsewhere(offsets, source_topics, as_of).collect()
    return [
        NotCopied("offsets", f"of {row['groups']} groups on {row['topic']}", "the topic is not copied") for row in rows
    ]


def _listed(sizes: Sizes, source: Source) -> list[dict[str, Any]]:
    """Entries of partitions that are not copied now."""
    logs = (f"{topic.name}-{number}" for topic in source.topics.values() for number in range(topic.partitions))
    return [record_copy.entry(log, sizes.get(log, {})) for log in logs]


def _refusals(
    target: Target,
    settings: TargetSettings,
    source: Source,
    records: DataFrame,
    client: dict[str, Any],
    sizes: Sizes,
    positions: DataFrame | None,
    shares: list[Any],
    wanted: Wanted,
) -> list[str]:
    """Why the target would refuse something, in sentences; nothing is made there."""
    topics = source.topics.values()
    found = cluster_settings.refusals(settings, source.settings, shares)
    if not wanted.offsets_only:
        found += target.refusals(topics, wanted.replication_factor)
    if found:
        return found
    known = target.known(topics)
    starts, ends = target.starts(known), target.ends(known)
    if wanted.offsets_only:
        found += [f"topic {each.name} is not in the target" for each in topics if each not in known]
        found += [
            f"{log} of the target starts at offset {start}: offsets have other numbers there"
            for log, start in starts.items()
            if start
        ]
        found += [
            f"{log} of the target has {ends.get(log, 0)} of {row['kept']} records"
            for log, row in sizes.items()
            if ends.get(log, 0) < row["kept"]
        ]
    else:
        found += record_copy.refusals(records, client, sizes, starts, ends)
    if positions is not None or shares:
        busy = sorted(settings.with_members())
        names = {row["group"] for row in shares} & set(busy)
        if positions is not None and busy:
            names |= {
                row["group"] for row in positions.where(F.col("group").isin(busy)).select("group").distinct().collect()
            }
        found += [f"group {name} has members in the target: stop them" for name in sorted(names)]
    return found


def _move_groups(positions: DataFrame, client: dict[str, Any] | None, proof: Proof) -> bool:
    """Set every group's offsets, read them back, and add one entry each to the proof; returns whether all are equal.

    client: None: a dry run, which adds the entries alone.
    """
    is_equal = True
    if client is None:
        for rows in plan.in_pieces(positions, MOST_POSITIONS):
            proof.add(map(_entry, rows))
        return is_equal
    with closing(Groups(client)) as target:  # left open, kafka-python's client would connect again and again
        for rows in plan.in_pieces(positions, MOST_POSITIONS):
            for group, of_group in groupby(rows, key=lambda row: str(row["group"])):
                entries = _move(target, group, list(of_group))
                is_equal = is_equal and all(each["equal"] for each in entries)
                proof.add(entries)
    return is_equal


def _move(target: Groups, group: str, rows: list[Any]) -> list[dict[str, Any]]:
    wanted = {(row["topic"], row["partition"]): (row["target_offset"], row["metadata"] or "") for row in rows}
    target.set(group, wanted)
    read_back = target.get(group, wanted)
    found = []
    for row in rows:
        partition = row["topic"], row["partition"]
        read = read_back.get(partition)
        found.append({
            **_entry(row),
            "read_back": None if read is None else read[0],
            "equal": read == wanted[partition],
        })  # fmt: skip  # one argument, no indent of its own
    return found


def _entry(row: Any) -> dict[str, Any]:
    return {
        "group": row["group"],
        "log": row["log"],
        "source_offset": row["commit_offset"],
        "target_offset": row["target_offset"],
        "metadata": row["metadata"] or "",
    }
