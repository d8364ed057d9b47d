"""The page of made-up figures: what it cannot know, its cursor, the records behind findings, its size."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browser import CHROMIUM, look
from report_kit import BEGIN

from benchmarks.report_page import crowded
from pipeline.report.cursor import SCRIPT
from pipeline.report.figures import Figures, Series
from pipeline.report.limits import limits
from pipeline.report.page import page
from pipeline.report.proof_records import MOST_CHARACTERS, places_of, text

in_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
SOUND = {"outcomes": {"committed": 2}, "logs": 4, "commits_total": 7}


def made(**changes: Any) -> Figures:
    found = Figures("/data", BEGIN, begin=BEGIN, step_s=10.0)
    for name, value in changes.items():
        setattr(found, name, value)
    return found


# -- what it cannot know


def test_page_of_sound_logs_names_no_limits_but_what_it_rests_on():
    assert limits(made(**SOUND)) == []
    said = page(made(**SOUND))
    assert "Nothing that is checked is left open" in said
    assert "4 logs complete, each of 7 commits names its member, and the broker was stopped in good order." in said
    assert "What this cannot know" not in said


ROW = {"log": "t-0", "start_offset": 0, "missing_inside": 0, "gaps": 0, "renewed": False}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"incomplete_logs": [ROW | {"missing_inside": 1200}]}, ["What 1,200 missing records of 1 log said"]),
        (
            {"incomplete_logs": [ROW | {"start_offset": 5}] * 2},
            ["the first record of 2 logs that no longer begin at 0"],
        ),
        ({"incomplete_logs": [ROW | {"renewed": True}]}, ["1 log with two topics under one name: t-0"]),
        (
            {"undecided": [{"kind": "k", "log": "t-0", "undecided": 3, "first_offset": 1}]},
            ["Whether 3 cases are a fault"],
        ),
        ({"was_clean": False}, ["Whether the latest DeleteRecords is obeyed"]),
        ({"old_transactions": 2}, ["2 committed transactions of version 1"]),
        ({"outcomes": {"committed": 2, "open": 1}}, ["How 1 transaction will end that is open"]),
        (
            {
                "unnamed": [{"log": "l", "group": f"g{n}", "commits": n} for n in range(1, 8)],
                "unnamed_groups": 9,  # more than the page lists
                "unnamed_commits": 30,
            },
            ["Who made 30 commits of 9 groups (g7, g6, g5, g4, g3 and 4 more)"],
        ),
        (
            {"kinds": {"share": 2, "streams": 1}, "groups": [{}] * 3},
            ["records of 2 share groups", "members of 1 streams group"],
        ),
        ({"without_lag": 3}, ["The lag of 3 groups"]),
        ({"kinds": {"classic": 1500}, "groups": [{}] * 1000}, ["What 500 of 1,500 groups did"]),
    ],
)
def test_each_limit_is_said_with_its_number_and_alone(changes, says):
    found = limits(made(**SOUND | changes))
    assert len(found) == len(says)
    for sentence, words in zip(found, says, strict=True):
        assert words in sentence
    if "groups" not in changes:
        assert "What this cannot know" in page(made(**SOUND | changes))


# -- the cursor


def moving() -> Figures:
    """Two groups within 100 seconds."""
    rows = [("a", "classic", 2, 5), ("b", "share", 1, 1)]
    heads = ("group", "kind", "changes", "epoch")
    return made(
        lag={"a": Series(0, [1, 2, 3, None, 5, 6, 7, 8, 9, 10, 1234]), "b": Series(5, [70, 80])},
        commits={"a": Series(0, [3] * 11)},
        commits_total=33,
        groups=[{**dict(zip(heads, row, strict=True)), "members": 1, "commits": 33} for row in rows],
        kinds={"classic": 1, "share": 1},
        rebalances=[(BEGIN + 5_000, "a", 4), (BEGIN + 60_000, "a", 5), (BEGIN + 61_000, "b", 1)],
        outcomes={"committed": 7, "aborted": 1},
        outcomes_over_time=[(BEGIN + 55_000, "committed", 7), (BEGIN + 99_000, "aborted", 1)],
    )


def at(chart: str, second: float) -> str:
    """JavaScript: the pointer goes over a chart at a time; then where the cursors are, and what is said there."""
    return """(() => {
  const shown = [...document.querySelectorAll("svg[data-plot]")].filter(e => e.clientWidth);
  const plot = svg => svg.dataset.plot.split(" ").map(Number);
  const target = document.querySelector("#CHART svg.wide"), [left, right, begin, end] = plot(target);
  const box = target.getBoundingClientRect(), scale = box.width / target.viewBox.baseVal.width;
  const x = left + (right - left) * (TIME - begin) / (end - begin);
  target.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + x * scale, clientY: box.top + 20}));
  const seen = () => ({
    cursors: shown.map(svg => {
      const [left, right, begin, end] = plot(svg), line = svg.querySelector(".cursor");
      const on = getComputedStyle(line).visibility === "visible";
      return on ? Math.round(begin + (end - begin) * (line.getAttribute("x1") - left) / (right - left)) : null;
    }),
    said: Object.fromEntries([...document.querySelectorAll("output")].map(e => [e.dataset.for, e.textContent])),
  });
  const over = seen();
  const key = name => target.parentElement.dispatchEvent(new KeyboardEvent("keydown", {key: name}));
  key("ArrowRight");
  const right_of_it = seen();
  target.dispatchEvent(new PointerEvent("pointerleave", {}));
  return [over, right_of_it, seen()];
})()""".replace("CHART", chart).replace("TIME", str(BEGIN + second * 1000))


@in_browser
@pytest.mark.parametrize("chart", ["lag", "commits", "groups", "outcomes"])
def test_cursor_over_one_chart_is_over_all_with_their_values(chart):
    figures = moving()
    begin, end = figures.span
    seen = look(page(figures), ask=at(chart, 55.5))
    assert seen.console == []
    over, right_of_it, gone = seen.probe["asked"]

    assert len(over["cursors"]) == 4
    for time in over["cursors"]:
        assert abs(time - BEGIN - 55_500) < (end - begin) / 1000
    for before, after in zip(over["cursors"], right_of_it["cursors"], strict=True):
        assert after - before == pytest.approx((end - begin) / 200, abs=2)
    assert gone == {"cursors": [None] * 4, "said": dict.fromkeys(over["said"], "")}
    assert {name: words.split(" ", 2)[2] for name, words in over["said"].items()} == {
        "lag": "a 6 b 70",
        "commits": "a 0.3",
        "groups": "a 4 b –",
        "outcomes": "committed 7 aborted 0",
    }
    assert over["said"]["lag"].startswith("2027-01-15 08:00:55 ")


@in_browser
def test_cursor_says_a_dash_where_nothing_is_known_and_counts_in_full():
    hole, last = (look(page(moving()), ask=at("lag", second)).probe["asked"][0]["said"]["lag"] for second in (35, 100))
    assert hole.endswith("a – b –")
    assert last.endswith("a 1,234 b –")


def test_script_ends_where_it_should():
    assert "</" not in SCRIPT


@in_browser
def test_verdict_has_its_colour_and_no_name_of_a_group_is_broken():
    ask = """[getComputedStyle(document.querySelector(".verdict")).display,
      ...[...document.querySelectorAll("table[data-of=groups] th.dot")].map(e => e.clientHeight < 40)]"""
    laid_out, *whole = look(page(crowded(3, 24)), ask=ask).probe["asked"]
    assert laid_out == "flex"  # else its dot has no size
    assert whole == [True] * 3


# -- the two questions

RESET = {
    "at": BEGIN, "group": "billing", "topic": "orders", "partition": 3, "kind": "back", "from_offset": 5000,
    "to_offset": 1000, "again": 4000, "skipped": None, "by": "tool", "member_id": None, "instance_id": None,
    "generation": None, "client_id": "kafka-admin", "log": "__consumer_offsets-7", "log_offset": 42,
}  # fmt: skip  # several to a line
RESETS = {
    "resets": [RESET], "resets_total": 3, "reset_groups": 2, "resets_by": {"member": 0, "tool": 3}, "went_back": 1,
    "read_again": 4000,
}  # fmt: skip  # several to a line


def asked(**changes: Any) -> str:
    """The section with the two questions, which is the first of the page."""
    said = page(made(**SOUND | changes))
    begin = said.index("<section")
    assert said[begin:].startswith('<section id="questions">')
    return said[begin : said.index("</section>")]


def test_page_says_first_who_reset_what_with_effect_and_place():
    said = asked(**RESETS)
    assert "3 resets of 2 groups: 3 by a tool" in said
    assert "billing on orders-3, from 5,000 to 1,000, 4,000 read again, by tool kafka-admin" in said
    assert "2027-01-15 08:00:00: billing" in said
    assert "Every reset, the latest first (1 of them)" in said
    assert "<td>__consumer_offsets-7 @ 42</td>" in said
    assert "No one: no commit goes back or jumps" in asked()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "No: nothing was written twice, and no group went back"),
        (RESETS, "Yes: 4,000 records read again after resets"),
        ({"findings_by_kind": {"duplicate-sequence": 2}}, "Yes: 2 findings"),
        ({"findings_by_kind": {"hanging-transaction": 1}}, "No: nothing was written twice"),
        ({"incomplete_logs": [ROW | {"missing_inside": 9}]}, "Not as far as the logs are there"),
    ],
)
def test_page_says_whether_anything_was_delivered_twice(changes, says):
    assert says in asked(**changes)


def test_page_tells_transactions_and_plain_groups_apart():
    said = asked(**RESETS | {"findings_by_kind": {"duplicate-sequence": 2, "hanging-transaction": 1}})
    assert "In 2 transactions and by idempotent producers: 2 findings, 1 transaction that hang" in said
    assert "In plain groups: 4,000 records read again in 1 commit that go back." in said


def test_page_has_the_lag_of_each_partition_with_its_age():
    row = {"group": "g", "topic": "t", "partition": 2, "committed": 7, "end": 19, "lag": 12, "seconds": 75.0}
    said = page(made(lag={"g": Series(0, [12])}, partitions=[row], partitions_total=9, end=BEGIN))
    assert "By topic and partition, at 2027-01-15 08:00:00 UTC (the first 1 of 9)" in said
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", said[said.index('data-of="partitions"') :])
    assert cells[:7] == ["g", "t", "2", "7", "19", "12", "1 min 15 s"]


@in_browser
def test_page_in_a_time_zone_has_its_times_everywhere():
    figures = moving()
    figures.zone, figures.end = "Asia/Tokyo", figures.time(10)
    seen = look(page(figures), ask=at("lag", 55.5))
    assert seen.probe["asked"][0]["said"]["lag"].startswith("2027-01-15 17:00:55 ")
    said = page(figures)
    assert "2027-01-15 17:00:00 to 2027-01-15 17:01:40 · times are Asia/Tokyo" in said
    chart = said[said.index('<section id="lag">') :]
    assert "17:00" in chart[: chart.index("</svg>")]
    assert "08:00" not in chart[: chart.index("</svg>")]


# -- findings and their records


def with_finding() -> Figures:
    finding = {
        "kind": "offset-regression", "log": "__consumer_offsets-1", "offset": 7, "detail": "t-0 went back",
        "proof_log": "__consumer_offsets-1", "proof_offset": 3,
    }  # fmt: skip  # several to a line
    records = [
        {"log": "__consumer_offsets-1", "offset": 3, "fields": {"record": "OffsetCommit", "value": '{"offset":9}'}},
        {"log": "__consumer_offsets-1", "offset": 7, "fields": {"record": "OffsetCommit", "value": "<b>5</b>"}},
    ]
    return made(findings=[finding], findings_by_kind={"offset-regression": 1}, records_named=records)


FOLLOW = """(() => {
  const links = [...document.querySelectorAll("table[data-of=findings] a")];
  const seen = () => [...document.querySelectorAll(".record")].filter(e => e.clientHeight).map(e => e.innerText);
  document.querySelector("#audit details").open = true;
  return [seen(), ...links.map(link => { location.hash = link.hash; return seen(); })];
})()"""


@in_browser
def test_finding_leads_to_its_record_and_to_the_one_that_it_contradicts():
    seen = look(page(with_finding()), ask=FOLLOW)
    assert seen.console == []
    before, itself, contradicted = seen.probe["asked"]
    assert before == []
    assert [re.split(r"\s*\n\s*", words) for words in itself] == [
        ["__consumer_offsets-1 @ 7", "record", "OffsetCommit", "value", "<b>5</b>"]
    ]
    assert [re.split(r"\s*\n\s*", words) for words in contradicted] == [
        ["__consumer_offsets-1 @ 3", "record", "OffsetCommit", "value", '{"offset":9}']
    ]


def test_finding_whose_record_is_not_there_has_no_link():
    figures = with_finding()
    figures.records_named = figures.records_named[1:]
    said = page(figures)
    assert '<a href="#record-0">__consumer_offsets-1 @ 7</a>' in said
    assert "<td>__consumer_offsets-1 @ 3</td>" in said


def test_places_are_those_of_findings_and_proofs_once():
    rows = [
        {"log": "a-0", "offset": 5, "proof_log": "a-0", "proof_offset": 2},
        {"log": "a-0", "offset": 7, "proof_log": "a-0", "proof_offset": 2},
        {"log": "b-0", "offset": 0, "proof_log": None, "proof_offset": None},
    ]
    assert places_of(rows) == [("a-0", 2), ("a-0", 5), ("a-0", 7), ("b-0", 0)]


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (None, "none"),
        (b"", ""),
        ("Käse, 5 €".encode(), "Käse, 5 €"),
        (b"\x00\xff", "0x00ff"),
        (b"tab\tand\nline", "tab\tand\nline"),
        (b"bell\x07", "0x62656c6c07"),
        ("€".encode() * 1000, "€" * 666 + "… (the first 2,000 of 3,000 bytes)"),
        (b"\xff" * 3000, "0x" + "ff" * 1000 + "… (the first 1,000 of 3,000 bytes)"),
    ],
)
def test_bytes_are_text_where_they_are_and_cut_where_they_are_long(data, shown):
    assert MOST_CHARACTERS == 2000
    assert text(data) == shown


# -- many groups


def test_page_of_a_thousand_groups_in_a_day_has_less_than_5_mb():
    said = page(crowded(1000, 24))
    assert len(said.encode()) < 5_000_000
    assert said.count('<tr><th scope="row"') >= 3 * 1000


@in_browser
def test_page_of_a_thousand_groups_is_drawn_without_an_error():
    seen = look(page(crowded(1000, 24)), ask=at("lag", 40_000))
    assert seen.console == []
    assert seen.probe["width"] <= 1280
    assert len(seen.tables["groups"]) == 1001
    over = seen.probe["asked"][0]
    assert all(over["said"].values())
