"""The demo: every job over what real clients left behind, and what the jobs say against what the clients did."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as F

from pipeline.demo import play as demo


@pytest.mark.long
def test_demo_runs_every_job_and_they_agree_with_the_clients(spark, tmp_path, capfd):
    assert demo.play(tmp_path, 8, spark) == 0

    said = capfd.readouterr().out
    sold = int(next(line.split()[0] for line in said.splitlines() if line.endswith(" orders")))
    raw = spark.read.format("momus").option("path", str(tmp_path / "data")).option("topic", "orders").load()
    assert raw.count() == sold > 0
    assert spark.read.parquet(str(tmp_path / "copy")).count() == sold
    latest = spark.read.parquet(str(tmp_path / "offsets")).groupBy("group").agg(F.sum("commit_offset").alias("read"))
    assert {"billing", "analytics", "shipping"} <= {row.group for row in latest.collect() if 0 < row.read <= sold}
    proof = json.loads((tmp_path / "proof.json").read_text())
    assert proof["equal"]
    assert {"orders", "shipments"} <= {each["topic"] for each in proof["topics"]}
    assert "zombies fenced" in said
    assert (tmp_path / "report.html").read_text().lstrip().lower().startswith("<!doctype html>")
    page = (tmp_path / "report.html").read_text()
    [finding] = spark.read.parquet(str(tmp_path / "audit" / "findings")).collect()
    assert (finding.kind, finding.group) == ("offset-regression", "rereading")
    assert "1 finding: exactly-once did not hold" in page
    resets = {(row.group, row.kind, row.by, row.again) for row in spark.read.parquet(f"{tmp_path}/resets").collect()}
    assert resets == {("rereading", "back", "member", 20), ("nightly", "back", "tool", 20)}
    assert "2 resets of 2 groups: 1 by a member, 1 by a tool" in page
    assert "Yes: 1 finding and 40 records read again after resets" in page
