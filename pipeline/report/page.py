"""The report's page: one HTML file with its style, charts, figures and script, and no external resources.

From top to bottom: who reset what and was anything delivered twice, did exactly-once hold and what cannot be known of
it, what groups and transactions did, what is on disk. The table beside each chart is also its legend, and all figures
are in the page as JSON.
"""

from __future__ import annotations

import json
from html import escape
from typing import Final

from pipeline.audit.findings import KINDS, NOT_SURE
from pipeline.audit.verdict import count, verdict
from pipeline.output_guard import made_by
from pipeline.report import charts
from pipeline.report.charts import MOST_SERIES, OUTCOME_COLOURS, SERIES
from pipeline.report.cursor import SCRIPT
from pipeline.report.digits import duration, in_zone, moment, percent, short_moment, size
from pipeline.report.elements import Cell, Link, drawn, folded, record, section, table
from pipeline.report.figures import MOST_TIMELINES, Figures
from pipeline.report.limits import limits, nothing_open
from pipeline.report.questions import questions
from pipeline.report.style import STYLE

MOST_BARS: Final = 12
UNDECIDED: Final = ("kind", "log", "undecided", "first_offset")
MISSING: Final = "missing records could explain them"


def page(figures: Figures) -> str:
    """The HTML document, with times of the figures' zone."""
    with in_zone(figures.zone):
        return _page(figures)


def _page(figures: Figures) -> str:
    data = json.dumps(figures.as_json(), separators=(",", ":")).replace("<", "\\u003c")
    sections = (
        questions(figures),
        _verdict(figures),
        _lag(figures),
        _commits(figures),
        _groups(figures),
        _outcomes(figures),
        _bytes(figures),
    )
    return f"""<!doctype html>
<html lang="en" data-zone="{escape(figures.zone)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content={made_by("report")}>
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>momus: {escape(figures.source)}</title>
<style>
{STYLE}</style>
</head>
<body>
<header>
<h1>momus report</h1>
<p><code>{escape(figures.source)}</code> · {escape(_span(figures))} · times are {escape(figures.zone)}</p>
</header>
<main>
{"".join(sections)}</main>
<footer>Made by <code>momus pipeline report</code> at {moment(figures.made)} ({escape(figures.zone)}).</footer>
<script type="application/json" id="figures">{data}</script>
<script>
{SCRIPT}</script>
</body>
</html>
"""


def _verdict(figures: Figures) -> str:
    found = sum(figures.findings_by_kind.values())
    undecided = sum(row["undecided"] for row in figures.undecided)
    transactions = sum(figures.outcomes.values())
    text, css = verdict(
        findings=found,
        undecided=undecided,
        otherwise=sum(row["undecided"] for row in figures.undecided if row.get("why")),
        transactions=transactions,
        logs=figures.logs,
        incomplete=len(figures.incomplete_logs),
        unnamed=figures.unnamed_groups,
    )
    tiles = "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd></div>"
        for name, value in (
            ("logs", f"{figures.logs:,}"),
            ("records", f"{figures.records:,}"),
            ("groups", f"{sum(figures.kinds.values()):,}"),
            ("commits", f"{figures.commits_total:,}"),
            ("transactions", f"{transactions:,}"),
            ("findings", f"{found:,}"),
        )
    )
    parts = [
        f'<div class="judged"><div><p class="verdict {css}">{escape(text)}</p><dl class="tiles">{tiles}</dl></div>'
        f"{_limits(figures)}</div>"
    ]
    if found:
        parts += _findings(figures, found)
    if undecided:
        rows: list[tuple[Cell, ...]] = [
            (*(row[name] for name in UNDECIDED), NOT_SURE.get(row.get("why") or "", MISSING))
            for row in figures.undecided
        ]
        cases = table("undecided", ("kind", "log", "cases", "first offset", "why"), rows)
        parts.append(folded("What could not be decided", cases))
    if figures.incomplete_logs:
        rows = [
            (row["log"], row["start_offset"], row["missing_inside"], row["gaps"]) for row in figures.incomplete_logs
        ]
        missing = table("coverage", ("log", "begins at offset", "records missing since", "gaps"), rows)
        parts.append(folded(f"{count(len(rows), 'log')} of {figures.logs} with missing records", missing))
    if figures.unnamed:
        rows = [(row["group"], row["log"], row["commits"]) for row in figures.unnamed]
        nameless = table("unnamed", ("group", "log", "commits"), rows)
        parts.append(folded("Groups whose commits name no member", nameless))
    return section("audit", "Audit", "", "".join(parts))


def _limits(figures: Figures) -> str:
    """What the page cannot know, beside the verdict."""
    open_ones = limits(figures)
    if not open_ones:
        said = f"<p>{escape(nothing_open(figures))}</p>"
        return f'<aside id="limits"><h3>Nothing that is checked is left open</h3>{said}</aside>'
    rows = "".join(f"<li>{escape(each)}</li>" for each in open_ones)
    return f'<aside id="limits"><h3>What this cannot know</h3><ul>{rows}</ul></aside>'


def _findings(figures: Figures, found: int) -> list[str]:
    """The findings by kind; and each of them, with links to the records that it names, which are below."""
    by_kind: list[tuple[Cell, ...]] = [(kind, n, KINDS[kind]) for kind, n in figures.findings_by_kind.items()]
    ids = {(each["log"], each["offset"]): f"record-{n}" for n, each in enumerate(figures.records_named)}

    def place(log: str | None, offset: int | None) -> Cell:
        if log is None or offset is None:
            return None
        where = f"{log} @ {offset}"
        return Link(where, ids[log, offset]) if (log, offset) in ids else where

    rows: list[tuple[Cell, ...]] = [
        (
            row["kind"],
            place(row["log"], row["offset"]),
            row["detail"],
            place(row.get("proof_log"), row.get("proof_offset")),
        )
        for row in figures.findings
    ]
    shown = "" if len(rows) == found else f" (the first {len(rows)} of {found:,})"
    each = table("findings", ("kind", "log @ offset", "what it says", "it contradicts"), rows)
    records = "".join(
        record(ids[row["log"], row["offset"]], f"{row['log']} @ {row['offset']}", row["fields"])
        for row in figures.records_named
    )
    return [
        table("findings-by-kind", ("kind", "findings", "what it means"), by_kind),
        folded(f"Each with its log position{shown}", f"{each}{records}"),
    ]


def _lag(figures: Figures) -> str:
    peaks = {group: _peak(values) for group, (_, values) in figures.lag.items()}
    order = sorted(peaks, key=lambda group: (-peaks[group], group))
    colours = dict(zip(order, SERIES, strict=False))
    rows: list[tuple[Cell, ...]] = []
    for group in order:
        first, values = figures.lag[group]
        at = figures.time(first + values.index(peaks[group]))
        rows.append((group, peaks[group], short_moment(at, figures.span), values[-1]))
    legend = table("lag", ("group", "most", "at", "last"), rows, colours)
    data = {group: figures.lag_line(group) for group in colours}
    chart = charts.lines("lag", data, colours, figures.span, whole=True) if peaks else ""
    caption = "Records behind the log ends, over all topics of a group; of share groups, those not done."
    return drawn("lag", "Lag", caption, chart, legend if peaks else "", len(order), more=_partitions(figures))


def _partitions(figures: Figures) -> str:
    """The lag at the last moment, by topic and partition."""
    heads = ("group", "topic", "partition", "committed", "end", "lag", "for")
    rows = [
        (*(row[name] for name in heads[:-1]), None if row["seconds"] is None else duration(row["seconds"]))
        for row in figures.partitions
    ]
    if not rows:
        return ""
    shown = f" (the first {len(rows):,} of {figures.partitions_total:,})"
    title = f"By topic and partition, at {moment(figures.end or figures.made)} {figures.zone}"
    return folded(f"{title}{'' if len(rows) == figures.partitions_total else shown}", table("partitions", heads, rows))


def _commits(figures: Figures) -> str:
    totals = {group: sum(each or 0 for each in values) for group, (_, values) in figures.commits.items()}
    order = sorted(totals, key=lambda group: (-totals[group], group))
    colours = dict(zip(order, SERIES, strict=False))
    rows = [(group, totals[group], _peak(figures.commits[group].values) / (figures.step_s or 1)) for group in order]
    legend = table("commits", ("group", "commits", "most a second"), rows, colours)
    data = {group: figures.rate_line(group) for group in colours}
    chart = charts.lines("commits", data, colours, figures.span, whole=False) if rows else ""
    caption = f"Commits a second, counted a partition, every {duration(figures.step_s)}."
    return drawn("commits", "Commits", caption, chart, legend if rows else "", len(order))


def _groups(figures: Figures) -> str:
    changed = [row["group"] for row in figures.groups if row["changes"]]
    lines = {group for _, group, _ in figures.rebalances}
    shown = [group for group in changed[:MOST_TIMELINES] if group in lines]
    colours = {group: SERIES[n % MOST_SERIES] for n, group in enumerate(shown)}
    heads = ("group", "kind", "changes", "epoch", "members", "commits")
    rows = [tuple(row[head] for head in heads) for row in figures.groups]
    legend = table("groups", heads, rows, colours)
    chart = charts.timeline("groups", figures.rebalances, shown, figures.span) if shown else ""
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in figures.kinds.items())
    caption = f"{kinds}. Each tick is a new generation or epoch; a simple group has commits and no members."
    return drawn("groups", "Groups", caption, chart, legend if rows else "", len(changed), MOST_TIMELINES)


def _outcomes(figures: Figures) -> str:
    rows = [(how, figures.outcomes[how]) for how in OUTCOME_COLOURS if how in figures.outcomes]
    legend = table("outcomes", ("outcome", "transactions"), rows, OUTCOME_COLOURS)
    ended = figures.outcomes_over_time
    chart = charts.columns("outcomes", ended, figures.span) if ended else ""
    return drawn(
        "outcomes", "Transactions", "When transactions ended, and how.", chart, legend if rows else "", len(rows)
    )


def _bytes(figures: Figures) -> str:
    rows = [(log, size(live), size(dead), percent(dead, live + dead)) for log, live, dead in figures.bytes]
    numbers = table("bytes", ("log", "live", "dead", "share"), rows)
    chart = charts.bars("bytes", figures.bytes[:MOST_BARS]) if rows else ""
    caption = "Live bytes, and in grey the dead bytes that a cleaning may free."
    return drawn(
        "bytes", "Live and dead bytes", caption, chart, numbers if rows else "", len(rows), MOST_BARS, timed=False
    )


def _peak(values: list[int | None]) -> int:
    return max((each for each in values if each is not None), default=0)


def _span(figures: Figures) -> str:
    if figures.begin is None or figures.end is None:
        return "no commits"
    return f"{moment(figures.begin)} to {moment(figures.end)}"
