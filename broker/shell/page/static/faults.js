// Faults: those that are set, with calls and hits; hold and release; a form for a new one, filled from a journal's line.

import { act, base, button, el, fill, here, literal, name, quoted, scroll, table, watch } from "./frame.js";

const KINDS = ["inject_error", "hold", "delay_on", "disconnect_on", "blackhole_client", "throttle", "corrupt_reply", "deliver_twice", "slow_disk", "full_disk", "fail_write", "fail_fsync"];
const VALUES = { inject_error: ["error"], delay_on: ["ms"], throttle: ["bytes_per_second"], slow_disk: ["ms"], full_disk: ["free_bytes"] };
const NUMBERS = ["ms", "bytes_per_second", "free_bytes"];
const FILTERS = ["api", "client_id", "group", "topic", "transactional_id"];
const COUNTS = ["name", "fault", "trigger", "calls", "hits", "held"];

export function show(place) {
  const list = el("div");
  const path = `${base()}/faults`;
  place.append(el("h1", {}, "Faults"), list, el("h2", {}, "A new fault"), form(path));
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

function form(path) {
  const kind = el("select", { onchange: offer }, KINDS.map((each) => el("option", {}, each)));
  const value = el("input", {}), caption = el("span", {}), label = el("label", {}, caption, value);
  const trigger = el("select", {}, ["every_time", "once"].map((each) => el("option", {}, each)));
  const filters = Object.fromEntries(FILTERS.map((each) => [each, el("input", { value: here.query.get(each) ?? "" })]));
  function offer() {
    const [wanted] = VALUES[kind.value] ?? [];
    label.hidden = !wanted;
    caption.textContent = wanted ?? "";
    value.value = wanted === "error" ? "COORDINATOR_LOAD_IN_PROGRESS" : wanted ? "1000" : "";
  }
  function body() {
    const found = { fault: kind.value };
    const [wanted] = VALUES[kind.value] ?? [];
    if (wanted) found[wanted] = NUMBERS.includes(wanted) ? Number(value.value) : value.value;
    for (const [key, field] of Object.entries(filters)) if (field.value) found[key] = field.value;
    if (trigger.value !== "every_time") found.trigger = trigger.value;
    return found;
  }
  const set = () => {
    const wanted = body();
    act("POST", path, wanted, `broker.faults.add(${Object.entries(wanted).map(([key, each]) => `${key}=${literal(each)}`).join(", ")})`);
  };
  offer();
  return el("div", { class: "bar" }, el("label", {}, "Fault", kind), label, el("label", {}, "Trigger", trigger),
    FILTERS.map((each) => el("label", {}, each, filters[each])), el("button", { onclick: set }, "Set"));
}
