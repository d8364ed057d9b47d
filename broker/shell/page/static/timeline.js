// The last minutes as one timeline, with what stands out; a click leads to the entry of the journal.

import { act, base, count, el, faultLink, fill, here, link, name, parts, quoted, rowOf, scroll, table, watch, when } from "./frame.js";
import { chart } from "./chart.js";

const KINDS = { refused: "bad", fault: "warn", rebalance: "", transaction: "good", clock: "warn", restart: "warn" };
const COLOURS = { refused: "#d0334c", fault: "#c98a00", rebalance: "#5b6cc9", transaction: "#2c9c6e", clock: "#a03ab0", restart: "#7a5230" };
const KEPT_S = 900, KEPT_EVENTS = 1000, LINES = 6;

const toEntry = (row) => (row.number < 0 ? link("cluster", [], "the cluster") : el("a", { href: `#/${quoted(here.cluster)}/journal?number=${row.number}` }, "the request"));
const COLUMNS = [
  { title: "Time (UTC)", show: (row) => when(row.at_ms) },
  { title: "What", show: (row) => el("span", { class: `tag ${KINDS[row.kind]}` }, row.kind) },
  { title: "Client", show: (row) => name(row.client) },
  { title: "In words", sentence: true, show: (row) => [name(row.text), row.fault ? [" (", faultLink(row.fault), ")"] : null].flat() },
  { title: "Entry", show: toEntry },
];

export function show(place) {
  const seconds = new Map(), kept = [];
  const said = el("p", { class: "soft", role: "status" }), rates = el("div"), outcomes = el("div"), latencies = el("div");
  const kinds = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, el("input", { type: "checkbox", checked: true, onchange: list })]));
  const made = table(COLUMNS, [], { "data-of": "events" }), body = made.tBodies[0], box = scroll("What stands out", made);
  let charts = null, shownNames = "", drawing = false;
  place.append(el("h1", {}, "The last minutes"), said, parts(el("h2", {}, "Requests a second, by API"), rates, el("h2", {}, "Commits and errors"), outcomes,
    el("h2", {}, "The slowest answer of each second"), latencies, el("h2", {}, "What stands out"),
    el("div", { class: "bar" }, Object.entries(kinds).map(([kind, tick]) => el("label", { class: "tick" }, tick, kind))), box));

  watch(`${base()}/timeline?minutes=10`, (answer) => {
    if (!answer.bytes) {
      fill(said, "No journal is kept, so what happened is not known. ", el("button", { class: "plain", onclick: () => act("POST", `${base()}/journal`, { bytes: 16 << 20 }, "broker.journal.keep(16)") }, "Keep the last 16 MB"));
    } else said.textContent = `${count([...seconds.values()].reduce((sum, each) => sum + total(each), 0))} requests; a click on a chart leads to what stood out then, an entry to its request.`;
    if (answer.begins) forget(Math.min(...[...answer.seconds, ...answer.events].map((each) => each.at_ms)));
    for (const each of answer.seconds) add(each);
    kept.push(...answer.events);
    kept.splice(0, Math.max(0, kept.length - KEPT_EVENTS));
    const newest = Math.max(...seconds.keys());
    for (const at of seconds.keys()) if (at < newest - KEPT_S * 1000) seconds.delete(at);
    if (answer.events.length) list();
    draw();
  });
  const total = (each) => Object.values(each.apis).reduce((sum, one) => sum + one, 0);

  // The answer begins again, after the stream or the broker had ended: what it tells once more is left out here.
  function forget(from) {
    for (const at of seconds.keys()) if (at >= Math.floor(from / 1000) * 1000) seconds.delete(at);
    kept.splice(0, kept.length, ...kept.filter((each) => each.at_ms < from));
    list();
  }
  // A second that is there already gets what came of it since.
  function add(each) {
    const known = seconds.get(each.at_ms);
    if (!known) { seconds.set(each.at_ms, each); return; }
    for (const [api, found] of Object.entries(each.apis)) known.apis[api] = (known.apis[api] ?? 0) + found;
    for (const key of ["errors", "commits", "refused"]) known[key] += each[key];
    known.worst_ms = Math.max(known.worst_ms, each.worst_ms);
  }
  function list() {
    if (box.matches(":hover") && body.rows.length) return; // no row moves while it is aimed at
    body.replaceChildren(...kept.filter((each) => kinds[each.kind].checked).sort((a, b) => b.at_ms - a.at_ms || b.number - a.number).map((each) => rowOf(COLUMNS, { ...each, class: each.kind === "refused" || each.kind === "fault" ? "refused" : null })));
  }
  box.addEventListener("pointerleave", list);

  async function draw() {
    if (drawing || !seconds.size) return;
    drawing = true;
    const sums = {};
    for (const each of seconds.values()) for (const [api, found] of Object.entries(each.apis)) sums[api] = (sums[api] ?? 0) + found;
    const names = Object.keys(sums).sort((a, b) => sums[b] - sums[a]).slice(0, LINES).sort();
    if (String(names) !== shownNames) {
      shownNames = String(names);
      for (const each of [rates, outcomes, latencies]) each.replaceChildren();
      charts = await Promise.all([chart(rates, { title: "Requests a second, by API", unit: "requests/s", names, choose }),
        chart(outcomes, { title: "Commits and errors a second", unit: "a second", names: ["commits", "commits refused", "requests refused"], choose }),
        chart(latencies, { title: "The slowest answer of each second", unit: "ms", names: ["slowest"], choose })]);
    }
    const from = Math.min(...seconds.keys()) / 1000, to = Math.max(...seconds.keys()) / 1000;
    const at = [], none = { apis: {}, errors: 0, commits: 0, refused: 0, worst_ms: null };
    for (let each = Math.max(from, to - KEPT_S); each <= to; each += 1) at.push(each);
    const found = at.map((each) => seconds.get(each * 1000) ?? none);
    const marks = kept.filter((each) => kinds[each.kind].checked).map((each) => ({ at: each.at_ms / 1000, colour: COLOURS[each.kind] }));
    charts[0](at, names.map((api) => found.map((each) => each.apis[api] ?? 0)), marks);
    charts[1](at, [found.map((each) => each.commits), found.map((each) => each.refused), found.map((each) => each.errors)]);
    charts[2](at, [found.map((each) => each.worst_ms)]);
    drawing = false;
  }
  // The event that is nearest to a second that was clicked.
  function choose(second) {
    const rows = kept.filter((each) => kinds[each.kind].checked).sort((a, b) => b.at_ms - a.at_ms || b.number - a.number);
    const nearest = rows.reduce((best, each, n) => (Math.abs(each.at_ms / 1000 - second) < Math.abs(rows[best].at_ms / 1000 - second) ? n : best), 0);
    body.rows[nearest]?.querySelector("a")?.focus();
  }
}
