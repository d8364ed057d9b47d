/** A momus with any number of clusters. */

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Cluster, type ClusterOptions, type Described, type Side, type Difference, body } from "./cluster.js";
import { Control, type Json, MomusError } from "./control.js";
import { find } from "./find.js";
import { API, VERSION } from "./version.js";

export interface StartOptions {
  /** The first words of the command; those that `find` finds otherwise. */
  command?: string[];
  /** Further options of `momus serve`. */
  args?: string[];
  /** Ends the start, and what was started. */
  signal?: AbortSignal;
}

export class Momus {
  private constructor(
    readonly control: Control,
    private readonly child?: ChildProcess,
  ) {}

  /** Starts one, and waits until it serves. It ends with `close`, or with this process, however that ends. */
  static async start(options: StartOptions = {}): Promise<Momus> {
    const [program, ...words] = options.command ?? find();
    // Its standard input is a pipe that the system closes when this process ends.
    const child = spawn(program!, [...words, "kit", ...(options.args ?? [])], { stdio: "pipe" });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (said.length < 1 << 16) said += text;
    });
    const failed = new Promise<never>((_, reject) => {
      child.once("error", (error) => reject(new MomusError(`${program}: ${error.message}`)));
      child.once("close", () => reject(new MomusError(
        said.includes("No such command 'kit'")
          ? `${program} is older than this kit, which is of ${VERSION}: install that version`
          : `it did not start: ${said.trim()}`,
      )));
    });
    failed.catch(() => {}); // it may end long after it has served
    const { signal } = options;
    const stopped = new Promise<never>((_, reject) => {
      if (signal?.aborted) reject(signal.reason);
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    const address = await Promise.race([control(child), failed, stopped]).catch((error: unknown) => {
      child.kill();
      throw error;
    });
    // What runs the tests ends although this one runs.
    child.unref();
    for (const each of [child.stdin, child.stdout, child.stderr]) (each as unknown as { unref(): void }).unref();
    const made = new Momus(new Control(address), child);
    try {
      await made.agree(signal);
    } catch (error) {
      await made.close();
      throw error;
    }
    return made;
  }

  /** Uses one that runs, by the address of its control endpoint, and with MOMUS_CONTROL_TOKEN. */
  static async connect(address: string, options: { signal?: AbortSignal } = {}): Promise<Momus> {
    const made = new Momus(new Control(address));
    await made.agree(options.signal);
    return made;
  }

  private async agree(signal?: AbortSignal): Promise<void> {
    const at = this.control.address;
    let answer: { version: string; api: number };
    try {
      answer = await this.control.ask("GET", "/version", undefined, signal);
    } catch (error) {
      if (!(error instanceof MomusError) || error.status !== 404) throw error;
      throw new MomusError(`what serves at ${at} is older than this kit, which is of ${VERSION}: install that version`);
    }
    if (answer.api !== API)
      throw new MomusError(
        `this kit is of ${VERSION} and speaks version ${API} of the control plane, what serves at ${at} is of ${answer.version} and ` +
          `speaks version ${answer.api}: install the kit and the momus of one version`,
      );
  }

  /** HOST:PORT of its control endpoint. */
  get address(): string {
    return this.control.address;
  }

  /** Makes a cluster, which its `close` verifies and removes. */
  async cluster(options: ClusterOptions = {}): Promise<Cluster> {
    const made = new Cluster(this, await this.control.ask<Described>("POST", "/_admin/clusters", body(options)));
    try {
      if (options.topics) await made.createTopics(options.topics);
      if (options.load) await made.load(options.load);
    } catch (error) {
      await made.drop();
      throw error;
    }
    return made;
  }

  /** The cluster that it begins with, whose name is default. */
  async defaultCluster(): Promise<Cluster> {
    return new Cluster(this, await this.control.ask<Described>("GET", "/_admin/clusters/default"));
  }

  /** The names of the clusters that are there. */
  async clusters(): Promise<string[]> {
    return (await this.control.ask<Described[]>("GET", "/_admin/clusters")).map((each) => each.name);
  }

  /** What is different between two sides: each a cluster as it is now, or a snapshot. */
  async diff(first: Side, second: Side): Promise<Difference> {
    return this.control.ask("POST", "/_admin/diff", { first: first.side(), second: second.side() });
  }

  /** All paths of the control plane, each with its methods and what they are for. */
  async routes(): Promise<Record<string, Record<string, string>>> {
    return this.control.ask("GET", "/");
  }

  /** The description of the control plane. */
  async openApi(): Promise<Json> {
    return this.control.ask("GET", "/openapi.json");
  }

  /** Whether it runs. */
  async isHealthy(): Promise<boolean> {
    return this.answers("/healthz");
  }

  /** Whether all groups are loaded. */
  async isReady(): Promise<boolean> {
    return this.answers("/readyz");
  }

  private async answers(path: string): Promise<boolean> {
    return this.control.ask("GET", path).then(() => true, () => false);
  }

  /** The metrics of the cluster default, as Prometheus reads them. */
  async metrics(): Promise<string> {
    return this.control.text("GET", "/metrics");
  }

  /** Cuts off all clients of all clusters for good, so that what they have sent can be counted before the end. */
  async hangUp(): Promise<void> {
    await this.control.ask("POST", "/_admin/hang-up");
  }

  /** Ends a process that `start` has begun. One that is only connected goes on. */
  async close(): Promise<void> {
    const child = this.child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.ref();
    child.stdin?.end();
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The address of the control endpoint, from the first lines that it prints. */
async function control(child: ChildProcess): Promise<string> {
  const lines = createInterface({ input: child.stdout! });
  for await (const line of lines) if (line.startsWith("momus control ")) {
    child.stdout!.resume();
    return line.slice("momus control ".length);
  }
  return new Promise(() => {}); // it ends, which is told elsewhere
}

let ofRun: Promise<Momus> | undefined;

/** That of the run, which the first call starts; MOMUS_ADDRESS, or `momus-kit/global-setup`, names one for all workers. */
export function momus(): Promise<Momus> {
  const address = process.env["MOMUS_ADDRESS"];
  ofRun ??= address ? Momus.connect(address) : Momus.start();
  return ofRun;
}
