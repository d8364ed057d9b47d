"""The audit of a data directory or an archive: reads the views, and checks that every record was audited."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline import tables
from pipeline.audit.audit import COLUMNS, ArchiveFacts, Audit, audit, materialized
from pipeline.audit.running_broker import ENDS
from pipeline.audit.share_input import share_input
from pipeline.decode.batches import partition_of
from pipeline.errors import PipelineError
from pipeline.schema import VIEWS
from pipeline.source.archived_topics import of_newest_topics
from pipeline.source.cleaned_logs import cleaned_logs
from pipeline.source.complete_offsets import read_complete_offsets
from pipeline.source.read_options import ReadOptions, spark_options
from pipeline.source.stream_planner import StreamPlanner
from pipeline.source.topic_ids import by_log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

_COUNTED: Final = ("partition",)  # one small column is enough to count rows


def audit_of(spark: SparkSession, path: str, most_deliveries: int | None = None) -> Audit:
    """The audit of all logs under a path. most_deliveries: see share_input.

    If the logs of a data directory have changed meanwhile, they are read again up to a cut: see audit_of_cut.

    Errors:  PipelineError: an archive changed during the audit, so that it missed records.
    """
    facts = archive_facts(path)
    cleaned = cleaned_logs(path) if facts is None else None
    raw, offsets, states = _views(spark, path)
    made = audit(raw, offsets, states, facts, share_input(spark, path, most_deliveries), cleaned=cleaned)
    audited = made.coverage.groupBy().sum("records").collect()[0][0] or 0
    read = tables.raw(spark, path, columns=_COUNTED).count()
    if audited == read:
        return made
    if facts is not None:
        raise PipelineError(f"{read} records were read but {audited} audited: the archive has changed, audit again")
    print("momus pipeline: the logs have changed meanwhile: they are read up to where they end now", file=sys.stderr)
    return audit_of_cut(spark, path, most_deliveries)


def audit_of_cut(spark: SparkSession, path: str, most_deliveries: int | None = None) -> Audit:
    """The audit of a directory that a broker writes, up to where the logs ended when they were looked at twice.

    A case with a position at or above the first look at its log's end is undecided: what would explain it may have been
    written after the second (pipeline/live/cut.py).
    """
    planner = StreamPlanner(ReadOptions(spark_options(path, "raw")))
    seen, ends = planner.log_ends(), planner.log_ends()
    raw, offsets, states = map(materialized, _views(spark, path, ends))
    rows = [(log, *partition_of(log), end) for log, end in by_log(ends).items()]
    made = audit(
        raw,
        offsets,
        states,
        ArchiveFacts(None, by_log(seen)),
        share_input(spark, path, most_deliveries),
        spark.createDataFrame(rows, ENDS),
        cleaned_logs(path),
    )
    return replace(made, is_live=True)


def _views(
    spark: SparkSession, path: str, ends: Mapping[str, int] | None = None
) -> tuple[DataFrame, DataFrame, DataFrame]:
    """The three views that `audit` takes. ends: see tables.view."""
    raw = tables.raw(spark, path, columns=COLUMNS["raw"], ends=ends)
    offsets = tables.view(spark, path, "offsets", columns=COLUMNS["offsets"], ends=ends)
    return raw, offsets, tables.view(spark, path, "transactions", columns=COLUMNS["transactions"], ends=ends)


def archive_facts(path: str) -> ArchiveFacts | None:
    """What an archive's folder says about its logs; None for a data directory."""
    if not tables.is_archive(path):
        return None
    starts = {log: end for view in VIEWS for log, end in tables.archive_start_offsets(path, view).items()}
    return ArchiveFacts(starts, of_newest_topics(path, read_complete_offsets(path)))
