"""The job `bridge`: commits a streaming query's progress as a group, with --checkpoint from Spark's own private files.

Spark keeps its position in the checkpoint and never commits, so lag tools do not see it. In the program that runs the
query, its progress is public:

    spark.streams.addListener(ProgressBridge("127.0.0.1:9092", "spark-orders"))          # or groups={"name": "group"}

In a process of its own nothing public tells it: there the job reads the query's checkpoint, without changing it:

    momus pipeline bridge --checkpoint ./checkpoint --group spark-orders --bootstrap-server 127.0.0.1:9092 --every 5

Either way it commits the position after each finished micro-batch, and only when that is new. Spark never reads the
group's offsets.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from pipeline.connection_options import add_client_arguments, connect_with
from pipeline.errors import PipelineError
from pipeline.group_offsets import GroupOffsets, Partition
from pipeline.streaming.checkpoint import committed_position
from pipeline.streaming.stop_signal import stop_on_signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

NEEDS_INPUT: Final = False


class ProgressBridge(StreamingQueryListener):
    """A listener that commits the end offsets of the Kafka sources of queries.

    groups: query name -> group; group: of all other queries, None to skip them. A failed commit is reported on standard
    error and tried again with the next micro-batch.
    """

    def __init__(self, bootstrap: str, group: str | None = None, groups: Mapping[str, str] | None = None) -> None:
        self._bootstrap = bootstrap
        self._group, self._groups = group, dict(groups or {})
        self._offsets: dict[str, GroupOffsets] = {}

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark names this method
        """Commit the end offsets of a finished micro-batch."""
        progress = event.progress
        group = self._groups.get(progress.name or "", self._group)
        if group is None:
            return
        offsets = self._offsets.setdefault(group, GroupOffsets(self._bootstrap, group, f"spark {progress.id}"))
        ends = (each.endOffset for each in progress.sources if each.description.startswith("Kafka"))
        offsets.commit(positions(json.loads(end) if isinstance(end, str) else end for end in ends))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark names this method
        """Nothing to commit: nothing has been read yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  # Spark names this method
        """Nothing to commit: nothing has been read since the last micro-batch."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # Spark names this method
        """Everything it has read is committed already."""


def positions(offsets: Iterable[Any]) -> dict[Partition, int]:
    """The positions to commit, from offsets of Kafka sources: {topic: {partition: next offset}} each."""
    return {
        (topic, int(partition), None): offset
        for each in offsets
        if isinstance(each, dict)
        for topic, partitions in each.items()
        if isinstance(partitions, dict)
        for partition, offset in partitions.items()
        if offset >= 0
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this job."""
    parser.add_argument("--checkpoint", required=True, metavar="PATH", help="of the streaming query")
    parser.add_argument("--group", required=True, help="the group to commit as")
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT", help="where to commit")
    add_client_arguments(parser)
    parser.add_argument(
        "--every", type=float, metavar="SECONDS", help="keep running, and check that often; without it, once"
    )


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Commit the checkpoint's position, once or until SIGTERM; returns 0.

    Errors:  PipelineError: without --every, the checkpoint has no finished micro-batch.
    """
    connect_with(args)
    offsets = GroupOffsets(args.bootstrap_server, args.group, "spark checkpoint")
    if committed_position(args.checkpoint) is None and args.every is None:
        raise PipelineError(f"{args.checkpoint} has no finished micro-batch: is it a query's checkpointLocation?")
    with stop_on_signals() as stop:
        while not stop.is_set:
            found = committed_position(args.checkpoint)
            if found is not None:
                offsets.commit(positions(found[1]))
            if args.every is None or stop.wait(args.every):
                break
    return 0
