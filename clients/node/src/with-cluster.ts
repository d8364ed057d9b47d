/** A cluster for one test, in any runner. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Cluster, ClusterOptions } from "./cluster.js";
import { fields } from "./control.js";
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
 *
 * The cluster ends last: after what `cluster.defer` was given, and after what the test gives to `after` of node:test or
 * `onTestFinished` of vitest. Its calls end with the test, where the runner has a signal for that.
 */
export function withCluster(
  made: Made,
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each runner has a context of its own
  run: (cluster: Cluster, ...context: any[]) => Promise<void> | void,
): (...context: unknown[]) => Promise<void> {
  return async (...context) => {
    const runner = (context[0] ?? {}) as Runner;
    const cluster = await begin(made, runner);
    runner.onTestFinished?.(() => end(cluster, runner)); // vitest calls the last first
    try {
      await run(cluster, ...context);
      if (!hasHooks(runner)) await settled(cluster);
    } catch (error) {
      throw await told(error, cluster, runner);
    } finally {
      if (runner.after) runner.after(() => end(cluster, runner)); // node:test calls the first first
      else if (!hasHooks(runner)) await drop(cluster);
    }
  };
}

/**
 * A fixture of vitest: each test that names `cluster` gets one, which is as one of `withCluster` in all else.
 *
 *     const test = base.extend<{ cluster: Cluster }>(clusterFixture({ topics: { orders: 6 } }));
 */
export function clusterFixture(made: Made = {}): { cluster: (context: Vitest, use: (cluster: Cluster) => Promise<void>) => Promise<void> } {
  return {
    // vitest reads here which parts of its context are wanted
    cluster: async ({ task, signal, onTestFinished }, use) => {
      const cluster = await begin(made, { task, signal });
      onTestFinished(() => end(cluster, { task }));
      await use(cluster);
    },
  };
}

async function begin(made: Made, runner: Runner): Promise<Cluster> {
  const named = { "Momus-Test": encodeURIComponent(nameOf(runner)) };
  const cluster = await fields.run(named, async () => (typeof made === "function" ? made() : (await momus()).cluster(made)));
  cluster.signal = runner.signal;
  if (keeps()) await cluster.record();
  return cluster;
}

const keeps = (): string | undefined => process.env["MOMUS_KEEP_FAILED"] || undefined;

const hasHooks = (runner: Runner): boolean => Boolean(runner.after ?? runner.onTestFinished);

/** What was deferred is done, and nothing is unmet. Throws. */
async function settled(cluster: Cluster): Promise<void> {
  cluster.signal = undefined;
  await cluster.settle();
  await cluster.verify();
}

/** The end of a cluster in a hook of its runner, which fails the test for what is thrown here. */
async function end(cluster: Cluster, runner: Runner): Promise<void> {
  const failures = runner.task?.result?.errors ?? [];
  try {
    await settled(cluster);
    // The error of a test with a fixture is known only here.
    if (failures[0] && !failures[0].message?.includes(LAST)) await tell(failures[0], cluster, runner);
  } catch (error) {
    throw await told(error, cluster, runner);
  } finally {
    await drop(cluster);
  }
}

const failed = new WeakSet<Cluster>();

async function drop(cluster: Cluster): Promise<void> {
  await fields.run({ "Momus-Test-Failed": String(failed.has(cluster)) }, () => cluster.drop());
}

const LAST = "the last requests of momus cluster";

/** The error with the last requests, and where the run is kept. */
async function told(error: unknown, cluster: Cluster, runner: Runner): Promise<Error> {
  const failure = error instanceof Error ? error : new Error(String(error));
  await tell(failure, cluster, runner);
  return failure;
}

async function tell(failure: Failure, cluster: Cluster, runner: Runner): Promise<void> {
  failed.add(cluster);
  cluster.signal = undefined;
  const more: string[] = [];
  try {
    const lines = await cluster.journal.last();
    if (lines.length) more.push(`${LAST} ${cluster.name}:`, ...lines);
    const folder = keeps();
    if (folder) {
      const file = join(folder, `${nameOf(runner).replace(/[^\w.-]+/g, "_")}-${cluster.name}.momus`);
      await mkdir(folder, { recursive: true });
      await writeFile(file, await cluster.recording(), { mode: 0o600 });
      more.push(`the run is kept: momus replay ${file}`);
    }
  } catch (why) {
    more.push(`momus could not be asked for its last requests: ${String(why)}`);
  }
  if (!more.length) return;
  const before = failure.message ?? "";
  const message = [before, "", ...more].join("\n");
  failure.message = message;
  if (failure.stack) failure.stack = failure.stack.replace(before, () => message);
}

interface Failure {
  message?: string;
  stack?: string;
}

/** What the runners give to a test, as far as it is used here. */
interface Runner {
  name?: string; // node:test
  after?: (call: () => Promise<void>) => void; // node:test
  task?: { name: string; result?: { errors?: Failure[] } }; // vitest
  onTestFinished?: (call: () => Promise<void>) => void; // vitest
  signal?: AbortSignal;
}

type Vitest = Runner & Required<Pick<Runner, "task" | "onTestFinished">>;

function nameOf(runner: Runner): string {
  const jest = (globalThis as { expect?: { getState?(): { currentTestName?: string } } }).expect;
  return runner.task?.name ?? runner.name ?? jest?.getState?.().currentTestName ?? "test";
}
