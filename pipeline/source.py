"""Spark's data source `momus`: the logs of a broker as a DataFrame, and without Spark as Arrow record batches.

    spark.read.format("momus").option("path", "/data/kafka").option("records", "offsets").load()

| option  | meaning                                                 | default                            |
|---------|---------------------------------------------------------|------------------------------------|
| path    | data directory: a path, or any address pyarrow.fs opens |                                    |
| records | view: raw, offsets, transactions (pipeline/schema.py)   | raw                                |
| topic   | name or glob                                            | raw: all; else the view's own log  |
| logs    | only these, by directory: a-0,b-1                       | all that match `topic`             |
| columns | only these: log,offset,timestamp                        | all of the view                    |

`columns` is worth naming: Spark does not tell a source written in Python which columns a query reads, so all are
decoded and handed over.

A stream (`spark.readStream`) takes the same and `maxBytesPerTrigger`, the bytes of one step in all logs together. Its
position is, for each log, the offset behind the last batch that was read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from pipeline.planner import Planner
from pipeline.schema import chosen, spark_schema, told
from pipeline.slices import Settings, Slice, read_slice, scan, slices_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["MomusSource", "register", "scan"]

_TASK_BYTES: Final = 8 << 20


class Task(InputPartition):
    """Slices that one Spark task reads: small segments share one."""

    def __init__(self, slices: tuple[Slice, ...]) -> None:
        super().__init__(None)
        self.slices = slices


def tasks_of(slices: list[Slice]) -> list[Task]:
    """Neighbours share a task until it is worth one."""
    tasks: list[Task] = []
    group: list[Slice] = []
    size = 0
    for each in slices:
        if group and size + each.size > _TASK_BYTES:
            tasks.append(Task(tuple(group)))
            group, size = [], 0
        group.append(each)
        size += each.size
    if group:
        tasks.append(Task(tuple(group)))
    return tasks


class MomusReader(DataSourceReader):
    """Reads all that is there now."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def partitions(self) -> list[InputPartition]:
        return list(tasks_of(slices_of(self.settings.segments()))) or [Task(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self.settings, partition)


class MomusStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the logs as they grow, are cleaned, come and go."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._planner = Planner(settings)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's names, here and below
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self.settings.max_bytes_per_trigger
        return ReadMaxBytes(most) if most else ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        return self._planner.latest(start, limit.max_bytes if isinstance(limit, ReadMaxBytes) else None)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._planner.stop_here()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return list(tasks_of(self._planner.slices(start, end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self.settings, partition)

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings}  # what the plans remember stays with the driver

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["settings"])  # type: ignore[misc]


def _read(settings: Settings, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, Task)
    fields = told(chosen(settings.records, settings.columns))
    for each in partition.slices:
        for batch in read_slice(settings, each):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=fields)


class MomusSource(DataSource):
    """What `spark.read.format("momus")` makes."""

    @classmethod
    def name(cls) -> str:
        return "momus"

    def schema(self) -> StructType:
        settings = Settings(self.options)
        return spark_schema(settings.records, settings.columns)

    def reader(self, schema: StructType) -> MomusReader:
        return MomusReader(Settings(self.options))

    def streamReader(self, schema: StructType) -> MomusStreamReader:  # noqa: N802
        return MomusStreamReader(Settings(self.options))


def register(spark: SparkSession) -> None:
    """Make the format `momus` known to a session."""
    spark.dataSource.register(MomusSource)
