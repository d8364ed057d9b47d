// The first view: is the cluster up, what is refused, who lags. Each line leads to where there is more of it.

import { act, ask, base, count, el, faultLink, fill, here, link, name, onLeave, quoted, rowOf, scroll, table, time, watch, when } from "./frame.js";

const LOOK_MS = 2000, MINUTES = 10, KEPT = 1000;

const REFUSED = [
  { title: "Last (UTC)", show: (row) => when(row.at_ms) },
  { title: "Client", show: (row) => name(row.client) },
  { title: "What and why", sentence: true, show: (row) => [name(row.text), row.fault ? [" (", faultLink(row.fault), ")"] : null].flat() },
  { title: "Times", number: true, show: (row) => count(row.times) },
  { title: "Entry", show: (row) => el("a", { href: `#/${quoted(here.cluster)}/journal?number=${row.number}` }, "the request") },
];
const LAGGING = [
  { title: "Group", show: (row) => link("groups", [row.group]) },
  { title: "State", show: (row) => el("span", { class: row.state === "Stable" ? "good" : row.state === "Dead" ? "bad" : "warn" }, row.state) },
  { title: "Lag", number: true, show: (row) => count(row.lag) },
];

export function show(place) {
  const up = el("div"), refused = el("div"), lags = el("div");
  place.append(el("h1", {}, "Overview"), el("div", { class: "cards" },
    card("Is it up?", up), card("Who lags?", lags), card("What was refused?", refused, "across")));
  watch(`${base()}/timeline?minutes=${MINUTES}`, showRefused(refused), (error) => fill(refused, el("p", { class: "bad" }, error)));
  repeat(() => ask("GET", `${base()}/overview`).then(showUp(up)), up);
  repeat(() => ask("GET", `${base()}/lagging`).then((answer) => showLagging(lags, answer)), lags);
}

const card = (title, content, kind = "") => el("section", { class: `card ${kind}` }, el("h2", {}, title), content);

// Again and again while the view is open, one look after the other.
function repeat(look, place) {
  let timer = 0, isOver = false;
  const again = async () => {
    await look().catch((error) => fill(place, el("p", { class: "bad" }, error.message)));
    if (!isOver) timer = setTimeout(again, LOOK_MS);
  };
  onLeave(() => { isOver = true; clearTimeout(timer); });
  again();
}

const told = (kind, text) => el("p", { class: `told ${kind}`, "data-is": "told" }, text);

function showUp(place) {
  let last = null, before = "";
  return (answer) => {
    const now = performance.now();
    const rate = last && answer.requests >= last.requests ? Math.round((answer.requests - last.requests) / ((now - last.now) / 1000)) : 0;
    last = { requests: answer.requests, now };
    const off = answer.nodes.filter((each) => !each.up || each.paused || each.lags);
    const stateOf = (each) => (each.paused ? "is paused" : each.up ? "lags" : "is stopped");
    const isWell = !off.length && !answer.under_replicated;
    const facts = [["Bootstrap servers", answer.bootstrap_servers], ["Requests a second", count(rate)], ["Connections", count(answer.connections)],
      ["Topics", link("topics", [], count(answer.topics))], ["Partitions", count(answer.partitions)], ["Not in sync", count(answer.under_replicated)],
      ["Clock", answer.clock.stands ? "stands" : "runs"]];
    const text = JSON.stringify([facts.map(([, value]) => value.textContent ?? value), off]);
    if (text === before) return; // nothing is made again that a person may be about to click
    before = text;
    fill(place, told(isWell ? "good" : off.length ? "bad" : "warn", `${answer.nodes.length - off.length} of ${answer.nodes.length} broker${answer.nodes.length > 1 ? "s" : ""} up`),
      off.length ? el("p", { class: "bad" }, off.map((each) => `Broker ${each.id} ${stateOf(each)}`).join(". "), ". ", link("cluster", [], "Brokers")) : null,
      el("dl", {}, facts.flatMap(([key, value]) => [el("dt", {}, key), el("dd", { "data-is": key }, value)])));
  };
}

function showLagging(place, { groups, looked_at: lookedAt, total }) {
  const text = JSON.stringify([groups, lookedAt, total]);
  if (place.dataset.shown === text) return;
  place.dataset.shown = text;
  const said = `${count(groups.length)} of ${count(total)} group${total === 1 ? "" : "s"} lag${groups.length === 1 ? "s" : ""}`;
  fill(place, total ? told(groups.length ? "warn" : "good", groups.length ? said : `No lag in ${count(total)} group${total === 1 ? "" : "s"}`)
    : el("p", { class: "soft" }, "No groups yet. One is here once a consumer has joined it, or has committed an offset."),
  lookedAt < total ? el("p", { class: "soft" }, `The first ${count(lookedAt)} groups were looked at.`) : null,
  groups.length ? scroll("Groups that lag", table(LAGGING, groups, { "data-of": "lagging" }), "short") : null);
}

// Refusals of the same client with the same words are one line.
function showRefused(place) {
  const said = el("div"), made = table(REFUSED, [], { "data-of": "refused" }), box = scroll("What was refused", made, "short"), body = made.tBodies[0];
  let events = [], from = Infinity;
  return (answer) => {
    if (!answer.bytes) {
      return fill(place, el("p", { class: "soft" }, "No journal is kept, so what was refused is not known."),
        el("button", { class: "plain", onclick: () => act("POST", `${base()}/journal`, { bytes: 16 << 20 }, "broker.journal.keep(16)") }, "Keep the last 16 MB"));
    }
    if (answer.begins) { events = []; from = Infinity; }
    for (const each of answer.seconds) from = Math.min(from, each.at_ms);
    const since = from < Infinity ? ` since ${time(from).slice(11, 19)}` : "";
    events.push(...answer.events.filter((each) => each.refused));
    events = events.slice(-KEPT);
    const lines = new Map();
    for (const each of events) {
      const key = JSON.stringify([each.client, each.text]), known = lines.get(key);
      lines.set(key, { ...each, times: (known?.times ?? 0) + 1 });
    }
    if (!box.isConnected) fill(place, said, box);
    const rows = [...lines.values()].sort((a, b) => b.at_ms - a.at_ms);
    fill(said, told(rows.length ? "bad" : "good", rows.length ? `${count(events.length)} request${events.length > 1 ? "s" : ""} refused${since}` : `Nothing was refused${since}`),
      el("p", { class: "soft" }, "UTC; the journal has no older requests, or they were not looked at. ", link("timeline", [], "The last minutes")));
    box.hidden = !rows.length;
    if (!box.matches(":hover") || !body.rows.length) body.replaceChildren(...rows.map((each) => rowOf(REFUSED, each)));
  };
}
