"""The job `bridge`: commits a streaming query's progress as a consumer group, so that lag tools see Spark.

Spark keeps its position in the checkpoint and never commits. In the program that runs the query:

    spark.streams.addListener(ProgressBridge("127.0.0.1:9092", "spark-orders"))          # or groups={"name": "group"}

or beside it, from its checkpoint, without touching it:

    momus pipeline bridge --checkpoint ./checkpoint --group spark-orders --bootstrap-server 127.0.0.1:9092 --every 5

Either way it commits only what a finished micro-batch has behind it, when there is a new one, and nothing of its own
accord; Spark does not read it back.
"""

from __future__ import annotations

import argparse
import json
import signal
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from pipeline.errors import PipelineError
from pipeline.group_offsets import GroupOffsets
from pipeline.streaming.checkpoint import committed_position

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

NEEDS_KAFKA: Final = False
NEEDS_INPUT: Final = False


class ProgressBridge(StreamingQueryListener):
    """A listener that commits the end offsets of the Kafka sources of queries.

    groups: query name -> group; `group` is that of the queries that are not named there, None leaves them alone.
    """

    def __init__(self, bootstrap: str, group: str | None = None, groups: Mapping[str, str] | None = None) -> None:
        self._bootstrap = bootstrap
        self._group, self._groups = group, dict(groups or {})
        self._offsets: dict[str, GroupOffsets] = {}

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's names, here and below
        """A micro-batch is done: its end offsets are what has been read."""
        progress = event.progress
        group = self._groups.get(progress.name or "", self._group)
        if group is None:
            return
        offsets = self._offsets.setdefault(group, GroupOffsets(self._bootstrap, group, f"spark {progress.id}"))
        ends = (each.endOffset for each in progress.sources if each.description.startswith("Kafka"))
        offsets.commit(positions(json.loads(end) if isinstance(end, str) else end for end in ends))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing has been read yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing has moved."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """What it has read is committed already; the group stays."""


def positions(offsets: Iterable[Any]) -> dict[tuple[str, int], int]:
    """Offsets of Kafka sources, {topic: {partition: next offset}}, as a group commits them."""
    return {
        (topic, int(partition)): offset
        for each in offsets
        if isinstance(each, dict)
        for topic, partitions in each.items()
        if isinstance(partitions, dict)
        for partition, offset in partitions.items()
        if offset >= 0
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What only this job knows."""
    parser.add_argument("--checkpoint", required=True, metavar="PATH", help="of the streaming query")
    parser.add_argument("--group", required=True, help="the group to commit as")
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT", help="where to commit")
    parser.add_argument("--every", type=float, metavar="SECONDS", help="stay, and look that often; without it, once")


def run(spark: SparkSession, args: argparse.Namespace) -> int:
    """Commit what the checkpoint says is done, once or until SIGTERM."""
    offsets = GroupOffsets(args.bootstrap_server, args.group, "spark checkpoint")
    if committed_position(args.checkpoint) is None and args.every is None:
        raise PipelineError(f"{args.checkpoint} has no finished micro-batch: is it a query's checkpointLocation?")
    over = threading.Event()
    if args.every is not None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: over.set())
    while True:
        found = committed_position(args.checkpoint)
        if found is not None:
            offsets.commit(positions(found[1]))
        if args.every is None or over.wait(args.every):
            return 0
