"""Where offsets go, word by word; and what does not read as a reset."""

from __future__ import annotations

import pytest

from broker.base.seek import Facts, Target, target
from momus.cli.groups.reset import (
    ResetError,
    parse_datetime,
    parse_duration,
    parse_file,
    parse_scope,
)

COMMITTED = Facts(committed=7, first=5, end=20, at_time=11)
NOTHING = Facts(committed=None, first=5, end=20)


@pytest.mark.parametrize(
    ("word", "number", "facts", "offset", "remark"),
    [
        ("earliest", 0, COMMITTED, 5, None),
        ("latest", 0, COMMITTED, 20, None),
        ("current", 0, COMMITTED, 7, None),
        ("current", 0, NOTHING, 20, "nothing committed: the end"),
        ("offset", 9, NOTHING, 9, None),
        ("offset", 4, COMMITTED, 5, "4 is below the first offset 5"),
        ("offset", 21, COMMITTED, 20, "21 is above the end 20"),
        ("shift", 3, COMMITTED, 10, None),
        ("shift", -3, COMMITTED, 5, "4 is below the first offset 5"),
        ("shift", 14, COMMITTED, 20, "21 is above the end 20"),
        ("time", 1000, COMMITTED, 11, None),
        ("time", 1000, NOTHING, 20, "no record is as new: the end"),
    ],
)
def test_word_moves_to(word, number, facts, offset, remark):
    assert target(word, number, facts) == Target(offset, remark)


def test_offset_of_a_file_is_kept_within_the_log():
    assert target("file", 12, COMMITTED) == Target(12)
    assert target("file", 3, COMMITTED).offset == 5


def test_shift_of_nothing_is_refused():
    with pytest.raises(ValueError, match="nothing is committed"):
        target("shift", 1, NOTHING)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("P7D", 604_800_000),
        ("PT1H30M", 5_400_000),
        ("PT10.5S", 10_500),
        ("p1dt1s", 86_401_000),
        ("-PT1S", -1000),
        ("PT-1S", -1000),
        ("PT0S", 0),
    ],
)
def test_duration_is_read_as_java_reads_it(text, ms):
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "7d", "P1DT", "1H", "P1M", "PT1.5H", "P²D", "P99999999999D", "P" + "9" * 5000 + "D"]
)
def test_duration_that_java_refuses_is_refused(text):
    with pytest.raises(ResetError, match=r"is (no|too long a) duration"):
        parse_duration(text)


def test_datetime_is_utc_unless_it_tells_a_zone():
    assert parse_datetime("2030-01-01T00:00:00.000") == 1893456000000
    assert parse_datetime("2030-01-01T01:00:00.000+01:00") == 1893456000000
    with pytest.raises(ResetError):
        parse_datetime("yesterday")


def test_scope_names_a_topic_or_partitions_of_it():
    assert parse_scope("orders") == ("orders", None)
    assert parse_scope("orders:2,0,2") == ("orders", [0, 2])
    for text in ("", ":1", "orders:", "orders:a", "orders:1,", "orders:²", "orders:" + "1" * 5000):
        with pytest.raises(ResetError):
            parse_scope(text)


def test_file_has_the_lines_of_one_group_or_of_many():
    assert parse_file(["t,0,5", "", '"u",1,6'], "g") == {"g": {("t", 0): 5, ("u", 1): 6}}
    assert parse_file(["a,t,0,5", "b,t,0,6"], None) == {"a": {("t", 0): 5}, "b": {("t", 0): 6}}
    for lines, group in ((["t,0"], "g"), (["t,0,x"], "g"), (["t,0,5"], None), (["t,-1,5"], "g"), (["t,²,5"], "g")):
        with pytest.raises(ResetError, match="line 1"):
            parse_file(lines, group)
