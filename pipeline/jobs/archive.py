"""The job `archive`: copies the logs into tables before compaction removes records, and commits its position.

    momus pipeline archive --input ./data --output ./archive                          # copy what is new (cron)
    momus pipeline archive --input ./data --output ./archive --every 10 --bootstrap-server 127.0.0.1:9092
    momus serve --retain-for archive                                                  # keep what is not archived yet

    OUTPUT/offsets, OUTPUT/transactions     the internal topics, decoded
    OUTPUT/raw                              the topics of --topics
    OUTPUT/_checkpoint/VIEW                 Spark's position; this job takes it from the query's public lastProgress
    OUTPUT/_began                           the end of each log when its first rows were archived
    OUTPUT/_settled.json                    the offsets up to which all views are complete
    OUTPUT/_log_starts.json                 where the logs of the data directory started when they were last read
    OUTPUT/_topics.json                     the topics that each log had, by their ids: the column topic_id of the rows

Spark's file sink writes each row once for readers that use Spark. Files that a killed run left of a micro-batch are
removed at the next start, so that other readers see each row once as well. In Delta nothing is removed: VACUUM does.
"""

from __future__ import annotations

import argparse
import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from pipeline import tables
from pipeline.connection_options import add_client_arguments, connect_with
from pipeline.decode.batches import partition_of
from pipeline.engine import F
from pipeline.errors import PipelineError
from pipeline.files import is_directory, open_directory, write_json
from pipeline.group_offsets import GroupOffsets, Partition
from pipeline.output import check_rows
from pipeline.output_guard import grown_output
from pipeline.schema import TOPICS
from pipeline.source.archived_topics import add_topics
from pipeline.source.complete_offsets import CompleteOffsets, write_complete_offsets
from pipeline.source.log_starts import keep_starts, log_starts
from pipeline.source.topic_ids import log_of, of_key
from pipeline.streaming.view_streams import add_stream_arguments, run_queries, view_stream, with_trigger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OFFSETS_TOPIC: Final = TOPICS["offsets"]
INTERNAL: Final = (TOPICS["offsets"], TOPICS["transactions"])
READ: Final = "read"  # name of the metric that counts the rows of a micro-batch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this job."""
    parser.add_argument("--topics", metavar="GLOB", help="archive the records of these topics too")
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="commit the archive's position there")
    add_client_arguments(parser)
    parser.add_argument("--group", default="archive", help="as this group, that of `serve --retain-for` [archive]")
    add_stream_arguments(parser)


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Archive what is new, once or until stopped; returns 0.

    Errors:  PipelineError: --output is missing or lacks a table that it had, --input is an archive, a query failed, or
             rows are missing at the end.
    """
    grown_output(args)
    if tables.is_archive(args.input):
        raise PipelineError(f"{args.input} is an archive: --input must be a broker's data directory")
    views = [ArchivedView(spark, args, "offsets", None), ArchivedView(spark, args, "transactions", None)]
    if args.topics:
        views.append(ArchivedView(spark, args, "raw", args.topics))
    connect_with(args)
    committer = PositionCommitter(GroupOffsets(args.bootstrap_server, args.group)) if args.bootstrap_server else None
    complete = CompleteOffsetsFile(args, views)

    def poll() -> None:
        positions: dict[str, int] = {}
        for each in views:
            positions.update(each.poll())
        complete.update(positions)
        if committer is not None:
            committer.update(positions)

    run_queries([each.start for each in views], poll)
    for each in views:
        each.check()
    return 0


class ArchivedView:
    """One view and the query that copies it into its table."""

    def __init__(self, spark: SparkSession, args: argparse.Namespace, records: str, topic: str | None) -> None:
        """topic: a glob for the view `raw`, else None. Errors: PipelineError: its table or its position is gone."""
        self.records = records
        self._spark, self._args, self._topic = spark, args, topic
        self._table, self._checkpoint = f"{args.output}/{records}", f"{args.output}/_checkpoint/{records}"
        self._rows: dict[int, int] = {}  # micro-batch -> rows it has read
        self._query: StreamingQuery | None = None
        self._position: dict[str, int] = {}
        self._check_whole()
        self._rows_before = self._count()
        self._remove_leftovers()

    def holds(self, topic: str) -> bool:
        """Whether the view has the logs of a topic."""
        if self._topic is None:
            return topic == TOPICS[self.records]
        return fnmatchcase(topic, self._topic) and topic not in INTERNAL

    def start(self) -> StreamingQuery:
        """Start the query, at the position in its checkpoint."""
        args = self._args
        rows = view_stream(self._spark, args.input, self.records, self._topic, args.max_bytes)
        if self._topic is not None:
            rows = rows.where(~F.col("topic").isin(*INTERNAL))
        added = {"mergeSchema": "true"} if args.format == "delta" else {}  # of columns that an older table lacks
        writer = (
            rows.withColumn(tables.DAY, F.to_date("timestamp"))
            .observe(READ, F.count(F.lit(1)).alias("rows"))
            .writeStream.format(args.format)
            .queryName(f"archive {self.records}")
            .partitionBy("log", tables.DAY)
            .option("checkpointLocation", self._checkpoint)
            .options(**added)
        )
        self._query = with_trigger(writer, args.every).start(self._table)
        return self._query

    def poll(self) -> dict[str, int]:
        """Key of a log (source/topic_ids.py) -> the offset after its last archived record."""
        if self._query is not None and (last := self._query.lastProgress) is not None:
            is_next = last["batchId"] <= max(self._rows, default=-1) + 1
            for progress in [last] if is_next else self._query.recentProgress:
                if (metrics := progress["observedMetrics"].get(READ)) is not None:  # None for an idle trigger
                    self._rows[progress["batchId"]] = metrics["rows"]
            if not self._position:  # what a killed run has archived and not noted
                self._note(self._query.recentProgress[0]["sources"][0]["startOffset"])
            self._note(last["sources"][0]["endOffset"])
        return self._position

    def _note(self, offset: Any) -> None:
        """Store what follows from the position after a finished micro-batch. offset: as Spark reports it."""
        found: dict[str, int] = (json.loads(offset) if isinstance(offset, str) else offset) or {}
        position = {key: end for key, end in found.items() if self.holds(partition_of(log_of(key))[0])}
        if position != self._position:
            self._position = position
            add_topics(self._args.output, position)
            self._note_starts()

    def check(self) -> None:
        """Errors: PipelineError: the table has not grown by as many rows as were read."""
        check_rows(self._table, self._rows_before + sum(self._rows.values()), self._count())

    def _count(self) -> int:
        return tables.archived(self._spark, self._args.output, self.records).count()

    def _check_whole(self) -> None:
        """Errors: PipelineError: an archive that was begun lacks its table or its position."""
        if not tables.starts_by_key(self._args.output, self.records):
            return
        for path, lost in ((self._table, "rows are"), (self._checkpoint, "position is")):
            if not is_directory(path):
                raise PipelineError(
                    f"{path} is gone, and the archive's {lost} with it: restore it from a copy, or begin a new archive "
                    "in another --output"
                )

    def _note_starts(self) -> None:
        """Store where the archive of a new log starts: gaps below are older than the archive."""
        known = tables.starts_by_key(self._args.output, self.records)
        new = {key: offset for key, offset in self._position.items() if key not in known}
        if new:
            write_json(f"{self._args.output}/{tables.ARCHIVE_STARTS}/{self.records}.json", known | new)

    def _remove_leftovers(self) -> None:
        """Delete files that the sink's log does not list: a killed micro-batch wrote them, and its rows come again."""
        if self._args.format == "delta" or not is_directory(self._table):
            return
        known = self._spark.read.parquet(self._table).inputFiles() if self._rows_before else []
        names = {unquote(urlsplit(address).path).rpartition("/")[2] for address in known}
        files, root = open_directory(self._table)
        for each in files.get_file_info(fs.FileSelector(root, recursive=True)):
            is_ours = each.base_name.endswith(".parquet") and "/_spark_metadata/" not in each.path
            if is_ours and each.base_name not in names:
                files.delete_file(each.path)


class CompleteOffsetsFile:
    """Keeps OUTPUT/_settled.json current: see pipeline/source/complete_offsets.py."""

    def __init__(self, args: argparse.Namespace, views: list[ArchivedView]) -> None:
        self._input, self._output, self._views = args.input, args.output, views
        self._complete_offsets = CompleteOffsets(args.input, {each.records: each.holds for each in views})
        self._positions: dict[str, int] = {}
        self._written: dict[str, int] = {}

    def update(self, positions: dict[str, int]) -> None:
        """Write the file again if it changes with the archive at these positions."""
        if positions == self._positions:
            return
        self._positions = dict(positions)
        known = [key for each in self._views for key in tables.starts_by_key(self._output, each.records)]
        keep_starts(self._output, log_starts(*open_directory(self._input)), positions)
        found = self._complete_offsets.complete({each.records: positions for each in self._views}, known)
        if found is not None and found != self._written:
            write_complete_offsets(self._output, found)
            self._written = found


class PositionCommitter:
    """Commits the archive's position as a group, unless only its own commits are new.

    A commit writes records to one log of `__consumer_offsets`; these are archived too, which moves the position. If no
    other log has moved, and that one by as many records as the last commit wrote, there is nothing to commit.
    """

    def __init__(self, group: GroupOffsets) -> None:
        self._group = group
        self._committed: dict[str, int] = {}
        self._records = 0  # written by the last commit

    def update(self, positions: dict[str, int]) -> None:
        """Commit the positions if anything but the last commit is new."""
        moved = {log: offset - self._committed.get(log, 0) for log, offset in positions.items()}
        moved = {log: by for log, by in moved.items() if by}
        is_own = list(moved.values()) == [self._records] and next(iter(moved)).startswith(f"{OFFSETS_TOPIC}-")
        if moved and not is_own:
            wanted = {_partition(key): offset for key, offset in positions.items()}
            if records := self._group.commit(wanted):
                self._records, self._committed = records, dict(positions)


def _partition(key: str) -> Partition:
    log, topic_id = of_key(key)
    return (*partition_of(log), topic_id)
