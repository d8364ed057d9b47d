// Messages of one partition from an offset or a time on, and how a message is shown.

import { ask, count, el, fill, onLeave, scroll, table, when } from "./frame.js";

// A text that the server has cut says how long it was.
export function text(value) {
  if (value === null) return el("span", { class: "soft" }, "null");
  const shown = ["json", "avro", "protobuf"].includes(value.form) && !value.is_cut ? pretty(value.text) : value.text;
  return [el("pre", { tabindex: value.bytes > 600 ? 0 : null, "data-form": value.form, role: value.bytes > 600 ? "region" : null, "aria-label": value.bytes > 600 ? "text" : null }, shown),
    value.is_cut ? el("span", { class: "soft" }, `cut; ${count(value.bytes)} bytes in all`) : null,
    value.schema ? el("span", { class: "soft" }, `${value.form}, schema ${value.schema}`) : null,
    value.note ? el("span", { class: "soft" }, value.note) : null];
}

function pretty(json) {
  try { return JSON.stringify(JSON.parse(json), null, 1); } catch { return json; }
}

const OUTCOMES = { aborted: "bad", open: "warn", committed: "good" };

export const outcome = (row) => (row.outcome ? el("span", { class: `tag ${OUTCOMES[row.outcome] ?? "soft"}`, title: `producer ${row.producer_id}, epoch ${row.producer_epoch}` }, row.outcome) : "");

export const headerList = (row) => row.headers.map(([key, value]) => el("div", {}, text(key), " ", text(value)))
  .concat(row.more_headers ? [el("span", { class: "soft" }, `and ${row.more_headers} more`)] : []);

export function messages(path) {
  const place = el("div", { "aria-live": "off" }), said = el("p", { class: "soft", role: "status" });
  const partition = el("select", {}), offset = el("input", { inputmode: "numeric", size: 10, placeholder: "the newest" });
  const at = el("input", { type: "datetime-local", step: 1 });
  const aborted = el("input", { type: "checkbox" });
  const form = el("select", {}, ["auto", "text", "hex"].map((each) => el("option", {}, each)));
  let next = 0;
  const query = () => {
    const found = new URLSearchParams({ partition: partition.value || 0, form: form.value });
    if (offset.value) found.set("offset", offset.value);
    else if (at.value) found.set("time_ms", Date.parse(`${at.value}Z`));
    if (aborted.checked) found.set("aborted", "yes");
    return found;
  };
  async function read() {
    let answer;
    try { answer = await ask("GET", `${path}/messages?${query()}`); } catch (error) { said.textContent = error.message; return; }
    next = answer.next_offset;
    said.textContent = `${answer.messages.length} shown of offsets ${answer.from} to ${answer.next_offset - 1}; the log has ${answer.start} to ${answer.end - 1}`;
    fill(place, scroll("Messages", table([
      { title: "Offset", number: true, show: (row) => row.offset },
      { title: "Time (UTC)", wide: true, show: (row) => when(row.timestamp_ms) },
      { title: "Key", show: (row) => text(row.key) },
      { title: "Value", show: (row) => (row.is_control ? "" : text(row.value)) },
      { title: "Headers", show: (row) => headerList(row) },
      { title: "Transaction", show: outcome },
    ], answer.messages.map((row) => ({ ...row, class: row.outcome === "aborted" ? "aborted" : null })), { "data-of": "messages" })));
  }
  const onward = el("button", { class: "plain", onclick: () => { offset.value = next; read(); } }, "Next");
  const timer = setTimeout(read);
  onLeave(() => clearTimeout(timer));
  const bar = el("div", { class: "bar" },
    el("label", {}, "Partition", partition), el("label", {}, "From offset", offset), el("label", {}, "or from time (UTC)", at),
    el("label", {}, "As", form), el("label", { class: "tick" }, aborted, "aborted ones and markers"),
    el("button", { onclick: read }, "Read"), onward);
  const offer = (total) => {
    if (partition.length !== Math.min(total, 1000)) {
      fill(partition, [...Array(Math.min(total, 1000)).keys()].map((each) => el("option", {}, each)));
    }
  };
  return [el("div", {}, bar, said, place), read, offer];
}
