// What all views share: elements made from text, calls of the control plane, the stream of events, and the address.

const VIEWS = {
  topics: "Topics",
  groups: "Groups",
  journal: "Journal",
  faults: "Faults",
  transactions: "Transactions",
  schemas: "Schemas",
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

export function table(columns, rows, settings = {}) {
  const cell = (tag, column, content) =>
    el(tag, { class: [column.number && "number", column.wide && "wide"].filter(Boolean).join(" ") || null }, content);
  return el("table", settings,
    el("thead", {}, el("tr", {}, columns.map((each) => { const made = cell("th", each, each.title); made.scope = "col"; return made; }))),
    el("tbody", {}, rows.map((row) => el("tr", { class: row.class }, columns.map((each) => cell("td", each, each.show(row)))))));
}

export const scroll = (label, content, kind = "") =>
  el("div", { class: `scroll ${kind}`, tabindex: 0, role: "region", "aria-label": label }, content);

// ---- calls

export const base = () => `/_admin/clusters/${encodeURIComponent(here.cluster)}`;
export const quoted = encodeURIComponent;

const headers = (more = {}) => (token ? { ...more, Authorization: `Bearer ${token}` } : more);

export async function ask(method, path, body) {
  const options = { method, headers: headers(body ? { "Content-Type": "application/json" } : {}) };
  if (body) options.body = JSON.stringify(body);
  const answer = await fetch(path, options);
  if (answer.status === 401) askForToken();
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

// What a shell and a test would call: shown for each action.
function written(method, path, body) {
  const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  let curl = `curl -X ${method} ${shell(location.origin + path)}`;
  if (token) curl += ` -H "Authorization: Bearer $MOMUS_CONTROL_TOKEN"`;
  if (body) curl += ` -d ${shell(JSON.stringify(body))}`;
  const inner = path.startsWith(base()) ? `broker.control.prefix + ${literal(path.slice(base().length))}` : literal(path);
  return { curl, python: `broker.control.ask(${literal(method)}, ${inner}${body ? `, ${literal(body)}` : ""})` };
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

// Calls, and shows the call with what came of it. `python`: the line of the test kit, where it has one.
export async function act(method, path, body, python) {
  const lines = written(method, path, body);
  const place = document.getElementById("calls");
  let answer, outcome;
  try {
    answer = await ask(method, path, body);
    outcome = el("span", { class: "good" }, "done");
  } catch (error) {
    outcome = el("span", { class: "bad" }, error.message);
  }
  const close = el("button", { class: "plain", onclick: () => { place.hidden = true; } }, "Close");
  fill(place,
    el("div", { class: "bar" }, el("strong", {}, "Called: "), el("span", { role: "status" }, outcome), close),
    el("pre", { tabindex: 0, "data-is": "curl", "aria-label": "curl" }, lines.curl),
    el("pre", { tabindex: 0, "data-is": "python", "aria-label": "Python" }, python ?? lines.python));
  place.hidden = false;
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

function askForToken() {
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
export function longList({ label, path, field, columns, empty }) {
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
    found.textContent = (total ? `${count(total)} found` : empty) + hidden;
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
  here.view = words[1] in VIEWS ? words[1] : "topics";
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
addEventListener("hashchange", draw);
addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select");
  if (event.key === "/" && !isTyping) {
    document.getElementById("filter")?.focus();
    event.preventDefault();
  }
});
token = sessionStorage.getItem("momus-token") ?? "";
draw();
