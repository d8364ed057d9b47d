/** What fails a test, what its report has, and the process. */

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type TestContext, after, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import { type Cluster, Momus, MomusError, find, momus, withCluster } from "../src/index.js";
import { greet } from "./greet.js";

const never = (cluster: Cluster) => cluster.faults.injectError("OffsetCommit", "NOT_COORDINATOR", { group: "billing" });

/** The error of a test in a test; none: it passes. */
const failure = (run: (cluster: Cluster) => Promise<void> | void): Promise<Error | undefined> =>
  withCluster({}, run)({ name: "inner / test" }).then(() => undefined, (error: Error) => error);

after(async () => (await momus()).close());

test("each test has a cluster of its own in one process, gone after it", async () => {
  const names = new Set<string>();
  for (let round = 0; round < 2; round++)
    await withCluster({ topics: { orders: 3 } }, async (cluster) => {
      names.add(cluster.name);
      await cluster.produce("orders", "one coffee");
      assert.equal((await cluster.consume("orders", 1))[0]!.value!.toString(), "one coffee");
      await assert.rejects(cluster.createTopic("orders"), /TOPIC_ALREADY_EXISTS/);
    })();
  assert.equal(names.size, 2);
  assert.ok(!(await (await momus()).clusters()).some((name) => names.has(name)));
});

test("a fault that never acted fails its test", async () => {
  const cases: [string, number, (cluster: Cluster) => Promise<unknown>][] = [
    ["none", 0, async () => {}],
    ["unmet", 1, never],
    ["cleared", 0, async (cluster) => (await never(cluster), cluster.faults.clear())],
    ["removed", 0, async (cluster) => (await never(cluster)).remove()],
    ["reset", 0, async (cluster) => (await never(cluster), cluster.reset())],
    ["closed", 1, async (cluster) => (await never(cluster), cluster.close())],
    ["forked", 1, async (cluster) => never(await cluster.fork())],
    ["met", 0, async (cluster) => (await cluster.faults.disconnectOn("ApiVersions", { when: "before" }), greet(cluster))],
  ];
  for (const [name, failures, run] of cases) {
    const error = await failure(async (cluster) => void (await run(cluster)));
    assert.equal(error ? 1 : 0, failures, `${name}: ${error}`);
    if (error) assert.match(error.message, /the fault fault-1 never acted \(no request matched it\)/);
  }
});

test("an expectation that is not met fails its test, and the report has the last requests", async () => {
  const unmet = await failure(async (cluster) => {
    await cluster.journal.expect({ api: "ApiVersions" }, { times: 2 });
    await greet(cluster);
    await cluster.reset();
  });
  assert.match(unmet!.message, /api=ApiVersions came 1 time, expected exactly 2/);
  const thrown = await failure(async (cluster) => {
    await greet(cluster);
    await cluster.journal.verify({ api: "ApiVersions" }, { atLeast: 1, atMost: 1 });
    throw new Error("of its own");
  });
  assert.match(thrown!.message, /^of its own\n\nthe last requests of momus cluster [\s\S]*ApiVersions v0/);
  assert.match(thrown!.stack!, /ApiVersions v0/);
});

test("a cluster ends after the service that uses it", async (t) => {
  const order: string[] = [];
  let at = "";
  const isThere = async (cluster: Cluster, what: string) => void order.push(`${what} ${(await cluster.connections()) === 0}`);
  await t.test("inner", withCluster({}, async (cluster, inner: TestContext) => {
    at = cluster.name;
    inner.after(() => isThere(cluster, "after"));
    cluster.defer(() => isThere(cluster, "first deferred"));
    cluster.defer(() => isThere(cluster, "last deferred"));
    inner.after(() => isThere(cluster, "second after"));
  }));
  assert.deepEqual(order, ["after true", "second after true", "last deferred true", "first deferred true"]);
  assert.ok(!(await (await momus()).clusters()).includes(at));
});

test("what was deferred is done before a cluster is verified, and its error fails the test", async () => {
  assert.equal(await failure(async (cluster) => {
    await cluster.faults.disconnectOn("ApiVersions", { when: "before" });
    cluster.defer(() => greet(cluster)); // as a service that leaves
  }), undefined);
  let isDone = false;
  const error = await failure((cluster) => {
    cluster.defer(() => void (isDone = true));
    cluster.defer(() => assert.fail("it cannot be stopped"));
  });
  assert.match(error!.message, /^it cannot be stopped/);
  assert.ok(isDone);
});

test("in the runner itself a fault that never acted fails the test, and its report has the last requests", async () => {
  const folder = await mkdtemp(join(tmpdir(), "runner "));
  const file = join(folder, "inner.test.mjs");
  await writeFile(file, `
    import { test } from "node:test";
    import { withCluster } from ${JSON.stringify(new URL("../src/index.js", import.meta.url).href)};
    import { greet } from ${JSON.stringify(new URL("./greet.js", import.meta.url).href)};
    test("unmet", withCluster({}, async (cluster, t) => {
      t.after(() => greet(cluster));
      await cluster.faults.hold("EndTxn");
    }));
    test("met by the end of a service", withCluster({}, async (cluster, t) => {
      t.after(() => greet(cluster));
      await cluster.faults.disconnectOn("ApiVersions", { when: "before" });
    }));
    test("of its own", withCluster({}, async (cluster) => { await greet(cluster); throw new Error("wrong"); }));`);
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const run = promisify(execFile)(process.execPath, ["--test", "--test-reporter=tap", file], { env: environment });
  const { stdout, code } = await run.then((done) => ({ ...done, code: 0 }), (error: { stdout: string; code: number }) => error);
  assert.equal(code, 1);
  const [, unmet, met, own] = stdout.split(/^(?= *# Subtest: )/m);
  assert.match(unmet!, /not ok[\s\S]*never acted[\s\S]*the last requests of momus cluster[\s\S]*ApiVersions v0/, stdout);
  assert.doesNotMatch(met!, /not ok/, stdout);
  assert.match(own!, /not ok[\s\S]*wrong[\s\S]*the last requests of momus cluster[\s\S]*ApiVersions v0/, stdout);
});

/** Each call that waits, for what never comes. */
const WAITS: Record<string, (cluster: Cluster, options: { signal: AbortSignal }) => Promise<unknown>> = {
  consume: (cluster, options) => cluster.consume("t", 1, options),
  waitFor: (cluster, options) => cluster.groups.waitFor("g", "stable", options),
  waitForCommitted: (cluster, options) => cluster.groups.waitForCommitted("g", { t: { 0: 1 } }, options),
  waitForLag: (cluster, options) => cluster.groups.waitForLag("g", 0, options),
  waitUntilHeld: async (cluster, options) => (await cluster.faults.hold("EndTxn", { name: "held" })).waitUntilHeld(options),
  waitUntilHit: async (cluster, options) => (await cluster.faults.hold("EndTxn", { name: "hit" })).waitUntilHit(options),
  advance: (cluster, options) => cluster.clock.advance({ days: 1 }, options),
  set: (cluster, options) => cluster.clock.set(new Date("2999-01-01"), options),
};

for (const [name, call] of Object.entries(WAITS))
  test(`a signal ends ${name}`, withCluster({ topics: { t: 1 } }, async (cluster) => {
    const enough = new Error("enough");
    const control = new AbortController();
    const { asked } = cluster.momus.control;
    cluster.momus.control.asked = (path) => {
      if (/consume|wait|clock/.test(path)) queueMicrotask(() => control.abort(enough)); // it is under way
    };
    try {
      await assert.rejects(call(cluster, { signal: control.signal }), enough);
    } finally {
      cluster.momus.control.asked = asked;
    }
    await assert.rejects(call(cluster, { signal: AbortSignal.abort(enough) }).catch((error: Error) => {
      throw /held|hit/.test(error.message) ? enough : error; // the fault of that name is set already
    }), enough);
    await cluster.faults.clear();
  }));

test("the signal of its runner ends each call of a cluster but its end", async () => {
  const control = new AbortController();
  const late = new Error("too long");
  const isLate = (error: unknown) => error === late;
  let name = "";
  const run = withCluster({ topics: { t: 1 } }, async (cluster) => {
    name = cluster.name;
    const forked = await cluster.fork();
    control.abort(late);
    await assert.rejects(forked.consume("t"), isLate);
    await cluster.groups.waitFor("g", "stable");
  })({ signal: control.signal });
  await assert.rejects(run, isLate);
  assert.ok(!(await (await momus()).clusters()).includes(name));
});

test("a signal ends a start and a connection", async () => {
  const signal = AbortSignal.abort(new Error("enough"));
  await assert.rejects(Momus.start({ signal }), /enough/);
  await assert.rejects(Momus.connect((await momus()).address, { signal }), /enough/);
  await (await Momus.connect((await momus()).address, { signal: new AbortController().signal })).clusters();
});

test("the run of a failed test is kept", async () => {
  const folder = await mkdtemp(join(tmpdir(), "kept "));
  process.env["MOMUS_KEEP_FAILED"] = folder;
  try {
    await failure(async () => {});
    await failure(async (cluster) => (await greet(cluster), assert.fail("failed")));
  } finally {
    delete process.env["MOMUS_KEEP_FAILED"];
  }
  const [kept, ...more] = await readdir(folder);
  assert.deepEqual(more, []);
  assert.match(kept!, /^inner_test-/);
  const [program, ...words] = find();
  await promisify(execFile)(program!, [...words, "replay", join(folder, kept!)]);
});

test("a cluster is filled from a file and what it names, or a folder", async () => {
  const folder = await mkdtemp(join(tmpdir(), "load "));
  await writeFile(join(folder, "orders.json"), '{"topics": [{"name": "orders", "records_from": "orders.csv", "records_key": "id"}]}');
  await writeFile(join(folder, "orders.csv"), "id,item\n7,coffee\n");
  await writeFile(join(folder, ".hidden.json"), "{");
  for (const load of [folder, join(folder, "orders.json")])
    await withCluster({ load }, async (cluster) => {
      const [found] = await cluster.consume("orders", 1);
      assert.deepEqual([String(found!.key), String(found!.value)], ["7", '{"id":"7","item":"coffee"}']);
    })();
  await assert.rejects(withCluster({ load: join(folder, "nothing.json") }, async () => {})(), /nothing\.json/);
});

test("records go there and back", withCluster({ topics: { t: 3 } }, async (cluster) => {
  const timestamp = new Date(1_700_000_000_000);
  const places = await cluster.produce("t", "a", Buffer.from([255]), { json: { n: 1 } }, { value: [2] },
    { value: "b", key: "table 4", headers: { h: Buffer.from([254]), none: null }, timestamp }, { value: null, partition: 2 });
  assert.deepEqual(places.map(({ partition, offset }) => [partition, offset]), [[0, 0], [1, 0], [2, 0], [0, 1], [2, 1], [2, 2]]);
  const found = await cluster.consume("t", 6);
  assert.deepEqual(found.map(({ value }) => value?.toString("latin1") ?? null), ["a", "[2]", "\xff", '{"n":1}', "b", null]);
  const [keyed] = await cluster.consume("t", 1, { key: "table 4", partition: 2 });
  assert.deepEqual(keyed!.headers, [["h", Buffer.from([254])], ["none", null]]);
  assert.deepEqual(keyed!.timestamp, timestamp);
  await assert.rejects(cluster.consume("t", 7, { timeoutMs: 50 }), /t has 6 records after 50 ms, not 7/);
  await cluster.produce("many", ...Array.from({ length: 10_005 }, () => "x"));
  assert.equal((await cluster.consume("many")).length, 10_005);
}));

test("a cluster begins as its options say", withCluster({ brokers: 3, at: new Date("2030-01-01"), config: { "num.partitions": 4 } }, async (cluster) => {
  assert.equal(cluster.addresses.length, 3);
  await cluster.clock.advance({ days: 8 });
  assert.equal((await cluster.clock.now()).toISOString(), "2030-01-09T00:00:00.000Z");
}));

const template = (async () => {
  const made = await (await momus()).cluster();
  await made.produce("orders", "a");
  return made.snapshot("full");
})();

test("a fork goes on alone, and diff tells what is different", withCluster(async () => (await template).fork(), async (fork) => {
  const full = await template;
  assert.equal((await fork.momus.diff(full, fork)).different, false);
  await fork.produce("orders", "b");
  const { different, records } = await fork.momus.diff(full, fork);
  assert.equal(different, true);
  assert.equal(records[0]!["topic"], "orders");
}));

test("a refusal says why, and its status", withCluster({}, async (cluster) => {
  await assert.rejects(cluster.faults.injectError("OffsetCommit", "SINGING"), (error: MomusError) => {
    assert.match(error.message, /SINGING/);
    return error.status === 400;
  });
}));

async function said(status: number, answer: string): Promise<string> {
  const server = createServer((_, reply) => reply.writeHead(status).end(answer));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await Momus.connect(`127.0.0.1:${(server.address() as AddressInfo).port}`).then(() => "", (error: Error) => error.message);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("kit and momus of other versions say so", async () => {
  assert.equal(await said(200, '{"version": "9.9.9", "api": 1, "more": "tolerated"}'), "");
  assert.match(await said(200, '{"version": "9.9.9", "api": 2}'), /of 9\.9\.9 and speaks version 2/);
  assert.match(await said(404, "{}"), /is older than this kit/);
});

test("a start that fails says why", async () => {
  await assert.rejects(Momus.start({ args: ["--set", "num.partitions=none"] }), /num\.partitions/);
  await assert.rejects(Momus.start({ command: ["no-such-momus"] }), /no-such-momus/);
});

test("where there is no momus, that is a sentence", () => {
  const { MOMUS_COMMAND, PATH } = process.env;
  process.env["MOMUS_COMMAND"] = process.env["PATH"] = "";
  try {
    assert.throws(() => find("file:///nowhere/x.js"), /there is no momus: install the file momus-kit-\w+-\w+-[\d.]+\.tgz/);
  } finally {
    Object.assign(process.env, { MOMUS_COMMAND, PATH });
    if (MOMUS_COMMAND === undefined) delete process.env["MOMUS_COMMAND"];
  }
});

const isUp = (address: string) =>
  new Promise<boolean>((resolve) => {
    const [host, port] = address.split(":");
    const client = connect(Number(port), host);
    client.on("connect", () => (client.destroy(), resolve(true))).on("error", () => resolve(false));
  });

test("the process ends with the run, even by kill -9", async () => {
  const program = `
    import { Momus } from ${JSON.stringify(new URL("../src/index.js", import.meta.url).href)};
    console.log((await Momus.start()).address);
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  let address = "";
  for await (const line of createInterface({ input: child.stdout })) {
    address = line;
    break;
  }
  assert.ok(await isUp(address));
  child.kill("SIGKILL");
  for (let tries = 0; await isUp(address); tries++) {
    assert.ok(tries < 3000, "the process outlives the run that has started it");
    await setTimeout(20);
  }
});
