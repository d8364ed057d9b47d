"""Spark's data source `momus-segments`: chosen segments of a data directory, whole or from an offset on.

The option `parts` names them as JSON arrays: [log, base offset of the segment, first offset, position of its batch in
the file]. The other options and the columns are those of the data source `momus`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import InputPartition

from pipeline.source.data_source import MomusReader, MomusSource, Task, tasks_of
from pipeline.source.read_options import ReadOptions, spark_options
from pipeline.source.segment_ranges import whole_segments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class SegmentPart(NamedTuple):
    """A segment from an offset on."""

    log: str
    segment: int  # base offset
    first: int  # offset
    position: int  # of its batch in the file


class SegmentPartsReader(MomusReader):
    """Reads what the parts hold now; a part whose segment is gone gives no rows."""

    def __init__(self, options: ReadOptions, parts: Iterable[SegmentPart]) -> None:
        super().__init__(options)
        self._parts = {(each.log, each.segment): each for each in parts}

    def partitions(self) -> list[InputPartition]:
        """The tasks that read the parts whose segments still exist."""
        found = []
        for each in whole_segments(self.options.segments(), self.options.log_starts()):
            if (part := self._parts.get((each.log, each.segment))) is not None:
                bounds = replace(each.bounds, first=max(part.first, each.bounds.first), position=part.position)
                found.append(replace(each, bounds=bounds, size=max(each.size - part.position, 0)))
        return list(tasks_of(self.options, found)) or [Task(())]


class SegmentPartsSource(MomusSource):
    """What `spark.read.format("momus-segments")` makes."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "momus-segments"

    def reader(self, schema: StructType) -> MomusReader:
        """For spark.read. Errors: KeyError: the option `parts` is missing."""
        parts = [SegmentPart(*each) for each in json.loads(self.options["parts"])]
        return SegmentPartsReader(ReadOptions(self.options), parts)


def read_parts(spark: SparkSession, options: ReadOptions, parts: Iterable[SegmentPart]) -> DataFrame:
    """The records of segment parts, with the columns of the options."""
    spark.dataSource.register(SegmentPartsSource)
    texts = spark_options(options.path, options.records, options.topic, options.columns)
    return spark.read.format("momus-segments").options(**texts).option("parts", json.dumps(list(parts))).load()
