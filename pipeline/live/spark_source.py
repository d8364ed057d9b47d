"""Spark's data source `momus-live`: the logs of a running broker as a DataFrame, within one cut.

A session reads one cut, that of the last `register`. The source's class holds it, and not the options of a read: those
are part of Spark's plans, which its page and its event log show, and the cut holds passwords.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from pipeline.live.cut import Cut, connected
from pipeline.live.fetched_logs import LogRange, read_range, tasks
from pipeline.schema import TOPICS, spark_schema, view_fields, with_nullability

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

FORMAT: Final = "momus-live"


class Task(InputPartition):
    """The ranges that one Spark task fetches."""

    def __init__(self, ranges: tuple[LogRange, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges


class LiveReader(DataSourceReader):
    """A read of one view; options as in live_view."""

    def __init__(self, cut: Cut, options: dict[str, str]) -> None:
        self.records = options["records"]
        self.columns = _names(options.get("columns"))
        self._topic = options.get("topic") or TOPICS[self.records]
        self._without = _names(options.get("without")) or ()
        self._cut = cut

    def partitions(self) -> list[InputPartition]:
        """The tasks; one without ranges when there is nothing to read, as Spark needs a task."""
        return [Task(ranges) for ranges in tasks(self._cut.logs, self._topic, self._without)] or [Task(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task. Errors: PipelineError: see read_range."""
        assert isinstance(partition, Task)
        if not partition.ranges:
            return
        fields = with_nullability(view_fields(self.records, self.columns))
        with connected(self._cut.bootstrap, self._cut.settings) as client:
            for each in partition.ranges:
                for batch in read_range(client, each, self.records, self.columns):
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=fields)


def register(spark: SparkSession, cut: Cut) -> None:
    """Have the session read this cut."""

    class LiveSource(DataSource):
        """What `spark.read.format("momus-live")` makes."""

        @classmethod
        def name(cls) -> str:
            return FORMAT

        def schema(self) -> StructType:
            return spark_schema(self.options["records"], _names(self.options.get("columns")))

        def reader(self, schema: StructType) -> LiveReader:
            return LiveReader(cut, dict(self.options))

    spark.dataSource.register(LiveSource)


def _names(text: str | None) -> tuple[str, ...] | None:
    return tuple(text.split(",")) if text else None
