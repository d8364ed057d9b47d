"""Running values that are folded block by block are those of a window over the whole key."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from pipeline.transforms import missing_offsets
from pipeline.transforms.running import LAST, MAX, MIN, SUM, Running, plain_windows, previous, with_running

KEY = ("log", "member")
PLAIN = {MAX: F.max, MIN: F.min, SUM: F.sum}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(missing_offsets, "BLOCK_OFFSETS", 8)


def rows_of(spark: SparkSession, seed: int) -> DataFrame:
    """Rows in random order: empty blocks, keys that are null or have few rows, values that are null."""
    dice = random.Random(seed)
    rows = [
        (log, member, offset, dice.randrange(3), dice.choice([None, None, *range(-9, 9)]))
        for log, most in (("a-0", 60), ("b-0", 9), ("c-0", 1))
        for offset in dice.sample(range(200), most)
        for member in [dice.choice([None, "m", "n"])]
    ]
    dice.shuffle(rows)
    return spark.createDataFrame(rows, "log string, member string, offset long, sub int, value int")


def plain(each: Running) -> Column:
    """The same value by one window over the key."""
    direction = F.desc if each.backwards else F.asc
    key = Window.partitionBy(*KEY).orderBy(direction("offset"), direction("sub"))
    frame = key.rowsBetween(Window.unboundedPreceding, 0 if each.inclusive else -1)
    return (F.last(each.value, ignorenulls=True) if each.how == LAST else PLAIN[each.how](each.value)).over(frame)


def values(how: str) -> dict[str, Running]:
    one = F.col("value")
    return {
        f"{how}_{inclusive}_{backwards}": Running(how, one, inclusive=inclusive, backwards=backwards)
        for inclusive in (False, True)
        for backwards in (False, True)
    }


@pytest.mark.parametrize("seed", range(2))
def test_running_values_are_those_of_a_window_over_the_key(spark, seed):
    rows = rows_of(spark, seed).localCheckpoint()
    place = F.struct("value", "offset")
    wanted = {name: each for how in (LAST, MAX, MIN, SUM) for name, each in values(how).items()}
    wanted |= {"struct": Running(MAX, place), "flag": Running(MAX, F.col("value") > 5, inclusive=True, backwards=True)}
    found = with_running(rows, KEY, wanted, order=("offset", "sub")).collect()
    expected = rows.withColumns({name: plain(each) for name, each in wanted.items()}).collect()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert len({row["offset"] // 8 for row in found}) > 5


def test_plain_windows_take_their_place(spark, capsys):
    rows = rows_of(spark, 0).localCheckpoint()
    wanted = {name: each for how in (LAST, MAX, MIN, SUM) for name, each in values(how).items()}
    with plain_windows():
        found = with_running(rows, KEY, wanted, order=("offset", "sub"))
    with plain_windows(wanted=False):
        folded = with_running(rows, KEY, wanted, order=("offset", "sub"))
    assert sorted(map(repr, found.collect())) == sorted(map(repr, folded.collect()))
    found.explain()
    assert "_block" not in capsys.readouterr().out
    folded.explain()
    assert "_block" in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(2))
def test_row_before_is_found_though_its_value_is_null(spark, seed):
    rows = rows_of(spark, seed).localCheckpoint()
    before = F.lag("value").over(Window.partitionBy(*KEY).orderBy("offset"))
    found = with_running(rows, KEY, {"before": previous(F.col("value"))}).withColumn("before", F.col("before.value"))
    assert sorted(map(repr, found.collect())) == sorted(map(repr, rows.withColumn("before", before).collect()))


def test_blocks_may_be_given(spark):
    rows = rows_of(spark, 0).localCheckpoint()
    each = Running(SUM, F.lit(1), inclusive=True)
    found = with_running(rows, KEY, {"rank": each}, order=("offset", "sub"), block=F.expr("offset div 50"))
    expected = rows.withColumn("rank", plain(each))
    assert sorted(map(repr, found.collect())) == sorted(map(repr, expected.collect()))


def test_no_window_holds_a_whole_key(spark, capsys):
    with_running(rows_of(spark, 0), KEY, values(LAST)).explain()
    plan = capsys.readouterr().out
    windows = [line for line in plan.splitlines() if " Window [" in line]
    over_rows = [line for line in windows if "offset#" in line]
    assert over_rows
    assert all("_block#" in line.rpartition("], [")[0] for line in over_rows)
