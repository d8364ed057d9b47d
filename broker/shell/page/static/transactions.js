// Transactions: transactional ids with their states; one with its timeline: begin, partitions, offsets, markers, zombies.

import { base, count, el, faultLink, fill, here, link, longList, name, quoted, scroll, table, when, watch } from "./frame.js";

const KINDS = { Ongoing: "warn", PrepareCommit: "warn", PrepareAbort: "warn", CompleteCommit: "good", CompleteAbort: "bad" };
const state = (text) => el("span", { class: KINDS[text] ?? null }, text);

export function show(place) {
  if (here.words.length) showOne(place, here.words[0]);
  else showAll(place);
}

function showAll(place) {
  place.append(el("h1", {}, "Transactions"), ...longList({
    label: "Transactions",
    path: () => `${base()}/transactions`,
    field: "transactions",
    empty: "No transactional id has this in its name.",
    none: "No transactional ids yet. One is here once a producer that has a transactional.id has called initTransactions.",
    columns: [
      { title: "Transactional id", show: (row) => link("transactions", [row.transactional_id]) },
      { title: "State", show: (row) => state(row.state) },
      { title: "Producer id", number: true, show: (row) => row.producer_id },
      { title: "Epoch", number: true, show: (row) => row.producer_epoch },
      { title: "Partitions", number: true, show: (row) => count(row.partitions.length) },
      { title: "Began (UTC)", wide: true, show: (row) => when(row.start_ms) },
      { title: "Changed (UTC)", wide: true, show: (row) => when(row.updated_ms) },
    ],
  }));
}

function showOne(place, id) {
  const head = el("div"), events = el("div");
  place.append(el("h1", {}, name(id)), head, el("h2", {}, "Timeline, newest first"), events);
  watch(`${base()}/transactions/${quoted(id)}`, (answer) => {
    fill(head, el("dl", {}, ...[["State", state(answer.state)], ["Producer", `${answer.producer_id}, epoch ${answer.producer_epoch}`],
      ["Timeout", `${count(answer.timeout_ms)} ms`], ["Partitions", name(answer.partitions.join(", ") || "none")], ["Groups", name(answer.groups.join(", ") || "none")]]
      .flatMap(([key, value]) => [el("dt", {}, key), el("dd", { "data-is": key }, value)])));
    fill(events, scroll("Timeline", table([
      { title: "Time (UTC)", show: (row) => when(row.time_ms) },
      { title: "What", show: (row) => el("span", { class: `tag ${KINDS[row.what] ?? (row.what === "Empty" ? "soft" : "bad")}` }, row.what) },
      { title: "Producer id", number: true, wide: true, show: (row) => row.producer_id },
      { title: "Epoch", number: true, show: (row) => row.producer_epoch },
      { title: "Partitions added", show: (row) => name(row.added.join(", ")) },
      { title: "Why", sentence: true, show: (row) => [name(row.why), row.fault ? faultLink(row.fault) : ""] },
    ], answer.events.map((row) => ({ ...row, class: row.epoch < 0 || /[A-Z]_[A-Z]/.test(row.what) ? "refused" : null })), { "data-of": "events" })));
  }, (error) => fill(head, el("p", { class: "bad" }, error)));
}
