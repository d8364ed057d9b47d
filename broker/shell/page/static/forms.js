// What forms share: fields with labels, words that are completed, a button that asks whether one is sure, and pairs of name and value.

import { ask, base, el } from "./frame.js";

let numbered = 0;
let known = null; // of the words, once they are asked for

// A list of words that inputs complete: `which` is one of GET .../words.
export function words(which) {
  const list = el("datalist", { id: `words-${numbered += 1}` });
  known ??= ask("GET", `${base()}/words`).catch(() => { known = null; return {}; });
  known.then((all) => list.append(...(all?.[which] ?? []).map((each) => el("option", { value: each }))));
  return list;
}

export function completed(which, settings = {}) {
  const list = words(which);
  const made = el("input", { list: list.id, autocomplete: "off", ...settings });
  return [made, list];
}

export const labelled = (title, ...made) => {
  const id = made[0].id || `field-${numbered += 1}`;
  made[0].id = id;
  return el("span", { class: "field" }, el("label", { for: id }, title), made);
};

// A button that works once the box beside it is ticked.
export function sure(label, what, does) {
  const tick = el("input", { type: "checkbox" });
  const press = el("button", { class: "plain", disabled: true, onclick: async () => { tick.checked = false; press.disabled = true; await does(); } }, label);
  tick.addEventListener("change", () => { press.disabled = !tick.checked; });
  return [el("label", { class: "tick" }, tick, what), press];
}

// "a=1, b=2" as pairs.
export const pairs = (text) => text.split(",").map((each) => each.trim()).filter(Boolean)
  .map((each) => { const [left, ...right] = each.split("="); return [left.trim(), right.join("=").trim()]; });
