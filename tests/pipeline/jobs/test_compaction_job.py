"""What the report says a cleaning would win, against the cleaner."""

from __future__ import annotations

from pathlib import Path

import pytest
from live import History, Live
from pyspark.sql import SparkSession
from written_log import NOW_MS, Written

from momus import Broker
from pipeline.jobs.compaction import report
from protocol.record_batch import ABORT, COMMIT, HEADER_BYTES


def rows(spark: SparkSession, path: Path) -> list[dict[str, object]]:
    return [row.asDict() for row in report(spark, str(path), "t").orderBy("segment").collect()]


def test_won_bytes_are_what_the_cleaner_wins(spark, tmp_path):
    written = Written(tmp_path)
    for n in range(60):
        written.put((b"a%d" % (n % 7), b"v" * (n % 31)), (b"b%d" % n, b"w" * 10), (None, b"no key"))
    written.log.roll()
    written.put((b"active", b"x"), (b"active", b"y"))
    told = rows(spark, tmp_path)
    before = written.closed_bytes()
    assert sum(row["bytes"] for row in told if not row["active"]) == pytest.approx(before, abs=len(told))
    for _ in written.log.clean(NOW_MS):
        pass
    won = before - written.closed_bytes()
    assert sum(row["won_bytes"] for row in told) == pytest.approx(won, abs=len(told) + HEADER_BYTES)
    assert won > 1000
    assert [row["won_bytes"] for row in told if row["active"]] == [0]


def test_fates_of_transactions_tombstones_and_keyless_records(spark, tmp_path):
    written = Written(tmp_path)
    written.put((b"k", b"old"), (b"other", b"x"))
    written.put((b"k", b"new"), producer_id=1)
    written.end(1, COMMIT)
    written.put((b"other", b"aborted"), producer_id=2)
    written.end(2, ABORT)
    written.put((b"gone", None), (None, b"keyless"))
    written.put((b"other", b"open"), producer_id=3)
    [row] = rows(spark, tmp_path)
    assert (row["records"], row["dead_records"]) == (9, 3)  # old, aborted, keyless
    assert row["marker_bytes"] > 2 * HEADER_BYTES
    assert row["aborted_bytes"] > HEADER_BYTES
    sizes = (row["live_bytes"], row["tombstone_bytes"], row["marker_bytes"], row["dead_bytes"])
    assert sum(sizes) == pytest.approx(row["bytes"], abs=4)
    assert row["active"]


def test_internal_topics_are_told_by_default_from_a_data_directory(spark, tmp_path):
    with Broker(data_dir=tmp_path, config={"offsets.topic.num.partitions": 1}) as broker:
        live = Live(broker)
        history = History(1)
        history.create(live)
        for _ in range(40):
            history.step(live)
        live.close()
    told = {row["log"]: row for row in report(spark, str(tmp_path)).collect()}
    assert "__consumer_offsets-0" in told
    assert any(log.startswith("__transaction_state-") for log in told)
    for log, row in told.items():
        assert row["bytes"] == pytest.approx(sum(f.stat().st_size for f in (tmp_path / log).glob("*.log")), abs=1)
        assert row["dead_bytes"] > 0 or row["records"] < 3
