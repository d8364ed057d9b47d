/** A cluster for one test, in any runner. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Cluster, ClusterOptions } from "./cluster.js";
import { momus } from "./momus.js";

type Made = ClusterOptions | (() => Promise<Cluster>);

/**
 * Wraps the function of a test of vitest, jest or node:test, which gets a cluster, and after it what its runner gives.
 *
 *     test("bills each order", withCluster({ topics: { orders: 6 } }, async (cluster) => { ... }));
 *
 * In the place of options a function may make the cluster, such as a fork of one that has data. When the test is over, it
 * fails for each fault that never acted and each expectation that is not met; the error of a failed test ends with the last
 * requests. With MOMUS_KEEP_FAILED=DIR its whole run is kept there.
 */
export function withCluster(
  made: Made,
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each runner has a context of its own
  run: (cluster: Cluster, ...context: any[]) => Promise<void> | void,
): (...context: unknown[]) => Promise<void> {
  return async (...context) => {
    const keeps = process.env["MOMUS_KEEP_FAILED"];
    const cluster = typeof made === "function" ? await made() : await (await momus()).cluster(made);
    if (keeps) await cluster.record();
    try {
      await run(cluster, ...context);
      await cluster.verify();
    } catch (error) {
      throw await told(error, cluster, keeps, nameOf(context));
    } finally {
      await cluster.drop();
    }
  };
}

/** The error with the last requests, and where the run is kept. */
async function told(error: unknown, cluster: Cluster, keeps: string | undefined, test: string): Promise<Error> {
  const failure = error instanceof Error ? error : new Error(String(error));
  const more: string[] = [];
  try {
    const lines = await cluster.journal.last();
    if (lines.length) more.push(`the last requests of momus cluster ${cluster.name}:`, ...lines);
    if (keeps) {
      const file = join(keeps, `${test.replace(/[^\w.-]+/g, "_")}-${cluster.name}.momus`);
      await mkdir(keeps, { recursive: true });
      await writeFile(file, await cluster.recording(), { mode: 0o600 });
      more.push(`the run is kept: momus replay ${file}`);
    }
  } catch (why) {
    more.push(`momus could not be asked for its last requests: ${String(why)}`);
  }
  if (more.length) {
    const before = failure.message;
    failure.message = [before, "", ...more].join("\n");
    failure.stack = failure.stack?.replace(before, () => failure.message);
  }
  return failure;
}

interface Runner {
  name?: string; // node:test
  task?: { name: string }; // vitest
}

function nameOf(context: unknown[]): string {
  const [given] = context as [Runner | undefined];
  const jest = (globalThis as { expect?: { getState?(): { currentTestName?: string } } }).expect;
  return given?.task?.name ?? given?.name ?? jest?.getState?.().currentTestName ?? "test";
}
