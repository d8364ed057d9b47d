// Topics: the list; one topic with partitions, configs, messages, and a form that produces one.

import { act, base, bytes, count, el, fill, here, link, literal, longList, name, parts, quoted, scroll, table, watch } from "./frame.js";
import { labelled, pairs, sure } from "./forms.js";
import { messages } from "./messages.js";
import { finder } from "./search.js";

export function show(place) {
  if (here.words.length) showTopic(place, here.words[0]);
  else showAll(place);
}

function showAll(place) {
  place.append(el("h1", {}, "Topics"), newTopic(), ...longList({
    label: "Topics",
    path: () => `${base()}/topics`,
    field: "topics",
    empty: "No topic has this in its name.",
    none: "No topics yet. New topic makes one; so does a client, with the first message that it produces.",
    isNone: (answer) => answer.topics.length === answer.total && answer.topics.every((row) => row.internal),
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

const asConfig = (field) => (field.value ? { config: Object.fromEntries(pairs(field.value)) } : {});

function newTopic() {
  const what = el("input", {}), partitions = el("input", { inputmode: "numeric", size: 6, value: 1 }), replicas = el("input", { inputmode: "numeric", size: 6, placeholder: "as set" });
  const config = el("input", { placeholder: "retention.ms=-1, …", size: 30 });
  const make = async () => {
    const body = { name: what.value, partitions: Number(partitions.value), ...(replicas.value ? { replicas: Number(replicas.value) } : {}), ...asConfig(config) };
    const more = `${body.replicas ? `, replicas=${body.replicas}` : ""}${body.config ? `, config=${literal(body.config)}` : ""}`;
    if (await act("POST", `${base()}/topics`, body, `broker.create_topic(${literal(body.name)}, partitions=${body.partitions}${more})`)) what.value = "";
  };
  return el("details", {}, el("summary", {}, "New topic"), el("div", { class: "bar" }, labelled("Topic name", what), labelled("How many partitions", partitions),
    labelled("How many replicas", replicas), labelled("Topic settings", config), el("button", { onclick: make }, "Create the topic")));
}

function alterTopic(path, offered) {
  const setting = el("input", { list: offered.id, size: 28 }), value = el("input", { size: 16, placeholder: "back to the default" });
  const partitions = el("input", { inputmode: "numeric", size: 6 });
  const alter = (body) => act("POST", `${path}/alter`, body);
  return el("div", { class: "bar" }, labelled("Setting", setting, offered), labelled("Set to", value),
    el("button", { onclick: () => alter(value.value ? { config: { [setting.value]: value.value } } : { unset: [setting.value] }) }, "Change the setting"),
    labelled("Partitions from now on", partitions), el("button", { class: "plain", onclick: () => alter({ partitions: Number(partitions.value) }) }, "Add partitions"),
    sure("Delete the topic", "with all its records", async () => { if (await act("DELETE", path)) location.hash = `#/${quoted(here.cluster)}/topics`; }));
}

function showTopic(place, topic) {
  const path = `${base()}/topics/${quoted(topic)}`;
  const partitions = el("div"), configs = el("div"), head = el("p", { class: "soft" });
  const offered = el("datalist", { id: "settings" });
  const [reader, readAgain, offer] = messages(path);
  let shownConfigs = "";
  const follow = () => watch(path, (answer) => {
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
    fill(offered, answer.configs.map((each) => el("option", { value: each.name })));
    fill(configs, scroll("Settings", table([
      { title: "Setting", show: (row) => row.name },
      { title: "Value", show: (row) => name(row.value) },
      { title: "Set where", show: (row) => el("span", { class: row.source === "default" ? "soft" : "good" }, row.source) },
    ], answer.configs, { "data-of": "configs" }), "short"));
  }, (error) => { head.textContent = error; head.className = "bad"; });
  place.append(el("h1", {}, name(topic)), head, parts(el("h2", {}, "Partitions"), partitions, el("h2", {}, "Find messages"), finder(topic, follow),
    el("h2", {}, "Messages of a partition"), reader,
    el("h2", {}, "Produce a message"), producer(path, topic, readAgain), el("h2", {}, "Settings"), alterTopic(path, offered), configs));
  follow();
}

const FIELDS = ["key", "value", "headers", "partition", "timestamp_ms"];
const AS = { one: "one message", lines: "a message a line", json: "JSON lines: key, value, headers, partition" };

// The records that a form says. Errors: Error: a line is no JSON.
function given(as, text, common) {
  if (as === "one") return [{ value: text, ...common }];
  const lines = text.split("\n").filter((line) => line.trim());
  return lines.map((line) => (as === "lines" ? { value: line, ...common }
    : { ...common, ...Object.fromEntries(Object.entries(JSON.parse(line)).filter(([field]) => FIELDS.includes(field))) }));
}

function producer(path, topic, then) {
  const key = el("input", {}), value = el("textarea", { "aria-label": "Value" }), headers = el("input", { placeholder: "name=value, ..." });
  const partition = el("input", { inputmode: "numeric", size: 9, placeholder: "by the key" });
  const as = el("select", { "aria-label": "What the text is" }, Object.entries(AS).map(([word, title]) => el("option", { value: word }, title)));
  const said = el("span", { class: "soft", role: "status" });
  async function send() {
    const common = { ...(partition.value ? { partition: Number(partition.value) } : {}), ...(key.value ? { key: key.value } : {}),
      ...(headers.value ? { headers: pairs(headers.value) } : {}) };
    let records;
    try { records = given(as.value, value.value, common); } catch (error) { said.textContent = error.message; return; }
    const words = [literal(topic), ...records.map((each) => literal(each.value)), ...["key", "headers", "partition"].filter((each) => common[each] !== undefined)
      .map((each) => `${each}=${each === "headers" ? `[${common.headers.map((pair) => `(${pair.map(literal).join(", ")})`).join(", ")}]` : literal(common[each])}`)];
    const python = as.value === "json" ? undefined : `broker.produce(${words.join(", ")})`;
    const places = await act("POST", `${path}/records`, { records }, python);
    said.textContent = places ? places.length === 1 ? `partition ${places[0].partition}, offset ${places[0].offset}` : `${places.length} messages` : "";
    if (places) then();
  }
  return el("div", {}, el("div", { class: "bar" }, el("label", {}, "Key", key), el("label", {}, "Headers", headers),
    el("label", {}, "Partition", partition), as), value, el("div", { class: "bar" }, el("button", { onclick: send }, "Produce"), said));
}
