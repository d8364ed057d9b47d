"""The job `audit --follow`: audits new records, and adds what it finds to OUTPUT/findings and OUTPUT/gaps.

    OUTPUT/findings, OUTPUT/gaps        each row once
    OUTPUT/doubts, OUTPUT/coverage, OUTPUT/unnamed      the current state

The three views of the logs are read side by side, and one may be ahead of another. So a finding is reported only when
all three have been read as far as the logs went at some time after its record was written.
"""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Final

from pipeline import tables
from pipeline.audit import incremental
from pipeline.audit.audit import COLUMNS
from pipeline.errors import PipelineError
from pipeline.schema import TOPICS
from pipeline.source.complete_offsets import CompleteOffsets
from pipeline.source.topic_ids import by_log
from pipeline.streaming.follow import Folded, View, follow

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, Row, SparkSession

    from pipeline.streaming.position_table import Ends

VIEWS: Final = {
    view: View(view, (*columns, "topic_id") if view == "raw" else columns) for view, columns in COLUMNS.items()
}


def run(spark: SparkSession, args: argparse.Namespace, report: Callable[[Row], None]) -> int:
    """Audit what is new, once or until stopped, calling `report` with each finding; returns 1 if there was one, else 0.

    Errors:  PipelineError: --input is an archive; or see follow.
    """
    if tables.is_archive(args.input):
        raise PipelineError("--follow audits a growing data directory: audit the archive without --follow")
    complete_offsets = CompleteOffsets(args.input, {view: partial(fnmatchcase, pat=TOPICS[view]) for view in VIEWS})
    found = 0

    def fold(rows: dict[str, DataFrame], state: dict[str, DataFrame], ends: Ends) -> Folded:
        nonlocal found
        complete = complete_offsets.complete(ends)
        made = incremental.step(rows, state, None if complete is None else by_log(complete))
        for row in made.added["findings"].collect():
            found += 1
            report(row)
        return Folded(*made)

    follow(spark, args, VIEWS, fold)
    return 1 if found else 0
