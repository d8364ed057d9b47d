"""The page's script: one cursor over all charts that have a time axis, and the values there.

The page is whole without it. The pointer sets the time, or the arrow keys on a chart; Escape takes the cursor away. The
figures in the page, a megabyte where there are a thousand groups, are parsed when the cursor comes for the first time.
"""

from __future__ import annotations

from typing import Final

from pipeline.report.charts import COLUMNS

SCRIPT: Final = (
    """\
(() => {
"use strict";
const charts = [...document.querySelectorAll("svg[data-plot]")];
if (!charts.length) return;
const plots = new Map(charts.map(svg => [svg, svg.dataset.plot.split(" ").map(Number)]));
const [, , begin, end] = plots.get(charts[0]);
let parsed, at = null;
// Sweden's form of a time is that of the page: 2026-01-31 12:00:00.
const zone = {timeZone: document.documentElement.dataset.zone, dateStyle: "short", timeStyle: "medium"};
const clock = new Intl.DateTimeFormat("sv-SE", zone);
const figures = () => parsed ??= JSON.parse(document.getElementById("figures").textContent);
const digits = value => value.toLocaleString("en-US", Number.isInteger(value) ? {} : {maximumSignificantDigits: 3});
const slots = time => (time - figures().begin) / (figures().step_s * 1000);
const inSeries = ([first, values] = [0, []], slot) => values[slot - first];
const newest = (group, time) => figures().rebalances.findLast(each => each[1] === group && each[0] <= time)?.[2];
const ended = (how, time) => {
  const width = (end - begin) / COLUMNS, column = each => Math.floor((each - begin) / width);
  return figures().outcomes_over_time.filter(each => each[1] === how && column(each[0]) === column(time))
    .reduce((sum, each) => sum + each[2], 0);
};
const valueOf = {
  lag: (group, time) => inSeries(figures().lag[group], Math.floor(slots(time) + 1e-6)),
  commits: (group, time) => (inSeries(figures().commits[group], Math.ceil(slots(time) - 1e-6)) ?? 0) / figures().step_s,
  groups: newest,
  outcomes: ended,
};
function show(time) {
  at = time === null ? null : Math.min(end, Math.max(begin, time));
  for (const svg of charts) {
    const line = svg.querySelector(".cursor"), [left, right] = plots.get(svg);
    const x = at === null ? 0 : left + (right - left) * (at - begin) / (end - begin);
    line.setAttribute("x1", x); line.setAttribute("x2", x);
    line.classList.toggle("on", at !== null);
  }
  for (const out of document.querySelectorAll("output[data-for]"))
    out.replaceChildren(...(at === null ? [] : said(out)));
}
function said(out) {
  const made = [clock.format(at)];
  for (const name of out.closest("figure").querySelectorAll("th.dot[style]")) {
    const value = valueOf[out.dataset.for](name.textContent, at), each = document.createElement("span");
    each.className = "dot";
    each.setAttribute("style", name.getAttribute("style"));
    each.textContent = `${name.textContent} ${value === undefined || value === null ? "–" : digits(value)}`;
    made.push(" ", each);
  }
  return made;
}
for (const svg of charts) {
  const [left, right] = plots.get(svg), move = event => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    show(begin + (end - begin) * (x - left) / (right - left));
  };
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerdown", move);
  svg.addEventListener("pointerleave", () => show(null));
}
for (const drawing of document.querySelectorAll(".drawing[tabindex]")) drawing.addEventListener("keydown", event => {
  const step = {ArrowLeft: -1, ArrowRight: 1}[event.key] ?? 0;
  if (event.key === "Escape") show(null);
  if (!step) return;
  show(at === null ? (step > 0 ? begin : end) : at + step * (end - begin) / 200);
  event.preventDefault();
});
})();
"""
).replace("COLUMNS", str(COLUMNS))
