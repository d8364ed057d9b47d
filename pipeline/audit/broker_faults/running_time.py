"""When a broker ran, by the times that it wrote into its logs: how long a coordinator had to do what was due.

A broker that is down writes nothing, and one that is idle need not either. So only times that follow each other closely
show that it ran: a run is a chain of them without a break longer than GRACE_S, and without a new leader epoch in it, as
each start of Apache Kafka makes one.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pipeline.audit.log_coverage import before_ends
from pipeline.audit.transactions import GRACE_S
from pipeline.engine import F, Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LONG_S: Final = 2 * GRACE_S  # a coordinator has loaded its log and looked for what has timed out


def running(*rows: DataFrame, limits: DataFrame | None) -> DataFrame:
    """One row: `newest`, the last time that a broker, and not a client, wrote into a log below the limits, and
    `ran_until`, the end of the last run of at least LONG_S; null: there is none.

    If ran_until is after a time, a coordinator ran for GRACE_S, at least, after that time or after its start. limits:
    rows of at (a log), end (an offset); None: all rows count.
    """
    parts = [
        (part if limits is None else before_ends(part, limits)).select("log", "leader_epoch", "timestamp")
        for part in rows
    ]
    times = reduce(lambda one, other: one.unionByName(other), parts).where("timestamp is not null")
    began = times.groupBy("log", "leader_epoch").agg(F.unix_micros(F.min("timestamp")).alias("start"))
    lowest = began.groupBy("log").agg(F.min("leader_epoch").alias("lowest"))
    starts = began.join(lowest, "log").where("leader_epoch > lowest").select(_slot("start"), "start")
    starts = starts.groupBy("slot").agg(F.max("start").alias("start"))
    # One row for each GRACE_S, whatever the number of records: a year has three millions.
    spans = (
        times.withColumn("micros", F.unix_micros("timestamp"))
        .groupBy(_slot("micros"))
        .agg(F.min("micros").alias("first"), F.max("micros").alias("last"))
        .join(starts, "slot", "left")
        .withColumn("first", F.coalesce("start", "first"))
    )
    ordered = Window.orderBy("slot")
    breaks = F.col("start").isNotNull() | (F.col("first") - F.lag("last").over(ordered) > GRACE_S * 1_000_000)
    runs = (
        spans.withColumn("breaks", F.coalesce(breaks, F.lit(False)).cast("int"))
        .withColumn("run", F.sum("breaks").over(ordered))
        .groupBy("run")
        .agg(F.min("first").alias("first"), F.max("last").alias("last"))
    )
    is_long = F.col("last") - F.col("first") >= LONG_S * 1_000_000
    return runs.agg(
        F.timestamp_micros(F.max("last")).alias("newest"),
        F.timestamp_micros(F.max(F.when(is_long, F.col("last")))).alias("ran_until"),
    )


def _slot(micros: str) -> Column:
    """The number of the stretch of GRACE_S that has a time."""
    return F.floor(F.col(micros) / (GRACE_S * 1_000_000)).alias("slot")
