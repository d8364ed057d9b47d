"""The audit of a running broker: fetches each log once, and decides only what is below the first look at the ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.audit.audit import COLUMNS, ArchiveFacts, Audit, audit, materialized
from pipeline.audit.log_coverage import BATCH_COLUMNS, with_lost_before
from pipeline.audit.shares import COLUMNS as SHARE_COLUMNS
from pipeline.audit.shares import HIGHEST_GROUP_LIMIT, STATE_TOPIC, ShareInput
from pipeline.live.live_source import register
from pipeline.schema import TOPICS
from pipeline.tables import live_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.live.cut import Cut

_OFFSETS, _STATES = TOPICS["offsets"], TOPICS["transactions"]
ENDS: Final = "log string, topic string, partition int, end long"


def audit_of_broker(spark: SparkSession, cut: Cut, most_deliveries: int | None = None) -> Audit:
    """The audit of all logs of a cut. most_deliveries: the highest delivery limit
    that any share group had; None: the highest that a broker allows.

    A case with a position at or above the first look at its log's end is undecided: what would explain it may have been
    written after the second. Offsets that the broker no longer has count as missing, also at the end of a log.

    Errors:  PipelineError: see read_range (pipeline/live/fetched_logs.py).
    """
    register(spark, cut)

    def read(records: str, topic: str, *columns: str) -> DataFrame:
        return materialized(live_view(spark, records, topic, tuple(dict.fromkeys((*BATCH_COLUMNS, *columns)))))

    offsets = read("offsets", _OFFSETS, *COLUMNS["offsets"])
    states = read("transactions", _STATES, *COLUMNS["transactions"])
    shares = read("raw", STATE_TOPIC, *SHARE_COLUMNS)
    raw = live_view(spark, "raw", "*", BATCH_COLUMNS, (_OFFSETS, _STATES, STATE_TOPIC))
    for part in (offsets, states, shares):
        raw = raw.unionByName(part.select(*BATCH_COLUMNS))
    ids = {each.log: each.topic_id for each in cut.logs}
    ends = [(each.log, each.place.topic, each.place.partition, each.end) for each in cut.logs if each.end]
    return audit(
        raw,
        offsets.select(*COLUMNS["offsets"]),
        states.select(*COLUMNS["transactions"]),
        ArchiveFacts(None, {each.log: each.seen for each in cut.logs}),
        ShareInput(
            materialized(with_lost_before(shares.select(*SHARE_COLUMNS))),
            {},
            HIGHEST_GROUP_LIMIT if most_deliveries is None else most_deliveries,  # no API says when it was changed
            ids.get,
            is_whole=False,
        ),
        spark.createDataFrame(ends, ENDS),
    )
