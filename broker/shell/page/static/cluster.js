// The cluster: brokers (stop, start, lag), clock, reset, snapshots and forks, features.

import { act, base, button, bytes, count, el, fill, here, link, literal, name, parts, quoted, redraw, scroll, table, time, watch, when } from "./frame.js";
import { compare } from "./compare.js";

const MINUTE = 60_000, DAY = 86_400_000;

export function show(place) {
  const facts = el("div"), clock = el("p", {}), nodes = el("div"), features = el("div"), snapshots = el("div");
  const at = (path) => base() + path;
  const snapshot = el("input", { size: 12, "aria-label": "Name of the snapshot", placeholder: "name" });
  const fork = el("input", { size: 12, "aria-label": "Name of the fork", placeholder: "name" });
  const sure = el("input", { type: "checkbox" });
  const reset = el("button", { disabled: true, onclick: async () => { await act("POST", at("/reset"), undefined, "broker.reset()"); sure.checked = false; reset.disabled = true; } }, "Reset");
  sure.addEventListener("change", () => { reset.disabled = !sure.checked; });
  const [compared, offer] = compare();
  const named = (field) => (field.value ? { name: field.value } : {});
  const asked = (word, field) => `broker.${word}(${field.value ? `name=${JSON.stringify(field.value)}` : ""})`;
  place.append(el("h1", {}, "Cluster"), parts(facts,
    el("h2", {}, "Brokers"), nodes,
    el("h2", {}, "Clock"), clock, el("div", { class: "bar" },
      button("Freeze", "POST", at("/clock"), { freeze: true }, "broker.clock.freeze()"),
      button("+1 minute", "POST", at("/clock"), { advance_ms: MINUTE }, "broker.clock.advance(minutes=1)"),
      button("+1 day", "POST", at("/clock"), { advance_ms: DAY }, "broker.clock.advance(days=1)"),
      button("Resume", "POST", at("/clock"), { resume: true }, "broker.clock.resume()")),
    el("h2", {}, "Snapshots"), snapshots, el("div", { class: "bar" }, snapshot,
      el("button", { class: "plain", onclick: () => act("POST", at("/snapshots"), named(snapshot), asked("snapshot", snapshot)) }, "Take a snapshot"),
      fork, el("button", { class: "plain", onclick: async () => { if (await act("POST", at("/fork"), named(fork), asked("fork", fork))) redraw(); } }, "Fork the cluster")),
    el("h2", {}, "What is different"), compared,
    el("h2", {}, "Reset"), el("div", { class: "bar" }, el("label", { class: "tick" }, sure, "drop all data and connections"), reset),
    el("h2", {}, "Features"), features));

  let last = null, before = {};
  const once = (key, value, draw) => { const text = JSON.stringify(value); if (before[key] !== text) { before[key] = text; draw(); } };
  watch(at("/overview"), (answer) => {
    const now = performance.now();
    const rate = last && answer.requests >= last.requests ? Math.round((answer.requests - last.requests) / ((now - last.now) / 1000)) : 0;
    last = { requests: answer.requests, now };
    fill(facts, el("dl", {}, ...[["Cluster id", answer.cluster_id], ["Bootstrap servers", answer.bootstrap_servers], ["Flush", answer.flush],
      ["Topics", count(answer.topics)], ["Partitions", count(answer.partitions)], ["Not in sync", count(answer.under_replicated)],
      ["Connections", count(answer.connections)], ["Requests", count(answer.requests)], ["Requests a second", count(rate)]]
      .flatMap(([key, value]) => [el("dt", {}, key), el("dd", { "data-is": key }, value)])));
    fill(clock, el("span", { "data-is": "clock" }, time(answer.clock.now_ms)), " UTC, ", answer.clock.stands ? el("strong", {}, "stands") : "runs");
    once("nodes", answer.nodes, () => fill(nodes, scroll("Brokers", table([
      { title: "Broker", number: true, show: (row) => row.id },
      { title: "State", show: (row) => el("span", { class: row.up && !row.paused ? "good" : "bad" }, row.paused ? "paused" : row.up ? (row.lags ? "lags" : "up") : "stopped") },
      { title: "Leads", number: true, show: (row) => count(row.leads) },
      { title: "In sync", number: true, show: (row) => count(row.in_sync) },
      { title: "Listeners", wide: true, show: (row) => name(row.listeners) },
      { title: "Do", show: (row) => row.paused ? button(`Resume broker ${row.id}`, "POST", at(`/brokers/${row.id}/resume`), undefined, `broker.resume_broker(${row.id})`) : [row.up
        ? button(`Stop broker ${row.id}`, "POST", at(`/brokers/${row.id}/stop`), undefined, `broker.stop_broker(${row.id})`)
        : button(`Start broker ${row.id}`, "POST", at(`/brokers/${row.id}/start`), undefined, `broker.start_broker(${row.id})`), " ",
      row.up ? button(row.lags ? `Let broker ${row.id} catch up` : `Let broker ${row.id} lag`, "POST", at(`/brokers/${row.id}/${row.lags ? "release" : "lag"}`), undefined,
        `broker.${row.lags ? "release_follower" : "lag_follower"}(${row.id})`) : null, " ",
      row.up ? button(`Pause broker ${row.id}`, "POST", at(`/brokers/${row.id}/pause`), undefined, `broker.pause_broker(${row.id})`) : null] },
    ], answer.nodes, { "data-of": "nodes" }))));
    once("snapshots", answer.snapshots, () => { offer(answer.snapshots.map((each) => each.name)); fill(snapshots, answer.snapshots.length ? scroll("Snapshots", table([
      { title: "Snapshot", show: (row) => name(row.name) },
      { title: "Taken (UTC)", show: (row) => when(row.taken_ms) },
      { title: "Files", number: true, wide: true, show: (row) => row.files },
      { title: "Size", number: true, wide: true, show: (row) => bytes(row.log_bytes) },
      { title: "Do", show: (row) => [button(`Restore ${row.name}`, "POST", at("/restore"), { snapshot: row.name }, `broker.restore(${JSON.stringify(row.name)})`), " ",
        button(`Remove ${row.name}`, "DELETE", at(`/snapshots/${quoted(row.name)}`), undefined, `broker.remove_snapshot(${literal(row.name)})`)] },
    ], answer.snapshots, { "data-of": "snapshots" }), "short") : el("p", { class: "soft" }, "None. A snapshot keeps all data as it is now: to go back to it, or to see what a test has changed.")); });
    once("features", answer.features, () => fill(features, scroll("Features", table([
      { title: "Feature", show: (row) => row.name },
      { title: "Level", number: true, show: (row) => row.level },
      { title: "From", number: true, show: (row) => row.lowest },
      { title: "To", number: true, show: (row) => row.highest },
    ], answer.features, { "data-of": "features" }), "short")));
  });
}
