/** The fixture of the kit in vitest: a test that names `cluster` has one, which ends after all that uses it. */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Kafka, logLevel } from "kafkajs";
import { type Cluster, clusterFixture, momus } from "momus-kit";
import { test as base, expect, test as plain } from "vitest";

const ended: string[] = [];

/** A test with a cluster and a client of it: vitest makes what a test names, and ends it in the opposite order. */
const test = base.extend<{ cluster: Cluster; kafka: Kafka }>({
  ...clusterFixture({ topics: { orders: 1 } }),
  kafka: async ({ cluster }, use) => {
    await use(new Kafka({ brokers: cluster.addresses, logLevel: logLevel.NOTHING }));
    await cluster.connections(); // it is still there
    ended.push("client");
  },
});

test("a produce is tried again", async ({ cluster, kafka }) => {
  const refused = await cluster.faults.injectError("Produce", "NOT_LEADER_OR_FOLLOWER", { trigger: "once" });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: "orders", messages: [{ value: "one coffee" }] });
  await producer.disconnect();
  expect(String((await cluster.consume("orders", 1))[0]!.value)).toBe("one coffee");
  expect(await refused.hits()).toBe(1);
});

let before = "";

test("a cluster is another one in each test", async ({ cluster, onTestFinished }) => {
  before = cluster.name;
  onTestFinished(async () => {
    await cluster.connections();
    ended.push("hook");
  });
});

plain("a cluster ends after the fixtures and hooks of its test", async () => {
  expect(ended).toEqual(["client", "hook"]);
  expect(await (await momus()).clusters()).not.toContain(before);
});

plain("a test fails for what is unmet, and its report has the last requests", async () => {
  const words = ["vitest", "run", "--config", "runners/failing.config.mjs", "--reporter", "json"];
  const { stdout } = await promisify(execFile)("npx", words).catch((error: { stdout: string }) => error);
  const [file] = JSON.parse(stdout).testResults;
  const said = Object.fromEntries(file.assertionResults.map((each: { title: string; failureMessages: string[] }) => [each.title, each.failureMessages.join("\n")]));
  expect(said.unmet).toMatch(/never acted/);
  expect(said["unmet by the wrapper"]).toMatch(/never acted/);
  for (const own of ["of its own", "of its own by the wrapper"])
    expect(said[own]).toMatch(/wrong[\s\S]*the last requests of momus cluster[\s\S]*Produce|wrong[\s\S]*the last requests of momus cluster[\s\S]*ApiVersions/);
  expect(said["met by the end of a service"]).toBe("");
  expect(Object.keys(said)).toHaveLength(5);
});
