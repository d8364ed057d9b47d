"""Checks whether members were entitled to commit: by generation in classic groups, by epoch in the newer protocols.

The rule for the newer protocols is KAFKA-19779's: assignment epoch <= epoch of the commit <= member epoch. A group's
records are in the same log as its offsets, so the state at a commit is the last record of its group and member before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.audit.findings import STALE_GENERATION, STALE_MEMBER_EPOCH, findings
from pipeline.engine import F
from pipeline.transforms.running import LAST, Running, with_running

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GROUPS: Final = ("GroupMetadata", "ConsumerGroupMetadata", "StreamsGroupMetadata")
MEMBERS: Final = ("ConsumerGroupCurrentMemberAssignment", "StreamsGroupCurrentMemberAssignment")
_PARTS: Final = "array<struct<topicId: string, partitions: array<int>, assignmentEpochs: array<int>>>"
_MEMBER: Final = f"memberEpoch int, assignedPartitions {_PARTS}, partitionsPendingRevocation {_PARTS}"


def with_group(offsets: DataFrame) -> DataFrame:
    """Commits of members with `group_then` and `member_then`, the last records of group and member before each.

    offsets: rows of the view with lost_before.
    """
    value = F.col("value_json")
    state = F.struct("offset", "lost_before", "kind", "tombstone", "generation_then", "value_json")
    named = F.get_json_object("key_json", "$.memberId")
    rows = (
        offsets.where("group is not null")
        .withColumn("member", F.coalesce(named, "member_id"))
        .withColumn("generation_then", F.get_json_object(value, "$.generation").cast("int"))
    )
    # Each folding reads its input twice, and two checks read the result.
    rows = with_running(rows.localCheckpoint(), ("log", "group"), {"group_then": Running(LAST, _of(GROUPS, state))})
    member = {"member_then": Running(LAST, _of(MEMBERS, state))}
    rows = with_running(rows.localCheckpoint(), ("log", "group", "member"), member)
    return rows.where("kind = 'OffsetCommit' and not tombstone and generation >= 0").localCheckpoint()


def _of(kinds: tuple[str, ...], state: Column) -> Column:
    return F.when(F.col("kind").isin(*kinds), state)


def stale_generations(rows: DataFrame) -> DataFrame:
    """Commits in classic groups with a generation below the group's. rows: of with_group.

    Shape:   candidates (findings.py), one a commit; the proof is the group's GroupMetadata record.
    """
    found = (
        rows.where("group_then.kind = 'GroupMetadata' and not group_then.tombstone")
        .where("generation < group_then.generation_then")
        .withColumn("proof_log", F.col("log"))
        .withColumn("proof_offset", F.col("group_then.offset"))
    )
    detail = F.format_string(
        "%s committed in generation %d, but the group was in %d",
        F.coalesce("member_id", F.lit("a member")), "generation", "group_then.generation_then",
    )  # fmt: skip  # several to a line
    return findings(found, STALE_GENERATION, detail, F.col("lost_before") - F.col("group_then.lost_before"))


def stale_epochs(rows: DataFrame, topic_ids: DataFrame) -> DataFrame:
    """Commits with an epoch that the member did not have, or for a partition that it did not own at that epoch.

    rows: of with_group; topic_ids: topic, topic_id. Members of streams groups own tasks, which only the topology maps
    to partitions: for those, only an epoch above the member's is reported.

    Shape:   candidates (findings.py), one a commit; the proof is the member's record.
    Source:  KIP-848, KAFKA-19779.
    """
    ids = topic_ids.groupBy("topic").agg(F.collect_set("topic_id").alias("ids"))
    member = F.from_json("member_then.value_json", _MEMBER)
    newer = F.col("group_then.kind").isin(*GROUPS[1:]) & ~F.col("group_then.tombstone")
    found = (
        rows.where(newer & F.col("member_then").isNotNull() & ~F.col("member_then.tombstone"))
        .withColumn("then", member)
        .withColumn("streams", F.col("member_then.kind") == MEMBERS[1])
        .join(ids.withColumnRenamed("topic", "commit_topic"), "commit_topic", "left")
        .withColumn("owned_at", _assignment_epoch())
        .withColumn("why", _why())
        .where("why is not null")
        .withColumn("proof_log", F.col("log"))
        .withColumn("proof_offset", F.col("member_then.offset"))
    )
    detail = F.format_string(
        "%s committed %s-%d with epoch %d, %s",
        F.coalesce("member_id", F.lit("a member")), "commit_topic", "commit_partition", "generation", "why",
    )  # fmt: skip  # several to a line
    return findings(found, STALE_MEMBER_EPOCH, detail, F.col("lost_before") - F.col("member_then.lost_before"))


def _assignment_epoch() -> Column:
    """The epoch at which the member got the commit's partition; null: it does not own it; -1: the epoch is unknown."""
    mine = F.concat(
        F.coalesce("then.assignedPartitions", F.array()), F.coalesce("then.partitionsPendingRevocation", F.array())
    )
    wanted = F.col("commit_topic_id")
    of_topic = F.filter(
        mine,
        lambda part: F.when(wanted.isNotNull(), part["topicId"] == wanted).otherwise(
            F.array_contains("ids", part["topicId"])
        ),
    )
    pairs = F.flatten(
        F.transform(
            of_topic,
            lambda part: F.transform(
                part["partitions"],
                lambda number, at: F.struct(
                    number.alias("number"),
                    F.coalesce(F.get(part["assignmentEpochs"], at), F.lit(-1)).alias("epoch"),
                ),
            ),
        )
    )
    return F.get(F.filter(pairs, lambda pair: pair["number"] == F.col("commit_partition")), F.lit(0))["epoch"]


def _why() -> Column:
    mine, epoch = F.col("then.memberEpoch"), F.col("generation")
    unnamed = F.col("commit_topic_id").isNull() & F.col("ids").isNull()
    return (
        F.when(epoch > mine, F.format_string("but had epoch %d", mine))
        .when((epoch == mine) | F.col("streams") | unnamed, F.lit(None))
        .when(F.col("owned_at").isNull(), F.lit("but did not own the partition"))
        .when(epoch < F.col("owned_at"), F.format_string("but owned the partition from epoch %d on", "owned_at"))
    )
