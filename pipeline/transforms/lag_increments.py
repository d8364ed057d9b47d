"""Lag of new rows on top of the state that earlier ones left: DataFrame to DataFrame.

Lag is reported for moments, which are `step` apart, counted from 1970, so that every run has the same ones. The state
is small: for each group, topic and partition the last change of every moment not yet reported and the one in force at
the last reported moment; for each log its end at the same moments; and the commits that no later record has decided.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.engine import F
from pipeline.transforms import commits
from pipeline.transforms import lag as lags

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    Tables = dict[str, DataFrame]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICRO: Final = timedelta(microseconds=1)
CHANGE_COLUMNS: Final = ("group", "topic", "partition", "commit_offset", "removed", "effective_at", "log_offset")


class Moments(NamedTuple):
    """The moments to report: their distance, the last one reported, and the time of the newest record."""

    step: timedelta
    reported: datetime | None = None
    newest: datetime | None = None

    def before(self, time: datetime) -> datetime:
        """The last moment before a time."""
        return EPOCH + -((EPOCH - time) // self.step + 1) * self.step

    def after(self, time: Column) -> Column:
        """The moment at which something that happened then counts: the next one, or for late records the last reported.

        So a late record first shows in the moment after the last reported one.
        """
        micros = F.unix_micros(time)
        first = micros + F.pmod(-micros, F.lit(self.step // MICRO))
        if self.reported is not None:
            first = F.greatest(first, F.lit((self.reported - EPOCH) // MICRO))
        return F.timestamp_micros(first)


def merge_new_rows(rows: Tables, state: Tables) -> Tables:
    """New rows of the views `offsets` and `raw` together with the state: tables `open`, `changes` and `records`.

    A log whose offsets start again was deleted and created again: the state of the old one is dropped.
    """
    read = rows["offsets"]
    committed = read.unionByName(state["open"]) if state else read
    changes = commits.effective(committed).select(*CHANGE_COLUMNS)
    records = rows["raw"].select(*lags.RECORDS)
    if state:
        changes = changes.unionByName(state["changes"])
        key = ["topic", "partition"]
        begun = records.groupBy(*key).agg(F.min("offset").alias("_first"))
        known_ends = state["records"].groupBy(*key).agg(F.max("offset").alias("_last"))
        recreated = begun.join(known_ends, key).where(F.col("_first") <= F.col("_last")).select(*key)
        old = state["records"].join(recreated, key, "left_anti")
        records = records.unionByName(old.select(*lags.RECORDS))
    return {"open": commits.undecided(committed), "changes": changes, "records": records}


def reportable_slots(moments: Moments, until: datetime | None, changes: DataFrame) -> lags.Slots | None:
    """The moments to report now, up to `until`; None: there are none."""
    first = None if moments.reported is None else moments.reported + moments.step
    if until is not None and first is None:
        [least] = changes.select(F.unix_micros(F.min(moments.after(F.col("effective_at"))))).collect()
        first = None if least[0] is None else EPOCH + least[0] * MICRO
    if until is None or first is None or first > until:
        return None
    return lags.Slots(first, until, moments.step)


def next_state(found: Tables, moments: Moments) -> Tables:
    """The state for the next rows, from rows of merge_new_rows: of each moment the last change and the log end."""
    newest = F.max_by(F.struct("commit_offset", "removed", "log_offset"), "log_offset").alias("_last")
    changes = (
        found["changes"]
        .groupBy("`group`", "topic", "partition", moments.after(F.col("effective_at")).alias("effective_at"))
        .agg(newest)
        .select("group", "topic", "partition", "effective_at", "_last.*")
        .select(*CHANGE_COLUMNS)
    )
    records = (
        found["records"]
        .groupBy("topic", "partition", moments.after(F.col("timestamp")).alias("timestamp"))
        .agg(F.max("offset").alias("offset"))
        .select(*lags.RECORDS)
    )
    return {"open": found["open"], "changes": changes, "records": records}
