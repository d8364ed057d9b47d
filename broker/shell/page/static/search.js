// Find messages of a topic over all its partitions: results as they are found, a live tail, and exports of what fits.

import { base, command, count, el, fill, lines, onLeave, quoted, rowOf, save, scroll, table, watch, when } from "./frame.js";
import { headerList, outcome, text } from "./messages.js";

const WHERE = { anywhere: "anywhere", key: "in the key", value: "in the value", header: "in a header", path: "by a JSON path" };
const HINTS = { path: '$.order.item == "coffee"' };
const KEPT = 1000; // rows of a live tail

const COLUMNS = [
  { title: "Partition", number: true, show: (row) => row.partition },
  { title: "Offset", number: true, show: (row) => row.offset },
  { title: "Time (UTC)", wide: true, show: (row) => when(row.timestamp_ms) },
  { title: "Key", show: (row) => text(row.key) },
  { title: "Value", sentence: true, show: (row) => text(row.value) },
  { title: "Headers", show: (row) => headerList(row) },
  { title: "Transaction", wide: true, show: outcome },
];

// `rewatch` goes back to what the view follows, when a live tail ends.
export function finder(topic, rewatch) {
  const path = `${base()}/topics/${quoted(topic)}`;
  const what = el("input", { type: "search", id: "filter", size: 28 });
  const where = el("select", { id: "where", onchange: () => { what.placeholder = HINTS[where.value] ?? ""; } }, Object.entries(WHERE).map(([key, title]) => el("option", { value: key }, title)));
  const from = el("input", { type: "datetime-local", step: 1 }), to = el("input", { type: "datetime-local", step: 1 });
  const partitions = el("input", { size: 6, placeholder: "all" }), aborted = el("input", { type: "checkbox" });
  const said = el("span", { class: "soft", role: "status" }), bar = el("progress", { hidden: true, "aria-label": "Searched" });
  const place = el("div"), as = el("div");
  let running = null, isLive = false;

  function words() {
    const found = new URLSearchParams();
    if (what.value) found.set(where.value, what.value);
    if (from.value) found.set("from_ms", Date.parse(`${from.value}Z`));
    if (to.value) found.set("to_ms", Date.parse(`${to.value}Z`));
    if (partitions.value) found.set("partitions", partitions.value.replaceAll(" ", ""));
    if (aborted.checked) found.set("aborted", "yes");
    return found;
  }
  function begin() {
    end();
    const made = table(COLUMNS, [], { "data-of": "hits" });
    fill(place, scroll("Messages that were found", made));
    stop.disabled = false;
    return made.tBodies[0];
  }
  function end() {
    running?.abort();
    running = null;
    if (isLive) { isLive = false; rewatch(); }
    bar.hidden = stop.disabled = true;
  }
  async function find() {
    const body = begin(), mine = new AbortController(), asked = `${path}/search?${words()}`;
    let all = 0, last = {}, waiting = [], timer = 0;
    const tellHow = (after) => { said.textContent = `${count(last.hits ?? 0)} found in ${count(last.records ?? 0)} of ${count(all)} records${last.unreadable ? `; ${last.unreadable} batches cannot be read` : ""}${after}`; };
    const draw = () => { timer = 0; body.append(...waiting.map((row) => rowOf(COLUMNS, row))); waiting = []; tellHow(""); };
    running = mine;
    bar.hidden = false;
    bar.removeAttribute("value");
    fill(as, command(asked));
    said.textContent = "searching…";
    said.className = "soft";
    try {
      await lines(asked, mine.signal, (line) => {
        if (line.begin) { all = line.begin.records; bar.max = Math.max(1, all); }
        if (line.hit) waiting.push(line.hit);
        if (line.progress || line.end) { last = line.progress ?? line; bar.value = last.records; }
        if (line.error) throw new Error(line.error);
        timer ||= setTimeout(draw, 50);
      });
      clearTimeout(timer);
      draw();
      tellHow(last.end === "most" ? "; as many as are shown: narrow it, or export" : "");
    } catch (error) {
      clearTimeout(timer);
      draw();
      if (mine.signal.aborted) tellHow("; stopped");
      else { said.textContent = error.message; said.className = "bad"; }
    }
    if (running === mine) end();
  }
  function live() {
    const body = begin();
    let left = 0;
    isLive = true;
    said.textContent = "live";
    watch(`${path}/tail?${words()}`, (answer) => {
      left += answer.not_shown;
      body.prepend(...answer.messages.reverse().map((row) => rowOf(COLUMNS, row)));
      while (body.rows.length > KEPT) body.lastChild.remove();
      said.textContent = `live, the newest first${left ? `; ${count(left)} more have come than are shown` : ""}`;
    }, (error) => { said.textContent = error; }, 500);
  }
  async function keep(form, file) {
    const found = words();
    found.set("form", form);
    const asked = `${path}/search?${found}`;
    fill(as, command(asked));
    said.textContent = "exporting…";
    try { said.textContent = `${file}: ${count(await save(asked, file))} bytes`; } catch (error) { said.textContent = error.message; }
  }
  const stop = el("button", { class: "plain", disabled: true, onclick: end }, "Stop");
  onLeave(() => running?.abort());
  what.addEventListener("keydown", (event) => { if (event.key === "Enter") find(); });
  return el("div", {}, el("div", { class: "bar" }, el("label", {}, "Text or path (press /)", what), el("span", { class: "field" }, el("label", { for: "where" }, "Where"), where),
    el("label", {}, "Not before (UTC)", from), el("label", {}, "Not after (UTC)", to), el("label", {}, "Partitions", partitions),
    el("label", { class: "tick" }, aborted, "aborted ones"), el("button", { onclick: find }, "Find"), el("button", { class: "plain", onclick: live }, "Live tail"), stop,
    el("button", { class: "plain", onclick: () => keep("lines", `${topic}.jsonl`) }, "Export JSON lines"),
    el("button", { class: "plain", onclick: () => keep("load", `${topic}.json`) }, "Export a load file")), el("p", {}, bar, " ", said), as, place);
}
