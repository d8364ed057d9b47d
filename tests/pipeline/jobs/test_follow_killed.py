"""The jobs that go on where they stopped, killed at work again and again while a broker writes: they say in the end
what the same jobs say of the whole.

The segments of one topic are cleaned all the time, which `compaction` keeps up with. What the others have read stays
said when the cleaner comes, so what they say is held against logs from which nothing has gone.
"""

from __future__ import annotations

import random
from contextlib import ExitStack, closing
from datetime import datetime, timedelta
from itertools import chain, zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from job_kit import run
from killed_job import KilledJob
from live import OFFSETS, PARTITIONS, History, Live
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from txn_kit import Producer

from momus import Broker
from pipeline import tables
from pipeline.audit.directory import audit_of
from pipeline.jobs import audit, compaction, lag, offsets
from pipeline.jobs.lag_follow import GRACE
from pipeline.transforms import commits
from pipeline.transforms import lag as lags
from pipeline.transforms.lag_increments import EPOCH, Moments

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]  # a Spark starts twenty-one times
KILLS = 4
STEP = timedelta(seconds=2)
CLEANED, ORDERS = "accounts", "orders"
UNCLEANED = f"not startswith(log, '{CLEANED}-')"
WORDS = {
    "offsets": (),
    "compaction": ("--topics", CLEANED, "--max-bytes", "30000"),
    "lag": ("--step", str(STEP.seconds)),
    "audit": (),
}
LANES = (("offsets", "lag"), ("compaction", "audit"))  # two cores
CONFIG = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.cleaner.min.compaction.lag.ms": 1 << 60,
}


class Clients:
    """Commits and transactions of offsets, records without transactions and in them, keys that come again."""

    def __init__(self, live: Live, seed: int) -> None:
        self._live, self._rng, self._history = live, random.Random(seed), History(seed)
        live.world = SimpleNamespace(clock=SimpleNamespace(now_ms=lambda: 0))  # the broker sets the times
        self._history.create(live)
        live.create(CLEANED, ORDERS)
        for topic in (*self._history.topics, CLEANED, ORDERS):
            live.configure(topic, internal_segment_bytes="4000", message_timestamp_type="LogAppendTime")
        live.configure(CLEANED, cleanup_policy="compact", min_compaction_lag_ms="0")
        self._history.step(live)
        live.configure(OFFSETS, internal_segment_bytes="8000")
        self._seller = Producer(live, "seller")
        assert not self._seller.init()

    def step(self) -> None:
        """A few requests."""
        rng = self._rng
        self._history.step(self._live)
        self._live.produce(rng.choice(self._history.topics), rng.randrange(PARTITIONS), [(None, b"v")])
        keyed = [(b"k%d" % rng.randrange(20), rng.choice([None, b"v" * 50])) for _ in range(3)]
        self._live.produce(CLEANED, rng.randrange(2), keyed)
        assert not self._seller.produce(*[b"order"] * rng.randint(1, 5), topic=ORDERS, index=rng.randrange(PARTITIONS))
        if rng.random() < 0.3:
            assert not self._seller.end(commit=rng.random() < 0.8)

    def end(self) -> None:
        """Nothing is left open."""
        assert not self._seller.produce(b"order", topic=ORDERS)
        assert not self._seller.end()
        self._history.end()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KilledJob]:
    """The jobs, two at a time, each killed and in the end stopped; then the clients end, and the broker."""
    folder = tmp_path_factory.mktemp("followed")
    jobs = {name: KilledJob(name, folder / "data", folder, 3, *words) for name, words in WORDS.items()}
    with Broker(data_dir=folder / "data", config=CONFIG) as broker, closing(Live(broker)) as live:
        clients = Clients(live, 3)
        with ExitStack() as ends:
            lives = {name: job.lives(KILLS, is_stopped=True) for name, job in jobs.items()}
            for each in lives.values():
                ends.enter_context(closing(each))
            for _ in zip_longest(*(chain(*(lives[name] for name in lane)) for lane in LANES)):
                clients.step()
        clients.end()
    assert broker.log == ""
    assert sum(job.in_the_middle for job in jobs.values()), "nothing was killed at work: this test shows nothing"
    return jobs


def finished(spark: Any, killed: KilledJob, job: Any) -> Path:
    """Where its tables are, after a last run over what is left."""
    assert run(job, spark, killed.data, killed.output, "--follow", *killed.words) == 0
    return killed.output


def rows_of(table: DataFrame) -> list[str]:
    """In an order that is the same for the same rows."""
    return sorted(map(str, table.collect()))


def time_of(rows: DataFrame, column: Column) -> datetime:
    [row] = rows.select(F.unix_micros(column)).collect()
    return EPOCH + timedelta(microseconds=row[0])


def test_history_of_a_job_that_was_killed_has_every_change_once(spark, played):
    output, data = finished(spark, played["offsets"], offsets), str(played["offsets"].data)
    whole = commits.history(commits.effective(tables.offsets(spark, data)))
    found = rows_of(spark.read.parquet(f"{output}/history").select(*whole.columns))
    assert found == rows_of(whole)
    assert len(found) > 200


def test_segments_of_a_job_that_was_killed_behind_the_cleaner_are_those_that_are_there(spark, played):
    output, data = finished(spark, played["compaction"], compaction), str(played["compaction"].data)
    whole = compaction.report(spark, data, CLEANED)
    found = rows_of(spark.read.parquet(f"{output}/segments").select(*whole.columns))
    assert found == rows_of(whole)
    assert len(found) >= 4
    missing = tables.coverage(spark, data, "raw").where("missing and topic = 'accounts'")
    assert missing.count(), "the cleaner has not run: this test shows nothing"


def test_lag_of_a_job_that_was_killed_has_every_moment_once(spark, played):
    output, data = finished(spark, played["lag"], lag), str(played["lag"].data)
    changes, records = commits.effective(tables.offsets(spark, data)), tables.raw(spark, data)
    moments = Moments(STEP)
    first, newest = time_of(changes, F.min("effective_at")), time_of(records, F.max("timestamp"))
    slots = lags.Slots(moments.before(first) + STEP, moments.before(newest - GRACE), STEP)
    whole = lags.lag_over_time(changes, records, slots)
    found = rows_of(spark.read.parquet(f"{output}/lag").select(*whole.columns))
    assert found == rows_of(whole)
    assert len(found) > 200


def test_audit_that_was_killed_finds_nothing_and_has_read_every_record(spark, played):
    output, data = finished(spark, played["audit"], audit), str(played["audit"].data)
    assert spark.read.parquet(f"{output}/findings").count() == 0
    said = {name: spark.read.parquet(f"{output}/{name}").where(UNCLEANED) for name in ("doubts", "gaps", "coverage")}
    assert (rows_of(said["doubts"]), rows_of(said["gaps"])) == ([], [])
    assert said["coverage"].where("not complete").count() == 0
    ends = (F.max("batch_last_offset") + 1).alias("end_offset"), F.count("*").alias("records")
    there = tables.raw(spark, data).where(UNCLEANED).groupBy("log").agg(*ends)
    assert rows_of(said["coverage"].select(*there.columns)) == rows_of(there)
    made = audit_of(spark, data).tables()  # the same once more, as the job says it
    for name, table in said.items():
        whole = made[name].where(UNCLEANED)
        assert rows_of(table.select(*whole.columns)) == rows_of(whole), name
