"""What is counted and looked up block by block is what a walk over the whole log gives."""

from __future__ import annotations

import random

import pytest

from pipeline.migrate.plan import counted_before
from pipeline.transforms import missing_offsets
from pipeline.transforms.missing_offsets import with_next

LOGS = ("a-0", "a-1", "b-0")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(missing_offsets, "BLOCK_OFFSETS", 8)


def offsets_of(seed: int) -> dict[str, list[int]]:
    """Sorted offsets of each log, some blocks empty, one log with few."""
    dice = random.Random(seed)
    return {log: sorted(dice.sample(range(100), dice.choice([1, 10, 40]))) for log in LOGS}


@pytest.mark.parametrize("seed", range(2))
def test_records_before_a_mark_are_counted(spark, seed):
    records = offsets_of(seed)
    dice = random.Random(seed + 100)
    marks = {(log, offset) for log in (*LOGS, "none-0") for offset in [*dice.sample(range(130), 12), 0, 8, 16]}
    frame = spark.createDataFrame([(log, offset) for log in LOGS for offset in records[log]], "log string, offset long")
    asked = spark.createDataFrame(sorted(marks), "log string, offset long")
    found = {(row["log"], row["offset"]): row["before"] for row in counted_before(asked, frame).collect()}
    expected = {(log, at): sum(offset < at for offset in records.get(log, [])) for log, at in marks}
    assert found == expected


@pytest.mark.parametrize("seed", range(2))
def test_value_of_the_next_row_is_found_across_blocks(spark, seed):
    records = offsets_of(seed)
    dice = random.Random(seed + 100)
    values = {(log, offset): dice.choice([None, 1, 2, 3]) for log in LOGS for offset in records[log]}
    rows = [(log, offset, value) for (log, offset), value in values.items()]
    dice.shuffle(rows)
    frame = spark.createDataFrame(rows, "log string, offset long, value int")
    found = {(row["log"], row["offset"]): row["next"] for row in with_next(frame, "value", "next").collect()}
    expected = {
        (log, offset): values[log, following] if following is not None else None
        for log in LOGS
        for offset, following in zip(records[log], [*records[log][1:], None], strict=True)
    }
    assert found == expected
