// Topics: the list; one topic with partitions, configs, messages, and a form that produces one.

import { ask, act, base, bytes, count, el, fill, here, link, literal, longList, name, onLeave, quoted, scroll, table, time, watch } from "./frame.js";

export function show(place) {
  if (here.words.length) showTopic(place, here.words[0]);
  else showAll(place);
}

function showAll(place) {
  place.append(el("h1", {}, "Topics"), ...longList({
    label: "Topics",
    path: () => `${base()}/topics`,
    field: "topics",
    empty: "No topic has this in its name.",
    columns: [
      { title: "Topic", show: (row) => [link("topics", [row.topic]), row.internal ? el("span", { class: "soft" }, " internal") : null] },
      { title: "Partitions", number: true, show: (row) => count(row.partitions) },
      { title: "Replicas", number: true, wide: true, show: (row) => row.replicas },
      { title: "Not in sync", number: true, wide: true, show: (row) => (row.under_replicated ? el("span", { class: "bad" }, row.under_replicated) : 0) },
      { title: "Records", number: true, show: (row) => count(row.records) },
      { title: "Size", number: true, show: (row) => bytes(row.bytes) },
    ],
  }));
}

function showTopic(place, topic) {
  const path = `${base()}/topics/${quoted(topic)}`;
  const partitions = el("div"), configs = el("div"), head = el("p", { class: "soft" });
  const [reader, readAgain, offer] = messages(path);
  place.append(el("h1", {}, name(topic)), head, el("h2", {}, "Partitions"), partitions, el("h2", {}, "Messages"), reader,
    el("h2", {}, "Produce a message"), producer(path, topic, readAgain), el("h2", {}, "Settings"), configs);
  let shownConfigs = "";
  watch(path, (answer) => {
    offer(answer.total);
    head.textContent = `${count(answer.total)} partitions${answer.partitions.length < answer.total ? `, of which the first ${answer.partitions.length} are shown` : ""}`;
    fill(partitions, scroll("Partitions", table([
      { title: "Partition", number: true, show: (row) => row.partition },
      { title: "Leader", number: true, show: (row) => (row.leader < 0 ? el("span", { class: "bad" }, "none") : row.leader) },
      { title: "Epoch", number: true, wide: true, show: (row) => row.leader_epoch },
      { title: "Replicas", show: (row) => row.replicas.join(", ") },
      { title: "In sync", show: (row) => el("span", { class: row.isr.length < row.replicas.length ? "bad" : null }, row.isr.join(", ")) },
      { title: "First offset", number: true, show: (row) => row.start },
      { title: "Last stable", number: true, wide: true, show: (row) => row.stable },
      { title: "End", number: true, show: (row) => row.end },
      { title: "Size", number: true, show: (row) => bytes(row.bytes) },
    ], answer.partitions, { "data-of": "partitions" }), "short"));
    const text = JSON.stringify(answer.configs);
    if (text === shownConfigs) return;
    shownConfigs = text;
    fill(configs, scroll("Settings", table([
      { title: "Setting", show: (row) => row.name },
      { title: "Value", show: (row) => name(row.value) },
      { title: "Set where", show: (row) => el("span", { class: row.source === "default" ? "soft" : "good" }, row.source) },
    ], answer.configs, { "data-of": "configs" }), "short"));
  }, (error) => { head.textContent = error; head.className = "bad"; });
}

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

function messages(path) {
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
      { title: "Time (UTC)", wide: true, show: (row) => time(row.timestamp_ms) },
      { title: "Key", show: (row) => text(row.key) },
      { title: "Value", show: (row) => (row.is_control ? "" : text(row.value)) },
      { title: "Headers", show: (row) => headerList(row) },
      { title: "Transaction", show: (row) => (row.outcome ? el("span", { class: `tag ${OUTCOMES[row.outcome] ?? "soft"}`, title: `producer ${row.producer_id}, epoch ${row.producer_epoch}` }, row.outcome) : "") },
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

const headerList = (row) => row.headers.map(([key, value]) => el("div", {}, text(key), " ", text(value)))
  .concat(row.more_headers ? [el("span", { class: "soft" }, `and ${row.more_headers} more`)] : []);

function producer(path, topic, then) {
  const key = el("input", {}), value = el("textarea", { "aria-label": "Value" }), headers = el("input", { placeholder: "name=value, ..." });
  const partition = el("input", { inputmode: "numeric", size: 9, placeholder: "by the key" });
  const said = el("span", { class: "soft", role: "status" });
  async function send() {
    const record = { value: value.value };
    if (partition.value) record.partition = Number(partition.value);
    if (key.value) record.key = key.value;
    if (headers.value) record.headers = headers.value.split(",").map((each) => { const [left, ...right] = each.split("="); return [left.trim(), right.join("=")]; });
    const words = [literal(topic), literal(value.value), ...["key", "headers", "partition"].filter((each) => record[each] !== undefined)
      .map((each) => `${each}=${literal(record[each])}`)];
    const places = await act("POST", `${path}/records`, { records: [record] }, `broker.produce(${words.join(", ")})`);
    said.textContent = places ? `partition ${places[0].partition}, offset ${places[0].offset}` : "";
    if (places) then();
  }
  return el("div", {}, el("div", { class: "bar" }, el("label", {}, "Key", key), el("label", {}, "Headers", headers),
    el("label", {}, "Partition", partition)), value, el("div", { class: "bar" }, el("button", { onclick: send }, "Produce"), said));
}
