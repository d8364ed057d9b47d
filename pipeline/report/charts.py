"""The report's charts: from figures to static SVG, drawn by Matplotlib.

The report is one file that opens anywhere and offline. Alternatives: plotly puts 4.7 MB of script into every report,
Bokeh and Vega about 1 MB, and each draws nothing where scripts are blocked, as in the artifact viewers of CI systems
and in mail. These charts need none: a page of them has 100 to 300 kB, prints, and switches between light and dark by
CSS alone: the placeholder colours used here become CSS variables. Where scripts run, the few lines of cursor.py show
the values at a time in all charts. They cannot zoom; a table beside each chart has its figures.

Each chart is drawn twice, for a wide screen and for a phone, so that its text keeps its size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from io import StringIO
from typing import Any, Final, NamedTuple

from matplotlib import dates, rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pipeline.report.digits import size, tick, zone
from pipeline.report.figures import Point

Span = tuple[int, int]  # of a time axis, in Unix milliseconds: the same for all charts of a page
Axes = Any  # Matplotlib's types allow neither datetimes as coordinates nor its functions for time axes
mdates: Any = dates

WIDE: Final = (720, 250)  # px
PHONE: Final = (340, 230)
MOST_SERIES: Final = 6
COLUMNS: Final = 48
PIXELS: Final = 600  # of a time axis
MARGIN: Final = 0.01  # of a time axis, at each end

# placeholder -> CSS variable; no chart uses these colours for anything else
INK, FAINT, GRID, PAPER = "#010101", "#010102", "#010103", "#010104"
SERIES: Final = tuple(f"#0102{n:02x}" for n in range(1, MOST_SERIES + 1))
GOOD, BAD, WAITING = "#010301", "#010302", "#010303"
VARIABLES: Final = {
    INK: "--ink", FAINT: "--faint", GRID: "--grid", PAPER: "--card", GOOD: "--good", BAD: "--bad", WAITING: "--waiting",
    **{colour: f"--s{n}" for n, colour in enumerate(SERIES, 1)},
}  # fmt: skip  # several to a line
OUTCOME_COLOURS: Final = {"committed": GOOD, "aborted": WAITING, "open": BAD}

_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, copied and read aloud
    "font.size": 12,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": FAINT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 1,
    "xtick.color": GRID,
    "ytick.color": "none",
    "xtick.labelcolor": FAINT,
    "ytick.labelcolor": FAINT,
    "lines.linewidth": 1.75,
    "lines.solid_joinstyle": "round",
}


def lines(
    name: str, data: Mapping[str, Sequence[Point]], colours: Mapping[str, str], span: Span, *, whole: bool
) -> str:
    """A line chart: one line a group that has a colour. whole: its values are counts."""

    def draw(axes: Axes, phone: bool) -> None:
        for group, colour in colours.items():
            points = data.get(group, ())
            if points:
                times, values = [_time(at) for at, _ in points], [value for _, value in points]
                axes.plot(times, values, color=colour, drawstyle="steps-post", solid_capstyle="round")
        axes.set_ylim(bottom=0)
        _time_axis(axes, phone, span)
        _count_axis(axes, whole=whole)

    return _both(name, draw, span=span)


def timeline(name: str, changes: Sequence[tuple[int, str, int]], groups: Sequence[str], span: Span) -> str:
    """A timeline: one row a group, with a tick at each new generation or epoch."""

    def draw(axes: Axes, phone: bool) -> None:
        for row, group in enumerate(groups):
            pixel = (span[1] - span[0]) / PIXELS  # ticks that would hide each other are drawn once
            found = {round((at - span[0]) / pixel): _time(at) for at, who, _ in changes if who == group}
            times = sorted(found.values())
            axes.hlines(row, times[0], times[-1], color=GRID, linewidth=1)
            ends = (row - 0.27, row + 0.27, math.nan)  # of a tick, and the gap after it: all ticks are one path
            at_ticks = [time for time in times for _ in ends]
            axes.plot(at_ticks, [*ends] * len(times), color=SERIES[row % len(SERIES)], solid_capstyle="butt")
        axes.set_yticks(range(len(groups)), [_short(group, 12 if phone else 22) for group in groups])
        axes.set_ylim(len(groups) - 0.4, -0.6)
        axes.grid(visible=False)
        _time_axis(axes, phone, span)

    return _both(name, draw, rows=len(groups), span=span)


def columns(name: str, ended: Sequence[tuple[int, str, int]], span: Span, slots: int = COLUMNS) -> str:
    """A column chart: so many transactions by the time of their end, stacked by outcome."""

    def draw(axes: Axes, phone: bool) -> None:
        count = slots // 2 if phone else slots
        times = [mdates.date2num(_time(at)) for at, *_ in ended]
        begin, end = (mdates.date2num(_time(at)) for at in span)
        width = (end - begin) / count
        bottoms = [0] * (count + 1)
        for how, colour in OUTCOME_COLOURS.items():
            heights = [0] * (count + 1)
            for at, (_, each, transactions) in zip(times, ended, strict=True):
                heights[int((at - begin) / width)] += transactions if each == how else 0
            lefts = [begin + n * width for n in range(count + 1)]
            axes.bar(lefts, heights, width * 0.8, bottoms, align="edge", color=colour, linewidth=0)
            bottoms = [below + height for below, height in zip(bottoms, heights, strict=True)]
        axes.xaxis_date(zone())
        _time_axis(axes, phone, span)
        _count_axis(axes, whole=True)

    return _both(name, draw, span=span)


def bars(name: str, rows: Sequence[tuple[str, int, int]]) -> str:
    """A bar chart: one bar a log, its live bytes and then its dead bytes."""

    def draw(axes: Axes, phone: bool) -> None:
        places = range(len(rows))
        axes.barh(places, [live for _, live, _ in rows], 0.62, color=SERIES[0], linewidth=0)
        lefts = [live for _, live, _ in rows]
        axes.barh(places, [dead for *_, dead in rows], 0.62, lefts, color=GRID, linewidth=0)
        axes.set_yticks(places, [_short(log, 14 if phone else 26) for log, *_ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(visible=True, axis="x")
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(3 if phone else 5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))

    return _both(name, draw, rows=len(rows))


def _both(name: str, draw: Any, rows: int = 0, span: Span | None = None) -> str:
    """Both SVG elements of a chart: for a wide screen and for a phone. span: of its time axis, if it has one."""
    made = []
    for kind, (width, height) in (("wide", WIDE), ("phone", PHONE)):
        tall = max(90, 46 + 26 * rows) if rows else height
        with rc_context({**_STYLE, "svg.hashsalt": f"{name}-{kind}"}):
            figure = Figure(figsize=(width / 72, tall / 72), layout="constrained")
            figure.patch.set_alpha(0)
            axes: Axes = figure.add_subplot()
            draw(axes, kind == "phone")
            out = StringIO()
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
            plot = None if span is None else _Plot.of(axes, width, tall, span)
        made.append(_as_part(out.getvalue(), f"chart {kind}", plot))
    return "".join(made)


class _Plot(NamedTuple):
    """Where a time axis is in a drawn chart, which cursor.py needs: px, and the times of `span` there."""

    left: float
    right: float
    top: float
    bottom: float
    span: Span

    @classmethod
    def of(cls, axes: Axes, width: int, height: int, span: Span) -> _Plot:
        box = axes.get_position()
        inside = box.width * width / (1 + 2 * MARGIN)  # without the margins of the axis
        left = box.x0 * width + inside * MARGIN
        return cls(left, left + inside, (1 - box.y1) * height, (1 - box.y0) * height, span)

    @property
    def attribute(self) -> str:
        left, right, _, _, (begin, end) = self
        return f' data-plot="{left:.1f} {right:.1f} {begin} {end}"'

    @property
    def cursor(self) -> str:
        return f'<line class="cursor" x1="0" x2="0" y1="{self.top:.1f}" y2="{self.bottom:.1f}"/>'


def _as_part(text: str, css: str, plot: _Plot | None) -> str:
    """An SVG document as an element of the page, with the page's colours and font."""
    text = text[text.index("<svg ") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    head, body = text.split(">", 1)
    box = re.search(r'viewBox="([^"]+)"', head)
    assert box is not None
    for colour, variable in VARIABLES.items():
        body = body.replace(colour, f"var({variable})")
    body = re.sub(r" font-family: [^;\"]+;", "", body)
    body = re.sub(r'<g id="[^"]+"', "<g", body)  # the same ids in every chart, and nothing refers to them
    body = re.sub(r"(\d+\.\d)\d+(?![^<>]*</text>)", r"\1", body)  # coordinates, not labels
    body = re.sub(r"\s*\n\s*", " ", body)
    places, cursor = ("", "") if plot is None else (plot.attribute, plot.cursor)
    body = body.replace("</svg>", f"{cursor}</svg>")
    return f'<svg class="{css}"{places} viewBox="{box[1]}" aria-hidden="true" focusable="false">{body}'


def time_locator(phone: bool) -> mdates.AutoDateLocator:
    """Where a time axis has its ticks: two to eight, on a phone to five. With four there is no fit for 91 to 120 s."""
    return mdates.AutoDateLocator(zone(), minticks=2, maxticks=5 if phone else 8)


def _time_axis(axes: Axes, phone: bool, span: Span) -> None:
    locator = time_locator(phone)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator, zone(), show_offset=False))
    begin, end = span
    margin = (end - begin) * MARGIN
    axes.set_xlim(_time(begin - margin), _time(end + margin))


def _count_axis(axes: Axes, *, whole: bool) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], integer=whole, min_n_ticks=1))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))


def _time(millis: float) -> datetime:
    return datetime.fromtimestamp(millis / 1000, zone())


def _short(text: str, most: int) -> str:
    """A text without its middle if it is long: names differ at their ends."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"
