"""The job `audit --follow`: reads what is new in the logs, and adds what it finds to OUTPUT/findings and OUTPUT/gaps.

    OUTPUT/findings, OUTPUT/gaps        each row once
    OUTPUT/doubts, OUTPUT/coverage      as they are now

The three views of the logs are read side by side, and one may be further than another. So a finding is made when all
three have been read as far as the logs went at some time after its place was written; until then it waits.
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
from pipeline.streaming.checkpoint import planned_position
from pipeline.streaming.follow import CHECKPOINT, Folded, View, follow

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, Row, SparkSession

VIEWS: Final = {view: View(view, columns) for view, columns in COLUMNS.items()}


def run(spark: SparkSession, args: argparse.Namespace, say: Callable[[Row], None]) -> int:
    """Find what is new, once or until stopped; 1 when something was found."""
    if tables.is_archive(args.input):
        raise PipelineError("--follow audits a data directory as it grows: audit the archive without it")
    offsets_read = CompleteOffsets(args.input, {view: partial(fnmatchcase, pat=TOPICS[view]) for view in VIEWS})
    found = 0

    def fold(rows: dict[str, DataFrame], state: dict[str, DataFrame], batch: int) -> Folded:
        nonlocal found
        positions = planned_position(f"{args.output}/{CHECKPOINT}", batch)
        read = {view: position or {} for view, position in zip(VIEWS, positions, strict=True)}
        made = incremental.step(rows, state, offsets_read.complete(read))
        for row in made.added["findings"].collect():
            found += 1
            say(row)
        return Folded(*made)

    follow(spark, args, VIEWS, fold)
    return 1 if found else 0
