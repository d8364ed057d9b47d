// Faults: those that are set, with calls and hits; hold and release; a form for a new one, made from GET /faults/kinds and filled from a journal's line.

import { act, ask, base, button, el, fill, here, literal, name, quoted, scroll, table, watch } from "./frame.js";

const COUNTS = ["name", "fault", "trigger", "calls", "hits", "held"];

export function show(place) {
  const list = el("div"), formPlace = el("div");
  const path = `${base()}/faults`;
  place.append(el("h1", {}, "Faults"), list, el("h2", {}, "A new fault"), formPlace);
  ask("GET", `${path}/kinds`).then((kinds) => fill(formPlace, form(path, kinds)), (error) => fill(formPlace, error.message));
  watch(path, (faults) => fill(list, faults.length ? scroll("Faults", table([
    { title: "Name", show: (row) => name(row.name) },
    { title: "Fault", show: (row) => row.fault },
    { title: "What", show: (row) => name(Object.entries(row).filter(([key]) => !COUNTS.includes(key)).map(([key, value]) => `${key}=${value}`).join(" ")) },
    { title: "Trigger", wide: true, show: (row) => (typeof row.trigger === "string" ? row.trigger : JSON.stringify(row.trigger)) },
    { title: "Met", number: true, show: (row) => row.calls },
    { title: "Hits", number: true, show: (row) => row.hits },
    { title: "Holds", number: true, show: (row) => row.held },
    { title: "Do", show: (row) => [
      row.held ? button("Release", "POST", `${path}/${quoted(row.name)}/release`, {}) : null, " ",
      button("Remove", "DELETE", `${path}/${quoted(row.name)}`)] },
  ], faults, { "data-of": "faults" })) : el("p", { class: "soft" }, "No fault is set.")), undefined, 500);
}

const FIRST = { error: "COORDINATOR_LOAD_IN_PROGRESS", number: 1000 }; // what a required field begins with

// An input for a field or a filter, and what it says: undefined if it is left as it is.
function input(field) {
  const first = field.default ?? (field.required ? FIRST[field.type] ?? "" : "");
  const made = field.choices ? el("select", {}, field.choices.map((each) => el("option", {}, each))) : el("input", {});
  made.value = String(first);
  const read = () => {
    const text = made.value.trim();
    if (text === "" || (!field.required && text === String(field.default))) return undefined;
    if (field.type === "version") return text.includes("-") ? text.split("-").map(Number) : Number(text);
    return field.type === "number" ? Number(text) : text;
  };
  return { name: field.name, made, read, label: el("label", {}, field.name, made) };
}

function form(path, kinds) {
  const kind = el("select", { onchange: offer }, kinds.map((each) => el("option", {}, each.fault)));
  const about = el("span", { class: "soft" }), fields = el("span", { class: "bar" }), filters = el("span", { class: "bar" });
  const trigger = el("select", {}, ["every_time", "once"].map((each) => el("option", {}, each)));
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
    if (trigger.value !== "every_time") wanted.trigger = trigger.value;
    act("POST", path, wanted, `broker.faults.add(${Object.entries(wanted).map(([key, each]) => `${key}=${literal(each)}`).join(", ")})`);
  };
  offer();
  return el("div", { class: "bar" }, el("label", {}, "Fault", kind), fields, el("label", {}, "Trigger", trigger), filters,
    el("button", { onclick: set }, "Set"), about);
}
