"""The job `archive`: copies the logs into tables, ahead of the cleaner, and tells the broker how far it is.

    momus pipeline archive --input ./data --output ./archive                          # what is there, and done (cron)
    momus pipeline archive --input ./data --output ./archive --every 10 --bootstrap-server 127.0.0.1:9092
    momus serve --retain-for archive                                                  # what is not archived stays

    OUTPUT/offsets, OUTPUT/transactions     the internal topics, decoded
    OUTPUT/raw                              the topics that --topics asks for
    OUTPUT/_checkpoint/VIEW, OUTPUT/_began  positions; where each log stood when its first rows came
    OUTPUT/_settled.json                    up to where no view lacks what another one has

Spark's file sink writes each row once, as Spark reads it; what a killed run has left of a micro-batch is removed at the
next start, so that other readers of the files see each row once as well.
"""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from pyarrow import fs
from pyspark.sql import functions as F

from pipeline import tables
from pipeline.decode.batches import partition_of
from pipeline.errors import PipelineError
from pipeline.files import is_directory, open_directory, write_json
from pipeline.group_offsets import GroupOffsets
from pipeline.output import check_rows
from pipeline.schema import TOPICS
from pipeline.source.complete_offsets import CompleteOffsets, write_complete_offsets
from pipeline.streaming.checkpoint import committed_position
from pipeline.streaming.view_streams import add_stream_arguments, run_queries, trigger, view_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NEEDS_KAFKA: Final = False
OFFSETS_TOPIC: Final = TOPICS["offsets"]
INTERNAL: Final = (TOPICS["offsets"], TOPICS["transactions"])
READ: Final = "read"  # Spark's name of the count of rows on their way


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What only this job knows."""
    parser.add_argument("--topics", metavar="GLOB", help="archive the records of these topics too")
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="commit the archive's position there")
    parser.add_argument("--group", default="archive", help="as this group, the one of `serve --retain-for` [archive]")
    add_stream_arguments(parser)


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Archive what is new, once or until stopped."""
    if not args.output:
        raise PipelineError("the archive needs a place: --output")
    if tables.is_archive(args.input):
        raise PipelineError(f"{args.input} is an archive already: --input is a broker's data directory")
    archives = [ArchivedView(spark, args, "offsets", None), ArchivedView(spark, args, "transactions", None)]
    if args.topics:
        archives.append(ArchivedView(spark, args, "raw", args.topics))
    tell = PositionCommitter(GroupOffsets(args.bootstrap_server, args.group)) if args.bootstrap_server else None
    settling = CompleteOffsetsFile(args, archives)

    def poll() -> None:
        positions: dict[str, int] = {}
        for each in archives:
            positions.update(each.poll())
        settling.move(positions)
        if tell is not None:
            tell.move(positions)

    poll()  # what a killed run has not told yet
    run_queries([each.start for each in archives], poll)
    for each in archives:
        each.check()
    return 0


class ArchivedView:
    """One view on its way into its table."""

    def __init__(self, spark: SparkSession, args: argparse.Namespace, records: str, topic: str | None) -> None:
        self.records = records
        self._spark, self._args, self._topic = spark, args, topic
        self._table, self._checkpoint = f"{args.output}/{records}", f"{args.output}/_checkpoint/{records}"
        self._rows: dict[int, int] = {}  # micro-batch -> rows it has read
        self._query: StreamingQuery | None = None
        self._batch = -1
        self._position: dict[str, int] = {}
        self._rows_before = self._count()
        self._remove_remains()

    def holds(self, topic: str) -> bool:
        """Whether it has the logs of a topic."""
        if self._topic is None:
            return topic == TOPICS[self.records]
        return fnmatchcase(topic, self._topic) and topic not in INTERNAL

    def start(self) -> StreamingQuery:
        """Begin, or go on where the checkpoint says."""
        args = self._args
        rows = view_stream(self._spark, args.input, self.records, self._topic, args.max_bytes)
        if self._topic is not None:
            rows = rows.where(~F.col("topic").isin(*INTERNAL))
        writer = (
            rows.withColumn(tables.DAY, F.to_date("timestamp"))
            .observe(READ, F.count(F.lit(1)).alias("rows"))
            .writeStream.format(args.format)
            .queryName(f"archive {self.records}")
            .partitionBy("log", tables.DAY)
            .option("checkpointLocation", self._checkpoint)
        )
        self._query = trigger(writer, args.every).start(self._table)
        return self._query

    def poll(self) -> dict[str, int]:
        """How far every log is archived by now."""
        if self._query is not None and (last := self._query.lastProgress) is not None:
            is_next = last["batchId"] <= max(self._rows, default=-1) + 1
            for progress in [last] if is_next else self._query.recentProgress:
                if (metrics := progress["observedMetrics"].get(READ)) is not None:  # not of an idle trigger
                    self._rows[progress["batchId"]] = metrics["rows"]
        found = committed_position(self._checkpoint)
        if found is not None and found[0] != self._batch:
            self._batch, (position,) = found
            self._position = {log: end for log, end in position.items() if self.holds(partition_of(log)[0])}
            self._note_beginnings()
        return self._position

    def check(self) -> None:
        """Errors: PipelineError: the table has not grown by as many rows as were read."""
        check_rows(self._table, self._rows_before + sum(self._rows.values()), self._count())

    def _count(self) -> int:
        return tables.view(self._spark, self._args.output, self.records).count() if is_directory(self._table) else 0

    def _note_beginnings(self) -> None:
        """Below where a log stood at first, the cleaner may have been before the archive: nobody's fault."""
        began = tables.archive_start_offsets(self._args.output, self.records)
        news = {log: offset for log, offset in self._position.items() if log not in began}
        if news:
            write_json(f"{self._args.output}/{tables.ARCHIVE_STARTS}/{self.records}.json", began | news)

    def _remove_remains(self) -> None:
        """Files that no micro-batch of the sink's log has: their rows came, or will come, in others."""
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
    """What is settled in the archive (pipeline/source/complete_offsets.py), written down whenever it has grown."""

    def __init__(self, args: argparse.Namespace, archives: list[ArchivedView]) -> None:
        self._output, self._archives = args.output, archives
        self._complete_offsets = CompleteOffsets(args.input, {each.records: each.holds for each in archives})
        self._positions: dict[str, int] = {}
        self._settled: dict[str, int] = {}

    def move(self, positions: dict[str, int]) -> None:
        """The archive is so far by now."""
        if positions == self._positions:
            return
        self._positions = dict(positions)
        known = [log for each in self._archives for log in tables.archive_start_offsets(self._output, each.records)]
        settled = self._complete_offsets.complete({each.records: positions for each in self._archives}, known)
        if settled is not None and settled != self._settled:
            write_complete_offsets(self._output, settled)
            self._settled = settled


class PositionCommitter:
    """The archive's position as a group's committed offsets: told when it has moved, but not by our own telling.

    Committing writes records to one log of `__consumer_offsets`, which are archived, which moves the position. When
    nothing else has moved than that log by as many records, there is nothing to tell.
    """

    def __init__(self, group: GroupOffsets) -> None:
        self._group = group
        self._told: dict[str, int] = {}
        self._records = 0  # of our last commit

    def move(self, positions: dict[str, int]) -> None:
        """Commit the positions, if there is news in them."""
        moved = {log: offset - self._told.get(log, 0) for log, offset in positions.items()}
        moved = {log: by for log, by in moved.items() if by}
        is_own = list(moved.values()) == [self._records] and next(iter(moved)).startswith(f"{OFFSETS_TOPIC}-")
        if moved and not is_own:
            wanted = {partition_of(log): offset for log, offset in positions.items()}
            if records := self._group.commit(wanted):
                self._records, self._told = records, dict(positions)
