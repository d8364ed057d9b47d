// What all views share: elements made from text, calls of the control plane, the stream of events, and the address.

import { kitLines } from "./kits.js";

const VIEWS = {
  overview: "Overview",
  timeline: "Timeline",
  topics: "Topics",
  groups: "Groups",
  journal: "Journal",
  faults: "Faults",
  transactions: "Transactions",
  schemas: "Schemas",
  security: "Security",
  cluster: "Cluster",
};
const ROW = 32; // pixels of a row in a long list; style.css says the same

export const here = { cluster: "default", view: "topics", words: [], query: new URLSearchParams() };
let token = "";
let stream = null; // the AbortController of the open one
let leave = []; // what ends with the view

// ---- elements

export function el(name, settings = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(settings)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked" || key === "disabled" || key === "hidden") made[key] = value;
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined).map(asNode));
  return made;
}

function asNode(value) {
  return value instanceof Node ? value : document.createTextNode(String(value));
}

// A name that clients have chosen: its direction of writing stays inside.
export const name = (text) => el("bdi", {}, String(text).length > 200 ? `${String(text).slice(0, 200)}…` : text);

export function fill(place, ...children) {
  place.replaceChildren(...children.flat().filter((each) => each !== null).map(asNode));
}

export const count = (value) => (value === undefined ? "?" : Number(value).toLocaleString("en"));

export function bytes(value) {
  for (const [unit, size] of [["GB", 2 ** 30], ["MB", 2 ** 20], ["kB", 2 ** 10]]) {
    if (value >= size) return `${(value / size).toFixed(1)} ${unit}`;
  }
  return `${value} B`;
}

export const time = (ms) => (ms < 0 ? "" : new Date(ms).toISOString().replace("T", " ").slice(0, 23));

// A time that stays on one line.
export const when = (ms) => el("span", { class: "when" }, time(ms));

// Of a column: number, wide (left out on a phone), sentence (it takes what the others leave).
const cell = (tag, column, content) =>
  el(tag, { class: ["number", "wide", "sentence"].filter((each) => column[each]).join(" ") || null }, content);

export const rowOf = (columns, row) => el("tr", { class: row.class }, columns.map((each) => cell("td", each, each.show(row))));

function head(column) {
  const made = cell("th", column, column.title);
  made.scope = "col";
  return made.textContent.trim() ? made : cell("td", column, ""); // a head without a name is none
}

export function table(columns, rows, settings = {}) {
  return el("table", settings,
    el("thead", {}, el("tr", {}, columns.map(head))),
    el("tbody", {}, rows.map((row) => rowOf(columns, row))));
}

export const scroll = (label, content, kind = "") =>
  el("div", { class: `scroll ${kind}`, tabindex: 0, role: "region", "aria-label": label }, content);

// Headings, each with what follows it, as parts that stand beside each other on a wide screen.
export function parts(...children) {
  const made = [];
  for (const each of children.flat().filter(Boolean)) {
    if (each.tagName === "H2" || !made.length) made.push(el("section"));
    made.at(-1).append(each);
  }
  return el("div", { class: "parts" }, made);
}

const FAMILIES = { commit: /OffsetCommit|OffsetFetch|OffsetDelete/, write: /^Produce/, read: /Fetch|ListOffsets/, transaction: /Txn|Transaction|ProducerId/,
  group: /Group|Heartbeat|Coordinator/, connect: /^(ApiVersions|Metadata|Sasl)/ };

// The class of a row by its API and what came of it: refused, waits, or nothing of the two.
export const coloured = (api, outcome = "") => `of-${Object.keys(FAMILIES).find((each) => FAMILIES[each].test(api)) ?? "admin"} ${outcome}`.trim();

// ---- calls

export const base = () => `/_admin/clusters/${encodeURIComponent(here.cluster)}`;
export const quoted = encodeURIComponent;

// While a pointer is pressed nothing on the page moves or is made again: the click would be lost. What has come is shown
// after its release, of which a bar that scrolls tells by the next move alone; after five seconds in any case.
let released = Promise.resolve(), release = () => {};
addEventListener("pointerdown", () => { released = new Promise((done) => { release = () => setTimeout(done); setTimeout(done, 5000); }); }, true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => release(), true);
addEventListener("pointermove", (event) => { if (!event.buttons) release(); }, true);

const headers = (more = {}) => (token ? { ...more, Authorization: `Bearer ${token}` } : more);

export async function ask(method, path, body) {
  const options = { method, headers: headers(body ? { "Content-Type": "application/json" } : {}) };
  if (body) options.body = JSON.stringify(body);
  const answer = await fetch(path, options);
  if (answer.status === 401) askForToken();
  else document.body.classList.remove("barred");
  const said = await answer.json();
  await released;
  if (!answer.ok) throw new Error(said.error);
  return said;
}

// Reads a GET that streams lines of JSON: `hear` is called with each.
export async function lines(path, signal, hear) {
  const answer = await fetch(path, { headers: headers(), signal });
  if (answer.status === 401) askForToken();
  if (!answer.ok) throw new Error((await answer.json()).error);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    await released;
    const found = (text + value).split("\n");
    text = found.pop();
    try { found.forEach((each) => hear(JSON.parse(each))); } catch (error) { reader.cancel(); throw error; }
  }
}

// Keeps what a GET answers as a file of the browser's. Returns its size.
export async function save(path, file) {
  const answer = await fetch(path, { headers: headers() });
  if (!answer.ok) throw new Error((await answer.json()).error);
  const data = await answer.blob(), url = URL.createObjectURL(data);
  el("a", { href: url, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  return data.size;
}

// What a shell and a test would call: shown for each action.
function written(method, path, body) {
  const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  let curl = `curl -X ${method} ${shell(location.origin + path)}`;
  if (token) curl += ` -H "Authorization: Bearer $MOMUS_CONTROL_TOKEN"`;
  if (body) curl += ` -d ${shell(JSON.stringify(body))}`;
  const inner = path.startsWith(base()) ? `broker.control.prefix + ${literal(path.slice(base().length))}` : literal(path);
  const ofKits = path.startsWith(base()) ? kitLines(method, path.slice(base().length).split("?")[0], body) : {};
  return { curl, ...ofKits, python: `broker.control.ask(${literal(method)}, ${inner}${body ? `, ${literal(body)}` : ""})` };
}

// A value as Python writes it.
export function literal(value) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([key, each]) => `${literal(key)}: ${literal(each)}`).join(", ")}}`;
  }
  return JSON.stringify(value); // a text or a number
}

// The command of a call that changes nothing, folded.
export const command = (path) => el("details", {}, el("summary", {}, "As a command"),
  el("pre", { tabindex: 0, "data-is": "command", role: "region", "aria-label": "curl" }, written("GET", path).curl.replace("curl -X GET", "curl -N")));

function showCall(lines, outcome, python) {
  const place = document.getElementById("calls");
  const close = el("button", { class: "plain", onclick: () => { place.hidden = true; } }, "Close");
  fill(place,
    el("div", { class: "bar" }, el("strong", {}, "Called: "), el("span", { role: "status" }, outcome), close),
    [["curl", "curl", lines.curl], ["python", "Python", python], ["go", "Go", lines.go], ["java", "Java", lines.java], ["node", "Node", lines.node]].filter(([, , line]) => line)
      .map(([key, title, line]) => el("div", { class: "call" }, el("span", { class: "soft" }, title),
        el("pre", { tabindex: 0, "data-is": key, role: "region", "aria-label": title }, line))));
  place.hidden = false;
}

// Calls, and shows the call with what came of it. `python`: the line of the test kit, where it has one.
export async function act(method, path, body, python) {
  const lines = written(method, path, body);
  let answer, outcome;
  try {
    answer = await ask(method, path, body);
    outcome = el("span", { class: "good" }, "done");
  } catch (error) {
    outcome = el("span", { class: "bad" }, error.message);
  }
  showCall(lines, outcome, python ?? lines.python);
  return answer;
}

export const button = (label, method, path, body, python, then) =>
  el("button", { class: "plain", onclick: async (event) => {
    const pressed = event.currentTarget;
    pressed.disabled = true;
    const answer = await act(method, path, body, python);
    pressed.disabled = false;
    if (answer !== undefined) then?.(answer);
  } }, label);

const KEYS = { "/": "to the filter, or to the search of a topic", "?": "this list", "Alt+1 to Alt+9, Alt+0": "to a view, in their order", Esc: "close the lines of a call", Tab: "to the next field, link or list; arrows move in a list" };

function showKeys() {
  const box = el("dialog", { "aria-label": "Keys", onclose: () => box.remove() }, el("h2", {}, "Keys"),
    el("dl", {}, Object.entries(KEYS).flatMap(([key, does]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, does)])),
    el("button", { onclick: () => box.close() }, "Close"));
  document.body.append(box);
  box.showModal();
}

function askForToken() {
  document.body.classList.add("barred"); // no buttons for what would be refused
  if (document.querySelector("dialog")) return;
  const field = el("input", { type: "password", id: "token", autocomplete: "off" });
  const box = el("dialog", { "aria-labelledby": "why" },
    el("form", { onsubmit: (event) => { event.preventDefault(); keepToken(field.value); box.remove(); draw(); } },
      el("p", { id: "why" }, "This control endpoint has a token (--control-token)."),
      el("label", { for: "token" }, "Token "), field, " ", el("button", {}, "Use it")));
  document.body.append(box);
  box.showModal();
}

function keepToken(text) {
  token = text;
  sessionStorage.setItem("momus-token", text);
}

// ---- events

function say(text, isBad = false) {
  const state = document.getElementById("state");
  if (state.textContent !== text) state.textContent = text;
  state.className = isBad ? "bad" : "";
}

// Watches a GET: `show` is called with each answer, `refuse` with why there is none.
export function watch(path, show, refuse, everyMs = 1000) {
  stream?.abort();
  const mine = new AbortController();
  stream = mine;
  follow(path, show, refuse ?? ((error) => say(error, true)), everyMs, mine.signal);
}

async function follow(path, show, refuse, everyMs, signal) {
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 8000)) {
    try {
      const options = { headers: headers(), signal };
      const answer = await fetch(`/events?path=${quoted(path)}&every_ms=${everyMs}`, options);
      if (answer.status === 401) return askForToken();
      if (!answer.ok) throw new Error((await answer.json()).error);
      say("live");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        await released;
        if (signal.aborted) return;
        wait = 500;
        text += value;
        for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) hear(text.slice(0, end), show, refuse);
      }
      say("the stream has ended", true);
    } catch (error) {
      if (signal.aborted) return;
      say(`not connected: ${error.message}`, true);
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

function hear(event, show, refuse) {
  const [first, second] = event.split("\n");
  if (!second) return;
  const data = JSON.parse(second.slice("data: ".length));
  if (first === "event: answer") { say("live"); show(data); }
  else if (first === "event: refused") refuse(data.error);
  else say(`behind: ${data.missed} updates left out`, true);
}

// ---- long lists

// A list of which the page keeps the rows in view: `path` answers {offset, total, [field]}.
export function longList({ label, path, field, columns, empty, none = empty, isNone = (answer) => !answer.total }) {
  const top = el("tr", { "aria-hidden": "true" }, el("td", { class: "room", colspan: columns.length }));
  const bottom = el("tr", { "aria-hidden": "true" }, el("td", { class: "room", colspan: columns.length }));
  const found = el("p", { class: "soft", role: "status" });
  const made = table(columns, [], { class: "even", "data-of": field });
  const body = made.tBodies[0];
  const box = scroll(label, made);
  let offset = 0, filter = here.query.get("filter") ?? "", total = 0, timer = 0;
  const size = () => Math.min(200, Math.ceil((box.clientHeight || 800) / ROW) + 40);
  const room = (row, rows) => { row.firstChild.style.height = `${rows * ROW}px`; row.hidden = !rows; };

  function show(answer) {
    total = answer.total;
    const rows = table(columns, answer[field]).tBodies[0].rows;
    room(top, answer.offset);
    room(bottom, Math.max(0, total - answer.offset - rows.length));
    const focused = document.activeElement?.closest?.("tbody") === body ? document.activeElement.textContent : null;
    body.replaceChildren(top, ...rows, bottom);
    if (focused !== null) [...body.querySelectorAll("a")].find((each) => each.textContent === focused)?.focus();
    made.setAttribute("aria-rowcount", total + 1);
    const hidden = answer.loading ? `; not those of ${count(answer.loading)} logs that load, or cannot be read` : "";
    found.textContent = (total ? `${count(total)} found` : filter ? empty : "") + (!filter && isNone(answer) ? `${total ? ". " : ""}${none}` : "") + hidden;
  }
  function look() {
    watch(`${path()}?offset=${offset}&limit=${size()}&filter=${quoted(filter)}`, show);
  }
  box.addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const wanted = Math.max(0, Math.floor(box.scrollTop / ROW) - 20);
      if (Math.abs(wanted - offset) > 10 || (wanted === 0 && offset)) { offset = wanted; look(); }
    }, 60);
  });
  leave.push(() => clearTimeout(timer));
  const input = el("input", { type: "search", value: filter, id: "filter", oninput: () => {
    filter = input.value;
    offset = 0;
    box.scrollTop = 0;
    look();
  } });
  setTimeout(look);
  return [el("div", { class: "bar" }, el("label", {}, "Filter (press /)", input), found), box];
}

// ---- the address

export const link = (view, words = [], text = words.at(-1)) =>
  el("a", { href: `#/${[here.cluster, view, ...words].map(quoted).join("/")}` }, name(text));

// A fault's name, which leads to it.
export const faultLink = (fault) => el("a", { href: `#/${quoted(here.cluster)}/faults?name=${quoted(fault)}` }, name(fault));

function readAddress() {
  const hash = location.hash.slice(1);
  if (hash.startsWith("token=")) {
    keepToken(decodeURIComponent(hash.slice("token=".length)));
    history.replaceState(null, "", "#/");
    return readAddress();
  }
  const [path, query] = hash.split("?");
  const words = path.split("/").slice(1).map(decodeURIComponent);
  here.cluster = words[0] || "default";
  here.view = words[1] in VIEWS ? words[1] : "overview";
  here.words = words.slice(2);
  here.query = new URLSearchParams(query);
}

async function draw() {
  stream?.abort();
  leave.forEach((each) => each());
  leave = [];
  readAddress();
  fill(document.getElementById("views"), Object.entries(VIEWS).map(([view, title]) =>
    el("a", { href: `#/${quoted(here.cluster)}/${view}`, "aria-current": view === here.view ? "page" : null }, title)));
  document.title = `${here.words[0] ? `${here.words[0].slice(0, 80)} · ` : ""}${VIEWS[here.view]} · momus`;
  const place = document.getElementById("main");
  const asked = location.hash;
  const { show } = await import(`/ui/${here.view}.js`);
  if (asked !== location.hash) return;
  place.replaceChildren();
  show(place);
  listClusters();
}

export const onLeave = (call) => leave.push(call);
export const redraw = () => draw();

async function listClusters() {
  const list = document.getElementById("clusters");
  try {
    const names = (await ask("GET", "/_admin/clusters")).map((each) => each.name);
    fill(list, names.map((each) => { const made = el("option", { value: each }, each); made.selected = each === here.cluster; return made; }));
  } catch (error) {
    say(error.message, true);
  }
}

document.getElementById("clusters").addEventListener("change", (event) => {
  location.hash = `#/${quoted(event.target.value)}/${here.view}`;
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
addEventListener("hashchange", () => {
  document.getElementById("calls").hidden = true; // it was about the view before
  draw();
});
addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select");
  if (event.key === "?" && !isTyping) showKeys();
  if (event.key === "Escape") document.getElementById("calls").hidden = true;
  const at = Object.keys(VIEWS)["1234567890".indexOf(event.key)];
  if (event.altKey && at) { location.hash = `#/${quoted(here.cluster)}/${at}`; event.preventDefault(); }
  if (event.key === "/" && !isTyping) {
    document.getElementById("filter")?.focus();
    event.preventDefault();
  }
});
token = sessionStorage.getItem("momus-token") ?? "";
draw();
