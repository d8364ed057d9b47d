"""Lag of new rows on top of what earlier ones have left: DataFrame to DataFrame, moment by moment.

What is left is small: for each group, topic and partition the last change of every moment that is not told yet and the
one that stands behind all that are, for each log its end at the same moments, and the commits that no later record has
decided. Moments lie `step` apart, counted from 1970, so that every run has the same ones.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from pipeline.transforms import commits
from pipeline.transforms import lag as lags

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    Tables = dict[str, DataFrame]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICRO: Final = timedelta(microseconds=1)
COMMITTED: Final = ("group", "topic", "partition", "commit_offset", "removed", "effective_at", "log_offset")


class Moments(NamedTuple):
    """Which moments there are, and how far they have been told: the last of them, and the newest record's time."""

    step: timedelta
    reported: datetime | None = None
    newest: datetime | None = None

    def before(self, time: datetime) -> datetime:
        """The last moment before a time."""
        return EPOCH + -((EPOCH - time) // self.step + 1) * self.step

    def after(self, time: Column) -> Column:
        """The first moment that knows of what happened then and that has not been told: what is late counts there."""
        micros = F.unix_micros(time)
        first = micros + F.pmod(-micros, F.lit(self.step // MICRO))
        if self.reported is not None:
            first = F.greatest(first, F.lit((self.reported - EPOCH) // MICRO))
        return F.timestamp_micros(first)


def merge_new_rows(rows: Tables, state: Tables) -> Tables:
    """All that counts, of new rows and of what is left: `open` commits, `changes` and `records`.

    A log whose offsets come again is another one of the same name: what was known of the old one goes.
    """
    read = rows["offsets"]
    committed = read.unionByName(state["open"]) if state else read
    changes = commits.effective(committed).select(*COMMITTED)
    records = rows["raw"].select(*lags.RECORDS)
    if state:
        changes = changes.unionByName(state["changes"])
        key = ["topic", "partition"]
        begun = records.groupBy(*key).agg(F.min("offset").alias("_first"))
        known_ends = state["records"].groupBy(*key).agg(F.max("offset").alias("_last"))
        anew = begun.join(known_ends, key).where(F.col("_first") <= F.col("_last")).select(*key)
        records = records.unionByName(state["records"].join(F.broadcast(anew), key, "left_anti").select(*lags.RECORDS))
    return {"open": commits.undecided(committed), "changes": changes, "records": records}


def reportable_slots(moments: Moments, until: datetime | None, changes: DataFrame) -> lags.Slots | None:
    """The moments to tell now, up to `until`; None: none."""
    first = None if moments.reported is None else moments.reported + moments.step
    if until is not None and first is None:
        [least] = changes.select(F.unix_micros(F.min(moments.after(F.col("effective_at"))))).collect()
        first = None if least[0] is None else EPOCH + least[0] * MICRO
    if until is None or first is None or first > until:
        return None
    return lags.Slots(first, until, moments.step)


def next_state(found: Tables, moments: Moments) -> Tables:
    """What the next rows need of what is known: of each moment, the last."""
    newest = F.max_by(F.struct("commit_offset", "removed", "log_offset"), "log_offset").alias("_last")
    changes = (
        found["changes"]
        .groupBy("`group`", "topic", "partition", moments.after(F.col("effective_at")).alias("effective_at"))
        .agg(newest)
        .select("group", "topic", "partition", "effective_at", "_last.*")
        .select(*COMMITTED)
    )
    records = (
        found["records"]
        .groupBy("topic", "partition", moments.after(F.col("timestamp")).alias("timestamp"))
        .agg(F.max("offset").alias("offset"))
        .select(*lags.RECORDS)
    )
    return {"open": found["open"], "changes": changes, "records": records}
