"""The page's CSS: layout, and the light and dark colours that charts refer to as variables."""

from __future__ import annotations

from typing import Final

STYLE: Final = """\
:root {
  color-scheme: light dark;
  --paper: #f6f7f8; --card: #ffffff; --ink: #1d2329; --faint: #68727d; --grid: #e1e5e9;
  --good: #2f8f6b; --bad: #c4473d; --waiting: #d99a2b;
  --s1: #3b6fb6; --s2: #d07a3b; --s3: #4a9c82; --s4: #9a5fa8; --s5: #b3902f; --s6: #6b7f94;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --card: #1c2024; --ink: #e3e7ea; --faint: #939da7; --grid: #2f353b;
    --good: #56b891; --bad: #e5766b; --waiting: #e0b052;
    --s1: #74a3e0; --s2: #e39b64; --s3: #6dc0a5; --s4: #bd8bca; --s5: #d2b45a; --s6: #95a7ba;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2.5rem 1.25rem 3rem; max-width: 72rem;
  background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
header p, footer, section > p { color: var(--faint); }
header p { margin: .25rem 0 0; overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 1.75rem; font-weight: 600; letter-spacing: -.015em; }
h2 { margin: 0; font-size: 1.125rem; font-weight: 600; }
section { margin-top: 1.25rem; padding: 1.25rem 1.5rem 1.5rem; background: var(--card); border-radius: .75rem; }
section > p { margin: .125rem 0 0; font-size: .9375rem; }
p.verdict { display: flex; align-items: baseline; gap: .625rem; margin: .75rem 0 1.25rem;
  color: var(--ink); font-size: 1.375rem; line-height: 1.3; }
.verdict::before { content: ""; flex: none; width: .75rem; height: .75rem; border-radius: 50%;
  background: var(--waiting); }
.verdict.good::before { background: var(--good); }
.verdict.bad::before { background: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 1rem; margin: 0 0 .5rem;
  }
dt { color: var(--faint); font-size: .875rem; }
dd { margin: 0; font-size: 1.375rem; font-variant-numeric: tabular-nums; }
figure { display: grid; grid-template-columns: minmax(0, 1fr) 21rem; gap: 1.75rem; margin: 1rem 0 0; }
#groups figure { grid-template-columns: minmax(0, 1fr); gap: 1rem; }
figure > div { min-width: 0; }
.cursor { visibility: hidden; stroke: var(--ink); stroke-width: 1; }
.cursor.on { visibility: visible; }
svg[data-plot] { cursor: crosshair; touch-action: pan-y; }
output { display: flex; flex-wrap: wrap; gap: 0 1rem; min-height: 1.5em; color: var(--faint); font-size: .8125rem;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.judged { display: grid; grid-template-columns: minmax(0, 1fr) 24rem; gap: 1.75rem; }
.asked { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1.75rem; margin-top: .75rem; }
.asked p.verdict { margin: .25rem 0 .5rem; font-size: 1.125rem; }
.asked ul { margin: 0; padding-left: 1.1rem; font-size: .875rem; overflow-wrap: anywhere; }
aside { margin: .75rem 0 .5rem; padding-left: 1.25rem; border-left: 1px solid var(--grid); font-size: .875rem; }
aside ul { margin: .375rem 0 0; padding-left: 1.1rem; }
aside li + li { margin-top: .375rem; }
aside p { margin: .375rem 0 0; }
h3 { margin: 0; font-size: .9375rem; font-weight: 600; overflow-wrap: anywhere; }
.record { display: none; margin-top: 1rem; padding: 1rem 1.25rem; border: 1px solid var(--grid); border-radius: .5rem;
  scroll-margin-top: 1rem; }
.record:target { display: block; }
.record dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .25rem 1rem; margin: .625rem 0 0; }
.record dd { font: .875rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; }
a { color: var(--s1); }
.chart { display: block; width: 100%; height: auto; font-family: inherit; }
.chart.phone { display: none; }
.table { max-height: 20rem; overflow: auto; font-size: .875rem; }
section > .table, details .table { margin-top: .75rem; }
figure td { white-space: nowrap; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .3125rem .75rem .3125rem 0; border-bottom: 1px solid var(--grid); text-align: left;
  vertical-align: top; font-weight: 400; }
td:last-child, th.dot { overflow-wrap: anywhere; }
thead th { position: sticky; top: 0; background: var(--card); color: var(--faint); white-space: nowrap;
  overflow-wrap: normal; }
th:last-child, td:last-child { padding-right: 0; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.dot::before { content: ""; display: inline-block; width: .5rem; height: .5rem; margin-right: .5rem;
  border-radius: 50%; background: var(--dot, transparent); }
details { margin-top: 1rem; }
summary { cursor: pointer; color: var(--faint); }
:focus-visible { outline: 2px solid var(--s1); outline-offset: 2px; border-radius: .25rem; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .9em; }
footer { margin-top: 1.5rem; font-size: .875rem; }
@media (max-width: 56rem) { figure, .judged, .asked { grid-template-columns: minmax(0, 1fr); gap: 1rem; } }
@media (max-width: 36rem) {
  body { padding: 1.5rem .75rem 2rem; }
  section { padding: 1rem 1rem 1.25rem; }
  .chart.wide { display: none; }
  .chart.phone { display: block; }
}
@media print { body { padding: 0; } section { break-inside: avoid; } .table { max-height: none; } }
"""
