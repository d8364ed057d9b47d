"""What was found, as one page for a browser: a table what × where for each test, and what leads to each run again."""

from __future__ import annotations

from collections import Counter
from html import escape

from momus.explore.findings import Explored, Run, line, what, where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border: 1px solid color-mix(in srgb, currentColor 25%, transparent); padding: .25rem .6rem; }
th, td { text-align: left; white-space: nowrap; }
td.passed { background: color-mix(in srgb, seagreen 18%, transparent); }
td.wrong { background: color-mix(in srgb, crimson 25%, transparent); font-weight: 600; }
.scroll { overflow-x: auto; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .6rem; background: color-mix(in srgb, currentColor 8%, transparent); }
summary { cursor: pointer; padding: .2rem 0; }
"""


def as_page(explored: Sequence[Explored]) -> str:
    """The page, which needs no other file."""
    wrong = sum(bool(each.wrong) for each in explored)
    title = f"momus explore: {wrong} of {len(explored)} tests with a finding"
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{STYLE}</style></head><body><main><h1>{title}</h1>",
            *(part for each in explored for part in _test(each)),
            "</main></body></html>",
            "",
        ]
    )


def _test(each: Explored) -> Iterator[str]:
    yield f"<h2>{escape(each.test)}</h2>"
    if each.note:
        yield f"<p>Not explored: {escape(each.note)}</p>"
        return
    yield f"<p>{escape(each.head)}</p>"
    yield from _table([run for run in each.runs if len(run.schedule) == 1])
    for run, count in each.examples:
        yield from _finding(each, run, count)


def _table(runs: Sequence[Run]) -> Iterator[str]:
    """What happened, a row each, at which requests, a column each: how many runs went wrong, of how many."""
    cells: dict[tuple[str, str], Counter[bool]] = {}
    for run in runs:
        cells.setdefault((what(run), where(run)), Counter())[run.is_wrong] += 1
    columns, rows = dict.fromkeys(column for _, column in cells), dict.fromkeys(row for row, _ in cells)
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    yield '<div class="scroll" tabindex="0"><table>'
    yield f'<thead><tr><th scope="col">What happened</th>{heads}</tr></thead><tbody>'
    for row in rows:
        found = "".join(_cell(cells.get((row, column))) for column in columns)
        yield f'<tr><th scope="row">{escape(row)}</th>{found}</tr>'
    yield "</tbody></table></div>"


def _cell(counts: Counter[bool] | None) -> str:
    if counts is None:
        return "<td></td>"
    if counts[True]:
        return f'<td class="wrong">{counts[True]} of {counts.total()} wrong</td>'
    return f'<td class="passed">{counts.total()} passed</td>'


def _finding(each: Explored, run: Run, count: int) -> Iterator[str]:
    alike = f", and {count - 1} more at such requests" if count > 1 else ""
    yield f"<details><summary><b>{run.verdict}</b>: {escape(line(run))}{alike}</summary>"
    yield f"<p>Once more: <code>{escape(each.again_command(run))}</code></p>"
    if run.kept:
        yield f"<p>Its page, at that request: <code>{escape(run.kept)}</code></p>"
    yield f"<pre>{escape(run.why)}</pre></details>"
