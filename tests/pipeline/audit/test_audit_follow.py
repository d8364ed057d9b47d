"""An audit that goes on where it stopped finds what one of the whole finds: each thing once, and nothing too early."""

from __future__ import annotations

import random
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from archived import rows_of
from job_kit import run
from made_logs import Logs
from pyspark.sql import functions as F
from random_logs import RandomLogs

from momus import Broker
from pipeline import tables
from pipeline.audit.directory import audit_of
from pipeline.demo.traffic import Traffic
from pipeline.errors import PipelineError
from pipeline.jobs import audit
from pipeline.streaming.position_table import read_position

pytestmark = pytest.mark.timeout(900)
CONFIG = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 2}


def table(spark: Any, output: Path, name: str) -> list[Any]:
    found = spark.read.parquet(f"{output}/{name}")
    return rows_of(found.drop("batch", "reason"))


def batches(output: Path) -> int:
    position = read_position(str(output))
    return 0 if position is None else position.batch + 1


@pytest.mark.long
def test_findings_of_all_runs_are_those_of_the_whole(spark, tmp_path, audit_seed):
    made, rng, output = RandomLogs(tmp_path / "data", audit_seed), random.Random(audit_seed), tmp_path / "audit"
    data, codes = made.logs.directory, []
    for _ in range(2):
        for _ in range(rng.randrange(30, 45)):
            made.step()
        if rng.random() < 0.5:
            made.logs.skip("r-0", 3)  # the cleaner has been here: doubts from now on
            made.logs.data("r-0", 1)
        codes.append(run(audit, spark, data, output, "--follow", "--max-bytes", "8000"))
    assert batches(output) > 2
    assert codes == [1, 1]
    whole = audit_of(spark, str(data))
    found = table(spark, output, "findings")
    assert found == rows_of(whole.findings)
    assert len({row["kind"] for row in found}) > 5, made.done
    assert table(spark, output, "gaps") == rows_of(whole.gaps.drop("reason"))
    assert table(spark, output, "coverage") == rows_of(whole.coverage)
    assert table(spark, output, "doubts") == rows_of(whole.doubts)
    assert run(audit, spark, data, output, "--follow") == 0
    assert table(spark, output, "findings") == found


@pytest.mark.long
def test_topic_that_was_created_again_is_audited_as_a_new_one(spark, tmp_path):
    logs, output = Logs(tmp_path / "data"), tmp_path / "audit"

    def made(topic_id: str) -> None:
        logs.ends.pop("r-0", None)
        shutil.rmtree(logs.directory / "r-0", ignore_errors=True)
        for _ in range(2):  # the second one repeats the first
            logs.data("r-0", 3, pid=7, epoch=0, sequence=0)
        (logs.directory / "r-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")

    for topic_id in ("old" * 7 + "_", "new" * 7 + "_"):
        made(topic_id)
        assert run(audit, spark, logs.directory, output, "--follow") == 1
    whole = audit_of(spark, str(logs.directory))
    found = table(spark, output, "findings")
    assert [(row["kind"], row["offset"]) for row in found] == [("duplicate-sequence", 3)] * 2  # of the old, of the new
    assert table(spark, output, "coverage") == rows_of(whole.coverage)
    assert table(spark, output, "doubts") == []


@pytest.mark.long  # jobs/test_follow_killed.py has an audit at work too
def test_nothing_is_found_in_logs_that_are_being_written(spark, tmp_path):
    data, output = tmp_path / "data", tmp_path / "audit"
    with Broker(data_dir=data, config=CONFIG) as broker:
        traffic, enough = Traffic(broker.bootstrap_servers), threading.Event()

        def write() -> None:
            while not enough.is_set():
                traffic.run(10.0)

        writing = threading.Thread(target=write)
        writing.start()
        while writing.is_alive() and batches(output) < 3:
            assert run(audit, spark, data, output, "--follow", "--max-bytes", "150000") == 0
        enough.set()
        writing.join()
    assert run(audit, spark, data, output, "--follow") == 0
    assert batches(output) >= 3
    assert table(spark, output, "findings") == []
    left = (
        tables.raw(spark, str(data))
        .groupBy("log")
        .agg(F.max("batch_last_offset").alias("last"), F.count("*").alias("n"))
    )
    there = {row["log"]: (row["last"] + 1, row["n"]) for row in left.collect()}
    read = {row["log"]: (row["end_offset"], row["records"]) for row in table(spark, output, "coverage")}
    assert {log: end for log, (end, _) in read.items()} == {log: end for log, (end, _) in there.items()}
    assert all(read[log][1] >= count for log, (_, count) in there.items())  # the cleaner may have been behind the audit
    assert traffic.done["transactions committed"]


def test_an_archive_is_not_followed(spark, tmp_path):
    (tmp_path / "archive" / "offsets").mkdir(parents=True)
    with pytest.raises(PipelineError, match="audit the archive without --follow"):
        run(audit, spark, tmp_path / "archive", tmp_path / "audit", "--follow")
