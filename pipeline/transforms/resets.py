"""Who set offsets back, or ahead: every reset, jump and removal among committed offsets. DataFrame to DataFrame.

| kind      | what it is                                                                                |
|-----------|-------------------------------------------------------------------------------------------|
| `back`    | a commit below the one before it: records are read again                                  |
| `jump`    | a commit above the one before it that another than its maker made, and no member: a tool  |
|           | has set the group ahead, and records may be skipped                                       |
| `removed` | the offset was deleted, with its group or because it expired: the group begins again      |

`by` is `member`, `tool`, or `unknown`. momus writes who made a commit; one without a generation was made by a tool or
by a client outside of the group. The logs of Apache Kafka name no client: there a commit without a leader epoch is one
of a tool, if the group's other commits have an epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.engine import F
from pipeline.transforms.commits import KEY
from pipeline.transforms.running import previous, with_running

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MEMBER, TOOL, UNKNOWN = "member", "tool", "unknown"
_EFFECT: Final = ("effective_offset", "log_offset")
_WHO: Final = ("member_id", "instance_id", "generation", "client_id")


def resets(history: DataFrame) -> DataFrame:
    """One row a reset. history: rows of pipeline.transforms.commits.history.

    Shape:   time, group, topic, partition, kind, from_offset, to_offset, again (records that are read again), skipped,
             by, member_id, instance_id, generation, client_id, log, log_offset (of the commit's record).
    """
    has_epochs = history.where("leader_epoch >= 0").select("group").distinct().withColumn("has_epochs", F.lit(True))
    told = history.join(has_epochs, "group", "left").withColumn("by", _by())
    one = F.struct("commit_offset", "removed", "by", F.col("client_id").alias("client"))
    rows = with_running(told, KEY, {"before": previous(one)}, _EFFECT).withColumn("before", F.col("before.value"))
    moved = (
        rows.where("before is not null and not before.removed").withColumn("kind", _kind()).where("kind is not null")
    )
    before, now = F.col("before.commit_offset"), F.col("commit_offset")
    return moved.select(
        F.col("effective_at").alias("time"),
        "group",
        "topic",
        "partition",
        "kind",
        before.alias("from_offset"),
        now.alias("to_offset"),
        F.when(F.col("kind") == "back", before - now).alias("again"),
        F.when(F.col("kind") == "jump", now - before).alias("skipped"),
        "by",
        *_WHO,
        "log",
        "log_offset",
    )


def _by() -> Column:
    is_silent = F.coalesce(*(F.col(name).cast("string") for name in _WHO)).isNull()
    by_epoch = F.when(F.col("has_epochs") & (F.col("leader_epoch") < 0), F.lit(TOOL)).otherwise(F.lit(UNKNOWN))
    return F.when(is_silent, by_epoch).when(F.col("generation") >= 0, F.lit(MEMBER)).otherwise(F.lit(TOOL))


def _kind() -> Column:
    other = (F.col("before.by") != F.col("by")) | ~F.col("before.client").eqNullSafe(F.col("client_id"))
    is_jump = (F.col("commit_offset") > F.col("before.commit_offset")) & (F.col("by") == TOOL) & other
    return (
        F.when(F.col("removed"), F.lit("removed"))
        .when(F.col("commit_offset") < F.col("before.commit_offset"), F.lit("back"))
        .when(is_jump, F.lit("jump"))
    )
