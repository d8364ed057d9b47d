"""Lag of consumer groups over time, from commits and log ends: DataFrame to DataFrame.

Time is cut into slots of equal length; the lag of a slot is that at its end. Names and labels are those of
kafka_exporter, so that its dashboards can show the result:

| column                                 | meaning                                                                  |
|----------------------------------------|--------------------------------------------------------------------------|
| time, consumergroup, topic, partition  | labels                                                                   |
| kafka_consumergroup_current_offset     | the committed offset at that time                                        |
| kafka_topic_partition_current_offset   | the log end offset at that time; null: the log's records are not there   |
| kafka_consumergroup_lag                | the difference                                                           |
| kafka_consumergroup_lag_seconds        | the age of the first unread record, by its own time; 0: all are read     |

The last moment is that of the last record or commit, and every record that is there counts at it, whatever a client's
clock has put on it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pipeline.engine import F, Window
from pipeline.transforms.commits import DECIDING, with_ending_marker
from pipeline.transforms.running import LAST, Running, previous, with_running

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OFFSET: Final = "kafka_consumergroup_current_offset"
END: Final = "kafka_topic_partition_current_offset"
LAG: Final = "kafka_consumergroup_lag"
LAG_SECONDS: Final = "kafka_consumergroup_lag_seconds"
LABELS: Final = ("consumergroup", "topic", "partition")
# The columns needed of the view `offsets`, to know which commits count, and of the view `raw`.
COMMITS: Final = (*DECIDING, "commit_offset")
RECORDS: Final = ("topic", "partition", "offset", "timestamp")
STABLE_RECORDS: Final = (*RECORDS, "log", "producer_id", "transactional", "control")
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

    def time_of(self, slot: int) -> datetime:
        """The end of a slot, here."""
        return self.first + slot * self.step

    def time(self, slot: Column) -> Column:
        """The end of a slot."""
        return F.timestamp_micros(F.lit(_micros(self.first)) + slot.cast("long") * F.lit(_micros_of(self.step)))


def slots_of(
    changes: DataFrame,
    since: datetime | None,
    until: datetime | None,
    step_s: float | None,
    newest: datetime | None = None,
) -> Slots | None:
    """The slots to report, by default SLOTS from the first commit to the last, or to `newest`, if that is later; None:
    nothing was ever committed.

    changes: rows of pipeline.transforms.commits.effective.
    """
    [span] = changes.select(
        F.unix_micros(F.min("effective_at")).alias("first"), F.unix_micros(F.max("effective_at")).alias("last")
    ).collect()
    if span["first"] is None:
        return None
    first = since or _time(span["first"])
    last = until or max(_time(span["last"]), newest or _time(span["last"]))
    step = timedelta(seconds=step_s) if step_s else max((last - first) / SLOTS, timedelta(seconds=1))
    return Slots(first, last, step)


def newest_record(records: DataFrame, now: datetime) -> datetime | None:
    """The last time of a record that is not after now; None: there is none."""
    times = records.where(F.col("timestamp") <= F.lit(now)).agg(F.unix_micros(F.max("timestamp")).alias("last"))
    [row] = times.collect()
    return None if row["last"] is None else _time(row["last"])


def of_interest(records: DataFrame, changes: DataFrame) -> DataFrame:
    """The records of partitions for which offsets were committed."""
    named = changes.select("topic", "partition").distinct()  # may be millions: Spark decides whether to send them
    return records.join(named, ["topic", "partition"], "left_semi")


def lag_over_time(
    changes: DataFrame,
    records: DataFrame,
    slots: Slots,
    *,
    floors: DataFrame | None = None,
    to_end: bool = False,
    stable: bool = False,
) -> DataFrame:
    """The lag at every slot, with log ends from records: rows of `lag`.

    changes: rows of pipeline.transforms.commits.effective; records: of the view `raw`, with STABLE_RECORDS if `stable`:
    then a log ends at the first record of a transaction that is open at that time. floors: topic, partition, end: that
    of a log without records. to_end: records dated after the last slot count in it.
    """
    wanted = of_interest(records, changes)
    found = ends(wanted.select(*RECORDS), slots, floors, to_end=to_end)
    return lag(committed(changes, slots), stable_ends(wanted, found, slots) if stable else found, slots)


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


def ends(records: DataFrame, slots: Slots, floors: DataFrame | None = None, *, to_end: bool = False) -> DataFrame:
    """slot, topic, partition and the log end offset: a row for every slot from the log's first record on.

    floors, to_end: see lag_over_time.
    """
    key = ("topic", "partition")
    slot = slots.of(F.col("timestamp"))
    there = records if to_end else records.where(F.col("timestamp") <= slots.time(F.lit(slots.count)))
    slot = F.least(slot, F.lit(slots.count)) if to_end else slot
    reached = there.groupBy(*key, slot.alias("slot")).agg((F.max("offset") + 1).alias(END))
    if floors is not None:
        seen = records.select(*key).distinct().withColumn("has_records", F.lit(True))
        # Where the last records of a log were removed, only its floor tells the end; since when, nothing tells.
        known = floors.join(seen, list(key), "left").withColumn("has_records", F.col("has_records").isNotNull())
        known = known if to_end else known.where(~F.col("has_records"))
        begins = F.when(F.col("has_records"), F.lit(slots.count)).otherwise(F.lit(0))
        reached = reached.unionByName(known.select(*key, begins.alias("slot"), F.col("end").alias(END)))
        reached = reached.groupBy(*key, "slot").agg(F.max(END).alias(END))
    so_far = Window.partitionBy(*key).orderBy("slot").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return _filled(reached, key, slots).withColumn(END, F.max(END).over(so_far))


def stable_ends(records: DataFrame, found: DataFrame, slots: Slots) -> DataFrame:
    """Rows of `ends` whose end is at most the first record of a transaction that is open at that time.

    Source:  Kafka's last stable offset, to which read_committed consumers read.
    """
    ended = F.when(F.col("end_timestamp").isNotNull(), slots.of(F.col("end_timestamp")))
    spans = (
        with_ending_marker(records.where("transactional"))
        .where("control is null")
        .groupBy("topic", "partition", "producer_id", "end_offset")
        .agg(
            F.min("offset").alias("first"),
            F.min(F.least(slots.of(F.col("timestamp")), F.lit(slots.count))).alias("begins"),
            F.min(F.coalesce(ended, F.lit(slots.count + 1))).alias("ends"),
        )
        .where("begins < ends")
    )
    last = F.least(F.col("ends") - 1, F.lit(slots.count))
    low = (
        spans.select("topic", "partition", "first", F.explode(F.sequence(F.col("begins"), last)).alias("slot"))
        .groupBy("slot", "topic", "partition")
        .agg(F.min("first").alias("stable"))
    )
    return found.join(low, ["slot", "topic", "partition"], "left").select(
        "slot", "topic", "partition", F.least(END, "stable").alias(END)
    )


def first_wanted(changes: DataFrame, since: datetime) -> DataFrame:
    """topic, partition, wanted: the lowest offset that a group has committed at this time or commits later.

    changes: rows of pipeline.transforms.commits.effective. No row of `committed` from then on has a lower one.
    """
    before = F.col("effective_at") <= F.lit(since)
    now = (
        changes.where(before)
        .groupBy("group", "topic", "partition")
        .agg(F.max_by("commit_offset", "log_offset").alias("commit_offset"))
    )
    later = changes.where(~before).select("group", "topic", "partition", "commit_offset")
    return now.unionByName(later).groupBy("topic", "partition").agg(F.min("commit_offset").alias("wanted"))


def with_seconds(rows: DataFrame, records: DataFrame) -> DataFrame:
    """Rows of `lag` with LAG_SECONDS: how old the first unread record was at that time, by its own time."""
    asked = rows.select("topic", "partition", F.col(OFFSET).alias("offset")).distinct()
    asked = asked.withColumn("timestamp", F.lit(None).cast("timestamp")).withColumn("is_record", F.lit(0))
    both = records.select(*RECORDS).withColumn("is_record", F.lit(1)).unionByName(asked)
    following = {"next": Running(LAST, F.when(F.col("is_record") == 1, F.struct("timestamp")), backwards=True)}
    first = (
        with_running(both, ("topic", "partition"), following, ("offset", "is_record"))
        .where("is_record = 0")
        .select("topic", "partition", F.col("offset").alias(OFFSET), F.col("next.timestamp").alias("unread"))
    )
    age = F.greatest((F.unix_micros("time") - F.unix_micros("unread")) / F.lit(1_000_000), F.lit(0.0))
    seconds = F.when(F.col(LAG) == 0, F.lit(0.0)).when(F.col(LAG) > 0, age)
    return rows.join(first, ["topic", "partition", OFFSET], "left").select(*rows.columns, seconds.alias(LAG_SECONDS))


def stalled(rows: DataFrame, changes: DataFrame, slots: Slots, seconds: float) -> DataFrame:
    """Rows of `lag` at the last moment with records to read, whose committed offset has not moved for so long.

    They have `moved_at`, the time when it did.
    """
    key = ("group", "topic", "partition")
    before = {"before": previous(F.col("commit_offset"))}
    moved = (
        with_running(changes.where("not removed"), key, before, ("effective_at", "log_offset"), F.lit(0))
        .where(~F.coalesce(F.col("before.value") == F.col("commit_offset"), F.lit(False)))
        .groupBy(F.col("group").alias("consumergroup"), "topic", "partition")
        .agg(F.max("effective_at").alias("moved_at"))
    )
    end = slots.time(F.lit(slots.count))
    late = F.unix_micros(end) - F.unix_micros("moved_at") >= int(seconds * 1_000_000)
    here = rows.where((F.col("time") == end) & (F.col(LAG) > 0))
    return here.join(moved, list(LABELS)).where(late)


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


def _time(micros: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)


def _micros(time: datetime) -> int:
    return _micros_of(time - datetime(1970, 1, 1, tzinfo=time.tzinfo))


def _micros_of(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
