// Faults: those that are set, with calls and hits; hold and release; a form for a new one, made from GET /faults/kinds and filled from a journal's line.

import { act, ask, base, button, el, fill, here, literal, name, quoted, scroll, table, watch, when } from "./frame.js";
import { labelled, words } from "./forms.js";

const COUNTS = ["name", "fault", "trigger", "calls", "hits", "held", "class"];

export function show(place) {
  const list = el("div"), kept = el("div"), formPlace = el("div");
  const path = `${base()}/faults`;
  place.append(el("h1", {}, "Faults"), list, kept, el("h2", {}, "A new fault"), formPlace);
  ask("GET", `${path}/kinds`).then((kinds) => fill(formPlace, form(path, kinds)), (error) => fill(formPlace, error.message));
  const shownHeld = new Map();
  watch(path, (faults) => {
    showHeld(kept, path, faults, shownHeld);
    const asked = here.query.get("name"); // by a link from where it acted
    fill(list, asked && !faults.some((each) => each.name === asked) ? el("p", { class: "soft" }, name(asked), " is not set any more.") : null, faults.length ? scroll("Faults", table([
    { title: "Name", show: (row) => name(row.name) },
    { title: "Fault", show: (row) => row.fault },
    { title: "What", sentence: true, show: (row) => name(Object.entries(row).filter(([key]) => !COUNTS.includes(key)).map(([key, value]) => `${key}=${value}`).join(" ")) },
    { title: "Trigger", wide: true, show: (row) => (typeof row.trigger === "string" ? row.trigger : JSON.stringify(row.trigger)) },
    { title: "Met", number: true, show: (row) => row.calls },
    { title: "Hits", number: true, show: (row) => row.hits },
    { title: "Holds", number: true, show: (row) => row.held },
    { title: "Do", show: (row) => [
      row.held ? button("Release", "POST", `${path}/${quoted(row.name)}/release`, {}, "fault.release()  # fault: what setting it has returned") : null, " ",
      button("Remove", "DELETE", `${path}/${quoted(row.name)}`, undefined, "fault.remove()  # fault: what setting it has returned")] },
  ], faults.map((each) => ({ ...each, class: each.name === asked ? "changed" : null })), { "data-of": "faults" })) : el("p", { class: "soft" }, "No fault is set. The form below sets one; so does any line of the journal, by what it says at its end."));
  }, undefined, 500);
}

// The requests that faults hold, asked for again when their number has changed.
async function showHeld(place, path, faults, shown) {
  const holding = faults.filter((each) => each.held), key = JSON.stringify(holding.map((each) => [each.name, each.held, each.hits]));
  if (shown.get("key") === key) return;
  shown.set("key", key);
  const found = await Promise.all(holding.map((each) => ask("GET", `${path}/${quoted(each.name)}/held`).catch(() => null)));
  if (shown.get("key") !== key) return;
  const rows = found.filter(Boolean).flatMap((each) => each.entries.map((entry) => ({ ...entry, of: each.fault })));
  fill(place, holding.length ? el("h2", {}, "What is held") : null, rows.length ? scroll("What is held", table([
    { title: "By", show: (row) => name(row.of) },
    { title: "Since (UTC)", show: (row) => when(row.at_ms) },
    { title: "API", show: (row) => el("a", { href: `#/${quoted(here.cluster)}/journal?number=${row.number}` }, `${row.api} v${row.version}`) },
    { title: "Client", show: (row) => name(row.client_id) },
    { title: "Names", show: (row) => name([row.group, row.topic, row.transactional_id].filter(Boolean).join(" · ")) },
  ], rows, { "data-of": "held" }), "short") : holding.length ? el("p", { class: "soft" }, "It is not in the journal: turn it on (Journal) before a fault is set, and this shows each request.") : null);
}

const COMPLETED = { error: "errors", api: "apis" };
const TRIGGERS = { every_time: "", once: "", times: "How many", on_call: "Which one", with_probability: "0 to 1" };
const NEEDS = { inject_error: "api", delay_on: "api", hold: "api", make_event: "api", disconnect_on: "api", corrupt_reply: "api", deliver_twice: "api", blackhole_client: "client_id" };

// The kit's own method, where it takes what is given.
const own = ({ fault, ...words }) => {
  const has = !NEEDS[fault] || NEEDS[fault] in words;
  return `broker.faults.${has ? fault : "add"}(${Object.entries(has ? words : { fault, ...words }).map(([key, each]) => `${key}=${literal(each)}`).join(", ")})`;
};

const FIRST = { error: "COORDINATOR_LOAD_IN_PROGRESS", number: 1000 }; // what a required field begins with

// An input for a field or a filter, and what it says: undefined if it is left as it is.
function input(field) {
  const first = field.default ?? (field.required ? FIRST[field.type] ?? "" : "");
  const list = COMPLETED[field.type] ? words(COMPLETED[field.type]) : null;
  const made = field.choices ? el("select", {}, field.choices.map((each) => el("option", {}, each))) : el("input", { list: list?.id, size: field.type === "number" ? 8 : 14 });
  if (!field.choices || field.default !== undefined) made.value = String(first); // else its first choice
  const read = () => {
    const text = made.value.trim();
    if (text === "" || (!field.required && text === String(field.default))) return undefined;
    if (field.type === "version") return text.includes("-") ? text.split("-").map(Number) : Number(text);
    return field.type === "number" ? Number(text) : text;
  };
  return { name: field.name, made, read, label: labelled(spelled(field.name), made, list) };
}

// "client_id" as people write it.
const spelled = (word) => (word === "api" ? "API" : word[0].toUpperCase() + word.slice(1).replaceAll("_", " "));

function form(path, kinds) {
  const kind = el("select", { onchange: offer }, kinds.map((each) => el("option", {}, each.fault)));
  const about = el("span", { class: "soft" }), fields = el("span", { class: "inner" }), filters = el("span", { class: "inner" });
  const amount = el("input", { inputmode: "decimal", size: 8 }), seed = el("input", { inputmode: "numeric", size: 8 });
  const trigger = el("select", { onchange: () => {
    amountPlace.hidden = !TRIGGERS[trigger.value];
    amountPlace.firstChild.textContent = TRIGGERS[trigger.value];
    seedPlace.hidden = trigger.value !== "with_probability";
  } }, Object.keys(TRIGGERS).map((each) => el("option", {}, each)));
  const amountPlace = labelled("How many", amount), seedPlace = labelled("Seed", seed);
  amountPlace.hidden = seedPlace.hidden = true;
  const called = el("input", { size: 14, placeholder: "made for you" });
  let inputs = [];
  function offer() {
    const given = new Map(inputs.filter((each) => each.isFilter).map((each) => [each.name, each.made.value]));
    const chosen = kinds.find((each) => each.fault === kind.value);
    const ofKind = chosen.fields.map(input);
    const ofRequests = chosen.filters.map((each) => ({ ...input(each), isFilter: true }));
    for (const each of ofRequests) each.made.value = given.get(each.name) ?? here.query.get(each.name) ?? "";
    inputs = [...ofKind, ...ofRequests];
    about.textContent = chosen.about;
    fill(fields, ofKind.map((each) => each.label));
    fill(filters, ofRequests.map((each) => each.label));
  }
  const set = () => {
    const wanted = { fault: kind.value };
    for (const each of inputs) {
      const value = each.read();
      if (value !== undefined) wanted[each.name] = value;
    }
    if (called.value) wanted.name = called.value;
    if (trigger.value === "once") wanted.trigger = "once";
    else if (trigger.value !== "every_time") wanted.trigger = { [trigger.value]: Number(amount.value), ...(seed.value && !seedPlace.hidden ? { seed: Number(seed.value) } : {}) };
    act("POST", path, wanted, own(wanted));
  };
  offer();
  return el("div", {}, el("div", { class: "bar" }, labelled("Fault", kind), fields, labelled("Trigger", trigger), amountPlace, seedPlace, labelled("Name", called)),
    el("p", { class: "soft" }, about), el("div", { class: "bar" }, filters), el("div", { class: "bar" }, el("button", { onclick: set }, "Set")));
}
