// Who may do what: users, ACLs and quotas, each as a list and a form.

import { act, ask, base, el, fill, literal, name, quoted, scroll, table, watch } from "./frame.js";
import { completed, labelled } from "./forms.js";

const empty = (text) => el("p", { class: "soft" }, text);

export function show(place) {
  const users = el("div"), acls = el("div"), quotas = el("div");
  place.append(el("h1", {}, "Security and quotas"), el("h2", {}, "Users"), users, newUser(),
    el("h2", {}, "ACLs"), acls, newAcl(() => showAcls(acls)), el("h2", {}, "Quotas"), quotas, newQuota(() => showQuotas(quotas)));
  watch(`${base()}/users`, (answer) => drawUsers(users, answer), (error) => fill(users, el("p", { class: "bad" }, error)));
  showAcls(acls);
  showQuotas(quotas);
}

async function listed(place, path, draw) {
  try { draw(await ask("GET", `${base()}/${path}`)); } catch (error) { fill(place, el("p", { class: "bad" }, error.message)); }
}

const remove = (label, path, python, then, body, method = "DELETE") => el("button", { class: "plain", "aria-label": label, onclick: async () => {
  if (await act(method, `${base()}/${path}`, body, python) !== undefined) then();
} }, "Remove");

function drawUsers(place, answer) {
  fill(place, answer.users.length ? scroll("Users", table([
    { title: "User", show: (row) => name(row) },
    { title: "Password", show: (row) => (answer.passwords[row] ? el("code", {}, name(answer.passwords[row])) : el("span", { class: "soft" }, "not known here")) },
    { title: "Do", show: (row) => remove(`Remove user ${row}`, `users/${quoted(row)}`, `broker.users.remove(${literal(row)})`, () => {}) },
  ], answer.users, { "data-of": "users" }), "short") : empty("No user is known. A cluster that was made with --security, or security=, has some."));
}

function newUser() {
  const who = el("input", {}), password = el("input", {});
  return el("div", { class: "bar" }, labelled("User name", who), labelled("Its password", password), el("button", { onclick: async () => {
    const body = { name: who.value, ...(password.value ? { password: password.value } : {}) };
    await act("POST", `${base()}/users`, body, `broker.users.add(${Object.values(body).map(literal).join(", ")})`);
  } }, "Add the user"));
}

const ACL_FIELDS = ["principal", "operation", "resource", "name", "pattern", "permission", "host"];

function showAcls(place) {
  listed(place, "acls", (answer) => fill(place, answer.length ? scroll("ACLs", table([
    ...ACL_FIELDS.map((field) => ({ title: field[0].toUpperCase() + field.slice(1), show: (row) => name(row[field]) })),
    { title: "Do", show: (row) => remove(`Remove the ACL of ${row.principal} for ${row.operation}`, `acls?${new URLSearchParams(row)}`, undefined, () => showAcls(place)) },
  ], answer, { "data-of": "acls" }), "short") : empty("There are no ACLs. They take effect where an authorizer is set (authorizer.class.name).")));
}

function newAcl(then) {
  const principal = el("input", { value: "User:", size: 14 }), [operation, operations] = completed("operations", { value: "read", size: 10 });
  const [resource, resources] = completed("resources", { value: "topic", size: 10 }), what = el("input", { size: 14 });
  const choice = (...each) => el("select", {}, each.map((word) => el("option", {}, word)));
  const pattern = choice("literal", "prefixed"), permission = choice("allow", "deny"), host = el("input", { value: "*", size: 8 });
  return el("div", { class: "bar" }, labelled("Principal", principal), labelled("Permission", permission), labelled("Operation", operation, operations),
    labelled("Resource", resource, resources), labelled("Resource name", what), labelled("Pattern", pattern), labelled("Host", host), el("button", { onclick: async () => {
      const acl = { principal: principal.value, operation: operation.value, resource: resource.value, name: what.value,
        pattern: pattern.value, permission: permission.value, host: host.value };
      const [type, user] = [acl.principal.split(":")[0], acl.principal.split(":").slice(1).join(":")];
      const where = acl.resource === "cluster" ? "cluster=True" : `${acl.resource}=${literal(acl.name)}`;
      const more = `${acl.pattern === "literal" ? "" : `, pattern=${literal(acl.pattern)}`}${acl.host === "*" ? "" : `, host=${literal(acl.host)}`}`;
      const python = type === "User" ? `broker.acls.${acl.permission}(${literal(user)}, ${literal(acl.operation)}, ${where}${more})` : undefined;
      if (await act("POST", `${base()}/acls`, { acls: [acl] }, python) !== undefined) then();
    } }, "Add the ACL"));
}

function showQuotas(place) {
  listed(place, "quotas", (answer) => fill(place, answer.length ? scroll("Quotas", table([
    { title: "Of", show: (row) => name(Object.entries(row.entity).map((each) => each.join(" ")).join(", ")) },
    { title: "Rate", show: (row) => row.rate },
    { title: "Value", number: true, show: (row) => row.value },
    { title: "Do", show: (row) => remove(`Remove ${row.rate}`, "quotas", undefined, () => showQuotas(place), { entity: row.entity, remove: [row.rate] }, "POST") },
  ], answer.flatMap((row) => Object.entries(row.rates).map(([rate, value]) => ({ entity: row.entity, rate, value }))), { "data-of": "quotas" }), "short")
    : empty("There are no quotas. One holds a client, a user or an address to a rate; <default> is that of all others.")));
}

function newQuota(then) {
  const kind = el("select", {}, ["client_id", "user", "ip"].map((each) => el("option", {}, each)));
  const of = el("input", { placeholder: "<default>", size: 14 }), [rate, rates] = completed("rates", { value: "producer_byte_rate", size: 24 });
  const amount = el("input", { inputmode: "decimal", size: 10 });
  return el("div", { class: "bar" }, labelled("Quota of", kind), labelled("Named", of), labelled("Rate", rate, rates), labelled("At most", amount), el("button", { onclick: async () => {
    const entity = { [kind.value]: of.value || "<default>" }, rates = { [rate.value]: Number(amount.value) };
    const python = `broker.load(${literal({ quotas: [{ ...entity, ...rates }] })})`;
    if (await act("POST", `${base()}/quotas`, { entity, rates }, python) !== undefined) then();
  } }, "Set the quota"));
}
