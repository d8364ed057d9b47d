"""The job `migrate`: copies topics and group offsets into a Kafka cluster, and compares the copy record by record.

    momus pipeline migrate --input ./data --bootstrap-server kafka:9092 --output proof.json

After any interruption it can be run again: it resumes behind the records that the target holds.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from pipeline import tables
from pipeline.audit.log_coverage import BATCH_COLUMNS
from pipeline.client_settings import add_client_arguments, connect_with, for_librdkafka, given_settings
from pipeline.errors import PipelineError
from pipeline.files import write_bytes
from pipeline.migrate import plan
from pipeline.migrate.groups import Groups
from pipeline.migrate.target import Target
from pipeline.migrate.worker import comparer, copier
from pipeline.output_guard import marked_json
from pipeline.source.log_starts import starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pipeline.migrate.plan import Topic

Sizes = dict[str, dict[str, Any]]  # by log: plan.counts


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
    proof = migrate(
        spark,
        args.input,
        client,
        patterns=args.topic or ["*"],
        replication_factor=args.replication_factor,
        groups=not args.no_groups,
    )
    text = marked_json("migrate", proof)
    if args.output:
        write_bytes(args.output, text.encode())
    else:
        sys.stdout.write(f"{text}\n")
    return 0 if proof["equal"] else 1


def migrate(
    spark: SparkSession,
    path: str,
    client: dict[str, Any],
    *,
    patterns: list[str],
    replication_factor: int = -1,
    groups: bool = True,
) -> dict[str, Any]:
    """Copy topics, verify the copy, then set and verify the groups' offsets; returns the proof, ready for JSON.

    client: settings of confluent-kafka. patterns: globs of topics.

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
    _copy(records, client, sizes)
    partitions = _verify(records, client, sizes, topics, target)
    proof: dict[str, Any] = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": path,
        "source_starts": KNOWN_STARTS if starts.was_clean else OLDER_STARTS,
        "target": client["bootstrap.servers"],
        "topics": [{"topic": t.name, "partitions": t.partitions, "configs": t.configs} for t in topics.values()],
        "partitions": partitions,
        "records": sum(each["records"] for each in partitions),
        "groups": [],
        "equal": all(each["equal"] for each in partitions),
    }
    if groups and proof["equal"]:
        offsets = tables.offsets(spark, path, plan.COMMITS)
        proof["groups"] = _move_groups(plan.positions(offsets, locations, topics), client)
        proof["equal"] = all(each["equal"] for each in proof["groups"])
    if proof["equal"]:
        for topic in topics.values():
            target.close_topic(topic)
    return proof


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


def _copy(records: DataFrame, client: dict[str, Any], sizes: Sizes) -> None:
    done = plan.in_order(records, len(sizes)).mapPartitions(copier(client)).collect()
    errors = [each.error for each in done if each.error]
    if errors:
        raise PipelineError(errors[0])
    copied = {each.log: each.already + each.written for each in done}
    for log, row in sizes.items():
        if copied.get(log, 0) != row["kept"]:
            have = copied.get(log, 0)
            raise PipelineError(f"{log} has {row['kept']} records to copy, but the target has {have}: run it again")


def _verify(
    records: DataFrame, client: dict[str, Any], sizes: Sizes, topics: dict[str, Topic], target: Target
) -> list[dict[str, Any]]:
    """The proof's entries of partitions, those without records included."""
    compared = {each.log: each for each in plan.in_order(records, len(sizes)).mapPartitions(comparer(client)).collect()}
    found = []
    for log, end in target.ends(topics.values()).items():
        row, seen = sizes.get(log, {}), compared.get(log)
        count, difference = row.get("kept", 0), seen.difference if seen else None
        if difference is None and not count == (seen.records if seen else 0) == (seen.target_records if seen else end):
            difference = f"{count} records were to be copied, and the target has {seen.target_records if seen else end}"
        found.append(
            {
                "log": log,
                "source_first_offset": row.get("first_offset", 0),
                "source_end_offset": row.get("end_offset", 0),
                "target_end_offset": end,
                "records": count,
                "left_out": {"markers": row.get("markers", 0), "uncommitted": row.get("uncommitted", 0)},
                "source_sha256": seen.source_sha256 if seen else None,
                "target_sha256": seen.target_sha256 if seen else None,
                "difference": difference,
                "equal": difference is None and (seen is None or seen.source_sha256 == seen.target_sha256),
            }
        )
    return sorted(found, key=lambda each: str(each["log"]))


def _move_groups(positions: DataFrame, client: dict[str, Any]) -> list[dict[str, Any]]:
    """Set every group's offsets and read them back; returns the proof's entries, one a group and partition."""
    by_group: dict[str, list[Any]] = defaultdict(list)
    for row in positions.collect():
        by_group[row["group"]].append(row)
    target = Groups(client)
    found = []
    for group, rows in by_group.items():
        wanted = {(row["topic"], row["partition"]): (row["target_offset"], row["metadata"] or "") for row in rows}
        target.set(group, wanted)
        read_back = target.get(group)
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
    target.close()
    return found
