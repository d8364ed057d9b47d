/** Calls each method of the kit once: a route of /openapi.json that none of them asks for fails the test. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cluster, Momus, onCall, once, times, withProbability } from "../src/index.js";
import { greet } from "./greet.js";

// `momus open` and its page steer a kept run; a proxy removes what a run of pytest has created. What only the page asks for
// has its tag.
// what `momus explore` asks about a run
const OF_EXPLORE = ["list_events", "tell_requests", "left_wrong"];
const NOT_OF_KITS = ["show_step", "step", "fetch_step", "tell_step", "remove_created", ...OF_EXPLORE];

interface Operation {
  operationId: string;
  tags: string[];
}

test("each route has a method", async () => {
  const momus = await Momus.start();
  try {
    const asked: string[] = ["GET /version"]; // by start
    momus.control.asked = (call) => void asked.push(call);
    await callAll(momus);
    const described = (await momus.openApi()) as { paths: Record<string, Record<string, Operation>> };
    const missing: string[] = [];
    let routes = 0;
    for (const [path, methods] of Object.entries(described.paths))
      for (const [method, operation] of Object.entries(methods)) {
        if (NOT_OF_KITS.includes(operation.operationId) || operation.operationId.endsWith("_of_default")) continue;
        if (operation.tags[0] === "page") continue;
        routes++;
        const call = `${method.toUpperCase()} ${path}`;
        const pattern = new RegExp(`^${call.replaceAll(".", "\\.").replaceAll(/{\w+}/g, "[^/?]+")}(\\?.*)?$`);
        if (!asked.some((each) => pattern.test(each))) missing.push(call);
      }
    assert.deepEqual(missing, [], "routes that the kit has no method for");
    assert.ok(routes > 60);
  } finally {
    await momus.close();
  }
});

async function callAll(momus: Momus): Promise<void> {
  assert.ok((await momus.clusters()).includes("default"));
  assert.ok((await momus.routes())["/healthz"]);
  assert.match(await momus.metrics(), /^# HELP/);
  assert.ok((await momus.isHealthy()) && (await momus.isReady()));
  assert.equal((await momus.defaultCluster()).name, "default");
  const cluster = await momus.cluster({ name: "all", brokers: 3, seed: 7, config: { "num.partitions": 2 } });
  await cluster.createTopic("one", 1, { replicas: 3, config: { "retention.ms": "1000" } });
  await cluster.createTopics({ two: 2 });
  assert.equal((await cluster.load({ topics: [{ name: "three" }] }, "skip"))["topics"], 1);
  await cluster.produce("two", "a", "b");
  await cluster.consume("two", 2);
  await steer(cluster);
  await groups(cluster);
  await meet(cluster);
  const full = await cluster.snapshot();
  assert.equal((await cluster.snapshots()).length, 1);
  const fork = await cluster.fork();
  await momus.diff(fork, full);
  await fork.close();
  await full.restore();
  await full.remove();
  await cluster.record();
  assert.ok((await cluster.recording()).length > 0);
  await cluster.endRecording();
  assert.equal(await cluster.hasRegistry(), false);
  assert.match(await cluster.registryUrl(), /^http:/);
  await cluster.reset();
  assert.match(await cluster.metrics(), /^# HELP/);
  assert.equal(await cluster.connections(), 0);
  await cluster.close();
  const guarded = await momus.cluster({
    security: "sasl_ssl",
    users: { alice: "secret" },
    config: { "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer" },
  });
  await secure(guarded);
  await guarded.close();
  await momus.hangUp();
}

async function steer({ clock, brokers }: Cluster): Promise<void> {
  await clock.freeze();
  assert.ok(await clock.stands());
  await clock.set(new Date((await clock.now()).getTime() + 60_000));
  await clock.passWaits({ seconds: 1 });
  await clock.resume();
  await brokers.stop(2);
  await brokers.start(2);
  await brokers.lag(2);
  await brokers.release(2);
  await brokers.pause(3);
  assert.ok((await brokers.list())[2]!.paused);
  await brokers.resume(3);
}

async function groups(cluster: Cluster): Promise<void> {
  await cluster.load({ groups: [{ name: "billing", offsets: [{ topic: "two", partition: 0, offset: 1 }] }] }, "skip");
  await cluster.groups.waitForCommitted("billing", { two: { 0: 1 } });
  await cluster.groups.waitForLag("billing", 1, { topic: "two" });
  await cluster.groups.waitFor("billing", "empty", { members: 0 });
  assert.equal((await cluster.groups.show("billing")).state, "Empty");
  assert.deepEqual(await cluster.groups.committed("billing"), { two: { 0: 1 } });
  await assert.rejects(cluster.groups.waitFor("billing", "stable", { members: 1, timeoutMs: 0 }), /is empty with 0 members, not stable with 1 member/);
  await assert.rejects(cluster.groups.rebalance("billing"), /no members/);
  await assert.rejects(cluster.groups.expel("billing", "nobody"));
  await cluster.groups.remove("billing");
}

async function meet(cluster: Cluster): Promise<void> {
  const { faults, journal } = cluster;
  const first = await faults.injectError("Fetch", "NOT_LEADER_OR_FOLLOWER", { trigger: times(2), topic: "orders", partition: 0, version: [0, 99] });
  await faults.delayOn(["EndTxn", "Produce"], 1000, { trigger: onCall(5), transactionalId: "x*" });
  await faults.makeEvent("rebalance", "EndTxn", { when: "after" });
  await faults.hold("EndTxn", { when: "before", trigger: withProbability(0.5, 7), principal: "User:alice" });
  await faults.disconnectOn("EndTxn", { when: "middle", listener: "L", broker: 2 });
  await faults.blackholeClient("nobody", { connection: "127.0.0.1:1" });
  await faults.throttle(5, { clientId: "nobody", name: "slow" });
  await faults.corruptReply("EndTxn", { at: 3 });
  await faults.deliverTwice("EndTxn");
  await faults.slowDisk(1, { topic: "nothing" });
  await faults.fullDisk(2 ** 40, { topic: "nothing" });
  await faults.failWrite({ topic: "nothing" });
  await faults.failFsync({ topic: "nothing" });
  await faults.failDeadLetter("REQUEST_TIMED_OUT", { group: "g" });
  await faults.registry("error", { status: 503, code: 50003, route: "RegisterSchema", subject: "s", when: "after" });
  const set = new Set((await faults.list()).map((each) => each.fault));
  assert.equal(set.size, (await faults.kinds()).length, `the kit sets ${[...set]}`);
  assert.equal((await first.state())["error"], "NOT_LEADER_OR_FOLLOWER");
  await first.remove();
  await faults.clear();
  const held = await faults.hold("ApiVersions", { trigger: once });
  const greeted = greet(cluster);
  await held.waitUntilHeld();
  assert.equal(await held.held(), 1);
  assert.equal(await held.release(1), 1);
  await greeted;
  await held.waitUntilHit();
  assert.deepEqual([await held.hits(), await held.calls()], [1, 1]);
  await journal.verify({ api: "ApiVersions", error: "NOT_COORDINATOR" }, { atLeast: 0, atMost: 5 });
  assert.equal((await journal.entries({ api: "ApiVersions" })).length, 1);
  assert.deepEqual(await journal.whys(), []);
  assert.match((await journal.last(5)).join(), /ApiVersions/);
  await journal.expect({ api: "EndTxn" }, { times: 7 });
  await journal.expectNothing();
  await journal.keep(1 << 20);
  await journal.clear();
  assert.deepEqual(await cluster.unmet(), []);
}

async function secure(cluster: Cluster): Promise<void> {
  const { users, acls, certificates } = cluster;
  await users.add("carol", "pencil");
  assert.deepEqual(await users.list(), ["alice", "carol"]);
  assert.equal((await users.passwords())["carol"], "pencil");
  await users.remove("carol");
  await acls.allow("alice", "topic", "orders", "read", "describe");
  await acls.deny("User:bob", "group", "billing", "read");
  assert.equal((await acls.list()).length, 3);
  assert.equal(await acls.remove("bob"), 1);
  await certificates.expire();
  await certificates.issue("server", ["localhost"]);
  await certificates.rotate();
  await certificates.rotate({ authority: true });
  const settings = JSON.stringify(await cluster.clientSettings("kafkajs", "alice"));
  assert.match(settings, /alice/);
  assert.doesNotMatch(settings, /\{folder\}/);
}
