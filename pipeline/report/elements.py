"""The page's elements: sections, drawings, tables, links to records, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

from pipeline.report.charts import MOST_SERIES, VARIABLES
from pipeline.report.digits import number

NUMBER: Final = "n"  # the class of a cell that holds a number


class Link(NamedTuple):
    """A cell that leads to an element of the page."""

    text: str
    to: str  # its id


Cell = str | int | float | Link | None


def section(name: str, title: str, caption: str, content: str) -> str:
    """A part of the page with a heading."""
    caption = f"<p>{caption}</p>" if caption else ""
    return f'<section id="{name}"><h2>{title}</h2>{caption}{content}</section>\n'


def drawn(
    name: str,
    title: str,
    caption: str,
    chart: str,
    table: str,
    shown: int,
    most: int = MOST_SERIES,
    *,
    timed: bool = True,
    more: str = "",
) -> str:
    """A section with a chart, the table beside it and more below; timed: the cursor of time goes over it."""
    if not chart:
        return section(name, title, "", table or '<p class="none">The logs have none.</p>')
    if shown > most:
        caption += f" The chart shows the top {most} of {shown:,}."
    keys = ' tabindex="0"' if timed else ""
    out = f'<output data-for="{name}"></output>' if timed else ""
    drawing = f'<div class="drawing" role="img" aria-label="{escape(caption)}"{keys}>{chart}</div>'
    return section(name, title, caption, f"<figure><div>{drawing}{out}</div>{table}</figure>{more}")


def table(
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
            text = _html(cell)
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


def folded(title: str, content: str) -> str:
    """What opens on a click."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def record(name: str, title: str, fields: Mapping[str, object]) -> str:
    """A record by its fields, hidden until something leads to it (style.py: :target)."""
    rows = "".join(f"<dt>{escape(key)}</dt><dd>{escape(str(value))}</dd>" for key, value in fields.items())
    return f'<article class="record" id="{name}" tabindex="-1"><h3>{escape(title)}</h3><dl>{rows}</dl></article>'


def _is_number(cell: Cell) -> bool:
    return cell[:1].isdigit() or cell[:1] in "<>–" if isinstance(cell, str) else not isinstance(cell, Link)


def _css(numeric: bool) -> str:
    return f' class="{NUMBER}"' if numeric else ""


def _html(cell: Cell) -> str:
    if isinstance(cell, Link):
        return f'<a href="#{cell.to}">{escape(cell.text)}</a>'
    if cell is None:
        return "–"
    return escape(cell if isinstance(cell, str) else number(cell))
