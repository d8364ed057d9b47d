"""A broker lives through traffic of all kinds; the jobs are run over what it left, and the page says what they say."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, DARK, look
from job_kit import run

from momus import Broker
from pipeline.audit.findings import KINDS
from pipeline.demo.traffic import Traffic
from pipeline.jobs import audit, compaction, lag, report, resets
from pipeline.output_guard import HEAD_BYTES, made_by
from pipeline.report.charts import SERIES, lines, time_locator
from pipeline.report.digits import size
from pipeline.report.figures import Figures, Series, series_of
from pipeline.report.page import page

pytestmark = pytest.mark.timeout(900)
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
SECONDS = 8.0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is left of rebalances, commits, aborts and zombies, of a crash, and of more of it."""
    directory = tmp_path_factory.mktemp("life") / "data"
    config = {"group.initial.rebalance.delay.ms": 0}
    with Broker(data_dir=directory, config=config) as broker:
        traffic = Traffic(broker.bootstrap_servers)
        while not traffic.run(SECONDS)["transactions aborted"]:
            continue
        broker.kill()
        broker.start()
    return directory


@pytest.fixture(scope="module")
def audited(spark: Any, data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    output = tmp_path_factory.mktemp("audit")
    return run(audit, spark, data, output), output


@pytest.fixture(scope="module")
def text(spark: Any, data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    output = tmp_path_factory.mktemp("report") / "report.html"
    assert run(report, spark, data, output) == 0
    return output.read_text(encoding="utf-8")


def test_audit_log_of_a_live_broker_has_no_finding(spark, audited):
    code, output = audited
    assert [row.asDict() for row in spark.read.parquet(f"{output}/findings").collect()] == []
    assert [row.asDict() for row in spark.read.parquet(f"{output}/doubts").collect()] == []
    assert code == 0
    coverage = spark.read.parquet(f"{output}/coverage").collect()
    assert all(row["complete"] for row in coverage)
    rows = spark.read.parquet(f"{output}/transactions").collect()
    states = Counter(row["state"] for row in rows)
    assert states["CompleteCommit"]
    assert states["CompleteAbort"]
    shipped = [row for row in rows if row["transactional_id"].startswith("shipping") and row["decision"] == "COMMIT"]
    assert all(len(row["markers"]) == len(row["partitions"]) for row in shipped)
    assert all(row["offsets"] and row["data"] for row in shipped)
    told = {(each["group"], each["generation"] > 0) for row in shipped for each in row["offsets"]}
    assert told == {("shipping", True)}


@in_browser
def test_report_figures_are_what_the_jobs_say(spark, data, audited, text, tmp_path):
    seen = look(text)
    figures, tables = seen.figures, seen.tables
    assert run(lag, spark, data, tmp_path / "lag", "--sum") == 0
    assert run(compaction, spark, data, tmp_path / "bytes") == 0
    _, found = audited

    behind: Counter[tuple[str, int]] = Counter()
    for row in spark.read.parquet(f"{tmp_path}/lag").collect():
        behind[row["consumergroup"], round(row["time"].timestamp() * 1000)] += row["kafka_consumergroup_lag_sum"] or 0
    drawn = {
        (group, round(figures["begin"] + n * figures["step_s"] * 1000)): value
        for group, (first, values) in figures["lag"].items()
        for n, value in enumerate(values, first)
    }
    assert {place: value for place, value in drawn.items() if value} == {place: n for place, n in behind.items() if n}
    assert {row[0] for row in tables["lag"][1:]} == {group for group, _ in behind}
    peaks = {group: max(n for (who, _), n in behind.items() if who == group) for group, _ in behind}
    assert {row[0]: int(row[1].replace(",", "")) for row in tables["lag"][1:]} == peaks

    assert run(lag, spark, data, tmp_path / "last", "--last") == 0
    last = {
        (row["consumergroup"], row["topic"], row["partition"]): (
            row["kafka_consumergroup_lag"],
            row["kafka_consumergroup_lag_seconds"],
        )
        for row in spark.read.parquet(f"{tmp_path}/last").collect()
    }
    partitions = figures["partitions"]
    assert {(row["group"], row["topic"], row["partition"]): (row["lag"], row["seconds"]) for row in partitions} == last
    assert run(resets, spark, data, tmp_path / "resets") == 0
    set_back = spark.read.parquet(f"{tmp_path}/resets").collect()
    assert figures["resets_total"] == len(set_back)
    assert figures["read_again"] == sum(row["again"] or 0 for row in set_back)

    transactions = Counter(row["state"] for row in spark.read.parquet(f"{found}/transactions").collect())
    assert figures["outcomes"]["committed"] == transactions["CompleteCommit"]
    assert figures["outcomes"]["aborted"] == transactions["CompleteAbort"]
    outcomes = {row[0]: int(row[1].replace(",", "")) for row in tables["outcomes"][1:]}
    assert outcomes == figures["outcomes"]
    assert figures["findings"] == []
    assert figures["records"] == sum(row["records"] for row in spark.read.parquet(f"{found}/coverage").collect())

    dead: Counter[str] = Counter()
    for row in spark.read.parquet(f"{tmp_path}/bytes").collect():
        dead[row["log"]] += row["dead_bytes"]
    assert {log: n for log, _, n in figures["bytes"]} == dead
    assert {row[0]: row[2] for row in tables["bytes"][1:]} == {log: size(n) for log, n in dead.items()}

    changes = Counter(group for _, group, _ in figures["rebalances"])
    assert {row[0]: int(row[2]) for row in tables["groups"][1:] if row[2] != "0"} == changes
    assert changes["billing"] > 1
    assert changes["shipping"] > 1
    kinds = {row[0]: row[1] for row in tables["groups"][1:]}
    assert (kinds["billing"], kinds["shipping"]) == ("classic", "consumer")
    commits = {row[0]: int(row[1].replace(",", "")) for row in tables["commits"][1:]}
    assert commits == {group: sum(values) for group, (_, values) in figures["commits"].items()}
    assert commits == {row[0]: int(row[5].replace(",", "")) for row in tables["groups"][1:] if row[5] != "0"}
    assert sum(commits.values()) == figures["commits_total"]


def area(points: list[Any]) -> float:
    """What is below steps, each of which goes on to the next point."""
    return sum(value * (until - at) / 1000 for (at, value), (until, _) in pairwise(points))


def test_rate_is_zero_where_nothing_was_committed():
    """16 commits within 3 of 80 seconds were drawn as 5.3 a second for all of them."""
    found = made(begin=0, step_s=1.0, commits={"g": series_of([(1, 5), (2, 5), (80, 6)], 0), "one": Series(5, [2])})
    assert found.rate_line("g") == [(0, 5.0), (2000, 0.0), (79_000, 6.0), (80_000, 0.0)]
    assert found.rate_line("one") == [(4000, 2.0), (5000, 0.0)]
    assert area(found.rate_line("g")) == 16


def test_charts_over_time_have_one_axis():
    figures = made(
        begin=0,
        step_s=1.0,
        lag={"g": Series(5, [1, 2, 3])},
        commits={"g": Series(2, [1, 0, 4])},
        rebalances=[(1500, "g", 1)],
        outcomes_over_time=[(70_000, "committed", 3)],
    )
    assert figures.span == (1000, 70_000)
    figures.commits["late"] = Series(90, [1])
    assert figures.span == (1000, 90_000)
    assert made().span[0] < made().span[1]


@pytest.mark.parametrize(
    ("top", "whole", "ticks"),
    [
        (1, True, ["0", "1"]),
        (2, True, ["0", "1", "2"]),
        (3, True, ["0", "1", "2", "3"]),
        (7, True, ["0", "2", "4", "6"]),
        (120, True, ["0", "50", "100"]),
        (0.5, False, ["0", "0.2", "0.4"]),
        (5.3, False, ["0", "2", "4"]),
        (0.005, False, ["0", "0.002", "0.004"]),
        (60_000, True, ["0", "20 k", "40 k", "60 k"]),
        (5_300_000, True, ["0", "2 M", "4 M"]),
    ],
)
def test_ticks_of_counts_are_whole_and_those_of_rates_have_few_digits(top, whole, ticks):
    text = lines("t", {"g": [(0, 0.0), (1000, float(top))]}, {"g": SERIES[0]}, (0, 1000), whole=whole)
    wide = text[: text.index("</svg>")]
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", wide)
    assert [each for each in labels if not re.fullmatch(r"\d\d[:.]\d+", each)] == ticks  # without those of the time


def test_chart_says_where_its_times_are_drawn():
    text = lines("t", {"g": [(5000, 1.0), (25_000, 2.0)]}, {"g": SERIES[0]}, (5000, 25_000), whole=True)
    for chart in text.split("</svg>")[:-1]:
        left, right, begin, end = map(float, re.findall(r'data-plot="([^"]+)"', chart)[0].split())
        assert (begin, end) == (5000, 25_000)
        [line] = re.findall(r'<path d="([^"]+)"[^>]*stroke: var\(--s1\)', chart)
        places = [float(x) for x in re.findall(r"[ML] ([\d.]+) ", line)]
        assert (places[0], places[-1]) == (pytest.approx(left, abs=0.2), pytest.approx(right, abs=0.2))


@in_browser
def test_report_in_a_browser_is_drawn_without_an_error_in_any_light_and_width(text):
    seen = {(dark, width): look(text, *dark, width=width) for dark in ((), (DARK,)) for width in (1280, 500)}

    for (_, width), each in seen.items():
        assert each.console == []
        assert each.probe["fetched"] == []
        assert each.probe["width"] <= width
        assert each.probe["charts"] == 5
        assert each.probe["cursors"] == 4
        assert each.probe["letters"] not in ("none", "rgb(0, 0, 0)")
    light, dark = seen[(), 1280].probe, seen[(DARK,), 1280].probe
    assert light["ink"] != dark["ink"]
    assert light["paper"] != dark["paper"]
    assert light["letters"] != dark["letters"]


@in_browser
def test_browser_page_that_fails_or_fetches_is_noticed():
    broken = look("<html><body><script>throw new Error('broken')</script></body></html>")
    assert "broken" in broken.console[0]
    fetching = look("<html><body><img src='http://127.0.0.1:1/absent.png'></body></html>")
    assert fetching.probe["fetched"] == ["http://127.0.0.1:1/absent.png"]


def made(**changes: Any) -> Figures:
    found = Figures("/data", 1_800_000_000_000)
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def test_report_of_nothing_says_so_in_every_section():
    text = page(made())
    assert text.count("The logs have none.") == 5
    assert "No transactions in 0 logs: exactly-once was not put to the test" in text


def test_report_says_that_all_held_only_with_transactions_and_complete_logs():
    seen = {"outcomes": {"committed": 2, "aborted": 1}, "logs": 4}
    assert "Exactly-once held: no finding in 3 transactions, 4 logs complete" in page(made(**seen))
    gap = {"log": "t-0", "start_offset": 5, "missing_inside": 0, "gaps": 0}
    text = page(made(**seen, incomplete_logs=[gap]))
    assert "Exactly-once held" not in text
    assert "No finding in 3 transactions, but records of 1 of 4 logs are missing" in text


def test_report_with_findings_shows_each_with_its_place():
    row = {"kind": "offset-regression", "log": "__consumer_offsets-1", "offset": 7, "detail": "t-0 went <b>back</b>"}
    text = page(made(findings=[row], findings_by_kind={"offset-regression": 1}))
    assert "1 finding: exactly-once did not hold" in text
    assert "__consumer_offsets-1 @ 7" in text
    assert "t-0 went &lt;b&gt;back&lt;/b&gt;" in text
    assert KINDS["offset-regression"] in text


def test_report_with_gaps_does_not_say_that_all_held():
    doubt = {"kind": "missing-sequence", "log": "t-0", "undecided": 3, "first_offset": 9}
    text = page(made(undecided=[doubt]))
    assert "Exactly-once held" not in text
    assert "3 cases undecided, because records are missing" in text


def test_report_made_twice_is_the_same_page():
    points = Series(0, [n % 7 for n in range(50)])
    figures = made(begin=1_800_000_000_000, step_s=1.0, lag={"g": points}, commits={"g": points})
    assert page(figures) == page(figures)


def test_report_name_of_a_group_cannot_break_out_of_the_page():
    group = "</script><script>alert(1)</script>"
    row = {"group": group, "kind": group, "changes": 1, "epoch": 1, "members": 1, "commits": 1}
    text = page(made(lag={group: Series(0, [1])}, commits={group: Series(0, [1])}, groups=[row], kinds={group: 1}))
    assert "<script>alert" not in text


def test_report_says_in_its_first_bytes_which_job_made_it():
    figures = made()
    figures.source = "/" + "long" * HEAD_BYTES  # the name of the input must not push it out
    assert made_by("report").encode() in page(figures).encode()[:HEAD_BYTES]


@pytest.mark.parametrize("phone", [False, True])
def test_time_axis_finds_its_ticks_for_every_length_of_time(phone):
    begin = datetime(2027, 1, 15, 16, 31, 13, tzinfo=UTC)
    lengths = [*range(1, 4000, 7), *range(60, 3 * 86_400, 700)]
    for seconds in lengths:  # one that finds none warns, which fails the test
        assert time_locator(phone).get_locator(begin, begin + timedelta(seconds=seconds)) is not None
