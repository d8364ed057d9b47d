"""Spark's data source `momus`: the logs of a broker as a DataFrame, in batches or as a stream.

    spark.read.format("momus").option("path", "/data/kafka").option("records", "offsets").load()

| option  | meaning                                                 | default                            |
|---------|---------------------------------------------------------|------------------------------------|
| path    | data directory: a path, or any address pyarrow.fs opens |                                    |
| records | view: raw, offsets, transactions (pipeline/schema.py)   | raw                                |
| topic   | name or glob                                            | raw: all; else the view's own log  |
| logs    | only these, by directory: a-0,b-1                       | all that match `topic`             |
| columns | only these: log,offset,timestamp                        | all of the view                    |
| until   | a time: segments that are an hour later may be left out, by their `.timeindex`; not for streams | all |
| without | segments to leave out, as JSON: key of a log (topic_ids.py) to base offsets; not for streams | none |
| ends    | the logs to read, each up to its offset, as JSON: key of a log to offset; not for streams | all |
| skipDamaged | true: pass over damage in the middle of a log; not for streams | false: an error        |

Give `columns` where speed matters: Spark does not tell a data source written in Python which columns a query needs, so
without it every column is decoded.

A stream (`spark.readStream`) takes the same options and `maxBytesPerTrigger`, the bytes of one micro-batch over all
logs. Its position holds, for each log, the offset after the last batch that was read. Jobs that keep the position
themselves give `plan`, the file of plan_file.py: a query without a checkpoint begins where it says.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    In,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from pipeline.schema import spark_schema, view_fields, with_nullability
from pipeline.source.plan_file import PlanFile
from pipeline.source.read_options import ReadOptions
from pipeline.source.segment_index import divided
from pipeline.source.segment_ranges import SegmentRange, read_range
from pipeline.source.stream_planner import StreamPlanner, ranges_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_TASK_BYTES: Final = 8 << 20
PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
ROOT: Final = str(Path(__file__).resolve().parents[2])  # the folder of the packages


class Task(InputPartition):
    """The ranges that one Spark task reads."""

    def __init__(self, ranges: tuple[SegmentRange, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges


def tasks_of(options: ReadOptions, ranges: Iterable[SegmentRange]) -> list[Task]:
    """Ranges grouped into tasks, in their order: small segments share one, a large one is divided among several."""
    tasks: list[Task] = []
    group: list[SegmentRange] = []
    size = 0
    for each in divided(options.files, ranges):
        if group and size + each.size > _TASK_BYTES:
            tasks.append(Task(tuple(group)))
            group, size = [], 0
        group.append(each)
        size += each.size
    if group:
        tasks.append(Task(tuple(group)))
    return tasks


class MomusReader(DataSourceReader):
    """A batch read of everything that is there now."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def partitions(self) -> list[InputPartition]:
        """The tasks that read all segments; one without ranges when there are none, as Spark needs a task.

        Errors:  FileNotFoundError: the path is not a directory.
        """
        return list(tasks_of(self.options, ranges_of(self.options))) or [Task(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, in the order of offsets. Errors: CorruptSegmentError: see read_range."""
        return _read(self.options, partition)


class FilteringReader(MomusReader):
    """A batch read of the logs that the query's conditions name: `log`, `topic` and `partition`, by = and IN.

    Spark applies all of its conditions again, so the filters only leave out segments. It does not tell a source written
    in Python which columns a query needs.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark names this method
        """Keep those that can be used; all of them are given back."""
        self.options.only += [
            (each.attribute[0], each.value if isinstance(each, In) else (each.value,))
            for each in filters
            if isinstance(each, (EqualTo, EqualNullSafe, In)) and each.attribute in _PLACES
        ]
        return filters


class MomusStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream over logs that grow, are cleaned, are created and are deleted."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self._planner = StreamPlanner(options)
        self._plan = PlanFile(options.plan) if options.plan else None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark names this method
        """The start in the plan file; without one, the position before the first record of every log."""
        return self._plan.start if self._plan else {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark names this method
        """The option maxBytesPerTrigger, in bytes over all logs; without it, no limit."""
        most = self.options.max_bytes_per_trigger
        return ReadMaxBytes(most) if most else ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802  # Spark's name
        """The position at the end of the next micro-batch: log -> offset after its last batch.

        Errors:  CorruptSegmentError: a segment is damaged in the middle of its log.
        """
        if self._plan is None:
            return self._next(start, limit)
        repeated = self._plan.repeated()
        if repeated is not None:
            return repeated
        end = self._next(start, limit)
        self._plan.keep(start, end)
        return end

    def _next(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return self._planner.next_position(start, limit.max_bytes if isinstance(limit, ReadMaxBytes) else None)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark names this method
        """Ignore records that are added from now on, so that the query comes to an end."""
        self._planner.freeze_ends()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """The tasks that read what is between two positions."""
        return list(tasks_of(self.options, self._planner.ranges_between(start, end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task. Errors: CorruptSegmentError: see read_range."""
        return _read(self.options, partition)

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options}  # what the planner remembers stays with the driver

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["options"])  # type: ignore[misc]  # mypy forbids calling __init__ on an instance


_PLACES: Final = (("log",), ("topic",), ("partition",))


def _read(options: ReadOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, Task)
    fields = with_nullability(view_fields(options.records, options.columns))
    for each in partition.ranges:
        for batch in read_range(options, each):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=fields)


class MomusSource(DataSource):
    """What `spark.read.format("momus")` makes. Errors: see ReadOptions."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "momus"

    def schema(self) -> StructType:
        """The columns of the view, or those of the option `columns`."""
        options = ReadOptions(self.options)
        return spark_schema(options.records, options.columns)

    def reader(self, schema: StructType) -> MomusReader:
        """For spark.read."""
        return MomusReader(ReadOptions(self.options))

    def streamReader(self, schema: StructType) -> MomusStreamReader:  # noqa: N802  # Spark names this method
        """For spark.readStream."""
        return MomusStreamReader(ReadOptions(self.options))


class FilteringSource(MomusSource):
    """The same where Spark hands conditions over: a session that does not must have a reader without pushFilters."""

    def reader(self, schema: StructType) -> FilteringReader:
        """For spark.read."""
        return FilteringReader(ReadOptions(self.options))


def register(spark: SparkSession) -> None:
    """Register the format `momus` with a session, whoever made it: of a program, a notebook, or of Spark Connect.

    Its Python workers import the pipeline. A session in this process gets its folder told, which is enough where the
    workers are on this machine; elsewhere, and by Spark Connect, PYTHONPATH of the server and its workers has it, or
    `momus.zip` of `momus pipeline bundle` (--py-files). With PUSHDOWN set to true before, conditions on log, topic and
    partition leave out segments.
    """
    context = getattr(spark, "_sc", None)  # a session of Spark Connect has none
    if context is not None:
        known = context.environment.get("PYTHONPATH", "").split(os.pathsep)
        if ROOT not in known:
            context.environment["PYTHONPATH"] = os.pathsep.join([ROOT, *filter(None, known)])
    has_filters = spark.conf.get(PUSHDOWN, "false") == "true"
    spark.dataSource.register(FilteringSource if has_filters else MomusSource)
