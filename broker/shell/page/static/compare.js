// Two sides of the process side by side: a cluster as it is now, or one of its snapshots.

import { act, count, el, fill, here, link, literal, name, scroll, table } from "./frame.js";
import { labelled } from "./forms.js";

const SHOWN = 50; // records of a partition, of each side
const NOTHING = { topics: "no such topic", settings: "the default", offsets: "nothing committed", members: "no members" };

// Returns the part of the view, and a function that takes the names of the snapshots there are.
export function compare() {
  const chosen = [false, false], place = el("div"); // whether one was chosen
  const sides = chosen.map((_, n) => el("select", { onchange: () => { chosen[n] = true; } }));
  const side = ({ value }) => (value ? { cluster: here.cluster, snapshot: value } : { cluster: here.cluster });
  const python = ({ value }) => (value ? `momus.Snapshot(${literal(value)}, broker)` : "broker");
  async function run() {
    const [first, second] = sides;
    const answer = await act("POST", "/_admin/diff", { first: side(first), second: side(second) }, `momus.diff(${python(first)}, ${python(second)})`);
    if (answer) show(place, answer, sides.map((each) => each.value || "now"));
  }
  function offer(snapshots) {
    sides.forEach((each, n) => { // the newest and now, until others are chosen
      const wanted = chosen[n] ? each.value : n ? "" : snapshots.at(-1) ?? "";
      fill(each, el("option", { value: "" }, "now"), snapshots.map((one) => el("option", { value: one }, one)));
      each.value = snapshots.includes(wanted) ? wanted : "";
    });
  }
  offer([]);
  return [el("div", {}, el("div", { class: "bar" }, labelled("First", sides[0]), labelled("Second", sides[1]), el("button", { class: "plain", onclick: run }, "Compare")), place), offer];
}

function show(place, answer, titles) {
  if (!answer.different) return fill(place, el("p", { class: "good", role: "status" }, "Nothing is different."));
  const both = (what, shown = (value) => name(value)) => ["first", "second"].map((side, n) => (
    { title: titles[0] === titles[1] ? `${titles[n]} (${n + 1})` : titles[n], show: (row) => (row[side] === undefined ? el("span", { class: "soft" }, NOTHING[what]) : shown(row[side])) }));
  const part = (what, title, columns) => (answer[what].length
    ? [el("h3", {}, title), scroll(title, table(columns, answer[what], { "data-of": `diff-${what}` }), "short")] : null);
  fill(place, [
    part("topics", "Topics", [{ title: "Topic", show: (row) => link("topics", [row.topic]) }, ...both("topics", (value) => `${count(value)} partitions`)]),
    part("settings", "Settings", [{ title: "Topic", show: (row) => link("topics", [row.topic]) }, { title: "Setting", show: (row) => name(row.name) }, ...both("settings")]),
    part("records", "Records", [{ title: "Partition", show: (row) => name(`${row.topic}-${row.partition}`) }, ...both("records", records)]),
    part("offsets", "Committed offsets", [{ title: "Group", show: (row) => link("groups", [row.group]) },
      { title: "Partition", show: (row) => name(`${row.topic}-${row.partition}`) }, ...both("offsets")]),
    part("members", "Members", [{ title: "Group", show: (row) => link("groups", [row.group]) }, ...both("members", (value) => name(value.join(", ")))]),
  ].flat());
}

const text = (value) => (value === null ? "null" : typeof value === "string" ? value : `${value.base64} (base64)`);

const records = (found) => [found.slice(0, SHOWN).map((each) => el("div", {}, el("span", { class: "soft" }, `${each.offset} `), name(text(each.key)), ": ", name(text(each.value)))),
  found.length > SHOWN ? el("div", { class: "soft" }, `and ${count(found.length - SHOWN)} more`) : null, found.length ? null : el("span", { class: "soft" }, "none")].flat();
