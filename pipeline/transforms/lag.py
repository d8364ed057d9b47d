"""Lag of consumer groups over time, from commits and log ends: DataFrame to DataFrame.

Time is cut into slots of equal length; the lag of a slot is that at its end. Names and labels are those of
kafka_exporter, so that its dashboards can show the result:

| column                                 | meaning                                                                  |
|----------------------------------------|--------------------------------------------------------------------------|
| time, consumergroup, topic, partition  | labels                                                                   |
| kafka_consumergroup_current_offset     | the committed offset at that time                                        |
| kafka_topic_partition_current_offset   | the log end offset at that time; null: the log's records are not there   |
| kafka_consumergroup_lag                | the difference                                                           |
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
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
# The columns needed of the view `offsets`, to know which commits count, and of the view `raw`.
COMMITS: Final = (*DECIDING, "commit_offset")
RECORDS: Final = ("topic", "partition", "offset", "timestamp")
SLOTS: Final = 200  # where the length of a slot is not given


class Slots:
    """Times `step` apart: the first is `first`, and the last of them is not before `last`.

    Slots are numbered from 0.
    """

    def __init__(self, first: datetime, last: datetime, step: timedelta) -> None:
        self.first, self.step = first, step
        self.count = max(0, -((first - last) // step))

    def of(self, time: Column) -> Column:
        """The number of the first slot that ends at or after a time."""
        micros = F.unix_micros(time) - F.lit(_micros(self.first))
        step = _micros_of(self.step)
        return F.greatest(F.ceil(micros / F.lit(step)), F.lit(0)).cast("int")

    def time(self, slot: Column) -> Column:
        """The end of a slot."""
        return F.timestamp_micros(F.lit(_micros(self.first)) + slot.cast("long") * F.lit(_micros_of(self.step)))


def slots_of(changes: DataFrame, since: datetime | None, until: datetime | None, step_s: float | None) -> Slots | None:
    """The slots to report, by default SLOTS from the first commit to the last; None: nothing was ever committed.

    changes: rows of pipeline.transforms.commits.effective.
    """
    [span] = changes.select(
        F.unix_micros(F.min("effective_at")).alias("first"), F.unix_micros(F.max("effective_at")).alias("last")
    ).collect()
    if span["first"] is None:
        return None
    first = since or datetime.fromtimestamp(0, UTC) + timedelta(microseconds=span["first"])
    last = until or datetime.fromtimestamp(0, UTC) + timedelta(microseconds=span["last"])
    step = timedelta(seconds=step_s) if step_s else max((last - first) / SLOTS, timedelta(seconds=1))
    return Slots(first, last, step)


def lag_over_time(changes: DataFrame, records: DataFrame, slots: Slots) -> DataFrame:
    """The lag at every slot, with log ends from records: rows of `lag`.

    changes: rows of pipeline.transforms.commits.effective; records: rows of the view `raw`.
    """
    named = changes.select("topic", "partition").distinct()  # may be millions: Spark decides whether to send them
    of_interest = records.select(*RECORDS).join(named, ["topic", "partition"], "left_semi")
    return lag(committed(changes, slots), ends(of_interest, slots), slots)


def committed(changes: DataFrame, slots: Slots) -> DataFrame:
    """slot, labels and the committed offset: a row for every slot from a partition's first commit on that has one.

    changes: rows of pipeline.transforms.commits.effective.
    """
    newest = F.max_by(F.struct("commit_offset", "removed", "log_offset"), "log_offset").alias("last")
    seen = (
        changes.where(F.col("effective_at") <= slots.time(F.lit(slots.count)))
        .withColumn("consumergroup", F.col("group"))
        .select(*LABELS, slots.of(F.col("effective_at")).alias("slot"), "commit_offset", "removed", "log_offset")
        .groupBy(*LABELS, "slot")
        .agg(newest)
    )
    # A change that takes effect late may be early in the log: in a transaction whose offset was overtaken before its
    # end.
    so_far = Window.partitionBy(*LABELS).orderBy("slot").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    filled = _filled(seen, LABELS, slots).withColumn("last", F.max_by("last", "last.log_offset").over(so_far))
    return filled.where(~F.col("last.removed")).select("slot", *LABELS, F.col("last.commit_offset").alias(OFFSET))


def ends(records: DataFrame, slots: Slots) -> DataFrame:
    """slot, topic, partition and the log end offset: a row for every slot from the log's first record on."""
    reached = (
        records.where(F.col("timestamp") <= slots.time(F.lit(slots.count)))
        .groupBy("topic", "partition", slots.of(F.col("timestamp")).alias("slot"))
        .agg((F.max("offset") + 1).alias(END))
    )
    key = ("topic", "partition")
    so_far = Window.partitionBy(*key).orderBy("slot").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return _filled(reached, key, slots).withColumn(END, F.max(END).over(so_far))


def lag(commits: DataFrame, ends: DataFrame, slots: Slots) -> DataFrame:
    """The lag of each group, topic and partition at each slot, from rows of `committed` and `ends`."""
    joined = commits.join(ends, ["slot", "topic", "partition"], "left")
    lag = F.greatest(F.col(END) - F.col(OFFSET), F.lit(0).cast("long"))
    return joined.select(
        slots.time(F.col("slot")).alias("time"), *LABELS, OFFSET, END, F.when(F.col(END).isNotNull(), lag).alias(LAG)
    )


def sums(lags: DataFrame) -> DataFrame:
    """Sums of `lag` a group and topic: kafka_consumergroup_lag_sum and kafka_consumergroup_current_offset_sum."""
    return lags.groupBy("time", "consumergroup", "topic").agg(
        F.sum(OFFSET).alias(f"{OFFSET}_sum"), F.sum(LAG).alias(f"{LAG}_sum")
    )


def _filled(rows: DataFrame, key: tuple[str, ...], slots: Slots) -> DataFrame:
    """The rows, with a row added for every missing slot from the first of its key to the last slot of all."""
    first = rows.groupBy(*key).agg(F.min("slot").alias("first"))
    grid = first.select(*key, F.explode(F.sequence(F.col("first"), F.lit(slots.count))).alias("slot"))
    return grid.join(rows, [*key, "slot"], "left")


def _micros(time: datetime) -> int:
    return _micros_of(time - datetime(1970, 1, 1, tzinfo=time.tzinfo))


def _micros_of(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
