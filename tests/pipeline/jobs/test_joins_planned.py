"""No table with a row a topic or partition is sent to every task by force: plans where Spark may send nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pipeline.audit import members
from pipeline.schema import OFFSETS_FIELDS
from pipeline.transforms import commits, lag, lag_increments

START = datetime(2026, 1, 1, tzinfo=UTC)
SLOTS = lag.Slots(START, START + timedelta(seconds=10), timedelta(seconds=1))
RECORDS = "topic string, partition int, offset long, timestamp timestamp"
pytestmark = pytest.mark.usefixtures("nothing_is_small")


@pytest.fixture
def view(spark: SparkSession) -> DataFrame:
    return unread(spark, spark.createDataFrame(pa.Table.from_pylist([], OFFSETS_FIELDS)).schema)


def unread(spark: SparkSession, schema: StructType | str) -> DataFrame:
    """A table of which Spark does not know that it is empty."""
    return spark.createDataFrame(spark.sparkContext.emptyRDD(), schema)


def plan_of(rows: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    rows.explain()
    return capsys.readouterr().out


def test_lag_over_time_joins_by_shuffles(spark, view, capsys):
    rows = lag.lag_over_time(commits.effective(view), unread(spark, RECORDS), SLOTS)
    plan = plan_of(rows, capsys)
    assert "SortMergeJoin" in plan
    assert "Broadcast" not in plan


def test_lag_in_pieces_joins_by_shuffles(spark, view, capsys):
    records = unread(spark, RECORDS)
    found = lag_increments.merge_new_rows({"offsets": view, "raw": records}, {})
    state = lag_increments.next_state(found, lag_increments.Moments(timedelta(seconds=1)))
    merged = lag_increments.merge_new_rows({"offsets": view, "raw": records}, state)
    plan = plan_of(merged["records"], capsys)
    assert "SortMergeJoin" in plan
    assert "Broadcast" not in plan


def test_audit_joins_topic_ids_by_shuffles(view, spark, capsys):
    ids = unread(spark, "topic string, topic_id string")
    plan = plan_of(members.stale_epochs(members.with_group(view.selectExpr("*", "0L lost_before")), ids), capsys)
    assert "SortMergeJoin" in plan
    assert "Broadcast" not in plan
