// Schemas: the subjects of the cluster's registry; one with its versions, two of them side by side, and who uses its ids.

import { ask, base, button, count, el, fill, here, link, longList, name, quoted, scroll, table, watch } from "./frame.js";

export function show(place) {
  if (here.words.length) showOne(place, here.words[0]);
  else showAll(place);
}

const serve = () => el("p", {}, "Serve it, and this page shows its subjects: ",
  button("Serve a registry", "POST", `${base()}/registry`, {}, "broker.registry_url", () => location.reload()));

function showAll(place) {
  const list = el("div");
  place.append(el("h1", {}, "Schemas"), list);
  ask("GET", `${base()}/registry`).then((registry) => {
    if (!registry.url) { fill(list, el("p", { class: "soft" }, "No registry of this cluster is served."), serve()); return; }
    fill(list, el("p", { class: "soft" }, "The registry of this cluster is ", name(registry.url), "."), ...longList({
      label: "Subjects",
      path: () => `${base()}/schemas`,
      field: "subjects",
      empty: "No subject has this in its name.",
      none: "No subjects yet. A serializer registers the schema of the first message that it writes.",
      columns: [
        { title: "Subject", show: (row) => link("schemas", [row.subject]) },
        { title: "Type", show: (row) => row.type },
        { title: "Versions", number: true, show: (row) => count(row.versions) },
        { title: "Latest", number: true, show: (row) => row.version },
        { title: "Id", number: true, show: (row) => row.id },
        { title: "Compatibility", show: (row) => row.level },
        { title: "Mode", wide: true, show: (row) => row.mode },
      ],
    }));
  }, (error) => fill(list, el("p", { class: "bad" }, error.message)));
}

function showOne(place, subject) {
  const path = `${base()}/schemas/${quoted(subject)}`;
  const head = el("p", { class: "soft" }), versions = el("div"), changes = el("div", { "aria-live": "polite" }), used = el("div");
  const from = el("select", { onchange: compare }), to = el("select", { onchange: compare });
  place.append(el("h1", {}, name(subject)), head, el("h2", {}, "Versions"), versions, el("h2", {}, "Side by side"),
    el("div", { class: "bar" }, el("label", {}, "From version", from), el("label", {}, "To version", to)), changes,
    el("h2", {}, "Topics that use it"), el("button", { class: "plain", onclick: look }, "Look again"), used);
  let known = "";
  watch(path, (answer) => {
    head.textContent = `${count(answer.total)} versions; compatibility ${answer.level}, mode ${answer.mode}`;
    fill(versions, scroll("Versions", table([
      { title: "Version", number: true, show: (row) => row.version },
      { title: "Id", number: true, show: (row) => row.id },
      { title: "Type", show: (row) => row.type },
      { title: "Refers to", show: (row) => name(row.references.join(", ")) },
      { title: "Referred to by", number: true, wide: true, show: (row) => row.referred_to },
      { title: "", show: (row) => (row.deleted ? el("span", { class: "tag bad" }, "deleted") : "") },
    ], answer.versions, { "data-of": "versions" }), "short"));
    const numbers = answer.versions.map((row) => row.version);
    if (known === String(numbers)) return;
    known = String(numbers);
    for (const [list, first] of [[from, numbers[1] ?? numbers[0]], [to, numbers[0]]]) {
      fill(list, numbers.map((each) => el("option", { value: each }, each)));
      list.value = first;
    }
    compare();
    look();
  }, (error) => fill(versions, el("p", { class: "bad" }, error)));

  async function compare() {
    let answer;
    try { answer = await ask("GET", `${path}/changes?from=${from.value}&to=${to.value}`); } catch (error) { fill(changes, el("p", { class: "bad" }, error.message)); return; }
    const same = answer.lines.every((row) => !row.is_changed);
    fill(changes, verdict(answer.to, answer.from, answer.backward, "backward"), verdict(answer.from, answer.to, answer.forward, "forward"),
      el("p", { class: "soft" }, [same ? "Both are the same. " : "", answer.is_cut ? "Only the beginning is shown." : ""]),
      scroll("Both versions", table([
        { title: "", number: true, show: (row) => row.old_line || "" },
        { title: `Version ${answer.from}`, show: (row) => side(row, row.old, row.old_line, "− ") },
        { title: " ", number: true, show: (row) => row.new_line || "" },
        { title: `Version ${answer.to}`, show: (row) => side(row, row.new, row.new_line, "+ ") },
      ], answer.lines.map((row) => ({ ...row, class: row.is_changed ? "changed" : null })), { "data-of": "lines" }), "short"));
  }

  async function look() {
    let answer;
    fill(used, el("p", { class: "soft" }, "Looking…"));
    try { answer = await ask("GET", `${path}/topics`); } catch (error) { fill(used, el("p", { class: "bad" }, error.message)); return; }
    fill(used, el("p", { class: "soft", role: "status" }, `In the newest ${answer.newest} records of ${count(answer.looked_at)} partitions, of ${count(answer.partitions)}.`),
      answer.topics.length ? scroll("Topics", table([
        { title: "Topic", show: (row) => link("topics", [row.topic]) },
        { title: "In", show: (row) => row.field },
        { title: "Id", number: true, show: (row) => row.id },
        { title: "Records", number: true, show: (row) => row.records },
        { title: "Newest offset", number: true, show: (row) => row.offset },
      ], answer.topics, { "data-of": "uses" }), "short") : el("p", {}, "None of them carries one of its ids."));
  }
}

const side = (row, text, line, mark) => (line ? el("code", {}, row.is_changed ? mark : "", text) : "");

// Whether readers of one version can read what the other has written, or why not.
function verdict(reader, writer, findings, of) {
  const can = findings.length === 0;
  return el("div", { "data-is": of },
    el("p", {}, el("span", { class: can ? "good" : "bad" }, can ? "Compatible" : "Not compatible"),
      `: readers of version ${reader} ${can ? "can" : "cannot"} read what version ${writer} has written.`),
    can ? null : el("ul", {}, findings.map((each) => el("li", {}, el("code", {}, name(each.kind)), each.path ? [" at ", el("code", {}, name(each.path)), ": "] : " ", name(each.text)))));
}
