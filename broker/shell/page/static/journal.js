// The journal: a live tail with filters; a request and its reply as a tree, why it was refused on top; a fault from a line.

import { act, ask, base, bytes, el, fill, here, name, quoted, scroll, table, time, watch } from "./frame.js";

const KEPT = 500; // lines
const FILTERS = { api: "API", client_id: "Client", group: "Group", topic: "Topic", transactional_id: "Transactional id", error: "Error" };

export function show(place) {
  const kept = new Map(); // by number; an answered request replaces the one that waited
  const list = el("div"), one = el("div"), said = el("p", { class: "soft", role: "status" }), switches = el("div", { class: "bar" });
  const filters = Object.fromEntries(Object.entries(FILTERS).map(([key, title]) =>
    [key, el("input", { value: here.query.get(key) ?? "", id: key === "api" ? "filter" : null, size: 12, onchange: look, "aria-label": title })]));
  const pause = el("input", { type: "checkbox" });
  let left = 0, isOn = null;
  const run = el("div", { class: "bar" });
  place.append(el("h1", {}, "Journal"), run, switches, el("div", { class: "bar" },
    Object.entries(FILTERS).map(([key, title]) => el("label", {}, title, filters[key])), el("label", { class: "tick" }, pause, "pause")), said, one, list);

  function look() {
    kept.clear();
    left = 0;
    list.replaceChildren();
    const query = new URLSearchParams();
    for (const [key, field] of Object.entries(filters)) if (field.value) query.set(key, field.value);
    watch(`${base()}/journal/tail?${query}`, take, (error) => { said.textContent = error; });
  }
  function take(answer) {
    if (isOn !== answer.bytes) {
      isOn = answer.bytes;
      fill(switches, isOn ? button("Clear", "DELETE", null, "broker.journal.clear()") : button("Keep the last 16 MB", "POST", { bytes: 16 << 20 }, "broker.journal.keep(16)"),
        isOn ? button("Keep none", "POST", { bytes: 0 }, null) : null);
    }
    if (pause.checked) return;
    left += answer.not_shown;
    for (const entry of answer.entries) kept.set(entry.number, entry);
    const numbers = [...kept.keys()].sort((a, b) => b - a);
    numbers.slice(KEPT).forEach((each) => kept.delete(each));
    said.textContent = answer.bytes ? `${bytes(answer.kept_bytes)} of ${bytes(answer.bytes)} kept; ${left} older requests not looked at` : "No journal is kept.";
    if (answer.entries.length || !list.firstChild) draw(numbers.slice(0, KEPT).map((each) => kept.get(each)));
  }
  const button = (label, method, body, python) => el("button", { class: "plain", onclick: async () => { await act(method, `${base()}/journal`, body, python ?? undefined); look(); } }, label);

  function draw(entries) {
    const top = list.firstChild?.scrollTop ?? 0, focus = document.activeElement?.dataset?.number;
    fill(list, scroll("Requests", table([
      { title: "Time (UTC)", show: (row) => time(row.at_ms).slice(11) },
      { title: "API", show: (row) => [el("button", { class: "plain", "data-number": row.number, onclick: () => open(row) }, row.api), ` v${row.version}`] },
      { title: "Client", show: (row) => name(row.client_id) },
      { title: "Names", wide: true, show: (row) => name([row.group, row.topic, row.transactional_id].filter(Boolean).join(" · ")) },
      { title: "Took ms", number: true, show: (row) => (row.latency_ms < 0 ? "waits" : row.latency_ms.toFixed(2)) },
      { title: "Bytes in", number: true, wide: true, show: (row) => row.bytes_in },
      { title: "Bytes out", number: true, wide: true, show: (row) => row.bytes_out },
      { title: "Answer", show: (row) => (row.errors.length ? el("span", { class: "bad" }, row.errors.join(", ")) : row.latency_ms < 0 ? "" : el("span", { class: "good" }, "ok")) },
      { title: "Why", show: (row) => name(row.why || row.fault) },
      { title: "Fault", show: (row) => faultLink(row) },
    ], entries, { "data-of": "entries" })));
    list.firstChild.scrollTop = top;
    if (focus) list.querySelector(`[data-number="${focus}"]`)?.focus();
  }
  async function open(row) {
    const { entries } = await ask("GET", `${base()}/journal/entries/${row.number}`);
    const entry = entries[0];
    const close = el("button", { class: "plain", onclick: () => one.replaceChildren() }, "Close");
    if (!entry) return fill(one, el("p", {}, "The journal has dropped it. "), close);
    fill(one, el("h2", {}, `${entry.api} v${entry.version} of `, name(entry.client_id), " ", close),
      entry.why || entry.fault ? el("p", { class: "bad", "data-is": "why" }, name(entry.why || entry.fault)) : null,
      el("p", { class: "soft" }, `${entry.connection} to broker ${entry.broker}, ${entry.principal}, ${entry.software}`),
      scroll("Request and reply", [el("h2", {}, "Request"), tree(entry.request, "too large to be kept whole"), el("h2", {}, "Reply"), tree(entry.response, entry.answered < 0 ? "none yet" : "too large to be kept whole")], "short"));
    one.scrollIntoView();
  }
  look();
  showRun(run);
}

// A kept run that `momus open` has opened: where it is, and a button that plays its next request.
async function showRun(place) {
  const told = await ask("GET", "/_admin/step");
  if (!told.requests || told.cluster !== here.cluster) return;
  const step = el("button", { "data-do": "step", disabled: told.ended ? "" : null, onclick: async () => {
    step.disabled = true;
    await act("POST", "/_admin/step", {});
    showRun(place);
  } }, "Step");
  fill(place, step, el("span", { "data-is": "step" }, `request ${told.request} of ${told.requests}${told.last ? `: ${told.last}` : ""}`),
    told.differences.length ? el("span", { class: "bad" }, told.differences.join("; ")) : null);
}

function faultLink(row) {
  const query = new URLSearchParams({ api: row.api });
  for (const key of ["client_id", "group", "topic", "transactional_id"]) if (row[key]) query.set(key, row[key]);
  return el("a", { href: `#/${quoted(here.cluster)}/faults?${query}` }, "make this a fault");
}

// Fields by their names, folded where they hold others.
export function tree(value, otherwise = "null") {
  if (value === null || value === undefined) return el("span", { class: "soft" }, otherwise);
  if (typeof value !== "object") return name(JSON.stringify(value));
  const entries = Object.entries(value);
  if (!entries.length) return el("span", { class: "soft" }, Array.isArray(value) ? "[]" : "{}");
  return el("ul", { class: "tree" }, entries.map(([key, each]) => el("li", {}, each !== null && typeof each === "object"
    ? el("details", { open: "" }, el("summary", {}, key), tree(each)) : [el("span", { class: "soft" }, `${key}: `), tree(each)])));
}
