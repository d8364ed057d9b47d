"""The archive killed in the middle again and again, while the broker's cleaner runs behind it: every row, and once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from live import OFFSETS, Live
from pyspark.sql import SparkSession

from momus import Broker
from pipeline import tables
from pipeline.streaming.transient_errors import TRANSIENT_ERRORS

KILLS = 10
CONFIG = {
    "offsets.topic.num.partitions": 2,
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "archive.retain.group": "archive",
}
PAUSE_S = 0.05  # a writer that never rests leaves nothing of two cores for a Spark that starts
MOST_COMMITS = 6_000  # in one life of the job: then it does nothing at all


class Writer:
    """Commits that can be told apart: each value once."""

    def __init__(self, live: Live, rng: random.Random) -> None:
        self._live, self._rng = live, rng
        self.expected: Counter[tuple[str, int, int]] = Counter()
        self._value = 0

    def write(self, most: int) -> None:
        """A few requests."""
        for _ in range(self._rng.randint(1, most)):
            group = f"g{self._rng.randrange(8)}"
            offsets = {}
            for partition in range(self._rng.randint(1, 4)):
                self._value += 1
                offsets[partition] = self._value
                self.expected[group, partition, self._value] += 1
            self._live.commit(group, "t", offsets)


class Job:
    """`momus pipeline archive` in processes of its own."""

    def __init__(self, data: Path, output: Path, log: Path, address: str) -> None:
        words = f"--master local[2] --conf spark.driver.memory=1g --bootstrap-server {address}"
        self._command = [sys.executable, "-m", "momus", "pipeline", "archive", *words.split()]
        self._command += ["--input", str(data), "--output", str(output)]
        self._planned, self._log = output / "_checkpoint" / "offsets" / "offsets", log

    def batches(self) -> int:
        """How many micro-batches were begun so far."""
        names = os.listdir(self._planned) if self._planned.exists() else []
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def run_and_kill(self, meanwhile: Callable[[], None], batches: int) -> None:
        """Start it, and kill all of it while it works on the `batches`-th micro-batch of this life."""
        goal = self.batches() + batches
        process = self._start()
        try:
            for _ in range(MOST_COMMITS):
                meanwhile()
                if self.batches() >= goal:
                    return
                with suppress(subprocess.TimeoutExpired):
                    process.wait(PAUSE_S)
                    assert passes(self._log.read_text())
                    self._log.unlink()
                    process = self._start()
            pytest.fail(f"no micro-batch {goal}: {self._log.read_text()}")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*self._command, "--every", "0.05", "--max-bytes", "20000"],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def finish(self) -> None:
        """Once over what is left."""
        while (done := subprocess.run(self._command, capture_output=True, text=True, timeout=600)).returncode:
            assert passes(done.stderr), done.stderr


def passes(said: str) -> bool:
    """Whether the job ended, all its tries used up, for what a busy machine does to Spark."""
    return any(failure in said for failure in TRANSIENT_ERRORS)


def log_rows(spark: SparkSession, path: Path) -> int:
    return tables.offsets(spark, str(path)).count()


@pytest.mark.long  # on busy cores the cleaner may not get its turn in a short one
@pytest.mark.timeout(2400)  # a Spark starts eleven times
def test_archive_killed_again_and_again_ahead_of_the_cleaner_has_every_commit_once(spark, tmp_path):
    rng = random.Random(7)
    data, output = tmp_path / "data", tmp_path / "archive"
    with Broker(data_dir=data, config=CONFIG) as broker, closing(Live(broker)) as live:
        live.create("t")
        live.configure(OFFSETS, internal_segment_bytes="5000")
        writer = Writer(live, rng)
        job = Job(data, output, tmp_path / "job.log", broker.bootstrap_servers)
        for _ in range(KILLS):
            job.run_and_kill(lambda: writer.write(5), rng.randint(1, 2))
        writer.write(100)
        job.finish()
        told = live.committed("archive")
    rows = tables.offsets(spark, str(output))
    # the archive's own commits lie in the same log: so do the last ones, which came after its last look
    ends = {row["log"]: row["end"] for row in rows.groupBy("log").agg({"offset": "max"}).toDF("log", "end").collect()}
    assert {(topic, p): offset for (_, topic, p), (offset, _) in told.items() if topic == OFFSETS} == {
        (OFFSETS, int(log.rpartition("-")[2])): end + 1 for log, end in ends.items()
    }
    assert tables.coverage(spark, str(output), "offsets").where("missing").collect() == []
    places = rows.select("log", "offset")
    assert places.count() == places.distinct().count() == sum(ends.values()) + len(ends)
    found = Counter(
        (row["group"], row["commit_partition"], row["commit_offset"])
        for row in rows.where("kind = 'OffsetCommit' and `group` != 'archive'").collect()
    )
    assert found == writer.expected
    assert log_rows(spark, data) < places.count() / 2, "the cleaner has not run: this test shows nothing"
    files = ds.dataset(output / "offsets", format="parquet", partitioning="hive", exclude_invalid_files=True)
    assert files.count_rows() == places.count()  # for readers that know nothing of Spark's own log of files
