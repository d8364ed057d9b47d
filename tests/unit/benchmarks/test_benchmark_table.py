"""The table of docs/figures.md: each ratio is that of the medians beside it; a row in which a peer is ahead is bold."""

from __future__ import annotations

import math

from benchmarks.__main__ import row


def test_ratio_is_that_of_the_medians_shown():
    figures = {"momus": [300.0, 100.0, 200.0], "kfake": [400.0, 50.0, 100.0]}
    assert row("commit", figures, "/s") == "| commit | 200/s | 100/s (2.00) |"


def test_row_in_which_a_peer_does_more_is_bold():
    figures = {"momus": [100.0], "kfake": [400.0], "kafka": [10.0]}
    assert row("commit", figures, "/s") == "| **commit** | 100/s | 400/s (**0.25**) | 10/s (10) |"


def test_row_in_which_a_peer_takes_less_is_bold():
    figures = {"momus": [50.0], "kfake": [40.0], "kafka": [200.0]}
    assert row("alone", figures, " us") == "| **alone** | 50 us | 40 us (**0.80**) | 200 us (4.00) |"


def test_ratio_that_reads_one_is_not_behind():
    assert row("commit", {"momus": [999.0], "kfake": [1001.0]}, "/s") == "| commit | 999/s | 1,001/s (1.00) |"


def test_peer_that_failed_in_one_round_has_no_figure():
    figures = {"momus": [1.0, 1.0, 1.0], "rdmock": [2.0, math.nan, 2.0]}
    assert row("commit", figures, "/s") == "| commit | 1/s | - |"


def test_pure_python_beside_a_wheel_makes_no_row_bold():
    figures = {"momus": [100.0], "pure": [110.0], "kfake": [50.0]}
    assert row("commit", figures, "/s") == "| commit | 100/s | 110/s (0.91) | 50/s (2.00) |"
