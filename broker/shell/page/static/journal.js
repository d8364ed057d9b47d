// The journal: a live tail with filters; a request and its reply as a tree, why it was refused on top; a fault from a line.

import { act, ask, base, bytes, coloured, el, faultLink, fill, here, link, name, quoted, rowOf, scroll, table, time, watch } from "./frame.js";

const KEPT = 500; // lines
const FILTERS = { api: "API", client_id: "Client", group: "Group", topic: "Topic", transactional_id: "Transactional id", error: "Error" };

export function show(place) {
  const shown = new Map(); // the rows by their numbers; the newest is the first in the table
  const columns = columnsOf(open), made = table(columns, [], { class: "even", "data-of": "entries" }), body = made.tBodies[0];
  const box = scroll("Requests", made), one = el("div", { class: "one" });
  const said = el("p", { class: "soft", role: "status" }), switches = el("div", { class: "bar" }), run = el("div", { class: "bar" });
  const filters = Object.fromEntries(Object.entries(FILTERS).map(([key, title]) =>
    [key, el("input", { value: here.query.get(key) ?? "", id: key === "api" ? "filter" : null, size: 12, onchange: look, "aria-label": title })]));
  const pause = el("input", { type: "checkbox" });
  const newer = el("button", { class: "plain newer", disabled: true, onclick: () => { box.scrollTop = 0; settle(); } }, "All shown");
  let left = 0, isOn = null, waiting = [];
  place.append(el("h1", {}, "Journal"), run, switches, el("div", { class: "bar" },
    Object.entries(FILTERS).map(([key, title]) => el("label", {}, title, filters[key])), el("label", { class: "tick" }, pause, "pause"), newer),
  said, el("div", { class: "split" }, box, one));

  function look() {
    shown.clear();
    waiting = [];
    left = 0;
    body.replaceChildren();
    const query = new URLSearchParams();
    for (const [key, field] of Object.entries(filters)) if (field.value) query.set(key, field.value);
    watch(`${base()}/journal/tail?${query}`, take, (error) => { said.textContent = error; });
  }
  function take(answer) {
    if (isOn !== answer.bytes) {
      isOn = answer.bytes;
      fill(switches, isOn ? button("Clear", "DELETE", null, "broker.journal.clear()") : button("Keep the last 16 MB", "POST", { bytes: 16 << 20 }, "broker.journal.keep(16)"),
        isOn ? button("Keep none", "POST", { bytes: 0 }, "broker.journal.keep(0)") : null);
    }
    if (pause.checked) return;
    left += answer.not_shown;
    said.textContent = answer.bytes ? `${bytes(answer.kept_bytes)} of ${bytes(answer.bytes)} kept; ${left} older requests not looked at${shown.size || answer.entries.length ? "" : ". No request yet that passes the filters."}` : "No journal is kept. It holds the last requests with their replies, why they were refused, and which fault has acted.";
    for (const entry of answer.entries) if (!answered(entry)) waiting.push(entry);
    waiting = waiting.slice(-KEPT);
    if (!isAimedAt()) settle();
    newer.disabled = !waiting.length;
    newer.textContent = waiting.length ? `Show ${waiting.length} newer` : "All shown";
  }
  const button = (label, method, body, python) => el("button", { class: "plain", onclick: async () => { await act(method, `${base()}/journal`, body, python ?? undefined); look(); } }, label);

  // No row moves while the pointer is on the list, or while older ones are read.
  const isAimedAt = () => box.matches(":hover") || box.scrollTop > 0;
  box.addEventListener("pointerleave", () => { if (!box.scrollTop) settle(); });

  // A request that is shown as waiting has its reply: its cells are filled, but for those that can be clicked.
  function answered(entry) {
    const row = shown.get(entry.number);
    if (!row) return false;
    const fresh = rowOf(columns, entry);
    row.className = classOf(entry);
    columns.forEach((column, n) => { if (!column.still) row.cells[n].replaceChildren(...fresh.cells[n].childNodes); });
    return true;
  }
  function settle() {
    const at = waiting.sort((a, b) => a.number - b.number);
    waiting = [];
    for (const entry of at) {
      if (answered(entry)) continue; // it came twice: without its reply, and with it
      const row = rowOf(columns, { ...entry, class: classOf(entry) });
      row.dataset.number = entry.number;
      row.addEventListener("click", (event) => { if (!event.target.closest("a, button")) open(entry.number); });
      let next = body.firstChild;
      while (next && Number(next.dataset.number) > entry.number) next = next.nextSibling;
      body.insertBefore(row, next);
      shown.set(entry.number, row);
    }
    while (body.rows.length > KEPT) { shown.delete(Number(body.lastChild.dataset.number)); body.lastChild.remove(); }
    newer.disabled = true;
    newer.textContent = "All shown";
  }
  async function open(number) {
    const { entries } = await ask("GET", `${base()}/journal/entries/${number}`);
    const entry = entries[0];
    const close = el("button", { class: "plain", onclick: () => one.replaceChildren() }, "Close");
    one.dataset.number = number;
    if (!entry) return fill(one, el("p", {}, "The journal has dropped it. "), close);
    fill(one, el("h2", {}, `${entry.api} v${entry.version} of `, name(entry.client_id), " ", close),
      entry.why || entry.fault ? el("p", { class: "bad", "data-is": "why" }, entry.why ? name(entry.why) : null, entry.why && entry.fault ? " " : null, entry.fault ? faultLink(entry.fault) : null) : null,
      el("p", { class: "soft" }, `${entry.connection} to broker ${entry.broker}, ${entry.principal}, ${entry.software}`),
      scroll("Request and reply", [el("h2", {}, "Request"), tree(entry.request, "too large to be kept whole"), el("h2", {}, "Reply"), tree(entry.response, entry.answered < 0 ? "none yet" : "too large to be kept whole")]));
    if (!matchMedia("(min-width: 64rem)").matches) one.scrollIntoView({ block: "nearest" }); // else it is beside the list, which stays
  }
  look();
  if (here.query.get("number")) open(here.query.get("number")).catch((error) => { said.textContent = error.message; });
  showRun(run).catch((error) => { run.textContent = error.message; });
}

const classOf = (row) => coloured(row.api, row.errors.length ? "refused" : row.latency_ms < 0 ? "waits" : "");

const columnsOf = (open) => [
  { title: "Time (UTC)", show: (row) => time(row.at_ms).slice(11) },
  { title: "API", still: true, show: (row) => [el("button", { class: "plain", "data-number": row.number, onclick: () => open(row.number) }, row.api), ` v${row.version}`] },
  { title: "Client", show: (row) => name(row.client_id) },
  { title: "Names", wide: true, show: (row) => name([row.group, row.topic, row.transactional_id].filter(Boolean).join(" · ")) },
  { title: "Took ms", number: true, show: (row) => (row.latency_ms < 0 ? "waits" : row.latency_ms.toFixed(2)) },
  { title: "Bytes in", number: true, wide: true, show: (row) => row.bytes_in },
  { title: "Bytes out", number: true, wide: true, show: (row) => row.bytes_out },
  { title: "Answer", show: (row) => (row.errors.length ? el("span", { class: "bad" }, row.errors.join(", ")) : row.latency_ms < 0 ? "" : el("span", { class: "good" }, "ok")) },
  { title: "Why", show: (row) => el("span", { title: row.why || row.fault }, row.why ? name(row.why) : row.fault ? faultLink(row.fault) : "") },
  { title: "Fault", still: true, show: (row) => toFault(row) },
];

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

function toFault(row) {
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
