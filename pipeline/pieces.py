"""Spark's data source `momus-pieces`: some segments of a data directory, whole or from a place on.

The option `pieces` names them, as JSON: [log, base offset, first offset, where its batch begins in the file]. The
other options and the columns are those of `momus`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import InputPartition

from pipeline.slices import Settings, options_of, slices_of
from pipeline.source import MomusReader, MomusSource, Task, tasks_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class Piece(NamedTuple):
    """A segment from an offset on."""

    log: str
    segment: int
    first: int
    position: int


class PiecesReader(MomusReader):
    """Reads what the pieces hold now; one whose segment is gone holds nothing."""

    def __init__(self, settings: Settings, pieces: Iterable[Piece]) -> None:
        super().__init__(settings)
        self._pieces = {(each.log, each.segment): each for each in pieces}

    def partitions(self) -> list[InputPartition]:
        found = []
        for each in slices_of(self.settings.segments()):
            if (piece := self._pieces.get((each.log, each.segment))) is not None:
                bounds = replace(each.bounds, first=max(piece.first, each.bounds.first), position=piece.position)
                found.append(replace(each, bounds=bounds, size=max(each.size - piece.position, 0)))
        return list(tasks_of(found)) or [Task(())]


class PiecesSource(MomusSource):
    """What `spark.read.format("momus-pieces")` makes."""

    @classmethod
    def name(cls) -> str:
        return "momus-pieces"

    def reader(self, schema: StructType) -> MomusReader:
        pieces = [Piece(*each) for each in json.loads(self.options["pieces"])]
        return PiecesReader(Settings(self.options), pieces)


def read(spark: SparkSession, settings: Settings, pieces: Iterable[Piece]) -> DataFrame:
    """The records of some segments, with the columns of the settings."""
    spark.dataSource.register(PiecesSource)
    options = options_of(settings.path, settings.records, settings.topic, settings.columns)
    return spark.read.format("momus-pieces").options(**options).option("pieces", json.dumps(list(pieces))).load()
