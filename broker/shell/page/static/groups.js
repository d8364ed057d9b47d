// Groups: the list; one group with members, partitions, offsets, lag over time, history, and seek.

import { act, ask, base, count, el, fill, here, link, longList, name, quoted, scroll, table, time, watch } from "./frame.js";

const POINTS = 300; // of the chart: five minutes at an update a second

export function show(place) {
  if (here.words.length) showGroup(place, here.words[0]);
  else showAll(place);
}

function showAll(place) {
  place.append(el("h1", {}, "Groups"), ...longList({
    label: "Groups",
    path: () => `${base()}/groups`,
    field: "groups",
    empty: "No group has this in its name.",
    columns: [
      { title: "Group", show: (row) => link("groups", [row.group]) },
      { title: "Type", show: (row) => row.type },
      { title: "State", show: (row) => state(row.state) },
      { title: "Members", number: true, show: (row) => count(row.members) },
      { title: "Partitions", number: true, wide: true, show: (row) => count(row.partitions) },
      { title: "Lag", number: true, show: (row) => count(row.lag) },
    ],
  }));
}

const state = (text) => el("span", { class: text === "Stable" ? "good" : text === "Dead" ? "bad" : "warn" }, text);
const epoch = (value) => (value < 0 ? "" : value);

// The queue of a share group, and what keeps records from it; "" where there is none.
function deadLetters(found) {
  if (!found?.queue) return "";
  return el("span", {}, found.exists ? link("topics", [found.queue]) : name(found.queue), found.copies ? ", with copies" : "",
    found.why_not ? el("span", { class: "bad" }, `: nothing is written, ${found.why_not}`) : "");
}

function showGroup(place, group) {
  const path = `${base()}/groups/${quoted(group)}`;
  const head = el("div"), members = el("div"), assignments = el("div"), offsets = el("div"), lag = el("div");
  const chart = new Chart();
  let before = "";
  place.append(el("h1", {}, name(group)), head, lag, el("h2", {}, "Offsets"), offsets, el("h2", {}, "Members"), members,
    el("h2", {}, "Who has what"), assignments, el("h2", {}, "History of offsets"), history(path),
    el("h2", {}, "Seek"), seek(path));
  watch(`${path}/details`, (answer) => {
    const lags = answer.offsets.map((row) => row.lag);
    const total = lags.includes(undefined) ? undefined : lags.reduce((sum, each) => sum + each, 0);
    if (total !== undefined) chart.add(total);
    fill(lag, el("h2", {}, "Lag"), el("p", {}, el("span", { "data-is": "lag" }, count(total)), " records behind"), chart.draw());
    const text = JSON.stringify(answer);
    if (text === before) return;
    before = text;
    fill(head, el("dl", {}, ...[["Type", answer.type || "none"], ["State", state(answer.state)], ["Group epoch", epoch(answer.group_epoch)],
      ["Assignment epoch", epoch(answer.assignment_epoch)], ["Assignor", name(answer.protocol)],
      ["Dead-letter queue", deadLetters(answer.dead_letters)]]
      .filter(([, value]) => value !== "").flatMap(([key, value]) => [el("dt", {}, key), el("dd", { "data-is": key }, value)])));
    fill(members, scroll("Members", table([
      { title: "Member", show: (row) => name(row.member) },
      { title: "Client", show: (row) => name(row.client) },
      { title: "Instance", wide: true, show: (row) => name(row.instance) },
      { title: "Host", wide: true, show: (row) => name(row.host) },
      { title: "Epoch", number: true, show: (row) => epoch(row.epoch) },
      { title: "Has", number: true, show: (row) => row.has },
      { title: "Shall have", number: true, show: (row) => row.target },
    ], answer.members, { "data-of": "members" }), "short"));
    fill(assignments, scroll("Who has what", table([
      { title: answer.type === "streams" ? "Task" : "Partition", show: (row) => name(row.partition) },
      { title: "Member", show: (row) => name(row.member) },
      { title: "Client", wide: true, show: (row) => name(row.client) },
      { title: "Since epoch", number: true, show: (row) => epoch(row.since_epoch) },
      { title: "State", show: (row) => el("span", { class: row.state === "has" ? "good" : "warn" }, row.state) },
    ], answer.assignments, { "data-of": "assignments" }), "short"));
    fill(offsets, scroll("Offsets", table([
      { title: "Topic", show: (row) => link("topics", [row.topic]) },
      { title: "Partition", number: true, show: (row) => row.partition },
      { title: answer.type === "share" ? "Start" : "Committed", number: true, show: (row) => (row.committed < 0 ? "" : row.committed) },
      { title: "End", number: true, show: (row) => row.end ?? "?" },
      { title: "Lag", number: true, show: (row) => count(row.lag) },
      ...(answer.dead_letters ? [{ title: "On the way to the queue", number: true, show: (row) => count(row.archiving) }] : []),
      { title: "Committed at (UTC)", wide: true, show: (row) => time(row.committed_ms) },
      { title: "Metadata", wide: true, show: (row) => name(row.metadata) },
      { title: "Member", wide: true, show: (row) => name(row.member) },
    ], answer.offsets, { "data-of": "offsets" }), "short"));
  }, (error) => fill(head, el("p", { class: "bad" }, error)));
}

// The lag since the page was opened, at most POINTS of it.
class Chart {
  points = [];

  add(value) {
    this.points.push(value);
    if (this.points.length > POINTS) this.points.shift();
  }

  draw() {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "svg"), most = Math.max(1, ...this.points);
    const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    for (const [key, value] of Object.entries({ class: "chart", viewBox: "0 0 300 60", role: "img", preserveAspectRatio: "none",
      "aria-label": `Lag over the last ${this.points.length} updates, at most ${count(Math.max(0, ...this.points))}` })) made.setAttribute(key, value);
    line.setAttribute("points", this.points.map((value, n) => `${n * (300 / Math.max(1, this.points.length - 1))},${58 - (value / most) * 56}`).join(" "));
    line.setAttribute("fill", "none");
    line.setAttribute("stroke", "currentColor");
    line.setAttribute("stroke-width", "2");
    made.append(line);
    return made;
  }
}

const GOOD = ["accepted", "committed"];

function history(path) {
  const place = el("div"), said = el("p", { class: "soft", role: "status" });
  async function read() {
    let answer;
    try { answer = await ask("GET", `${path}/history`); } catch (error) { said.textContent = error.message; return; }
    said.textContent = answer.has_journal ? "" : "No journal is kept: refused commits are not known (Journal has a button).";
    fill(place, scroll("History of offsets", table([
      { title: "Time (UTC)", show: (row) => time(row.time_ms) },
      { title: "Partition", show: (row) => name(`${row.topic}-${row.partition}`) },
      { title: "Offset", number: true, show: (row) => (row.offset < 0 ? "" : row.offset) },
      { title: "Verdict", show: (row) => el("span", { class: `tag ${GOOD.includes(row.verdict) ? "good" : "bad"}` }, row.verdict) },
      { title: "Epoch", number: true, show: (row) => epoch(row.epoch) },
      { title: "Member", wide: true, show: (row) => name(row.member) },
      { title: "Client", wide: true, show: (row) => name(row.client) },
      { title: "Why", show: (row) => name(row.why) },
    ], answer.history, { "data-of": "history" }), "short"));
  }
  read();
  return el("div", {}, el("div", { class: "bar" }, el("button", { class: "plain", onclick: read }, "Read again"), said), place);
}

function seek(path) {
  const word = el("select", {}, ["earliest", "latest", "offset", "shift", "time"].map((each) => el("option", {}, each)));
  const amount = el("input", { inputmode: "numeric", size: 15, disabled: true });
  const topic = el("input", { placeholder: "all that is committed" });
  const place = el("div"), commit = el("button", { disabled: true }, "Commit this");
  word.addEventListener("change", () => { amount.disabled = ["earliest", "latest"].includes(word.value); commit.disabled = true; });
  const body = (isDry) => ({ to: word.value, ...(amount.disabled ? {} : { number: Number(amount.value) }),
    ...(topic.value ? { topic: topic.value } : {}), dry_run: isDry });
  async function run(isDry) {
    const answer = await act("POST", `${path}/seek`, body(isDry));
    commit.disabled = !answer || !isDry || !answer.plan.length;
    if (!answer) return;
    fill(place, el("p", { role: "status" }, answer.dry_run ? "So far nothing has moved." : "Committed."), scroll("Where the offsets go", table([
      { title: "Partition", show: (row) => name(`${row.topic}-${row.partition}`) },
      { title: "From", number: true, show: (row) => (row.before < 0 ? "" : row.before) },
      { title: "To", number: true, show: (row) => row.after },
      { title: "Remark", show: (row) => row.remark },
    ], answer.plan, { "data-of": "plan" }), "short"));
  }
  commit.addEventListener("click", () => run(false));
  return el("div", {}, el("div", { class: "bar" }, el("label", {}, "To", word), el("label", {}, "Number (offset, records, Unix ms)", amount),
    el("label", {}, "Topic", topic), el("button", { onclick: () => run(true) }, "Try"), commit), place);
}
