// Groups: the list; one group with members, partitions, offsets, lag over time, history, and seek.

import { act, ask, base, count, el, faultLink, fill, here, link, literal, longList, name, onLeave, parts, quoted, scroll, table, when, watch } from "./frame.js";
import { chart } from "./chart.js";
import { labelled, sure } from "./forms.js";

const LAG_MS = 5000; // between two looks at the lag over time

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
    none: "No groups yet. One is here once a consumer has joined it, or has committed an offset.",
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
  const [past, readPast] = history(path), [owners, readOwners] = ownersOf(path), lagChart = el("div"), expelled = el("input", { size: 30 });
  let before = "", held = "";
  place.append(el("h1", {}, name(group)), head, parts(el("h2", {}, "Lag"), lag, lagChart, el("h2", {}, "Offsets"), offsets, el("h2", {}, "Members"), members,
    el("h2", {}, "Who has what"), assignments, el("h2", {}, "Who had what"), owners, el("h2", {}, "History of offsets"), past,
    el("h2", {}, "Seek"), seek(path), el("h2", {}, "Delete"), el("div", { class: "bar" }, sure("Delete the group", "with its offsets", async () => {
      if (await act("DELETE", path, undefined, `broker.delete_group(${literal(group)})`)) location.hash = `#/${quoted(here.cluster)}/groups`;
    })), el("h2", {}, "Members, by force"), el("div", { class: "bar" },
      el("button", { class: "plain", onclick: () => act("POST", `${path}/rebalance`, undefined, `broker.rebalance(${literal(group)})`) }, "Rebalance"),
      labelled("Member or instance", expelled), el("button", { class: "plain", onclick: () => act("POST", `${path}/expel`, { member: expelled.value }, `broker.expel_member(${literal(group)}, ${literal(expelled.value)})`) }, "Expel it"))));
  lagOverTime(lagChart, path);
  watch(`${path}/details`, (answer) => {
    const lags = answer.offsets.filter((row) => row.committed >= 0).map((row) => row.lag); // of what is committed
    const total = lags.includes(undefined) ? undefined : lags.reduce((sum, each) => sum + each, 0);
    fill(lag, el("p", {}, el("span", { "data-is": "lag" }, count(total)), " records behind"));
    const text = JSON.stringify(answer);
    if (text === before) return;
    if (before) readPast(); // something has moved; the first look is made by itself
    before = text;
    const holding = JSON.stringify(answer.assignments);
    if (holding !== held) { held = holding; readOwners(answer.assignments).then((known) => showHolders(answer, known)); }
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
    fill(offsets, scroll("Offsets", table([
      { title: "Topic", show: (row) => link("topics", [row.topic]) },
      { title: "Partition", number: true, show: (row) => row.partition },
      { title: answer.type === "share" ? "Start" : "Committed", number: true, show: (row) => (row.committed < 0 ? el("span", { class: "soft" }, "nothing") : row.committed) },
      { title: "End", number: true, show: (row) => row.end ?? "?" },
      { title: "Lag", number: true, show: (row) => (row.committed < 0 ? "" : count(row.lag)) },
      ...(answer.dead_letters ? [{ title: "On the way to the queue", number: true, show: (row) => count(row.archiving) }] : []),
      { title: "Committed at (UTC)", wide: true, show: (row) => when(row.committed_ms) },
      { title: "Metadata", wide: true, show: (row) => name(row.metadata) },
      { title: "Member", wide: true, show: (row) => name(row.member) },
    ], answer.offsets, { "data-of": "offsets" }), "short"));
  }, (error) => fill(head, el("p", { class: "bad" }, error)));

  // `known`: since when each member has each partition, by the log.
  function showHolders(answer, known) {
    const since = (row) => known.find((each) => each.until_ms < 0 && each.partition === row.partition && each.member === row.member);
    fill(assignments, scroll("Who has what", table([
      { title: answer.type === "streams" ? "Task" : "Partition", show: (row) => name(row.partition) },
      { title: "Member", show: (row) => name(row.member) },
      { title: "Client", wide: true, show: (row) => name(row.client) },
      { title: answer.type === "classic" ? "Since generation" : "Since epoch", number: true, show: (row) => epoch(row.since_epoch < 0 ? since(row)?.epoch ?? -1 : row.since_epoch) },
      { title: "Since (UTC)", show: (row) => when(since(row)?.since_ms ?? -1) },
      { title: "State", show: (row) => el("span", { class: row.state === "has" ? "good" : "warn" }, row.state) },
    ], answer.assignments, { "data-of": "assignments" }), "short"));
  }
}

// Who had which partition, from when to when; the partition that is chosen, or all.
function ownersOf(path) {
  const place = el("div"), only = el("select", { "aria-label": "Partition", onchange: () => draw() }, el("option", { value: "" }, "all partitions"));
  let rows = [], wrong = "";
  function draw() {
    const shown = rows.filter((row) => !only.value || row.partition === only.value);
    fill(place, shown.length ? scroll("Who had what", table([
      { title: "Partition", show: (row) => name(row.partition) },
      { title: "Member", wide: true, show: (row) => name(row.member) },
      { title: "Client", show: (row) => name(row.client) },
      { title: "Epoch", number: true, show: (row) => epoch(row.epoch) },
      { title: "From (UTC)", show: (row) => when(row.since_ms) },
      { title: "To (UTC)", show: (row) => (row.until_ms < 0 ? "still" : when(row.until_ms)) },
    ], shown, { "data-of": "owners" }), "short") : el("p", { class: "soft" }, wrong || "No member has had a partition, as far back as the log of the group goes."));
  }
  async function read() {
    wrong = "";
    rows = (await ask("GET", `${path}/owners`).catch((error) => { wrong = error.message; return { owners: [] }; })).owners;
    const places = [...new Set(rows.map((row) => row.partition))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const chosen = only.value;
    fill(only, el("option", { value: "" }, "all partitions"), places.map((each) => el("option", { value: each }, each)));
    only.value = places.includes(chosen) ? chosen : "";
    draw();
    return rows;
  }
  return [el("div", {}, el("div", { class: "bar" }, only), place), read];
}

// The lag over the last minutes, from the broker's own logs.
async function lagOverTime(place, path) {
  const minutes = el("select", { "aria-label": "Minutes of the chart", onchange: () => read() }, [10, 60, 360].map((each) => el("option", { value: each }, `${each} minutes`)));
  const drawn = el("div");
  place.append(el("div", { class: "bar" }, minutes), drawn);
  const draw = await chart(drawn, { title: "Lag over the last minutes", unit: "records", names: ["lag"] });
  async function read() {
    const answer = await ask("GET", `${path}/lag?minutes=${minutes.value}&points=120`);
    drawn.dataset.points = JSON.stringify(answer.points.map((each) => each.lag));
    draw(answer.points.map((each) => each.at_ms / 1000), [answer.points.map((each) => each.lag)]);
  }
  const quietly = () => read().catch(() => {}); // the view itself says what is wrong
  quietly();
  const timer = setInterval(quietly, LAG_MS);
  onLeave(() => clearInterval(timer));
}

const GOOD = ["accepted", "committed"];

function history(path) {
  const place = el("div"), said = el("p", { class: "soft", role: "status" });
  async function read() {
    let answer;
    try { answer = await ask("GET", `${path}/history`); } catch (error) { said.textContent = error.message; return; }
    said.textContent = answer.has_journal ? "" : "No journal is kept: refused commits are not known (Journal has a button).";
    fill(place, scroll("History of offsets", table([
      { title: "Time (UTC)", show: (row) => when(row.time_ms) },
      { title: "Partition", show: (row) => name(`${row.topic}-${row.partition}`) },
      { title: "Offset", number: true, show: (row) => (row.offset < 0 ? "" : row.offset) },
      { title: "Verdict", show: (row) => el("span", { class: `tag ${GOOD.includes(row.verdict) ? "good" : "bad"}` }, row.verdict) },
      { title: "Epoch", number: true, show: (row) => epoch(row.epoch) },
      { title: "Member", wide: true, show: (row) => name(row.member) },
      { title: "Client", wide: true, show: (row) => name(row.client) },
      { title: "Why", sentence: true, show: (row) => [name(row.why), row.fault ? faultLink(row.fault) : ""] },
    ], answer.history.map((row) => ({ ...row, class: GOOD.includes(row.verdict) ? null : "refused" })), { "data-of": "history" }), "short"));
  }
  read();
  return [el("div", {}, el("div", { class: "bar" }, el("button", { class: "plain", onclick: read }, "Read again"), said), place), read];
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
  return el("div", {}, el("div", { class: "bar" }, labelled("To", word), labelled("Number (offset, records, Unix ms)", amount),
    labelled("Topic", topic), el("button", { onclick: () => run(true) }, "Try"), commit), place);
}
