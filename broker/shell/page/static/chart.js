// Charts over time with axes, units and one cursor for all of a view, drawn by uPlot, which is loaded with the first.

import { el, onLeave } from "./frame.js";

const COLOURS = ["#0b8a7a", "#b3541e", "#5b6cc9", "#a03a7a", "#7a8a1e", "#3a86b3", "#8a6d3b", "#777777"];
const HEIGHT = 170;
let library = null;

function load() {
  library ??= import("/ui/uplot.js").then((found) => found.default);
  if (!document.querySelector("link[href='/ui/uplot.css']")) document.head.append(el("link", { rel: "stylesheet", href: "/ui/uplot.css" }));
  return library;
}

const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400]; // between two marks of the time

const shown = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: 1 }));
const clock = (at) => new Date(at * 1000).toISOString().slice(11, 19);

// `names`: the lines. Returns a function that draws: seconds, the values of each line, and marks [{at, colour}].
export async function chart(place, { title, unit, names, choose }) {
  const UPlot = await load(), style = getComputedStyle(document.documentElement), ink = style.getPropertyValue("--soft"), line = style.getPropertyValue("--line");
  let marks = [];
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line } };
  const drawn = new UPlot({
    width: Math.max(200, place.clientWidth), height: HEIGHT, tzDate: (at) => UPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    cursor: { sync: { key: "momus" } }, legend: { live: true, markers: { width: 0, fill: (_, n) => COLOURS[(n - 1) % COLOURS.length] } }, scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.05)] } },
    axes: [{ ...axis, incrs: STEPS_S, space: 80, values: (_, at) => at.map(clock) }, { ...axis, label: unit, labelSize: 18, size: 60 }],
    series: [{ label: "Time (UTC)", value: (_, at) => (at === null || at === undefined ? "–" : clock(at)) }, ...names.map((label, n) => ({ label, value: (_, each) => shown(each), stroke: COLOURS[n % COLOURS.length], width: 1.5, points: { show: false } }))],
    hooks: { draw: [(each) => {
      for (const { at, colour } of marks) {
        const x = each.valToPos(at, "x", true);
        if (x < each.bbox.left || x > each.bbox.left + each.bbox.width) continue;
        each.ctx.fillStyle = colour;
        each.ctx.fillRect(x, each.bbox.top, 2, each.bbox.height);
      }
    }] },
  }, [[], ...names.map(() => [])], place);
  if (choose) drawn.over.addEventListener("click", () => { if (drawn.cursor.idx !== null) choose(drawn.data[0][drawn.cursor.idx]); });
  const sized = new ResizeObserver(() => drawn.setSize({ width: Math.max(200, place.clientWidth), height: HEIGHT }));
  sized.observe(place);
  onLeave(() => { sized.disconnect(); drawn.destroy(); });
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", title);
  return (seconds, values, events = []) => { marks = events; drawn.setData([seconds, ...values]); };
}
