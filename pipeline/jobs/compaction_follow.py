"""The job `compaction --follow`: keeps the figures current, decoding only segments that have changed.

    OUTPUT/segments/                 one row a segment, replaced whenever a segment has changed
    OUTPUT/_state/round=N/NAME/      the state in Parquet: pipeline.transforms.compaction.summary of each segment
    OUTPUT/_state/ledger.json        the last finished round, and the segments it knows

Which segments of a data directory have changed is seen from the files (pipeline/source/changed_segments.py). Segments
that the cleaner has rewritten are read again, and deleted ones leave the table. A round counts once the ledger names
it; one that was killed before is repeated. An archive's tables only grow: an archive is followed as a stream, and the
result is about all records in it, cleaned since or not.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from pyarrow import fs

from pipeline import tables
from pipeline.engine import F
from pipeline.errors import PipelineError
from pipeline.files import open_directory, read_state, write_json
from pipeline.output import write
from pipeline.output_guard import grown_output
from pipeline.schema import TOPICS
from pipeline.source import segment_source
from pipeline.source.changed_segments import (
    ReadPlan,
    SegmentKey,
    SegmentState,
    plan_reads,
    segment_states,
    state_after_read,
)
from pipeline.source.read_options import ReadOptions, spark_options
from pipeline.streaming.follow import STATE_FORMAT, Folded, View, follow
from pipeline.streaming.position_table import STATE
from pipeline.streaming.stop_signal import stop_on_signals
from pipeline.streaming.transient_errors import RetryBudget
from pipeline.transforms import compaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.streaming.position_table import Ends
    from pipeline.streaming.stop_signal import StopSignal
    from pipeline.transforms.compaction import WithKey

Tables: TypeAlias = "dict[str, DataFrame]"
RESULT: Final = "segments"
MAX_MISSES: Final = 20  # rounds in one run during which the cleaner changed a segment
_FACTS: Final = ("position", "batch_last_offset")
_SUMMARY: Final = ("records", "parts", "totals", "markers")


def run(spark: SparkSession, args: argparse.Namespace, views: Mapping[str, WithKey]) -> int:
    """Bring OUTPUT/segments up to date, once or until stopped; returns 0. views: compaction.keyed_views.

    Errors: PipelineError: --output is missing, or segments change faster than they are read.
    """
    grown_output(args)
    if tables.is_archive(args.input):
        return _follow_archive(spark, args, views)
    rounds = Rounds(spark, args, views)
    budget, reached = RetryBudget(), rounds.number
    with stop_on_signals() as stop:
        while not stop.is_set:
            try:
                rounds.run(stop)
            except Exception as error:
                if not budget.allows_retry(error, has_progressed=rounds.number > reached):
                    raise
                reached = rounds.number
            else:
                if args.every is None or stop.wait(args.every):
                    break
    return 0


def _follow_archive(spark: SparkSession, args: argparse.Namespace, views: Mapping[str, WithKey]) -> int:
    def fold(rows: Tables, state: Tables, _: Ends) -> Folded:
        if "raw" in rows:  # an archive has the internal topics in tables of their own
            rows = {"raw": rows["raw"].where(~F.col("topic").isin(list(TOPICS.values())))}
        found = compaction.summary(_keyed(views, rows), state or None, "log")
        return Folded(found, {}, {RESULT: compaction.report(found)})

    return follow(spark, args, {name: View(name, compaction.COLUMNS[name], args.topics) for name in views}, fold)


def _keyed(views: Mapping[str, WithKey], rows: Tables, *others: str) -> DataFrame:
    return compaction.union(views[name](rows[name], *others) for name in rows)


class Rounds:
    """The state in OUTPUT, and the rounds that bring it up to date."""

    def __init__(self, spark: SparkSession, args: argparse.Namespace, views: Mapping[str, WithKey]) -> None:
        self._spark, self._output, self._kind, self._max_bytes = spark, args.output, args.format, args.max_bytes
        self._views = views
        self._options = [
            ReadOptions(spark_options(args.input, name, args.topics, (*compaction.COLUMNS[name], *_FACTS)))
            for name in views
        ]
        self._ledger = f"{self._output}/{STATE}/ledger.json"
        self.number, self._known = self._load()  # of the last finished round
        self._is_written = False  # OUTPUT/segments may be that of an earlier round

    def run(self, stop: StopSignal) -> None:
        """Read what has changed, and replace the table if anything has. A stop takes effect between two rounds.

        Errors:  PipelineError: segments change faster than they are read.
        """
        misses = 0
        while misses < MAX_MISSES:
            plan = plan_reads(self._listed().values(), self._known, self._max_bytes)
            if not plan.read and len(plan.kept) == len(self._known) and self.number >= 0:
                break
            self._is_written = False
            missed = self._step(plan)
            misses += missed
            if plan.is_last and not missed:
                break
            if stop.is_set:
                return
        else:
            raise PipelineError(f"segments have changed {MAX_MISSES} times while they were read")
        if not self._is_written:
            write(self._spark, compaction.report(self._state()), f"{self._output}/{RESULT}", self._kind)
            self._is_written = True

    def _listed(self) -> dict[SegmentKey, SegmentState]:
        return {each.key: each for options in self._options for each in segment_states(options.segments())}

    def _step(self, plan: ReadPlan) -> bool:
        """Run one round; returns whether a segment changed during its read, so that it must be read again."""
        known = {each.key: each for each in plan.kept}
        rows = self._read(plan).persist()
        try:
            facts = {(row["log"], row["segment"]): row.asDict() for row in _facts(rows).collect()}
            listed = self._listed()  # after the read: segments that are unchanged now were unchanged during it
            grown = []
            for part, wanted in plan.read:
                found = state_after_read(part, wanted, facts.get(wanted.key), listed.get(wanted.key))
                if found is not None:
                    known[found.key] = found
                    grown += [found.key] if part.position else []
            new = known.keys() - {each.key for each in plan.kept}
            self._write(self._of(rows.drop(*_FACTS), new), [each.key for each in plan.kept], grown)
        finally:
            rows.unpersist()
        self._save(known)
        return len(known) < len(plan.kept) + len(plan.read)

    def _read(self, plan: ReadPlan) -> DataFrame:
        wanted = [part for part, _ in plan.read]
        rows = {each.records: segment_source.read_parts(self._spark, each, wanted) for each in self._options}
        return _keyed(self._views, rows, *_FACTS)

    def _write(self, rows: DataFrame, kept: Iterable[SegmentKey], grown: Iterable[SegmentKey]) -> None:
        """Write the next round's state: the kept summaries, and those of rows on top of the ones that have grown."""
        if self.number < 0:
            made = compaction.summary(rows, None, "log", "segment")
        else:
            before = self._state()
            made = compaction.summary(rows, self._part(before, grown), "log", "segment")
            made = {name: table.unionByName(made[name]) for name, table in self._part(before, kept).items()}
        for name, table in made.items():
            write(self._spark, table, f"{self._output}/{STATE}/round={self.number + 1}/{name}", STATE_FORMAT)

    def _state(self) -> Tables:
        folder = f"{self._output}/{STATE}/round={self.number}"
        return {name: self._spark.read.format(STATE_FORMAT).load(f"{folder}/{name}") for name in _SUMMARY}

    def _part(self, state: Tables, keys: Iterable[SegmentKey]) -> Tables:
        return {name: self._of(table, keys) for name, table in state.items()}

    def _of(self, rows: DataFrame, keys: Iterable[SegmentKey]) -> DataFrame:
        """The rows of these segments."""
        wanted = self._spark.createDataFrame(list(keys), "log string, segment long")
        return rows.join(F.broadcast(wanted), ["log", "segment"], "left_semi").select(*rows.columns)

    def _load(self) -> tuple[int, dict[SegmentKey, SegmentState]]:
        found = read_state(self._ledger)
        if found is None:
            return -1, {}
        if tables.is_delta(f"{self._output}/{STATE}/round={found['round']}/{_SUMMARY[0]}"):
            raise PipelineError(
                f"{self._output} was begun by an earlier version of momus, which kept the state in Delta: use another "
                "--output"
            )
        return found["round"], {each.key: each for each in (SegmentState(*row) for row in found["segments"])}

    def _save(self, known: dict[SegmentKey, SegmentState]) -> None:
        write_json(self._ledger, {"round": self.number + 1, "segments": list(known.values())})
        self.number, self._known = self.number + 1, known
        files, folder = open_directory(f"{self._output}/{STATE}")
        for each in files.get_file_info(fs.FileSelector(folder)):  # also those that a killed run left
            if each.type == fs.FileType.Directory and each.base_name != f"round={self.number}":
                files.delete_dir(each.path)


def _facts(rows: DataFrame) -> DataFrame:
    """Of each segment, the file positions and the last offset of the rows that were read: see state_after_read."""
    return rows.groupBy("log", "segment").agg(
        F.min("position").alias("start"),
        F.max(F.col("position") + F.col("batch_size")).alias("reached"),
        (F.max("batch_last_offset") + 1).alias("end"),
    )
