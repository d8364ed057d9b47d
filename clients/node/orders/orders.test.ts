/** Whatever goes wrong, each order has exactly one invoice. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Consumer, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka";
import { type Cluster, momus, once, withCluster } from "momus-kit";
import { Fenced, Orders, PRICE } from "./orders.js";

const COUNT = 20;
const EXPECTED = Array.from({ length: COUNT }, (_, number) => `customer-${number} ${number * PRICE}`).sort();
const STEPS = ["AddPartitionsToTxn", "Produce", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"];

/** A cluster with 20 orders, made once and forked for each test. */
const template = (async () => {
  const cluster = await (await momus()).cluster({
    seed: 2026,
    topics: { orders: 2, invoices: 1 },
    config: { "transaction.state.log.num.partitions": 2, "offsets.topic.num.partitions": 2 },
  });
  for (let number = 0; number < COUNT; number++)
    await cluster.produce("orders", { value: `customer-${number} ${number}`, partition: number % 2 });
  return cluster;
})();

after(async () => (await momus()).close());

/** A test with a fork of it and a worker. */
const withService = (run: (cluster: Cluster, service: Orders) => Promise<void>) =>
  withCluster(async () => (await template).fork(), async (cluster) => {
    const service = await Orders.start(cluster.addresses, "orders-1");
    try {
      await run(cluster, service);
    } finally {
      await service.stop();
    }
  });

/** What a careful reader sees. */
async function invoices(cluster: Cluster, least: number): Promise<string[]> {
  const found = await cluster.consume("invoices", least, { isolation: "committed" });
  return found.map(({ value }) => value!.toString()).sort();
}

test("each order has its invoice", withService(async (cluster, service) => {
  await service.work(COUNT);
  assert.deepEqual(await invoices(cluster, COUNT), EXPECTED);
  assert.deepEqual(await cluster.groups.committed("orders"), { orders: { 0: 10, 1: 10 } });
}));

for (const api of STEPS)
  for (const when of ["before", "after"] as const)
    test(`a connection that breaks ${when} ${api} costs no invoice and adds none`, withService(async (cluster, service) => {
      const fault = await cluster.faults.disconnectOn(api, { when, trigger: once, clientId: "orders-1" });
      await service.work(COUNT);
      assert.equal(await fault.hits(), 1);
      assert.deepEqual(await invoices(cluster, COUNT), EXPECTED);
    }));

for (const api of STEPS)
  test(`a coordinator that moves at ${api} costs no invoice and adds none`, withService(async (cluster, service) => {
    await cluster.faults.injectError(api, api === "Produce" ? "NOT_LEADER_OR_FOLLOWER" : "NOT_COORDINATOR", { trigger: once });
    await service.work(COUNT);
    assert.deepEqual(await invoices(cluster, COUNT), EXPECTED);
  }));

/** Works until the first transaction is to end, and calls what happens then. The worker dies there. */
async function atTheEnd(cluster: Cluster, service: Orders, then: () => Promise<void>): Promise<void> {
  const held = await cluster.faults.hold("EndTxn", { when: "before", trigger: once });
  const working = service.work(COUNT).catch(() => {});
  await held.waitUntilHeld({ timeoutMs: 60_000 });
  await then();
  await service.die();
  await working;
  await held.remove();
}

test("a worker that dies between offsets and commit leaves no trace", withService(async (cluster, service) => {
  await atTheEnd(cluster, service, async () => {
    assert.deepEqual(await invoices(cluster, 0), []);
    assert.deepEqual(await cluster.groups.committed("orders"), {});
  });
}));

test("a zombie is fenced and told why", withService(async (cluster, service) => {
  await service.work(5);
  const successor = await Orders.start(cluster.addresses, "orders-1");
  try {
    await assert.rejects(service.work(COUNT), Fenced);
    const sentence = /^the producer sent id \d+, epoch \d+; transactional id orders-1 is \w+, with producer id \d+, epoch \d+$/;
    const whys = await cluster.journal.whys();
    assert.ok(whys.some((why) => sentence.test(why)), whys.join("\n"));
    await service.stop();
    await successor.work(COUNT - (await invoices(cluster, 0)).length);
  } finally {
    await successor.stop();
  }
  assert.deepEqual(await invoices(cluster, COUNT), EXPECTED);
}));

test("the transaction of a worker that fell silent is aborted after a minute", withService(async (cluster, service) => {
  await atTheEnd(cluster, service, async () => {
    await cluster.produce("invoices", "by hand 1");
    assert.deepEqual(await invoices(cluster, 0), []); // after the open transaction
    await cluster.clock.advance({ seconds: 61 });
    assert.deepEqual(await invoices(cluster, 1), ["by hand 1"]);
  });
}));

test("@platformatic/kafka tries a produce again that was refused once", withCluster({ topics: { orders: 1 } }, async (cluster) => {
  const refused = await cluster.faults.injectError("Produce", "NOT_LEADER_OR_FOLLOWER", { trigger: once });
  const words = { clientId: "till", bootstrapBrokers: cluster.addresses };
  const producer = new Producer({ ...words, serializers: stringSerializers, retryDelay: 20 });
  await producer.send({ messages: [{ topic: "orders", key: "table 4", value: "one coffee" }] });
  await producer.close();
  assert.equal(await refused.hits(), 1);
  const consumer = new Consumer({ ...words, groupId: "bar", deserializers: stringDeserializers });
  const stream = await consumer.consume({ topics: ["orders"], mode: "earliest", autocommit: false });
  for await (const message of stream) {
    assert.equal(message.value, "one coffee");
    await message.commit();
    break;
  }
  await stream.close();
  await consumer.close(true);
  await cluster.groups.waitForCommitted("bar", { orders: { 0: 1 } });
}));
