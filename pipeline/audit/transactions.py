"""Every transaction in `__transaction_state`, with its markers, data and offsets in other logs.

A transaction's marker is found by producer id, epoch and partition. With transactions v2 these three are unique.
Before, a producer keeps its epoch, and the k-th marker belongs to the k-th transaction; where their numbers differ, a
marker belongs to the last transaction that was decided before the marker's timestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.engine import F
from pipeline.transforms.commits import MARKERS
from pipeline.transforms.missing_offsets import block_of
from pipeline.transforms.running import LAST, MAX, SUM, Running, previous, with_running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PREPARED: Final = ("PrepareCommit", "PrepareAbort")
COMPLETE: Final = ("CompleteCommit", "CompleteAbort")
GRACE_S: Final = 10  # a coordinator looks for timed-out transactions that often; brokers' clocks differ less
KEY: Final = ("coordinator_log", "transactional_id", "number")  # identify a transaction


def transactions(states: DataFrame) -> DataFrame:
    """One row a transaction, from rows of the view `transactions`.

    producer_epoch is null where the transaction's beginning is not in the log: then its writer's epoch is unknown.
    """
    key = ("log", "transactional_id")
    state, before = F.col("txn_state"), F.col("before.value")
    ongoing = state == "Ongoing"
    rest = F.coalesce(~before.isin("Ongoing", *PREPARED), F.lit(True))
    begins = (
        (ongoing & ~F.coalesce(before == "Ongoing", F.lit(False)))
        | (state.isin(*PREPARED) & rest)
        | (state.isin(*COMPLETE) & ~F.coalesce(before.isin(*PREPARED), F.lit(False)))
    )
    told = with_running(states.where("kind = 'TransactionLog'"), key, {"before": previous(state)})
    numbers = {"number": Running(SUM, F.col("begins"), inclusive=True)}
    rows = (
        with_running(told.withColumn("begins", begins.cast("int")), key, numbers)
        .where(ongoing | state.isin(*PREPARED, *COMPLETE))
        .where("number > 0")
    )
    decided, done = F.col("txn_state").isin(*PREPARED), F.col("txn_state").isin(*COMPLETE)
    ongoing = F.col("txn_state") == "Ongoing"
    prepared_at, done_at = F.when(decided, F.col("offset")), F.when(done, F.col("offset"))
    last_state = F.max_by("txn_state", "offset")
    return rows.groupBy(F.col("log").alias("coordinator_log"), "transactional_id", "number").agg(
        F.min_by("segment", "offset").alias("coordinator_segment"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.min_by("txn_producer_id", "offset").alias("producer_id"),
        F.min_by("txn_producer_epoch", F.when(ongoing, F.col("offset"))).alias("producer_epoch"),
        F.min_by("txn_producer_epoch", prepared_at).alias("marker_epoch"),
        last_state.alias("state"),
        F.when(last_state.isin("PrepareCommit", "CompleteCommit"), "COMMIT")
        .when(last_state.isin("PrepareAbort", "CompleteAbort"), "ABORT")
        .alias("decision"),
        F.max("txn_timeout_ms").alias("timeout_ms"),
        F.max("txn_start").alias("started"),
        F.max(F.when(decided, F.col("txn_update"))).alias("decided"),
        F.max(F.when(done, F.col("txn_update"))).alias("completed"),
        F.max_by("txn_partitions", F.when(ongoing | decided, F.col("offset"))).alias("partitions"),
        F.min(prepared_at).alias("prepared_offset"),
        F.min(done_at).alias("completed_offset"),
    )


def expected_markers(found: DataFrame) -> DataFrame:
    """One row a partition of a decided transaction: the marker that it should have."""
    places = found.where("marker_epoch is not null").select(
        *KEY,
        F.explode("partitions").alias("place"),
        "producer_id",
        "producer_epoch",
        "marker_epoch",
        "decision",
        "state",
        "decided",
        "started",
        "prepared_offset",
        "coordinator_segment",
        "completed_offset",
    )
    return places.withColumn("log", F.concat("place.topic", F.lit("-"), "place.partition"))


def markers(found: DataFrame) -> DataFrame:
    """The transaction markers among rows of `batches`."""
    return found.where(F.col("control").isin(*MARKERS)).select(
        "log",
        "segment",
        "offset",
        "timestamp",
        "producer_id",
        "producer_epoch",
        "control",
        "leader_epoch",
        "lost_before",
    )


def matched(expected: DataFrame, actual: DataFrame) -> DataFrame:
    """Pairs of rows of expected_markers and `markers` that belong together; each actual marker at most once.

    Joined by the number of a marker, or of the last transaction that was decided before it: a producer that keeps its
    epoch may have millions of transactions in a log.
    """
    same = ["log", "producer_id", "marker_epoch"]
    counted = Running(SUM, F.lit(1), inclusive=True)
    ends = actual.withColumnRenamed("producer_epoch", "marker_epoch").withColumnRenamed("offset", "marker_offset")
    wanted = expected.groupBy(*same).agg(F.count(F.lit(1)).alias("wanted"))
    sizes = wanted.join(ends.groupBy(*same).agg(F.count(F.lit(1)).alias("there")), same)
    sizes = sizes.select(*same, (F.col("wanted") == F.col("there")).alias("are_as_many"))
    # Coordinators' logs have no common offsets: blocks of a quarter of an hour.
    rows = with_running(
        expected, same, {"rank": counted}, ("decided", "prepared_offset"), block_of(F.unix_millis("decided"))
    ).join(sizes, same)
    marks = (
        with_running(ends, same, {"marker_rank": counted}, ("marker_offset",))
        .select(*same, "marker_offset", "marker_rank", "control", "segment", "timestamp")
        .join(sizes, same)
    )
    numbered = marks.where("are_as_many").select(*same, "marker_offset", F.col("marker_rank").alias("rank"))
    numbered = numbered.unionByName(_last_decided(rows.where("not are_as_many"), marks.where("not are_as_many"), same))
    found = numbered.join(marks.drop("marker_rank", "are_as_many"), [*same, "marker_offset"])
    return found.join(rows.drop("are_as_many"), [*same, "rank"]).drop("rank")


def _last_decided(rows: DataFrame, marks: DataFrame, same: list[str]) -> DataFrame:
    """The columns `same`, marker_offset, rank: that of the last transaction that was decided when a marker was written.

    Markers from before any decision have no row.
    """
    nothing = F.lit(None).cast("bigint")
    decisions = rows.select(
        *same, F.col("decided").alias("at"), F.lit(0).alias("is_mark"), F.col("prepared_offset").alias("place"), "rank"
    )
    written = marks.select(
        *same,
        F.col("timestamp").alias("at"),
        F.lit(1).alias("is_mark"),
        F.col("marker_offset").alias("place"),
        nothing.alias("rank"),
    )
    told = with_running(
        decisions.unionByName(written),
        same,
        {"last": Running(LAST, F.col("rank"))},
        ("at", "is_mark", "place"),
        block_of(F.unix_millis("at")),
    )
    told = told.where("is_mark = 1 and last is not null")
    return told.select(*same, F.col("place").alias("marker_offset"), F.col("last").alias("rank"))


def with_transaction_end(data: DataFrame) -> DataFrame:
    """Transactional rows with `ended_by` and `ended_as`: offset and kind of the marker that ended them; null: open.

    `known_epoch` is the highest epoch of the producer before the row, markers included.
    """
    marker = F.when(F.col("control").isNotNull(), F.struct("offset", "control"))
    around = {
        "known_epoch": Running(MAX, F.col("producer_epoch")),
        "end": Running(LAST, marker, inclusive=True, backwards=True),
    }
    return (
        with_running(data.where("transactional and producer_id >= 0"), ("log", "producer_id"), around)
        .withColumn("ended_by", F.col("end.offset"))
        .withColumn("ended_as", F.col("end.control"))
        .drop("end")
        .where("control is null")
    )


def details(found: DataFrame, pairs: DataFrame, data: DataFrame, commits: DataFrame) -> DataFrame:
    """The output table `transactions`: rows of `transactions` with sorted arrays `markers`, `data` and `offsets`.

    data: rows of `with_transaction_end`; commits: rows of `pipeline.audit.commits.commits`.
    """
    place = F.struct("log", "segment", F.col("marker_offset").alias("offset"), "control", "timestamp")
    marks = pairs.groupBy(*KEY).agg(F.sort_array(F.collect_list(place)).alias("markers"))
    ends = pairs.select("log", F.col("marker_offset").alias("ended_by"), *KEY)
    runs = (
        data.where("topic != '__consumer_offsets'")
        .join(ends, ["log", "ended_by"])
        .groupBy(*KEY, "log")
        .agg(
            F.min("offset").alias("first_offset"),
            F.max("last_offset").alias("last_offset"),
            F.sum("read_records").alias("records"),
        )
        .groupBy(*KEY)
        .agg(F.sort_array(F.collect_list(F.struct("log", "first_offset", "last_offset", "records"))).alias("data"))
    )
    commit = F.struct(
        "group",
        "commit_topic",
        "commit_partition",
        "commit_offset",
        "generation",
        "member_id",
        "instance_id",
        "client_id",
        "log",
        "segment",
        "offset",
    )
    groups = (
        commits.where("transactional")
        .join(ends, ["log", "ended_by"])
        .groupBy(*KEY)
        .agg(F.sort_array(F.collect_list(commit)).alias("offsets"))
    )
    made = found
    for part in (marks, runs, groups):
        made = made.join(part, list(KEY), "left")
    return made.orderBy("coordinator_log", "first_offset")
