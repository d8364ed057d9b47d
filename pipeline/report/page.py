"""The report's page: one HTML file with its style, charts and figures, and no external resources.

From top to bottom: did exactly-once hold, what groups and transactions did, what is on disk. The table beside each
chart is also its legend, and all figures are in the page as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from pipeline.audit.findings import KINDS
from pipeline.audit.verdict import count, verdict
from pipeline.output_guard import made_by
from pipeline.report import charts
from pipeline.report.charts import MOST_SERIES, OUTCOME_COLOURS, SERIES, VARIABLES, size
from pipeline.report.figures import Figures, Point
from pipeline.report.style import STYLE

MOST_ROWS: Final = 12
NUMBER: Final = "n"  # the class of a cell that holds a number

Cell = str | int | float | None


def page(figures: Figures) -> str:
    """The HTML document."""
    data = json.dumps(figures.as_json(), separators=(",", ":")).replace("<", "\\u003c")
    sections = (
        _verdict(figures),
        _lag(figures),
        _commits(figures),
        _rebalances(figures),
        _outcomes(figures),
        _bytes(figures),
    )
    return f"""<!doctype html>
<html lang="en">
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
<p><code>{escape(figures.source)}</code> · {escape(_span(figures))}</p>
</header>
<main>
{"".join(sections)}</main>
<footer>Made by <code>momus pipeline report</code> at {_moment(figures.made)}. Times are UTC.</footer>
<script type="application/json" id="figures">{data}</script>
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
        transactions=transactions,
        logs=figures.logs,
        incomplete=len(figures.incomplete_logs),
    )
    tiles = "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd></div>"
        for name, value in (
            ("logs", f"{figures.logs:,}"),
            ("records", f"{figures.records:,}"),
            ("groups", f"{len({*figures.committed, *(change[1] for change in figures.rebalances)}):,}"),
            ("commits", f"{sum(figures.committed.values()):,}"),
            ("transactions", f"{transactions:,}"),
            ("findings", f"{found:,}"),
        )
    )
    parts = [f'<p class="verdict {css}">{text}</p><dl class="tiles">{tiles}</dl>']
    if found:
        rows: list[tuple[Cell, ...]] = [(kind, count, KINDS[kind]) for kind, count in figures.findings_by_kind.items()]
        parts.append(_table("findings-by-kind", ("kind", "findings", "what it means"), rows))
        proofs = [(row["kind"], f"{row['log']} @ {row['offset']}", row["detail"]) for row in figures.findings]
        shown = "" if len(proofs) == found else f" (the first {len(proofs)})"
        parts.append(
            _folded(f"Each with its log position{shown}", _table("findings", ("kind", "log @ offset", "proof"), proofs))
        )
    if undecided:
        rows = [(row["kind"], row["log"], row["undecided"], row["first_offset"]) for row in figures.undecided]
        table = _table("undecided", ("kind", "log", "cases", "first offset"), rows)
        parts.append(_folded("What could not be decided, because records are missing", table))
    if figures.incomplete_logs:
        rows = [
            (row["log"], row["start_offset"], row["missing_inside"], row["gaps"]) for row in figures.incomplete_logs
        ]
        table = _table("coverage", ("log", "begins at offset", "records missing since", "gaps"), rows)
        parts.append(_folded(f"{count(len(rows), 'log')} of {figures.logs} with missing records", table))
    return _section("audit", "Audit", "", "".join(parts))


def _lag(figures: Figures) -> str:
    peaks = {group: max(value for _, value in points) for group, points in figures.lag.items()}
    order = sorted(peaks, key=lambda group: (-peaks[group], group))
    colours = dict(zip(order, SERIES, strict=False))
    rows = [
        (
            group,
            int(peaks[group]),
            _moment(_when(figures.lag[group], peaks[group]), short=True),
            int(figures.lag[group][-1][1]),
        )
        for group in order
    ]
    table = _table("lag", ("group", "most", "at", "last"), rows, colours)
    chart = charts.lines("lag", figures.lag, colours, figures.span, whole=True) if peaks else ""
    return _drawn("lag", "Lag", "Records behind the log ends, over all topics of a group.", chart, table, len(order))


def _commits(figures: Figures) -> str:
    totals = figures.committed
    order = sorted(totals, key=lambda group: (-totals[group], group))
    colours = dict(zip(order, SERIES, strict=False))
    rows = [
        (group, totals[group], max((value for _, value in figures.commits.get(group, ())), default=0.0))
        for group in order
    ]
    table = _table("commits", ("group", "commits", "most a second"), rows, colours)
    chart = charts.lines("commits", figures.commits, colours, figures.span, whole=False) if rows else ""
    caption = f"Commits a second, counted a partition, every {figures.step_s:g} s."
    return _drawn("commits", "Commits", caption, chart, table, len(order))


def _rebalances(figures: Figures) -> str:
    last: dict[str, tuple[int, str, str, int, int | None]] = {}
    counts: dict[str, int] = {}
    for change in figures.rebalances:
        last[change[1]] = change
        counts[change[1]] = counts.get(change[1], 0) + 1
    order = sorted(counts, key=lambda group: (-counts[group], group))
    shown = order[:MOST_ROWS]
    colours = {group: SERIES[n % MOST_SERIES] for n, group in enumerate(shown)}
    rows = [(group, last[group][2], counts[group], last[group][3]) for group in order]
    table = _table("rebalances", ("group", "protocol", "changes", "last epoch"), rows, colours)
    chart = charts.timeline("rebalances", figures.rebalances, shown, figures.span) if order else ""
    caption = "Each tick is a new generation or epoch of a group."
    return _drawn("rebalances", "Rebalances and epochs", caption, chart, table, len(order), MOST_ROWS)


def _outcomes(figures: Figures) -> str:
    rows = [(how, figures.outcomes[how]) for how in OUTCOME_COLOURS if how in figures.outcomes]
    table = _table("outcomes", ("outcome", "transactions"), rows, OUTCOME_COLOURS)
    ended = figures.outcomes_over_time
    chart = charts.columns("outcomes", ended, figures.span) if ended else ""
    return _drawn("outcomes", "Transactions", "When transactions ended, and how.", chart, table, len(rows))


def _bytes(figures: Figures) -> str:
    rows = [
        (log, size(live), size(dead), f"{100 * dead / max(1, live + dead):.0f} %") for log, live, dead in figures.bytes
    ]
    table = _table("bytes", ("log", "live", "dead", "share"), rows)
    chart = charts.bars("bytes", figures.bytes[:MOST_ROWS]) if rows else ""
    caption = "Live bytes, and in grey the dead bytes that a cleaning may free."
    return _drawn("bytes", "Live and dead bytes", caption, chart, table, len(rows), MOST_ROWS)


# -- elements


def _section(name: str, title: str, caption: str, content: str) -> str:
    caption = f"<p>{caption}</p>" if caption else ""
    return f'<section id="{name}"><h2>{title}</h2>{caption}{content}</section>\n'


def _drawn(name: str, title: str, caption: str, chart: str, table: str, count: int, most: int = MOST_SERIES) -> str:
    if not chart:
        return _section(name, title, "", '<p class="none">The logs have none.</p>')
    if count > most:
        caption += f" The chart shows the top {most} of {count}."
    content = f'<figure><div class="drawing" role="img" aria-label="{escape(caption)}">{chart}</div>{table}</figure>'
    return _section(name, title, caption, content)


def _table(
    name: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]], colours: Mapping[str, str] | None = None
) -> str:
    """A table; colours: of a dot before the first cell, which makes the table the legend of a chart."""
    rows = list(rows)
    numeric = [bool(rows) and all(_is_number(row[n]) for row in rows) for n in range(len(heads))]
    head = "".join(f"<th{_css(numeric[n])}>{escape(text)}</th>" for n, text in enumerate(heads))
    body = []
    for row in rows:
        cells = []
        for n, cell in enumerate(row):
            text = escape(_text(cell))
            if n == 0 and colours is not None:
                colour = colours.get(str(cell))
                dot = f' style="--dot:var({VARIABLES[colour]})"' if colour else ""
                cells.append(f'<th scope="row" class="dot"{dot}>{text}</th>')
            else:
                cells.append(f"<td{_css(numeric[n])}>{text}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="table" tabindex="0"><table data-of="{name}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _is_number(cell: Cell) -> bool:
    return cell[:1].isdigit() if isinstance(cell, str) else True


def _css(numeric: bool) -> str:
    return f' class="{NUMBER}"' if numeric else ""


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def _text(cell: Any) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:,.1f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _when(points: Sequence[Point], value: float) -> int:
    return next(at for at, found in points if found == value)


def _moment(millis: int, *, short: bool = False) -> str:
    time = datetime.fromtimestamp(millis / 1000, UTC)
    return f"{time:%H:%M:%S}" if short else f"{time:%Y-%m-%d %H:%M:%S}"


def _span(figures: Figures) -> str:
    if figures.begin is None or figures.end is None:
        return "no commits"
    return f"{_moment(figures.begin)} to {_moment(figures.end)}"
