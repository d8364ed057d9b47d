/** Tests that fail, run by fixture.spec.ts alone. */

import { Kafka, logLevel } from "kafkajs";
import { type Cluster, clusterFixture, withCluster } from "momus-kit";
import { test as base } from "vitest";

const test = base.extend<{ cluster: Cluster }>(clusterFixture({ topics: { orders: 1 } }));

async function greet(cluster: Cluster): Promise<void> {
  const admin = new Kafka({ brokers: cluster.addresses, logLevel: logLevel.NOTHING, retry: { retries: 0 } }).admin();
  await admin.connect().catch(() => {}); // it is cut
  await admin.disconnect();
}

test("unmet", async ({ cluster }) => void (await cluster.faults.hold("EndTxn")));

test("of its own", async ({ cluster }) => {
  await greet(cluster);
  throw new Error("wrong");
});

test("met by the end of a service", async ({ cluster, onTestFinished }) => {
  onTestFinished(() => greet(cluster));
  await cluster.faults.disconnectOn("ApiVersions", { when: "before" });
});

base("unmet by the wrapper", withCluster({}, async (cluster) => void (await cluster.faults.hold("EndTxn"))));

base("of its own by the wrapper", withCluster({}, async (cluster) => {
  await greet(cluster);
  throw new Error("wrong");
}));
