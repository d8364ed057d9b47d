"""The job `audit`: did exactly-once hold? Exit code 1 and the log positions that prove it when it did not.

momus pipeline audit --input ./data --output ./audit             # or an archive
momus pipeline audit --input ./data --output ./audit --follow    # only what is new; not share groups
momus pipeline audit --input kafka://127.0.0.1:9092              # a running broker, by Kafka's protocol
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, Final

from pipeline.audit.commits import MEMBER_CHECKS, SILENT
from pipeline.audit.directory import audit_of
from pipeline.audit.findings import NOT_SURE
from pipeline.audit.running_broker import audit_of_broker
from pipeline.audit.verdict import verdict
from pipeline.connection_options import add_client_arguments
from pipeline.engine import F
from pipeline.files import join_path
from pipeline.jobs import audit_follow
from pipeline.live.fetched_logs import NO_FILE
from pipeline.live.live_source import open_input
from pipeline.output import write
from pipeline.replacing import replaced
from pipeline.streaming.follow import add_follow_arguments
from pipeline.tables import is_archive
from pipeline.transforms.missing_offsets import ABSENT, BEFORE, CLEANED, DELETED, HOLE, REMOVED, UNWAITED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.audit.audit import Audit

READS_BROKER: Final = True
FOR_BOTH: Final = True
MOST_SHOWN: Final = 100
MOST_GROUPS: Final = 20
KEPT_BY: Final = "momus serve --retain-for archive, with momus pipeline archive"
# Why offsets are missing, and what helps.
REASONS: Final = {
    REMOVED: f"removed by the cleaner, retention or DeleteRecords; an archive made before would have them ({KEPT_BY})",
    CLEANED: f"removed by the cleaner; an archive made before would have them ({KEPT_BY})",
    DELETED: f"removed by retention or DeleteRecords; an archive made before would have them ({KEPT_BY})",
    BEFORE: "removed before the archive began",
    UNWAITED: "removed before they were archived: the archive ran too seldom or without --retain-for, or more was held "
    "back than archive.retain.max.bytes allows",
    HOLE: "nothing compacts this log: see the finding missing-records",
    ABSENT: "the topic was deleted, or was not archived (archive --topics)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this job."""
    parser.add_argument("--json", action="store_true", help=f"print the first {MOST_SHOWN} findings as JSON")
    parser.add_argument(
        "--share-delivery-limit",
        type=int,
        metavar="N",
        help="the highest share.delivery.count.limit that any group had [by __cluster_metadata, where it says it]",
    )
    add_client_arguments(parser)
    add_follow_arguments(parser)


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Audit a data directory, an archive or a running broker, print a summary, and write all tables to --output.

    Returns 1 when there are findings, else 0. Errors: PipelineError: see audit_of and audit_of_broker.
    """
    if args.follow:
        return audit_follow.run(spark, args, lambda row: print(finding_line(row, as_json=args.json)))
    cut = open_input(spark, args)
    if cut is None:
        made = audit_of(spark, args.input, args.share_delivery_limit)
    else:
        made = audit_of_broker(spark, cut, args.share_delivery_limit)
    found = made.findings.count()
    if args.output:
        with replaced(args) as folder:
            for name, table in made.tables().items():
                write(spark, table, join_path(folder, name), args.format)
    for row in made.findings.limit(MOST_SHOWN).collect():
        print(finding_line(row, as_json=args.json))
    for line in (
        []
        if args.json
        else summary(made, found, is_live=cut is not None or made.is_live, archived=is_archive(args.input))
    ):
        print(line)
    return 1 if found else 0


def summary(made: Audit, found: int, *, is_live: bool = False, archived: bool = False) -> list[str]:
    """The audit in lines: transactions by state, what of the logs is missing, what is undecided, number of findings."""
    counted = made.transactions.groupBy("state").count().orderBy("state").collect()
    states = ", ".join(f"{row['count']} {row['state']}" for row in counted) or "none"
    lines = [f"transactions: {states}"]
    gaps = made.gaps.groupBy("log", "reason").agg(
        F.min("from_offset").alias("first"),
        F.max("to_offset").alias("end"),
        F.sum("missing").alias("missing"),
    )
    for row in gaps.orderBy("log", "first").collect():
        lines.append(f"coverage: {row['log']} {_gap_text(row)}: {REASONS[row['reason']]}")
    for row in made.coverage.where("renewed").collect():
        twice = "is archived twice: its topic was deleted and created again" if archived else "has offsets twice"
        lines.append(f"coverage: {row['log']} {twice}, so nothing {'' if archived else 'else '}in it can be decided")
    missing = "missing records" + (", or some written since," if is_live else "")
    missing = f"{missing} could explain them; {KEPT_BY}, keeps such records"
    undecided = made.doubts.collect()
    for row in undecided:
        lines.append(
            f"undecided: {row['undecided']} x {row['kind']} in {row['log']}, the first at offset "
            f"{row['first_offset']}: {NOT_SURE.get(row['why'], missing)}"
        )
    # There may be millions of groups: only the first are named, and Spark counts the rest.
    for row in made.unnamed.limit(MOST_GROUPS).collect():
        lines.append(
            f"undecided: {row['commits']} commits of group {row['group']} in {row['log']} name no member "
            f"({SILENT[row['why']]}): {', '.join(MEMBER_CHECKS)} cannot be decided here"
        )
    [unnamed] = made.unnamed.agg(F.count(F.lit(1)).alias("rows"), F.countDistinct("group").alias("groups")).collect()
    if unnamed["rows"] > MOST_GROUPS:
        lines.append(f"undecided: the same in {unnamed['rows'] - MOST_GROUPS} more groups, see the table `unnamed`")
    complete = [row["complete"] for row in made.coverage.select("complete").collect()]
    told = verdict(
        findings=found,
        undecided=sum(row["undecided"] for row in undecided),
        otherwise=sum(row["undecided"] for row in undecided if row["why"] is not None),
        transactions=sum(row["count"] for row in counted),
        logs=len(complete),
        incomplete=complete.count(False),
        unnamed=unnamed["groups"],
    )
    return [*lines, told.text]


def _gap_text(row: Any) -> str:
    if row["first"] is None:
        return "is named by transactions but is not there"
    span, last = row["end"] - row["first"], row["end"] - 1
    if row["missing"] == span:
        return f"lacks {row['missing']} offsets from {row['first']} to {last}"
    return f"lacks {row['missing']} of the {span} offsets from {row['first']} to {last}"


def finding_line(row: Any, *, as_json: bool) -> str:
    """A finding as a line of text or JSON."""
    if as_json:
        return json.dumps(row.asDict(), default=str)
    proof = f" (against {row['proof_log']} offset {row['proof_offset']})" if row["proof_log"] else ""
    place = row["log"] if row["segment"] == NO_FILE else f"{row['log']} segment {row['segment']}"
    return f"{row['kind']}: {place} offset {row['offset']}: {row['detail']}{proof}"
