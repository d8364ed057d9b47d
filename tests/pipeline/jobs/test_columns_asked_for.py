"""Jobs ask the data source for the columns that they look at: Spark would have all of them decoded for any query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from job_kit import run
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

from pipeline.jobs import compaction, lag, offsets, report
from pipeline.schema import VIEWS

GOLDEN = Path(__file__).parent.parent / "golden" / "logs"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The options that the data source is given."""
    found: list[dict[str, str]] = []
    for reader in (DataFrameReader, DataStreamReader):

        def options(self: Any, __plain: Any = reader.options, **given: str) -> Any:
            found.extend([given] if "records" in given else [])
            return __plain(self, **given)

        monkeypatch.setattr(reader, "options", options)
    return found


@pytest.mark.parametrize(
    ("job", "words", "views"),
    [
        (offsets, "", {"offsets"}),
        (lag, "", {"offsets", "raw"}),
        (lag, "--follow", {"offsets", "raw"}),
        (compaction, "--follow", {"offsets", "transactions"}),
        (report, "", set(VIEWS)),  # which audits too
    ],
)
def test_job_asks_for_some_columns_and_never_for_all(spark, tmp_path, asked, job, words, views):
    run(job, spark, GOLDEN, tmp_path / "out", *words.split())
    assert {options["records"] for options in asked} == views
    for options in asked:
        named = options["columns"].split(",")
        assert set(named) < set(VIEWS[options["records"]].names)
