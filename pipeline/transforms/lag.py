"""Lag of consumer groups over time, from commits and the ends of logs: DataFrame to DataFrame.

Time is cut into slots of equal length from a first moment on; a slot is told as of its last moment. Names and labels
are those of kafka_exporter, so that its dashboards can be drawn from the result:

| column                                 | meaning                                                                  |
|----------------------------------------|--------------------------------------------------------------------------|
| time, consumergroup, topic, partition  | labels                                                                   |
| kafka_consumergroup_current_offset     | what the group had committed then                                        |
| kafka_topic_partition_current_offset   | the end of the partition's log then; null: its records are not there     |
| kafka_consumergroup_lag                | the difference                                                           |
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline.transforms.commits import DECIDING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OFFSET: Final = "kafka_consumergroup_current_offset"
END: Final = "kafka_topic_partition_current_offset"
LAG: Final = "kafka_consumergroup_lag"
LABELS: Final = ("consumergroup", "topic", "partition")
# Columns that are looked at: of the view `offsets`, to know what counts, and of the view `raw`.
COMMITS: Final = (*DECIDING, "commit_offset")
RECORDS: Final = ("topic", "partition", "offset", "timestamp")


class Slots:
    """Moments `step` apart, the first of them at `first`, the last not before `last`."""

    def __init__(self, first: datetime, last: datetime, step: timedelta) -> None:
        self.first, self.step = first, step
        self.count = max(0, -((first - last) // step))

    def of(self, time: Column) -> Column:
        """The first slot that knows of what happened then."""
        micros = F.unix_micros(time) - F.lit(_micros(self.first))
        step = _micros_of(self.step)
        return F.greatest(F.ceil(micros / F.lit(step)), F.lit(0)).cast("int")

    def time(self, slot: Column) -> Column:
        """The moment of a slot."""
        return F.timestamp_micros(F.lit(_micros(self.first)) + slot.cast("long") * F.lit(_micros_of(self.step)))


def committed(changes: DataFrame, slots: Slots) -> DataFrame:
    """slot, labels and what was committed, for every slot from a partition's first commit on while there is one.

    changes: pipeline.transforms.commits.effective.
    """
    newest = F.max_by(F.struct("commit_offset", "removed", "log_offset"), "log_offset").alias("last")
    seen = (
        changes.where(F.col("effective_at") <= slots.time(F.lit(slots.count)))
        .withColumn("consumergroup", F.col("group"))
        .select(*LABELS, slots.of(F.col("effective_at")).alias("slot"), "commit_offset", "removed", "log_offset")
        .groupBy(*LABELS, "slot")
        .agg(newest)
    )
    # What is decided late may lie early in the log: a transaction whose offset was overtaken before its end.
    ahead = Window.partitionBy(*LABELS).orderBy("slot").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    filled = _filled(seen, LABELS, slots).withColumn("last", F.max_by("last", "last.log_offset").over(ahead))
    return filled.where(~F.col("last.removed")).select("slot", *LABELS, F.col("last.commit_offset").alias(OFFSET))


def ends(records: DataFrame, slots: Slots) -> DataFrame:
    """slot, topic, partition and the end of the log, for every slot from its first record on."""
    reached = (
        records.where(F.col("timestamp") <= slots.time(F.lit(slots.count)))
        .groupBy("topic", "partition", slots.of(F.col("timestamp")).alias("slot"))
        .agg((F.max("offset") + 1).alias(END))
    )
    key = ("topic", "partition")
    so_far = Window.partitionBy(*key).orderBy("slot").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return _filled(reached, key, slots).withColumn(END, F.max(END).over(so_far))


def lag(commits: DataFrame, ends: DataFrame, slots: Slots) -> DataFrame:
    """Lag of each group, topic and partition at each slot."""
    joined = commits.join(ends, ["slot", "topic", "partition"], "left")
    behind = F.greatest(F.col(END) - F.col(OFFSET), F.lit(0).cast("long"))
    return joined.select(
        slots.time(F.col("slot")).alias("time"), *LABELS, OFFSET, END, F.when(F.col(END).isNotNull(), behind).alias(LAG)
    )


def sums(lags: DataFrame) -> DataFrame:
    """The same for a group and topic: kafka_consumergroup_lag_sum and kafka_consumergroup_current_offset_sum."""
    return lags.groupBy("time", "consumergroup", "topic").agg(
        F.sum(OFFSET).alias(f"{OFFSET}_sum"), F.sum(LAG).alias(f"{LAG}_sum")
    )


def _filled(rows: DataFrame, key: tuple[str, ...], slots: Slots) -> DataFrame:
    """A row for every slot from the first of its key to the last of all."""
    first = rows.groupBy(*key).agg(F.min("slot").alias("first"))
    grid = first.select(*key, F.explode(F.sequence(F.col("first"), F.lit(slots.count))).alias("slot"))
    return grid.join(rows, [*key, "slot"], "left")


def _micros(time: datetime) -> int:
    return _micros_of(time - datetime(1970, 1, 1, tzinfo=time.tzinfo))


def _micros_of(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
