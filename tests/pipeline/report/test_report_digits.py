"""Figures as the page writes them: numbers, sizes, shares, lengths of time, times and ticks."""

from __future__ import annotations

import pytest
from report_kit import BEGIN

from pipeline.report.digits import duration, number, percent, short_moment, size, tick


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (1_234_567, "1,234,567"), (0.0, "0"), (0.002314, "0.00231"), (5.3, "5.3"), (5.0, "5"), (12.345, "12.3"),
     (99.96, "100"), (1234.5, "1,230"), (9.996, "10"), (1e-7, "0.0000001"), (150.0, "150")],
)  # fmt: skip  # several to a line
def test_numbers_have_three_digits_and_counts_all_of_theirs(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (15_321, "15.3 kB"), (999_499, "999 kB"), (999_999, "1 MB"),
     (1_500_000_000, "1.5 GB"), (2 * 10**15, "2,000 TB")],
)  # fmt: skip  # several to a line
def test_sizes_never_have_four_digits_before_the_unit(count, shown):
    assert size(count) == shown


def test_shares_are_none_or_all_only_if_they_are():
    assert [percent(part, 1000) for part in (0, 1, 10, 500, 999, 1000)] == [
        "0 %", "<1 %", "1 %", "50 %", ">99 %", "100 %",
    ]  # fmt: skip  # several to a line
    assert percent(0, 0) == "0 %"


def test_lengths_of_time_have_two_units():
    assert [duration(each) for each in (1, 1.04, 59.94, 432, 3600, 7500, 86_400)] == [
        "1 s", "1.04 s", "59.9 s", "7 min 12 s", "1 h", "2 h 5 min", "24 h",
    ]  # fmt: skip  # several to a line


def test_times_have_a_date_where_the_span_has_two():
    assert short_moment(BEGIN, (BEGIN, BEGIN + 1000)) == "08:00:00"
    assert short_moment(BEGIN, (BEGIN, BEGIN + 86_400_000)) == "01-15 08:00:00"


def test_ticks_are_short():
    assert [tick(each) for each in (0, 0.2, 20, 5000, 50_000, 1_500_000, 2e9)] == [
        "0", "0.2", "20", "5,000", "50 k", "1.5 M", "2 G",
    ]  # fmt: skip  # several to a line
