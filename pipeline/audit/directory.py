"""The audit of a data directory or an archive: reads the views, and checks that every record was audited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline import tables
from pipeline.audit.audit import COLUMNS, ArchiveFacts, Audit, audit
from pipeline.audit.share_input import share_input
from pipeline.errors import PipelineError
from pipeline.schema import VIEWS
from pipeline.source.archived_topics import of_newest_topics
from pipeline.source.cleaned_logs import cleaned_logs
from pipeline.source.complete_offsets import read_complete_offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNTED: Final = ("partition",)  # one small column is enough to count rows


def audit_of(spark: SparkSession, path: str, most_deliveries: int | None = None) -> Audit:
    """The audit of all logs under a path. most_deliveries: see share_input.

    Errors:  PipelineError: the logs changed during the audit, so that it missed records.
    """
    raw = tables.raw(spark, path, columns=COLUMNS["raw"])
    offsets = tables.offsets(spark, path, COLUMNS["offsets"])
    states = tables.transactions(spark, path, COLUMNS["transactions"])
    facts = archive_facts(path)
    cleaned = cleaned_logs(path) if facts is None else None
    made = audit(raw, offsets, states, facts, share_input(spark, path, most_deliveries), cleaned=cleaned)
    audited = made.coverage.groupBy().sum("records").collect()[0][0] or 0
    read = tables.raw(spark, path, columns=_COUNTED).count()
    if audited != read:
        raise PipelineError(f"{read} records were read but {audited} audited: the logs have changed, audit again")
    return made


def archive_facts(path: str) -> ArchiveFacts | None:
    """What an archive's folder says about its logs; None for a data directory."""
    if not tables.is_archive(path):
        return None
    starts = {log: end for view in VIEWS for log, end in tables.archive_start_offsets(path, view).items()}
    return ArchiveFacts(starts, of_newest_topics(path, read_complete_offsets(path)))
