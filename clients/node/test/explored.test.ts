/** What `momus explore` is told: for which test a cluster is, and what came of it. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { test } from "node:test";
import { Momus, withCluster } from "../src/index.js";

test("calls say for which test a cluster is and what came of it", async () => {
  const said: string[] = [];
  const server = createServer((call, answer) => {
    const field = call.headers["momus-test"] ?? call.headers["momus-test-failed"];
    if (field) said.push(`${call.method} ${call.url} ${String(field)}`);
    answer.end(JSON.stringify({ name: "c", bootstrap_servers: "127.0.0.1:1", api: 1, unmet: [], lines: [] }));
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const process = await Momus.connect(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  for (const fails of [false, true])
    await withCluster(() => process.cluster(), () => {
      if (fails) throw new Error("no");
    })({ name: "inner / test" }).catch(() => {});
  server.close();
  server.closeAllConnections();
  const made = "POST /_admin/clusters inner%20%2F%20test";
  assert.deepEqual(said, [made, "DELETE /_admin/clusters/c false", made, "DELETE /_admin/clusters/c true"]);
});
