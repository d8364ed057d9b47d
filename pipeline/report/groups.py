"""Groups of all kinds: their epochs over time, members, commits and lag, from the views: DataFrame to DataFrame.

Of every table only as many groups come to the driver as the page shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.engine import F, Window
from pipeline.transforms import lag as lags

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Kind of record -> kind of group
KINDS: Final = {
    "GroupMetadata": "classic",
    "ConsumerGroupMetadata": "consumer",
    "StreamsGroupMetadata": "streams",
    "ShareGroupMetadata": "share",
}
MEMBERS: Final = ("ConsumerGroupMemberMetadata", "StreamsGroupMemberMetadata", "ShareGroupMemberMetadata")
SIMPLE: Final = "simple"  # Kafka's word for a group that has commits and never had members
RECORDS: Final = ("log", "offset", "timestamp", "kind", "tombstone", "group", "key_json", "value_json")


def epochs(offsets: DataFrame) -> DataFrame:
    """One row a record that says a group's epoch (of classic groups: generation). offsets: the view with RECORDS.

    Shape:  log, offset, timestamp, group, kind, epoch, members (of classic groups), is_new (another than before).
    """
    kind, value = F.col("kind"), F.col("value_json")
    kinds = F.create_map(*(F.lit(text) for each in KINDS.items() for text in each))
    epoch = F.coalesce(F.get_json_object(value, "$.generation"), F.get_json_object(value, "$.epoch")).cast("int")
    members = F.size(F.from_json(F.get_json_object(value, "$.members"), "array<struct<memberId: string>>"))
    before = F.lag("epoch").over(Window.partitionBy("log", "group").orderBy("offset"))
    return (
        offsets.where(kind.isin(*KINDS) & ~F.col("tombstone"))
        .select(
            "log", "offset", "timestamp", "group", kinds[kind].alias("kind"), epoch.alias("epoch"),
            F.when(kind == "GroupMetadata", members).alias("members"),
        )
        .withColumn("is_new", ~F.col("epoch").eqNullSafe(before))
    )  # fmt: skip  # several to a line


def groups(offsets: DataFrame, changes: DataFrame | None) -> DataFrame:
    """One row a group: group, kind, changes (new epochs), epoch, members, commits.

    changes: rows of pipeline.transforms.commits.effective; None: there are none.
    """
    last = F.max_by(F.struct("kind", "epoch", "members"), "offset")
    told = epochs(offsets).groupBy("group").agg(F.count_if("is_new").alias("changes"), last.alias("last"))
    there = (
        offsets.where(F.col("kind").isin(*MEMBERS))
        .groupBy("group", "key_json")
        .agg(F.max_by("tombstone", "offset").alias("gone"))
        .groupBy("group")
        .agg(F.count_if(~F.col("gone")).alias("there"))
    )
    rows = told.join(there, "group", "left")
    if changes is None:
        rows = rows.withColumn("commits", F.lit(0).cast("bigint"))
    else:
        commits = changes.where("not removed").groupBy("group").agg(F.count(F.lit(1)).alias("commits"))
        rows = rows.join(commits, "group", "full_outer")
    has_members = F.coalesce("last.members", "there", F.lit(0))
    return rows.select(
        "group",
        F.coalesce("last.kind", F.lit(SIMPLE)).alias("kind"),
        F.coalesce("changes", F.lit(0)).alias("changes"),
        F.col("last.epoch").alias("epoch"),
        F.when(F.col("last.kind").isNotNull(), has_members).alias("members"),
        F.coalesce("commits", F.lit(0)).alias("commits"),
    )


def lag_by_group(lag: DataFrame, slots: lags.Slots) -> DataFrame:
    """The lag in records, over all topics whose log ends are known. lag: rows of lags.lag_over_time.

    Shape:  one row a group: group, most, total (of all slots), points: the values by slot.
    """
    rows = lag.groupBy(F.col("consumergroup").alias("group"), slots.of(F.col("time")).alias("slot"))
    return _by_group(rows.agg(F.sum(lags.LAG).alias("value")).where("value is not null"))


def commits_by_group(changes: DataFrame, slots: lags.Slots) -> DataFrame:
    """The commits in each slot that has any. Shape: as lag_by_group."""
    rows = changes.where("not removed").groupBy("group", slots.of(F.col("effective_at")).alias("slot"))
    return _by_group(rows.agg(F.count(F.lit(1)).alias("value")))


def _by_group(rows: DataFrame) -> DataFrame:
    return rows.groupBy("group").agg(
        F.max("value").alias("most"),
        F.sum("value").alias("total"),
        F.sort_array(F.collect_list(F.struct("slot", "value"))).alias("points"),
    )


def top(rows: DataFrame, most: int, *by: str) -> DataFrame:
    """The rows of so many groups that have the most."""
    order: list[Column] = [F.desc(each) for each in by]
    return rows.orderBy(*order, "group").limit(most)
