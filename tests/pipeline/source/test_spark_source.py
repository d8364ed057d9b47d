"""The data source `momus` in Spark: types, options, and a stream that is stopped, resumed and cleaned under."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import made_batches as made
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException
from test_stream_planner import Logs

from pipeline.schema import VIEWS, spark_schema
from pipeline.source.data_source import PUSHDOWN, ROOT, FilteringSource, MomusReader, MomusSource, register
from pipeline.source.segment_ranges import scan

GOLDEN = str(Path(__file__).parent.parent / "golden" / "logs")


@pytest.fixture(autouse=True, scope="module")
def _registered(spark):
    register(spark)


def read(spark, path, **options):
    return spark.read.format("momus").options(path=str(path), **options).load()


def start(spark, path, out, **options):
    stream = spark.readStream.format("momus").options(path=str(path), **options).load()
    writer = stream.writeStream.format("parquet").option("checkpointLocation", f"{out}/checkpoint")
    return writer.option("path", f"{out}/rows")


def rows_written(spark, out) -> list[tuple[str, int]]:
    return sorted(
        (row["log"], row["offset"]) for row in spark.read.parquet(f"{out}/rows").select("log", "offset").collect()
    )


@pytest.mark.parametrize("view", VIEWS)
def test_rows_of_spark_are_those_of_a_scan(spark, view):
    frame = read(spark, GOLDEN, records=view)
    assert frame.schema == spark_schema(view)
    expected = pa.Table.from_batches(scan(GOLDEN, view)).to_pylist()
    found = [row.asDict(recursive=True) for row in frame.collect()]
    for row in expected:
        for name, value in row.items():
            if hasattr(value, "tzinfo"):
                row[name] = value.astimezone().replace(tzinfo=None)  # as collect() gives it
    assert len(found) == len(expected) > 0
    assert [{**row, **_bytes(row)} for row in found] == expected


def _bytes(row):
    """collect() gives bytearrays."""
    changed = {name: bytes(value) for name, value in row.items() if isinstance(value, bytearray)}
    if "headers" in row:
        headers = [
            {"key": h["key"], "value": None if h["value"] is None else bytes(h["value"])} for h in row["headers"]
        ]
        changed["headers"] = headers
    return changed


def test_options_choose_logs(spark, tmp_path):
    for log in ("orders-0", "orders-1", "bills-0"):
        made.write_segment(tmp_path, log, 0, made.batch_of([(b"k", b"v", ())]))
    assert read(spark, tmp_path, topic="o*").count() == 2
    assert read(spark, tmp_path, logs="orders-1,bills-0").count() == 2
    assert read(spark, tmp_path, topic="none").count() == 0
    assert read(spark, tmp_path, records="offsets").count() == 0


def test_option_columns_leaves_the_others_out(spark):
    names = ["commit_offset", "log", "offset"]
    some = read(spark, GOLDEN, records="offsets", columns=",".join(names))
    assert some.columns == ["log", "offset", "commit_offset"]
    assert sorted(some.collect()) == sorted(read(spark, GOLDEN, records="offsets").select(some.columns).collect())
    with pytest.raises(AnalysisException, match="the view raw has no column commit_offset; it has log, topic, "):
        read(spark, GOLDEN, columns="log,commit_offset")


def test_stream_that_is_resumed_has_every_row_once(spark, tmp_path):
    logs, out = Logs(tmp_path / "logs"), tmp_path / "out"
    expected = set()
    for step in range(4):
        for log in ("a-0", "a-1", f"b-{step}"):
            for _ in range(20):
                logs.append(log)
        expected |= logs.offsets("a-0") | logs.offsets("a-1") | logs.offsets(f"b-{step}")
        query = start(spark, tmp_path / "logs", out, maxBytesPerTrigger="2k").trigger(availableNow=True).start()
        query.awaitTermination()
        assert len(query.recentProgress) >= 3
        logs.roll("a-0")
        logs.clean("a-0", 2)
        logs.expire("a-1")
        logs.tear("a-1") if step == 3 else None
        if step == 2:
            logs.delete("b-0")
    assert rows_written(spark, out) == sorted(expected)


def test_stream_follows_logs_that_grow_while_it_runs(spark, tmp_path):
    logs, out = Logs(tmp_path / "logs"), tmp_path / "out"
    logs.append("a-0")
    query = start(spark, tmp_path / "logs", out).start()
    try:
        for step in range(3):
            query.processAllAvailable()
            logs.append("a-0", 5)
            logs.append(f"new-{step}", 2)
            logs.roll("a-0")
        query.processAllAvailable()
    finally:
        query.stop()
    assert rows_written(spark, out) == sorted(set().union(*(logs.offsets(log) for log in logs.ends)))


@pytest.mark.parametrize(
    "condition",
    ["log = 'orders-1'", "topic = 'orders' and partition = 1", "partition in (1, 2) and topic in ('orders', 'none')"],
)
def test_conditions_on_the_log_leave_out_the_other_segments(spark, tmp_path, condition):
    good = made.batch_of([(b"k", b"v", ())])
    for log in ("orders-1", "bills-0", "bills-1"):
        damage = good[:-1] + b"\7" if log.startswith("bills") else good
        made.write_segment(tmp_path, log, 0, damage, made.batch_of([(b"k", b"v", ())], base_offset=1))
    made.write_segment(tmp_path, "orders-0", 0, made.batch_of([(b"k", b"v", ())]))
    with pytest.raises(PythonException, match="CRC"):
        read(spark, tmp_path).count()
    assert read(spark, tmp_path).where(condition).count() == 2


@pytest.mark.parametrize(("pushdown", "source"), [("true", FilteringSource), ("false", MomusSource)])
def test_session_without_pushdown_gets_a_reader_that_asks_for_no_conditions(pushdown, source):
    """Spark refuses a reader with pushFilters where it hands none over."""
    registered = []
    session = SimpleNamespace(
        _sc=SimpleNamespace(environment={"PYTHONPATH": "/theirs"}),
        conf={PUSHDOWN: pushdown},
        dataSource=SimpleNamespace(register=registered.append),
    )
    register(session)
    register(session)
    assert registered == [source, source]
    assert session._sc.environment["PYTHONPATH"] == f"{ROOT}{os.pathsep}/theirs"
    assert "pushFilters" not in vars(MomusReader)
