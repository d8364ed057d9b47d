"""Checks of the logs themselves: overlapping batches, holes, leader epochs that go back, commits beyond a log's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.audit.findings import (
    ANOTHER_TOPIC,
    COMMIT_BEYOND_END,
    LEADER_EPOCH_REGRESSION,
    MISSING_RECORDS,
    NEWER,
    OVERLAPPING_BATCHES,
    findings,
)
from pipeline.engine import F
from pipeline.transforms.running import MAX, Running, with_running

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame


def log_faults(found: DataFrame, cleaned: Collection[str] | None) -> DataFrame:
    """Batches that no log can have, from rows of `batches`. cleaned: the logs that the cleaner has been at; None: not
    known, and no hole is reported.

    * A batch whose offsets begin below the end of those before it, or that is there twice.
    * Offsets that are missing between two batches, or in one, where nothing compacts: retention and DeleteRecords
      remove from the front only.
    * A batch whose leader's epoch is below that of one before it.

    Shape:   candidates (findings.py), one a batch; the proof is the batch that it contradicts.
    """
    before = {
        "reach": Running(MAX, F.struct("last_offset", "offset")),
        "led": Running(MAX, F.struct("leader_epoch", (-F.col("offset")).alias("minus"))),
    }
    rows = with_running(found.where("read_records is not null"), ("log",), before).withColumn("proof_log", F.col("log"))
    twice = F.col("read_records") > F.col("batch_records")
    overlaps = rows.where(twice | (F.col("offset") <= F.col("reach.last_offset"))).withColumn(
        "proof_offset", F.when(twice, F.col("offset")).otherwise(F.col("reach.offset"))
    )
    said = F.when(twice, F.format_string("the batch of offsets %d to %d is there twice", "offset", "last_offset"))
    said = said.otherwise(
        F.format_string("offsets %d to %d begin below %d", "offset", "last_offset", F.col("reach.last_offset") + 1)
    )
    led = rows.where("leader_epoch >= 0 and leader_epoch < led.leader_epoch").withColumn(
        "proof_offset", -F.col("led.minus")
    )
    epochs = F.format_string("leader epoch %d comes after %d", "leader_epoch", "led.leader_epoch")
    made = findings(overlaps, OVERLAPPING_BATCHES, said).unionByName(findings(led, LEADER_EPOCH_REGRESSION, epochs))
    return made if cleaned is None else made.unionByName(_holes(rows.where(~F.col("log").isin(*cleaned))))


def _holes(rows: DataFrame) -> DataFrame:
    span = F.col("last_offset") - F.col("offset") + 1
    after = rows.where("offset > reach.last_offset + 1").withColumn("proof_offset", F.col("reach.offset"))
    between = F.format_string(
        "offsets %d to %d are not in the log, which nothing compacts",
        F.col("reach.last_offset") + 1,
        F.col("offset") - 1,
    )
    inside = rows.where(span > F.col("batch_records")).withColumn("proof_offset", F.col("offset"))
    within = F.format_string("the batch of offsets %d to %d has %d records", "offset", "last_offset", "batch_records")
    return findings(after, MISSING_RECORDS, between).unionByName(findings(inside, MISSING_RECORDS, within))


def commits_beyond_end(rows: DataFrame, known: DataFrame, *, is_archive: bool) -> DataFrame:
    """Committed offsets above the end of their log. rows: of commits.effective; known: of log_summaries.

    A log does not shrink, so an offset that is above its end at last was so when it was committed. That of a topic that
    is deleted gets a tombstone; where the topic's ids are not known, one from before the log's first record is a doubt.
    An archive may have the commits of records that it has not copied yet.

    Shape:   candidates (findings.py), one a group and partition, at its first such commit; the proof is the log's last
             batch.
    """
    key = ("log", "group", "commit_topic", "commit_partition")
    later = {"removed": Running(MAX, F.col("tombstone").cast("int"), backwards=True)}
    there = known.select(
        F.col("log").alias("proof_log"), "end_offset", "last_batch", "log_lost", "first_timestamp",
        F.col("topic_id").alias("id_there"),
    )  # fmt: skip  # several to a line
    is_same = F.col("commit_topic_id") == F.col("id_there")
    beyond = (
        with_running(rows, key, later)
        .where("not tombstone and coalesce(removed, 0) = 0")
        .withColumn("proof_log", F.concat("commit_topic", F.lit("-"), F.col("commit_partition").cast("string")))
        .join(there, "proof_log")
        .where("commit_offset > end_offset")
        .where(F.coalesce(is_same, F.lit(True)))
    )
    columns = (
        "offset", "segment", "timestamp", "commit_offset", "end_offset", "last_batch", "log_lost", "first_timestamp",
        "proof_log", is_same.alias("is_same"),
    )  # fmt: skip  # several to a line
    found = (
        beyond.groupBy(*(F.col(name) for name in key))
        .agg(F.min(F.struct(*columns)).alias("first"))
        .select(*(F.col(name) for name in key), "first.*")
        .withColumn("proof_offset", F.col("last_batch"))
    )
    detail = F.format_string(
        "%s committed %s-%d at %d, but its log ends at %d",
        "group", "commit_topic", "commit_partition", "commit_offset", "end_offset",
    )  # fmt: skip  # several to a line
    is_older = F.col("is_same").isNull() & (F.col("timestamp") < F.col("first_timestamp"))
    other = F.when(is_older, F.lit(ANOTHER_TOPIC)).when(F.lit(is_archive), F.lit(NEWER))
    why = F.when(F.col("log_lost") == 0, other)
    return findings(found, COMMIT_BEYOND_END, detail, F.greatest("log_lost", F.when(why.isNull(), 0).otherwise(1)), why)
