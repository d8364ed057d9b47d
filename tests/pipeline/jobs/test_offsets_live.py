"""Random commits, transactions, deletions and restarts on a live broker: the job says what OffsetFetch says."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from live import OFFSETS, Committed, History, Live
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from momus import Broker
from pipeline import tables
from pipeline.transforms import commits

SEEDS = range(5)
STEPS = 60
FOREVER_MS = str(1 << 60)
CONFIG = {
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 2,
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "offsets.retention.check.interval.ms": 600_000,
}


class Stage(NamedTuple):
    """A copy of the data directory, and what the broker had answered when it was taken."""

    path: Path
    committed: Committed
    log_bytes: int


def snapshot(broker: Broker, live: Live, data: Path, path: Path, histories: list[History]) -> Stage:
    """Ask, stop, copy, so that nothing is cleaned meanwhile; the broker is down then."""
    found = live.committed(*(group for history in histories for group in history.groups))
    broker.stop()
    shutil.copytree(data, path)
    return Stage(path, found, log_bytes(path))


def log_bytes(data: Path) -> int:
    found = 0
    for path in data.glob(f"{OFFSETS}-*/*.log"):
        with suppress(FileNotFoundError):  # the cleaner has been faster
            found += path.stat().st_size
    return found


def again(broker: Broker, live: Live, histories: list[History]) -> Live:
    live.close()
    broker.start()
    for history in histories:
        history.forget()
    return Live(broker)


def play(live: Live, histories: list[History]) -> None:
    for _ in range(STEPS):
        for history in histories:
            history.step(live)


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stage]:
    """Before cleaning, after it, and after a restart with more of the same."""
    root = tmp_path_factory.mktemp("histories")
    data = root / "data"
    histories = [History(seed) for seed in SEEDS]
    found: dict[str, Stage] = {}
    with Broker(data_dir=data, config=CONFIG) as broker:
        live = Live(broker)
        for history in histories:
            history.create(live)
        histories[0].step(live)
        live.configure(
            OFFSETS, internal_segment_bytes="4000", max_message_bytes="300", min_compaction_lag_ms=FOREVER_MS
        )
        play(live, histories)
        for end in (broker.kill, broker.stop):
            end()
            live = again(broker, live, histories)
            play(live, histories)
        found["before"] = snapshot(broker, live, data, root / "before", histories)
        live = again(broker, live, histories)
        live.configure(OFFSETS, min_compaction_lag_ms="0")
        while log_bytes(data) > found["before"].log_bytes / 2:
            live.committed(*histories[0].groups)
        found["after"] = snapshot(broker, live, data, root / "after", histories)
        live = again(broker, live, histories)
        play(live, histories)
        found["later"] = snapshot(broker, live, data, root / "later", histories)
        live.close()
    return found


@pytest.fixture(scope="module")
def told(spark: SparkSession, stages: dict[str, Stage]) -> dict[str, Committed]:
    """What the job makes of each copy; one read for all of them."""
    whole = None
    for name, stage in stages.items():
        rows = commits.latest(commits.effective(tables.offsets(spark, str(stage.path))))
        part = rows.select(F.lit(name).alias("stage"), "group", "topic", "partition", "commit_offset", "metadata")
        whole = part if whole is None else whole.unionByName(part)
    assert whole is not None
    found: dict[str, Committed] = {name: {} for name in stages}
    for row in whole.collect():
        found[row["stage"]][row["group"], row["topic"], row["partition"]] = row["commit_offset"], row["metadata"]
    return found


@pytest.mark.parametrize("stage", ["before", "after", "later"])
def test_latest_of_the_log_is_what_offset_fetch_answers(stages, told, stage):
    assert told[stage] == stages[stage].committed
    assert len(told[stage]) > len(SEEDS) * 10


def test_histories_hold_what_they_are_meant_to(spark, stages):
    rows = tables.offsets(spark, str(stages["before"].path))
    [seen] = rows.select(
        F.count_if(F.col("control") == "COMMIT").alias("commits"),
        F.count_if(F.col("control") == "ABORT").alias("aborts"),
        F.count_if(F.col("tombstone")).alias("tombstones"),
        F.count_if(F.col("commit_id").isNotNull()).alias("wide"),
        F.count_if(F.col("transactional") & F.col("control").isNull()).alias("pending"),
    ).collect()
    assert all(count > 20 for count in seen), seen
    assert stages["after"].log_bytes <= stages["before"].log_bytes / 2
