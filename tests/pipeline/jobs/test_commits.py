"""What counts as committed, against a coordinator's replay: latest, at any time, history, differences, in pieces."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from log_model import Model, random_model, time_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.jobs import offsets as job
from pipeline.jobs.time_argument import time_argument
from pipeline.schema import OFFSETS_FIELDS
from pipeline.transforms import commits

LOGS = 12
KEY = ("g0", "t0", 0)


def frame(spark: SparkSession, models: list[Model]) -> DataFrame:
    """The rows of many logs as the view `offsets`."""
    rows = [row for model in models for row in model.rows]
    return spark.createDataFrame(pa.Table.from_pylist(rows, OFFSETS_FIELDS))


def by_log(rows: DataFrame) -> dict[str, dict[tuple[str, str, int], int]]:
    found: dict[str, dict[tuple[str, str, int], int]] = {}
    for row in rows.collect():
        found.setdefault(row["log"], {})[row["group"], row["topic"], row["partition"]] = row["commit_offset"]
    return found


@pytest.fixture(scope="module")
def models() -> list[Model]:
    return [random_model(f"__consumer_offsets-{seed}", seed) for seed in range(LOGS)]


@pytest.fixture(scope="module")
def changes(spark: SparkSession, models: list[Model]) -> DataFrame:
    return commits.effective(frame(spark, models)).cache()


def test_latest_is_what_a_coordinator_has_after_its_replay(changes, models):
    found = by_log(commits.latest(changes))
    assert found == {model.log: model.after[-1] for model in models if model.after[-1]}


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("sent", [0, commits.MOST_SENT])
@pytest.mark.parametrize("at", [None, 30])
def test_latest_by_keys_that_were_read_before_is_the_same(spark, changes, models, at, sent, monkeypatch, capsys):
    monkeypatch.setattr(commits, "MOST_SENT", sent)
    as_of = None if at is None else time_of(at)
    whole = frame(spark, models)
    found, keys = (commits.effective(whole.select(*columns)) for columns in (commits.COLUMNS, commits.DECIDING))
    expected = sorted(map(repr, commits.latest(changes, as_of).collect()))
    latest = commits.latest(found, as_of, keys)
    assert sorted(map(repr, latest.collect())) == expected
    latest.explain()
    plan = capsys.readouterr().out
    assert ("Broadcast" in plan) == bool(sent)  # more keys than that never pass through the driver
    assert "ShuffledHashJoin" not in plan  # a table of hashes cannot spill: keys are sorted
    earlier = keys.where(F.col("log_offset") < 20)  # what was the last by then is cleaned, and keys are new
    assert sorted(map(repr, commits.latest(found, as_of, earlier).collect())) == expected


def test_logs_without_transactions_and_spans_are_independent_and_are_read_once(spark):
    model = Model("__consumer_offsets-0")
    model.commit(KEY, 1)
    model.commit(KEY, 2)
    rows = frame(spark, [model])
    assert commits.all_independent(rows)
    assert commits.all_independent(rows.limit(0))
    assert by_log(commits.latest(commits.effective(rows, independent=True))) == {model.log: {KEY: 2}}
    model.commit(KEY, 3, producer_id=7)
    assert not commits.all_independent(frame(spark, [model]))


@pytest.mark.parametrize("at", [3, 17, 30, 44])
def test_as_of_a_time_is_what_was_committed_then(changes, models, at):
    found = by_log(commits.latest(changes, time_of(at)))
    assert found == {model.log: model.after[at] for model in models if model.after[at]}


def test_history_replayed_change_by_change_is_what_was_committed_after_every_record(changes, models):
    rows = sorted(commits.history(changes).collect(), key=lambda row: (row["log"], row["effective_offset"]))
    for model in models:
        mine = [row for row in rows if row["log"] == model.log]
        state: dict[tuple[str, str, int], int] = {}
        for offset, expected in enumerate(model.after):
            while mine and mine[0]["effective_offset"] <= offset:
                row = mine.pop(0)
                key = (row["group"], row["topic"], row["partition"])
                if row["removed"]:
                    state.pop(key, None)
                else:
                    state[key] = row["commit_offset"]
            if "commit_id" not in model.rows[offset]:  # within a commit the model has none of it, and the rows some
                assert state == expected, (model.log, offset)


def test_diff_is_what_another_time_has_otherwise(changes, models):
    since, until = 20, 40
    rows = commits.diff(changes, time_of(since), time_of(until)).collect()
    for model in models:
        before, after = model.after[since], model.after[until]
        expected = {
            key: (before.get(key), after.get(key))
            for key in before.keys() | after.keys()
            if before.get(key) != after.get(key)
        }
        mine = {
            (row["group"], row["topic"], row["partition"]): (row["offset_before"], row["offset_after"])
            for row in rows
            if row["log"] == model.log
        }
        assert mine == expected


def test_rows_in_pieces_add_up_to_the_same_history_and_the_same_latest(spark, models, changes):
    whole = {(r["log"], r["log_offset"], r["effective_offset"]) for r in commits.history(changes).collect()}
    state: dict[str, DataFrame] = {}
    pieces: list[Any] = []
    for begin, end in ((0, 13), (13, 29), (29, 30), (30, 1000)):
        part = [Model(m.log, m.rows[begin:end]) for m in models]
        added, state = job.fold(frame(spark, part), state)
        state = {name: spark.createDataFrame(table.toArrow()) for name, table in state.items()}
        pieces += added["history"].collect()
    assert len(pieces) == len(whole)
    assert {(r["log"], r["log_offset"], r["effective_offset"]) for r in pieces} == whole
    last = state["latest"].where("not removed")
    assert by_log(last) == {model.log: model.after[-1] for model in models if model.after[-1]}


def test_transaction_counts_from_its_marker_and_says_who_committed(spark):
    model = Model("__consumer_offsets-0")
    model.commit(KEY, 1, producer_id=7, member_id="m", instance_id="i", generation=3, client_id="c")
    model.commit(("g1", "t0", 0), 1)
    model.marker(7, "COMMIT")
    [row] = commits.latest(commits.effective(frame(spark, [model]))).where("`group` = 'g0'").collect()
    assert (row["log_offset"], row["effective_offset"], row["effective_at"]) == (0, 2, naive(time_of(2)))
    assert (row["member_id"], row["instance_id"], row["generation"], row["client_id"]) == ("m", "i", 3, "c")
    assert row["producer_id"] == 7


def naive(time: datetime) -> datetime:
    return time.astimezone().replace(tzinfo=None)  # as Spark gives times to Python


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T12:00:00", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31T12:00:00+02:00", "2026-01-31T10:00:00+00:00"),
        ("2026-01-31", "2026-01-31T00:00:00+00:00"),
    ],
)
def test_time_without_a_zone_is_utc(text, expected):
    assert time_argument(text) == datetime.fromisoformat(expected)


def test_time_that_is_none_is_refused_in_one_sentence():
    with pytest.raises(argparse.ArgumentTypeError, match="'noon' is not a time in ISO 8601"):
        time_argument("noon")
