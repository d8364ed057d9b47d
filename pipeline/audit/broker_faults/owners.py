"""Checks of groups' members: partitions with two owners, and generations and epochs that go back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.audit.findings import EPOCH_REGRESSION, TWO_OWNERS, findings
from pipeline.audit.members import GROUPS, MEMBERS
from pipeline.engine import F
from pipeline.transforms.running import LAST, MAX, Running, previous, with_running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OPEN: Final = 2**62  # the end of what a member still owns
_PARTS: Final = "array<struct<topicId: string, partitions: array<int>>>"
_OWNED: Final = f"assignedPartitions {_PARTS}, partitionsPendingRevocation {_PARTS}"


def two_owners(offsets: DataFrame) -> DataFrame:
    """Partitions that a member of a consumer group got while another one had them. offsets: of the view, with
    lost_before and topic_ids: topic, topic_id.

    A member has a partition from a record that names it to the member's next record that does not; also while it is to
    give it up. Records of one batch are written at once. In groups of other kinds members may share partitions, or
    clients assign them.

    Shape:   candidates (findings.py), one a record; the proof is the other member's record.
    Source:  KIP-848: a partition is assigned when its last owner has given it up.
    """
    rows = offsets.where(F.col("kind") == MEMBERS[0]).withColumn("member", F.get_json_object("key_json", "$.memberId"))
    following = {"next": Running(LAST, F.struct("batch_base_offset"), backwards=True)}
    owned = (
        with_running(rows, ("log", "group", "member"), following)
        .where("not tombstone")
        .withColumn("until", F.coalesce("next.batch_base_offset", F.lit(_OPEN)))
        .withColumn("owned", F.from_json("value_json", _OWNED))
    )
    kept = ("log", "segment", "offset", "batch_base_offset", "timestamp", "lost_before", "group", "member", "until")
    every = F.concat(
        F.coalesce("owned.assignedPartitions", F.array()), F.coalesce("owned.partitionsPendingRevocation", F.array())
    )
    parts = owned.select(*kept, F.explode(every).alias("part"))
    parts = parts.select(
        *kept, F.col("part.topicId").alias("topic_id"), F.explode("part.partitions").alias("number")
    ).localCheckpoint()
    longest = {"other": Running(MAX, F.struct("until", "offset", "lost_before", "member"))}
    found = (
        with_running(parts, ("log", "group", "topic_id", "number"), longest)
        .where("other.until > batch_base_offset and other.member != member")
        .groupBy("log", "segment", "offset", "timestamp", "lost_before", "group", "member")
        .agg(F.min(F.struct("topic_id", "number", "other")).alias("first"), F.count(F.lit(1)).alias("partitions"))
        .withColumn("proof_log", F.col("log"))
        .withColumn("proof_offset", F.col("first.other.offset"))
    )
    detail = F.format_string(
        "%s got partition %d of topic %s%s, which %s has",
        "member", "first.number", "first.topic_id",
        F.when(F.col("partitions") > 1, F.format_string(" and %d more", F.col("partitions") - 1)).otherwise(F.lit("")),
        "first.other.member",
    )  # fmt: skip  # several to a line
    return findings(found, TWO_OWNERS, detail, F.col("lost_before") - F.col("first.other.lost_before"))


def epochs_back(offsets: DataFrame) -> DataFrame:
    """Groups whose generation or epoch, and members whose epoch, is below that of the record before.

    offsets: of the view, with lost_before. A group or member that was removed, which a tombstone says, begins again. So
    does a static member that has left: its records have an epoch below 0, then 0.

    Shape:   candidates (findings.py), one a record; the proof is the record before it.
    """
    value = F.col("value_json")
    of_group = F.coalesce(F.get_json_object(value, "$.generation"), F.get_json_object(value, "$.epoch"))
    named = offsets.withColumn("epoch_now", of_group.cast("int")).where(F.col("kind").isin(*GROUPS))
    of_member = offsets.withColumn("epoch_now", F.get_json_object(value, "$.memberEpoch").cast("int"))
    of_member = of_member.where(F.col("kind").isin(*MEMBERS)).withColumn(
        "member", F.get_json_object("key_json", "$.memberId")
    )
    group_rows = _went_back(named.withColumn("member", F.lit(None).cast("string")), "log", "group")
    member_rows = _went_back(of_member, "log", "group", "member")
    rows = group_rows.unionByName(member_rows)
    who = F.coalesce(F.concat(F.lit("member "), F.col("member")), F.concat(F.lit("group "), F.col("group")))
    what = F.when(F.col("kind") == GROUPS[0], F.lit("generation")).otherwise(F.lit("epoch"))
    detail = F.format_string("%s went back from %s %d to %d", who, what, "prior.epoch_now", "epoch_now")
    return findings(rows, EPOCH_REGRESSION, detail, F.col("lost_before") - F.col("prior.lost_before"))


def _went_back(rows: DataFrame, *key: str) -> DataFrame:
    one = F.struct("kind", "tombstone", "epoch_now", "offset", "lost_before")
    kept = ("log", "segment", "offset", "timestamp", "lost_before", "group", "member", "kind", "epoch_now", "prior")
    return (
        with_running(rows, key, {"prior": previous(one)})
        .withColumn("prior", F.col("prior.value"))
        .where("not tombstone and not prior.tombstone and prior.kind = kind")
        .where("epoch_now > 0 and epoch_now < prior.epoch_now")
        .select(*kept)
        .withColumn("proof_log", F.col("log"))
        .withColumn("proof_offset", F.col("prior.offset"))
    )
