"""The job `audit`: did exactly-once hold? Each finding with the log position that proves it; 1 when there is one.

momus pipeline audit --input ./data --output ./audit             # or an archive
momus pipeline audit --input ./data --output ./audit --follow    # only what is new: OUTPUT/findings grows
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from pipeline import tables
from pipeline.audit.audit import COLUMNS, ArchiveFacts, Audit, audit
from pipeline.errors import PipelineError
from pipeline.jobs import audit_follow
from pipeline.output import write
from pipeline.schema import VIEWS
from pipeline.source.complete_offsets import read_complete_offsets
from pipeline.streaming.follow import add_follow_arguments
from pipeline.transforms.missing_offsets import ABSENT, BEFORE, REMOVED, UNWAITED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDS_KAFKA: Final = False
MOST_SHOWN: Final = 100
COUNTED: Final = ("partition",)  # rows are counted by a column that costs little
# Why offsets are missing, and what helps.
REASONS: Final = {
    REMOVED: "the cleaner, retention or DeleteRecords took them; an archive from before would have them",
    BEFORE: "they had gone when the archive began",
    UNWAITED: "the broker did not wait for the archive: it ran too seldom, without --retain-for, or more was held back "
    "than archive.retain.max.bytes allows",
    ABSENT: "the topic was deleted, or the archive was made without it (archive --topics)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What only this job knows."""
    parser.add_argument("--json", action="store_true", help=f"print the first {MOST_SHOWN} findings as JSON")
    add_follow_arguments(parser)


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Audit a data directory or an archive; the tables, with all findings, go to --output."""
    if args.follow:
        return audit_follow.run(spark, args, lambda row: _say(_said(row, as_json=args.json)))
    made = audit_of(spark, args.input)
    found = made.findings.count()
    if args.output:
        for name, table in made.tables().items():
            write(spark, table, f"{args.output}/{name}", args.format)
    for row in made.findings.limit(MOST_SHOWN).collect():
        _say(_said(row, as_json=args.json))
    for line in [] if args.json else summary(made, found):
        _say(line)
    return 1 if found else 0


def audit_of(spark: SparkSession, path: str) -> Audit:
    """The audit of all logs under a path; it must have read every record of them."""
    raw = tables.raw(spark, path, columns=COLUMNS["raw"])
    offsets = tables.offsets(spark, path, COLUMNS["offsets"])
    states = tables.transactions(spark, path, COLUMNS["transactions"])
    made = audit(raw, offsets, states, known_of(path))
    read = made.coverage.groupBy().sum("records").collect()[0][0] or 0
    there = tables.raw(spark, path, columns=COUNTED).count()
    if read != there:
        raise PipelineError(f"{there} records were read and {read} audited: the logs changed meanwhile, audit again")
    return made


def known_of(path: str) -> ArchiveFacts | None:
    """What is known of the logs of an archive; None: it is a data directory."""
    if not tables.is_archive(path):
        return None
    began = {log: end for view in VIEWS for log, end in tables.archive_start_offsets(path, view).items()}
    return ArchiveFacts(began, read_complete_offsets(path))


def summary(made: Audit, found: int) -> list[str]:
    """What a reader wants to know first, in lines."""
    seen = made.transactions.groupBy("state").count().orderBy("state").collect()
    states = ", ".join(f"{row['count']} {row['state']}" for row in seen) or "none"
    lines = [f"transactions: {states}"]
    gaps = made.gaps.groupBy("log", "reason").agg(
        F.min("from_offset").alias("first"), F.max("to_offset").alias("end"), F.sum("missing").alias("missing")
    )
    for row in gaps.orderBy("log", "first").collect():
        lines.append(f"coverage: {row['log']} {_lack(row)}: {REASONS[row['reason']]}")
    for row in made.coverage.where("renewed").collect():
        lines.append(
            f"coverage: {row['log']} is there twice: its topic was made again, and nothing in it can be decided"
        )
    for row in made.doubts.collect():
        lines.append(
            f"undecided: {row['undecided']} x {row['kind']} in {row['log']}, the first at offset "
            f"{row['first_offset']}: what is missing could explain them"
        )
    return [*lines, f"findings: {found}"]


def _lack(row: Any) -> str:
    if row["first"] is None:
        return "is named by transactions and not here"
    return f"lacks {row['missing']} offsets from {row['first']} to {row['end'] - 1}"


def _said(row: Any, *, as_json: bool) -> str:
    if as_json:
        return json.dumps(row.asDict(), default=str)
    proof = f" (against {row['proof_log']} offset {row['proof_offset']})" if row["proof_log"] else ""
    return f"{row['kind']}: {row['log']} segment {row['segment']} offset {row['offset']}: {row['detail']}{proof}"


def _say(text: str) -> None:
    print(text)
