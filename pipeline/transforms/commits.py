"""Which commits of `__consumer_offsets` took effect, when, and what was committed at any time: DataFrame to DataFrame.

A commit outside a transaction counts from its own record. A commit in a transaction counts from the COMMIT marker that
ends it, and never without one. Its pending offset becomes the committed one only if no later record of the log took
effect before the marker. A tombstone counts from its record, in a transaction or not, and removes the pending offsets
below it. A commit over several batches counts when all its records are there. So the committed offset at a time is that
of the last record, by log and offset, among those that count by then.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from pipeline.engine import F, Window
from pipeline.transforms.missing_offsets import block_of
from pipeline.transforms.running import LAST, MAX, Running, with_running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

KEY: Final = ("log", "group", "topic", "partition")
# Columns of the view `offsets`: what `all_independent` needs, what decides which commits count and when, and all that
# is reported of a commit.
DEPENDENCY_COLUMNS: Final = ("producer_id", "commit_id")
DECIDING: Final = (
    "log", "offset", "timestamp", "control", "kind", "tombstone", "group", "commit_topic", "commit_partition",
    *DEPENDENCY_COLUMNS, "commit_size",
)  # fmt: skip  # several to a line
COLUMNS: Final = (
    *DECIDING, "commit_offset", "commit_leader_epoch", "commit_metadata", "commit_topic_id", "commit_timestamp",
    "expire_timestamp", "transactional", "producer_epoch", "member_id", "instance_id", "generation", "client_id",
)  # fmt: skip  # several to a line
_RENAMED: Final = {
    "topic": "commit_topic",
    "partition": "commit_partition",
    "leader_epoch": "commit_leader_epoch",
    "metadata": "commit_metadata",
    "topic_id": "commit_topic_id",
    "removed": "tombstone",
    "log_offset": "offset",
}
_CHANGE: Final = (
    "log", "group", "topic", "partition", "commit_offset", "leader_epoch", "metadata", "topic_id", "removed",
    "effective_at", "effective_offset", "log_offset", "commit_timestamp", "expire_timestamp", "transactional",
    "producer_id", "producer_epoch", "member_id", "instance_id", "generation", "client_id",
)  # fmt: skip  # several to a line
MOST_SENT: Final = 200_000  # rows of a key that are sent to every task, through the driver: about 20 MB
MARKERS: Final = ("COMMIT", "ABORT")  # those that end a transaction


def with_ending_marker(rows: DataFrame, *within: str) -> DataFrame:
    """Each record with `end` (COMMIT, ABORT), `end_offset` and `end_timestamp` of its producer's next marker, or nulls.

    Only rows that agree in the columns `within` are considered together.
    """
    return _with_ending_marker(rows, within, None)


def _with_ending_marker(rows: DataFrame, within: Sequence[str], block: Column | None) -> DataFrame:
    marker = F.when(F.col("control").isin(*MARKERS), F.struct("control", "offset", "timestamp"))
    following = {"_marker": Running(LAST, marker, backwards=True)}
    return (
        with_running(rows, ("log", "producer_id", *within), following, block=block)
        .withColumn("end", F.col("_marker.control"))
        .withColumn("end_offset", F.col("_marker.offset"))
        .withColumn("end_timestamp", F.col("_marker.timestamp"))
        .drop("_marker")
    )


def all_independent(rows: DataFrame) -> bool:
    """Whether every commit counts from its own record: none is in a transaction or spans several batches."""
    [found] = rows.agg(F.bool_or(_depends_on_others())).collect()
    return not found[0]


def _depends_on_others() -> Column:
    return (F.col("producer_id") >= 0) | F.col("commit_id").isNotNull()


def _is_commit() -> Column:
    return F.col("kind").isin("OffsetCommit", "LegacyOffsetCommit")


def effective(rows: DataFrame, *, independent: bool = False) -> DataFrame:
    """The changes: one row a commit or tombstone that counts, from rows of the view `offsets`.

    effective_offset and effective_at: the log offset and time from which it counts. Columns of COLUMNS that `rows` lack
    are absent from the changes too. The rows are read twice, the second time for commits that depend on other records;
    `independent` (see all_independent) saves that.
    """
    alone = rows.where(_is_commit() & ~_depends_on_others())
    counted = alone.withColumns({
        "end_offset": F.lit(None).cast("long"),
        "end_timestamp": F.lit(None).cast("timestamp"),
    })  # fmt: skip  # one argument, no indent of its own
    if not independent:
        counted = counted.unionByName(_decided(rows))
    at_once = F.col("tombstone") | F.col("end_offset").isNull()
    made = {
        "effective_at": F.when(at_once, F.col("timestamp")).otherwise(F.col("end_timestamp")),
        "effective_offset": F.when(at_once, F.col("offset")).otherwise(F.col("end_offset")),
    }
    source = {name: _RENAMED.get(name, name) for name in _CHANGE if name not in made}
    return counted.select(*(
        made[name].alias(name) if name in made else F.col(source[name]).alias(name)
        for name in _CHANGE
        if name in made or source[name] in rows.columns
    ))  # fmt: skip  # one argument, no indent of its own


def _decided(rows: DataFrame) -> DataFrame:
    """The commits that count because of other records: in committed transactions, or complete over several batches."""
    sent = F.col("producer_id") >= 0
    some = rows.where(_depends_on_others() & (_is_commit() | (sent & F.col("control").isNotNull())))
    # Records of transactions may carry the headers of a multi-batch commit too: only the marker decides for them.
    spans = {"_span": F.when(~sent, F.col("commit_id")), "_size": F.when(~sent, F.col("commit_size"))}
    # A commit over several batches is in one block whatever its offsets, so that its records are counted there.
    block = F.when(sent, block_of())
    every = Window.partitionBy("log", "producer_id", *spans, block)
    spanned = some.withColumns(spans).withColumn("_parts", F.count(F.lit(1)).over(every))
    ended = _with_ending_marker(spanned, tuple(spans), block)
    is_whole = F.col("_parts") == F.col("_size")
    counts = F.when(sent, F.col("tombstone") | (F.col("end") == "COMMIT")).otherwise(is_whole)
    return ended.where(_is_commit() & counts).drop("end", "_parts", *spans)


def undecided(rows: DataFrame) -> DataFrame:
    """The records that later ones may still make count: those of open transactions and of incomplete commits."""
    commits = F.col("kind").isin("OffsetCommit", "LegacyOffsetCommit") & ~F.col("tombstone")
    sent = rows.where((F.col("producer_id") >= 0) & (commits | F.col("control").isNotNull()))
    pending = with_ending_marker(sent).where(commits & F.col("end").isNull()).drop("end", "end_offset", "end_timestamp")
    spanned = rows.where(commits & (F.col("producer_id") < 0) & F.col("commit_id").isNotNull())
    span = Window.partitionBy("log", "commit_id", "commit_size")
    parts = (
        spanned.withColumn("_records", F.count(F.lit(1)).over(span))
        .withColumn("_last", F.max("offset").over(span))
        .join(rows.groupBy("log").agg(F.max("offset").alias("_end")), "log")
        .where((F.col("_records") < F.col("commit_size")) & (F.col("_last") == F.col("_end")))
        .drop("_records", "_last", "_end")
    )
    return pending.unionByName(parts)


def history(changes: DataFrame) -> DataFrame:
    """The changes that a reader could see: without pending offsets that a later record of the log had overtaken."""
    effect = ("effective_offset", "log_offset")
    # Of several in one transaction, the last counts: these are in one block.
    by_effect = Window.partitionBy(*KEY, block_of("effective_offset")).orderBy(*effect)
    marked = changes.withColumn("_next", F.lead("effective_offset").over(by_effect))
    marked = with_running(marked, KEY, {"_ahead": Running(MAX, F.col("log_offset"))}, effect)
    overtaken = F.col("_ahead") > F.col("log_offset")
    seen = F.coalesce(~overtaken, F.lit(True)) & ~F.col("_next").eqNullSafe(F.col("effective_offset"))
    return marked.where(seen).drop("_ahead", "_next")


def latest(changes: DataFrame, as_of: datetime | None = None, keys: DataFrame | None = None) -> DataFrame:
    """The committed offsets, now or at a time: one row a group, topic and partition. `keys`: see last_changes."""
    if as_of is not None:
        changes = changes.where(F.col("effective_at") <= F.lit(as_of))
        keys = None if keys is None else keys.where(F.col("effective_at") <= F.lit(as_of))
    return last_changes(changes, keys).where(~F.col("removed")).drop("removed")


def last_changes(changes: DataFrame, keys: DataFrame | None = None) -> DataFrame:
    """The last change of every group, topic and partition, tombstones included.

    `keys`: the same changes made of the columns DECIDING alone. They are read first, here, to find the last change of
    every key; of `changes` only those and later ones are grouped. So memory holds one row a key and not a task's rows.
    With more than MOST_SENT keys it holds not even that: both reads are shuffled and sorted by key, which can spill to
    disk, and none is sent to the driver.
    """
    if keys is not None:
        named = [F.col(name).alias(f"_{name}") for name in KEY]
        found = keys.groupBy(*named).agg(F.max("log_offset").alias("_newest")).persist()
        few = found.count() <= MOST_SENT
        # Not a semi join: between the two reads the cleaner may remove the last change of a key, or a key may be added.
        same = [F.col(name) == F.col(f"_{name}") for name in KEY]
        joined = changes.join(F.broadcast(found) if few else found.hint("merge"), same, "left")
        is_last = F.col("_newest").isNull() | (F.col("log_offset") >= F.col("_newest"))
        changes = joined.where(is_last).select(*changes.columns)
    key = ("log", "`group`", "topic", "partition")
    columns = [name for name in changes.columns if name not in KEY]
    newest = F.max_by(F.struct(*columns), F.col("log_offset")).alias("_newest")
    return changes.groupBy(*key).agg(newest).select(*key, "_newest.*").select(*changes.columns)


def diff(
    changes: DataFrame, since: datetime, until: datetime | None = None, keys: DataFrame | None = None
) -> DataFrame:
    """What differs between two times: one row a group, topic and partition whose committed offset differs.

    `until`: None means now. `keys`: see last_changes.
    """
    shown = ("commit_offset", "effective_at", "member_id", "instance_id", "generation", "client_id")
    names = ("log", "`group`", "topic", "partition")
    before = latest(changes, since, keys).select(*names, F.struct(*shown).alias("before"))
    after = latest(changes, until, keys).select(*names, F.struct(*shown).alias("after"))
    both = before.join(after, list(KEY), "full_outer")
    old, new = F.col("before.commit_offset"), F.col("after.commit_offset")
    return both.where(~old.eqNullSafe(new)).select(
        *names,
        old.alias("offset_before"),
        new.alias("offset_after"),
        (new - old).alias("moved"),
        F.col("before.effective_at").alias("committed_before"),
        F.col("after.effective_at").alias("committed_after"),
        *(F.col(f"after.{name}").alias(name) for name in shown[2:]),
    )
