"""Lag over time against a count made record by record."""

from __future__ import annotations

import random
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer
from live import Live
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from momus import Broker
from pipeline.jobs.lag import now
from pipeline.transforms import lag as lags

START = datetime(2026, 1, 1, tzinfo=UTC)
STEP = timedelta(seconds=10)
CHANGES = (
    "`group` string, topic string, partition int, commit_offset long, removed boolean, effective_at timestamp, "
    "log_offset long"
)
RECORDS = "topic string, partition int, offset long, timestamp timestamp"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def lag_rows(spark: SparkSession, changes, records, **times):
    frame = spark.createDataFrame(changes, CHANGES)
    slots = lags.slots_of(frame, times.get("since"), times.get("until"), STEP.total_seconds())
    rows = (
        lags.lag_over_time(frame, spark.createDataFrame(records, RECORDS), slots)
        .orderBy("time", *lags.LABELS)
        .collect()
    )
    return [
        (
            round((row["time"].astimezone(UTC) - START).total_seconds()),
            row["consumergroup"],
            row["topic"],
            row["partition"],
            row[lags.OFFSET],
            row[lags.END],
            row[lags.LAG],
        )
        for row in rows
    ]


def test_lag_follows_commits_and_ends_from_slot_to_slot(spark):
    changes = [
        ("g", "t", 0, 1, False, at(0), 0),
        ("g", "t", 0, 4, False, at(21), 1),
        ("g", "t", 0, None, True, at(35), 2),
        ("h", "gone", 3, 7, False, at(12), 3),
    ]
    records = [("t", 0, n, at(5 * n)) for n in range(6)]  # the sixth at 25 s
    assert lag_rows(spark, changes, records, until=at(40)) == [
        (0, "g", "t", 0, 1, 1, 0),
        (10, "g", "t", 0, 1, 3, 2),
        (20, "g", "t", 0, 1, 5, 4),
        (20, "h", "gone", 3, 7, None, None),
        (30, "g", "t", 0, 4, 6, 2),
        (30, "h", "gone", 3, 7, None, None),
        (40, "h", "gone", 3, 7, None, None),
    ]


def test_lag_of_a_transaction_decided_late_is_not_that_of_an_offset_already_overtaken(spark):
    changes = [("g", "t", 0, 9, False, at(10), 5), ("g", "t", 0, 1, False, at(20), 2)]  # the second one lies before
    records = [("t", 0, 9, at(0))]
    assert lag_rows(spark, changes, records) == [(10, "g", "t", 0, 9, 10, 1), (20, "g", "t", 0, 9, 10, 1)]


def test_lag_is_never_negative_and_sums_over_partitions(spark):
    changes = [("g", "t", p, 10, False, at(0), p) for p in range(3)]
    records = [("t", 0, 14, at(0)), ("t", 1, 19, at(0)), ("t", 2, 3, at(0))]
    slots = lags.Slots(START, START, STEP)
    frame = lags.lag_over_time(spark.createDataFrame(changes, CHANGES), spark.createDataFrame(records, RECORDS), slots)
    [row] = lags.sums(frame).collect()
    assert (row["consumergroup"], row["topic"]) == ("g", "t")
    assert (row["kafka_consumergroup_current_offset_sum"], row["kafka_consumergroup_lag_sum"]) == (30, 5 + 10 + 0)


def test_lag_now_is_counted_to_the_ends_that_the_broker_tells(spark):
    with Broker() as broker, closing(Live(broker)) as live:
        live.create("t")
        producer = Producer(broker.client_config("confluent"))
        for _ in range(5):
            producer.produce("t", b"x", partition=1)
        assert producer.flush(30) == 0
        changes = [("g", "t", 1, 2, False, at(0), 0), ("g", "gone", 0, 2, False, at(0), 1)]
        frame = spark.createDataFrame(changes, CHANGES).withColumn("log", F.lit("__consumer_offsets-0"))
        rows = now(spark, frame, broker.bootstrap_servers).collect()
    assert {(row["topic"], row["partition"], row[lags.END], row[lags.LAG]) for row in rows} == {
        ("t", 1, 5, 3),
        ("gone", 0, None, None),
    }


@pytest.mark.parametrize("seed", [1])
def test_lag_of_random_histories_is_what_a_count_of_all_records_says(spark, seed):
    rng = random.Random(seed)
    partitions = [("t", 0), ("t", 1), ("u", 0)]
    records = []
    for topic, partition in partitions:
        times = sorted(rng.uniform(0, 200) for _ in range(60))
        records += [(topic, partition, n, at(round(time, 3))) for n, time in enumerate(times)]
    changes = [
        (rng.choice("gh"), *rng.choice(partitions), rng.randrange(60), rng.random() < 0.1, at(rng.randrange(200)), n)
        for n in range(120)
    ]
    changes = [(*c[:3], None if c[4] else c[3], *c[4:]) for c in changes]
    found = {(row[0], row[1], row[2], row[3]): row[4:] for row in lag_rows(spark, changes, records, since=START)}
    expected = {}
    for slot in range(21):
        moment = START + slot * STEP
        if moment - STEP >= max(c[5] for c in changes):
            break
        for group in "gh":
            for topic, partition in partitions:
                mine = [c for c in changes if c[:3] == (group, topic, partition) and c[5] <= moment]
                if mine and not (last := max(mine, key=lambda c: c[6]))[4]:
                    there = [r[2] + 1 for r in records if r[:2] == (topic, partition) and r[3] <= moment]
                    end = max(there, default=None)
                    gap = None if end is None else max(0, end - last[3])
                    expected[slot * 10, group, topic, partition] = (last[3], end, gap)
    assert found == expected
