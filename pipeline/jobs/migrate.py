"""The job `migrate`: copies topics and group offsets into a Kafka cluster, and compares the copy record by record.

    momus pipeline migrate --input ./data --bootstrap-server kafka:9092 --output proof.json

After any interruption it can be run again: it resumes after the records that the target holds.
"""

from __future__ import annotations

import argparse
from contextlib import closing
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from pipeline import tables
from pipeline.audit.log_coverage import BATCH_COLUMNS
from pipeline.connection_options import add_client_arguments, connect_with, for_librdkafka, given_settings
from pipeline.errors import PipelineError
from pipeline.migrate import plan
from pipeline.migrate.groups import Groups
from pipeline.migrate.proof import opened
from pipeline.migrate.target import Target
from pipeline.migrate.worker import comparer, copier, reader
from pipeline.source.log_starts import starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pipeline.migrate.plan import Topic
    from pipeline.migrate.proof import Proof
    from pipeline.migrate.worker import Copied

Sizes = dict[str, dict[str, Any]]  # by log: plan.counts
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
    add_client_arguments(parser)
    parser.add_argument("--replication-factor", type=int, default=-1, metavar="N", help="of new topics")
    parser.add_argument("--no-groups", action="store_true", help="do not copy the groups' offsets")


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Run the migration and write the proof to --output, or print it; returns 1 if the copy is not equal, else 0.

    Errors:  PipelineError: Spark may run two attempts of a task at once; see migrate.
    """
    if spark.sparkContext.getConf().get("spark.speculation", "false") == "true":
        raise PipelineError(
            "migrate cannot run with spark.speculation=true: two attempts of a task would write the same partition at "
            "once; give --conf spark.speculation=false"
        )
    connect_with(args)
    client = for_librdkafka(given_settings(args)) | {"bootstrap.servers": args.bootstrap_server}
    with opened(args.output) as proof:
        is_equal = migrate(
            spark,
            args.input,
            client,
            proof,
            patterns=args.topic or ["*"],
            replication_factor=args.replication_factor,
            groups=not args.no_groups,
        )
    return 0 if is_equal else 1


def migrate(
    spark: SparkSession,
    path: str,
    client: dict[str, Any],
    proof: Proof,
    *,
    patterns: list[str],
    replication_factor: int = -1,
    groups: bool = True,
) -> bool:
    """Copy topics, verify the copy, then set and verify the groups' offsets; returns whether all is equal.

    client: settings of confluent-kafka. proof: where it is written. patterns: globs of topics.

    Errors:  PipelineError: there is nothing to copy, a record has the timestamp 0, the target holds something else, or
             it does not answer.
    """
    topics, starts = _topics(spark, path, patterns), starts_of(path)

    def raw(columns: Sequence[str]) -> DataFrame:
        found = tables.raw(spark, path, patterns[0] if len(patterns) == 1 else "*", columns)
        return found.where(F.col("topic").isin(list(topics)))

    def readable(columns: Sequence[str]) -> DataFrame:
        return plan.from_starts(spark, raw(columns), starts.offsets)

    uncommitted = plan.uncommitted(raw(BATCH_COLUMNS)).persist()
    locations, records = (
        plan.marked(readable(columns), uncommitted) for columns in (plan.LOCATION_COLUMNS, plan.RECORDS)
    )
    sizes = {row["log"]: row.asDict() for row in plan.counts(locations).collect()}
    _check_times(sizes)
    target = Target(client)
    target.open_topics(topics.values(), replication_factor)
    copied = _copy(records, client, sizes)
    partitions = _verify(records, client, sizes, copied, target.ends(topics.values()))
    is_equal = all(each["equal"] for each in partitions)
    proof.begin({
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": path,
        "source_starts": KNOWN_STARTS if starts.was_clean else OLDER_STARTS,
        "target": client["bootstrap.servers"],
        "topics": [{"topic": t.name, "partitions": t.partitions, "configs": t.configs} for t in topics.values()],
        "partitions": partitions,
        "records": sum(each["records"] for each in partitions),
    })  # fmt: skip  # one argument, no indent of its own
    if groups and is_equal:
        offsets = tables.offsets(spark, path, plan.COMMITS)
        is_equal = _move_groups(plan.positions(offsets, locations, topics), client, proof)
    if is_equal:
        for topic in topics.values():
            target.close_topic(topic)
    proof.end(equal=is_equal)
    return is_equal


def _topics(spark: SparkSession, path: str, patterns: list[str]) -> dict[str, Topic]:
    metadata = tables.raw(spark, path, plan.METADATA, plan.METADATA_RECORDS)
    described = plan.topics_of(plan.metadata_values(metadata, path))
    if not described and tables.is_archive(path):
        raise PipelineError(f"{path} lacks the metadata log: archive --topics '*' copies it with all others")
    topics = plan.matching_topics(described, patterns)
    if not topics:
        raise PipelineError(f"{path} has no topic {' '.join(patterns)}")
    return topics


def _check_times(sizes: Sizes) -> None:
    for log, row in sizes.items():
        if row["at_time_0"] is not None:
            raise PipelineError(
                f"{log} has a record with the timestamp 0 at offset {row['at_time_0']}: librdkafka would set the "
                "current time, and the copy would not be equal"
            )


def _copy(records: DataFrame, client: dict[str, Any], sizes: Sizes) -> dict[str, Copied]:
    """Copy all logs; by log what was copied."""
    done = plan.in_order(records, len(sizes)).mapPartitions(copier(client)).collect()
    errors = [each.error for each in done if each.error]
    if errors:
        raise PipelineError(errors[0])
    copied = {each.log: each for each in done}
    for log, row in sizes.items():
        have = copied[log].already + copied[log].written if log in copied else 0
        if have != row["kept"]:
            raise PipelineError(f"{log} has {row['kept']} records to copy, but the target has {have}: run it again")
    return copied


def _verify(
    records: DataFrame, client: dict[str, Any], sizes: Sizes, copied: dict[str, Copied], ends: dict[str, int]
) -> list[dict[str, Any]]:
    """The proof's entries of partitions, those without records included.

    The target is read and hashed. The source was hashed when it was copied, so its records are not sorted a second
    time: only those of a log whose hash differs, to name the first difference.
    """
    places = [(log, *_place(log)) for log in copied]
    context = records.sparkSession.sparkContext
    read = context.parallelize(places, max(1, len(places))).mapPartitions(reader(client)).collect() if places else []
    held = {each.log: each for each in read}
    doubtful = [log for log, each in held.items() if not each.is_dense or each.sha256 != copied[log].source_sha256]
    differences = _differences(records, client, doubtful)
    found = []
    for log, end in ends.items():
        row, seen = sizes.get(log, {}), held.get(log)
        count, there = row.get("kept", 0), seen.records if seen else end
        difference = differences.get(log)
        if difference is None and count != there:
            difference = f"{count} records were to be copied, and the target has {there}"
        if difference is None and log in doubtful:
            difference = "it differed when it was read, and no longer when it was compared: something else writes to it"
        found.append(
            {
                "log": log,
                "source_first_offset": row.get("first_offset", 0),
                "source_end_offset": row.get("end_offset", 0),
                "target_end_offset": end,
                "records": count,
                "left_out": {"markers": row.get("markers", 0), "uncommitted": row.get("uncommitted", 0)},
                "source_sha256": copied[log].source_sha256 if seen else None,
                "target_sha256": seen.sha256 if seen else None,
                "difference": difference,
                "equal": difference is None,
            }
        )
    return sorted(found, key=lambda each: str(each["log"]))


def _differences(records: DataFrame, client: dict[str, Any], logs: list[str]) -> dict[str, str | None]:
    """The first difference of each log, record by record."""
    if not logs:
        return {}
    wanted = plan.in_order(records.where(F.col("log").isin(logs)), len(logs))
    return {each.log: each.difference for each in wanted.mapPartitions(comparer(client)).collect()}


def _place(log: str) -> tuple[str, int]:
    topic, _, partition = log.rpartition("-")
    return topic, int(partition)


def _move_groups(positions: DataFrame, client: dict[str, Any], proof: Proof) -> bool:
    """Set every group's offsets, read them back, and add one entry each to the proof; returns whether all are equal."""
    is_equal = True
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
        found.append(
            {
                "group": group,
                "log": row["log"],
                "source_offset": row["commit_offset"],
                "target_offset": row["target_offset"],
                "read_back": read_back.get(partition, (None, ""))[0],
                "metadata": wanted[partition][1],
                "equal": read_back.get(partition) == wanted[partition],
            }
        )
    return found
