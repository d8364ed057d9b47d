// The lines of the kits in Go, Java and Node that do what a call does, for those calls that a kit has a method for.

const text = (value) => JSON.stringify(value); // a text is written the same in all of them
const verbs = ["stop", "start", "lag", "release", "pause", "resume"];
const upper = (word) => word[0].toUpperCase() + word.slice(1);
const three = (go, java, node) => ({ go: `cluster.${go}`, java: `cluster.${java};`, node: `await cluster.${node};` });

// Path: within the cluster. Returns {go, java, node}, each a line, or undefined where the kit has none.
export function kitLines(method, path, body = {}) {
  const words = path.split("/").slice(1).map(decodeURIComponent), [what, which, verb] = words;
  const call = `${method} ${what}${words.length > 1 ? "/" : ""}${verb ?? ""}`;
  if (call === "POST topics") return created(body);
  if (call === "POST topics/records") return produced(which, body.records);
  if (call === "POST faults") return { go: `cluster.Faults.Add(${goValue(body)})`, java: lineOf(javaValue(body), (words) => `cluster.faults().add(${words});`), node: `await cluster.faults.add(${nodeValue(body)});` };
  if (call === "DELETE faults") return three("Faults.Clear()", "faults().clear()", "faults.clear()");
  if (call === "DELETE faults/") return { go: "fault.Remove()", java: "fault.remove();", node: "await fault.remove();" };
  if (call === "POST faults/release") return { go: "fault.Release()", java: "fault.release();", node: "await fault.release();" };
  if (call === "POST reset") return three("Reset()", "reset()", "reset()");
  if (call === "POST clock" && body.advance_ms) {
    return three(`Clock.Advance(${body.advance_ms} * time.Millisecond)`, `clock().advance(Duration.ofMillis(${body.advance_ms}))`, `clock.advance({ milliseconds: ${body.advance_ms} })`);
  }
  if (call === "POST clock" && body.freeze) return three("Clock.Freeze()", "clock().freeze()", "clock.freeze()");
  if (call === "POST clock" && body.resume) return three("Clock.Resume()", "clock().resume()", "clock.resume()");
  if (method === "POST" && what === "brokers" && verbs.includes(verb)) return three(`Brokers.${upper(verb)}(${which})`, `brokers().${verb}(${which})`, `brokers.${verb}(${which})`);
  if (call === "POST groups/rebalance") return three(`Rebalance(${text(which)})`, `rebalance(${text(which)})`, `groups.rebalance(${text(which)})`);
  if (call === "POST groups/expel") return three(...["ExpelMember", "expelMember", "groups.expel"].map((each) => `${each}(${text(which)}, ${text(body.member)})`));
  if (call === "DELETE groups/") return three(...["DeleteGroup", "deleteGroup", "groups.remove"].map((each) => `${each}(${text(which)})`));
  if (call === "POST snapshots") return three(...["Snapshot", "snapshot", "snapshot"].map((each) => `${each}(${body.name ? text(body.name) : ""})`));
  if (call === "POST restore") return { go: "snapshot.Restore()", java: "snapshot.restore();", node: "await snapshot.restore();" };
  if (call === "DELETE snapshots/") return { go: "snapshot.Remove()", java: "snapshot.remove();", node: "await snapshot.remove();" };
  if (call === "POST fork" && !body.name) return three("Fork(t)", "fork()", "fork()");
  if (call === "POST journal") return three(...["Journal.Keep", "journal().keep", "journal.keep"].map((each) => `${each}(${body.bytes})`));
  if (call === "DELETE journal") return three("Journal.Clear()", "journal().clear()", "journal.clear()");
  if (call === "POST users" && body.password) return three(...["Users.Add", "security().addUser", "users.add"].map((each) => `${each}(${text(body.name)}, ${text(body.password)})`));
  if (call === "DELETE users/") return three(...["Users.Remove", "security().removeUser", "users.remove"].map((each) => `${each}(${text(which)})`));
  if (call === "POST acls" && body.acls?.length === 1) return allowed(body.acls[0]);
  return {};
}

function created({ name, partitions = 1, replicas, config }) {
  const options = { ...(replicas ? { Replicas: replicas } : {}), ...(config ? { Config: config } : {}) };
  const go = Object.entries(options).map(([key, value]) => `${key}: ${typeof value === "object" ? goTexts(value) : value}`).join(", ");
  return three(`CreateTopic(${text(name)}, ${partitions}${go ? `, momus.TopicOptions{${go}}` : ""})`,
    `createTopic(${text(name)}, ${partitions}${go ? `, ${replicas ?? -1}, ${javaValue(config ?? {})}` : ""})`,
    `createTopic(${text(name)}, ${partitions}${go ? `, ${nodeValue({ ...(replicas ? { replicas } : {}), ...(config ? { config } : {}) })}` : ""})`);
}

const isPlain = (each) => typeof each.value === "string" && Object.keys(each).every((key) => key === "value");

function produced(topic, records) {
  const places = new Set(records.map((each) => each.partition).filter((each) => each !== undefined));
  const go = records.map((each) => (isPlain(each) ? text(each.value) : `momus.Message{${[["Key", each.key], ["Value", each.value]].filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => `${key}: ${goValue(value)}`).concat(each.partition === undefined ? [] : ["Partition: &partition"])
    .concat(each.headers ? [`Headers: []momus.Header{${each.headers.map(([name, value]) => `{${text(name)}, ${value === null ? "nil" : `[]byte(${text(value)})`}}`).join(", ")}}`] : [])
    .concat(each.timestamp_ms === undefined ? [] : [`Time: time.UnixMilli(${each.timestamp_ms})`]).join(", ")}}`));
  const java = records.map((each) => (records.every(isPlain) ? text(each.value) : lineOf(javaValue(each.value), (value) => `Message.of(${value})${each.key === undefined || each.key === null ? "" : `.key(${text(each.key)})`}`
    + `${each.partition === undefined ? "" : `.partition(${each.partition})`}${(each.headers ?? []).map(([name, value]) => `.header(${text(name)}, ${javaValue(value)})`).join("")}`
    + `${each.timestamp_ms === undefined ? "" : `.timestampMs(${each.timestamp_ms}L)`}`)));
  const node = records.map((each) => (isPlain(each) ? text(each.value) : nodeValue({ ...each, ...(each.headers ? { headers: Object.fromEntries(each.headers) } : {}), timestamp_ms: undefined,
    ...(each.timestamp_ms === undefined ? {} : { timestamp: new Date(each.timestamp_ms) }) })));
  const first = places.size ? `partition := ${[...places][0]}; ` : "";
  return { go: places.size > 1 ? undefined : `${first}cluster.Produce(${[text(topic), ...go].join(", ")})`,
    java: java.includes(undefined) ? undefined : `cluster.produce(${[text(topic), ...java].join(", ")});`, node: `await cluster.produce(${[text(topic), ...node].join(", ")});` };
}

function allowed(acl) {
  const go = Object.entries(acl).filter(([, value]) => value !== undefined).map(([key, value]) => `${upper(key)}: ${text(value)}`).join(", ");
  const isUsual = (!acl.pattern || acl.pattern === "literal") && (!acl.host || acl.host === "*");
  const java = `cluster.security().${acl.permission === "deny" ? "deny" : "allow"}(${[acl.principal.replace(/^User:/, ""), acl.resource, acl.name, acl.operation].map(text).join(", ")});`;
  return { go: `cluster.Acls.Add(momus.ACL{${go}})`, java: isUsual ? java : undefined, node: `await cluster.acls.add(${nodeValue(acl)});` };
}

const lineOf = (words, made) => (words === undefined ? undefined : made(words));
const goTexts = (value) => `map[string]string{${Object.entries(value).map(([key, each]) => `${text(key)}: ${text(each)}`).join(", ")}}`;

function goValue(value) {
  if (value === null || value === undefined) return "nil";
  if (Array.isArray(value)) return `[]any{${value.map(goValue).join(", ")}}`;
  return typeof value === "object" ? `map[string]any{${Object.entries(value).map(([key, each]) => `${text(key)}: ${goValue(each)}`).join(", ")}}` : text(value);
}

// undefined: Map.of and List.of take no null, and ten pairs at most.
function javaValue(value) {
  if (value === null || typeof value !== "object") return value === null ? "null" : text(value);
  const parts = Array.isArray(value) ? value.map(javaValue) : Object.entries(value).flatMap(([key, each]) => [text(key), javaValue(each)]);
  return parts.includes(undefined) || parts.includes("null") || parts.length > 20 ? undefined : `${Array.isArray(value) ? "List" : "Map"}.of(${parts.join(", ")})`;
}

function nodeValue(value) {
  if (value instanceof Date) return `new Date(${value.getTime()})`;
  if (Array.isArray(value)) return `[${value.map(nodeValue).join(", ")}]`;
  if (value === null || typeof value !== "object") return text(value);
  const pairs = Object.entries(value).filter(([, each]) => each !== undefined);
  return pairs.length ? `{ ${pairs.map(([key, each]) => `${/^[A-Za-z_]\w*$/.test(key) ? key : text(key)}: ${nodeValue(each)}`).join(", ")} }` : "{}";
}
