/** One cluster of a momus. */

import { mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, sep } from "node:path";
import { type Json, MomusAssertionError, part, query } from "./control.js";
import { Faults } from "./faults.js";
import { Groups } from "./groups.js";
import { Journal } from "./journal.js";
import type { Momus } from "./momus.js";
import { type Key, type Message, type Place, type Reading, type Received, consume, encoded, row } from "./records.js";
import { Acls, Certificates, Users } from "./security.js";
import { Brokers, Clock } from "./steering.js";

export interface ClusterOptions {
  name?: string;
  /** Virtual brokers; 1. */
  brokers?: number;
  /** Kafka's own broker settings, and momus' own, as "as.version". */
  config?: Record<string, string | number | boolean>;
  /** What an acknowledged record survives; "memory". */
  flush?: "memory" | "os" | "fsync";
  /** Ids repeat. */
  seed?: number;
  /** The moment at which the clock stands. */
  at?: Date;
  security?: "sasl_ssl" | "sasl_plaintext" | "ssl" | "mtls";
  /** Name to password. */
  users?: Record<string, string>;
  /** Name to number of partitions. */
  topics?: Record<string, number>;
  /** What it is filled with (docs/load.md): a document, or the path of a file or a folder. */
  load?: Json | string;
  /** Bytes of the last requests that are kept; 4 MB. 0: none. */
  journalBytes?: number;
  /** HOST:PORT; 127.0.0.1 and a free port. */
  listen?: string;
}

export interface Described {
  name: string;
  bootstrap_servers: string;
  cluster_id: string;
  connections: number;
  warnings: string[];
}

/** A cluster as it is now, or a snapshot, to be compared. */
export interface Side {
  side(): Record<string, string>;
}

/** Rows have a value where a side has one. */
export interface Difference {
  different: boolean;
  topics: Json[];
  settings: Json[];
  records: Json[];
  offsets: Json[];
  members: Json[];
}

export function body(options: ClusterOptions): Json {
  const { topics: _, load: __, at, journalBytes, config, ...rest } = options;
  const settings = config && Object.fromEntries(Object.entries(config).map(([name, value]) => [name, String(value)]));
  return { ...rest, config: settings, clock_ms: at?.getTime(), journal_bytes: journalBytes ?? 4 << 20 };
}

export interface TopicOptions {
  replicas?: number;
  config?: Record<string, string>;
}

export class Cluster implements Side {
  readonly name: string;
  readonly path: string;
  readonly faults: Faults;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly brokers: Brokers;
  readonly groups: Groups;
  readonly users: Users;
  readonly acls: Acls;
  readonly certificates: Certificates;
  /** Settings without effect whose names are probably wrong. */
  readonly warnings: string[];
  /** Ends each call of the cluster, but for its end: that of the test, where its runner has one. */
  signal: AbortSignal | undefined;
  private readonly deferred: (() => unknown)[] = [];
  private servers: string;
  private isOpen = true;
  private readonly forks: Cluster[] = [];
  private readonly folders: string[] = [];

  constructor(readonly momus: Momus, described: Described) {
    this.name = described.name;
    this.servers = described.bootstrap_servers;
    this.warnings = described.warnings;
    this.path = `/_admin/clusters${part(described.name)}`;
    this.faults = new Faults(this);
    this.journal = new Journal(this);
    this.clock = new Clock(this);
    this.brokers = new Brokers(this);
    this.groups = new Groups(this);
    this.users = new Users(this);
    this.acls = new Acls(this);
    this.certificates = new Certificates(this);
  }

  /** Makes a call, which ends with the signal, or with that of the cluster. */
  async ask<T = Json>(method: string, suffix: string, sent?: unknown, signal?: AbortSignal): Promise<T> {
    const ends = signal && this.signal ? AbortSignal.any([signal, this.signal]) : (signal ?? this.signal);
    return this.momus.control.ask<T>(method, this.path + suffix, sent, ends);
  }

  /** What clients take: HOST:PORT,HOST:PORT. */
  get bootstrapServers(): string {
    return this.servers;
  }

  /** What clients take as a list, as kafkajs and @platformatic/kafka do. */
  get addresses(): string[] {
    return this.servers.split(",");
  }

  // ---- topics and records

  async createTopic(name: string, partitions = 1, options: TopicOptions = {}): Promise<void> {
    await this.ask("POST", "/topics", { name, partitions, ...options });
  }

  /** Name to partitions (-1: as the setting says): all of them or none. */
  async createTopics(topics: Record<string, number>, options: TopicOptions = {}): Promise<void> {
    await this.ask("POST", "/create-topics", { topics, ...options });
  }

  /**
   * Fills it with what a document says (docs/load.md), or a file or a folder of files, named by a path: YAML, JSON or TOML,
   * with what they name beside them. Returns what was loaded, in numbers.
   */
  async load(load: Json | string, ifPresent: "fail" | "skip" = "fail"): Promise<Record<string, number>> {
    if (typeof load !== "string") return (await this.fill({ document: load, if_present: ifPresent })).loaded;
    const files: Record<string, string> = {};
    for (let needs = await documents(load); ; ) {
      for (const name of needs) files[name] = await readFile(name, "utf8");
      const answer = await this.fill({ files, if_present: ifPresent });
      if (answer.needs.length === 0) return answer.loaded;
      needs = answer.needs;
    }
  }

  private fill(body: Json): Promise<{ loaded: Record<string, number>; needs: string[] }> {
    return this.ask("POST", "/load", body);
  }

  /** Appends a record for each message. The topic is made if it is not there. Returns where each of them is. */
  async produce(topic: string, ...messages: Message[]): Promise<Place[]> {
    return this.ask("POST", `/topics${part(topic)}/records`, { records: messages.map(row) });
  }

  /** Reads the records of a topic, and waits for at least so many. If none are waited for, the topic must be there. */
  async consume(topic: string, least = 0, reading: Reading = {}): Promise<Received[]> {
    return consume(this, topic, least, reading);
  }

  // ---- state

  /** Drops all data, connections, faults and moves of the clock; ports, settings and expectations stay. */
  async reset(): Promise<void> {
    await this.beginAnew("/reset", {});
  }

  async beginAnew(suffix: string, sent: Json): Promise<void> {
    this.servers = (await this.ask<Described>("POST", suffix, sent)).bootstrap_servers;
  }

  /** Keeps the cluster as it is; without a name the snapshot gets one. */
  async snapshot(name?: string): Promise<Snapshot> {
    return new Snapshot(this, (await this.ask<{ name: string }>("POST", "/snapshots", { name })).name);
  }

  /** Its snapshots, oldest first. */
  async snapshots(): Promise<Snapshot[]> {
    return (await this.ask<{ name: string }[]>("GET", "/snapshots")).map((each) => new Snapshot(this, each.name));
  }

  /** Another cluster that goes on from this one as it is now. It is verified and removed with this one, or by its `close`. */
  async fork(snapshot?: string): Promise<Cluster> {
    const fork = new Cluster(this.momus, await this.ask<Described>("POST", "/fork", { snapshot }));
    fork.signal = this.signal;
    this.forks.push(fork);
    return fork;
  }

  side(): Record<string, string> {
    return { cluster: this.name };
  }

  /** How many clients are connected. */
  async connections(): Promise<number> {
    return (await this.ask<Described>("GET", "")).connections;
  }

  /** Its metrics, as Prometheus reads them. */
  async metrics(): Promise<string> {
    return this.momus.control.text("GET", `${this.path}/metrics`);
  }

  /** The URL of its schema registry, which is served from the first time that it is asked for. */
  async registryUrl(): Promise<string> {
    return (await this.ask<{ url: string }>("POST", "/registry", {})).url;
  }

  /** Whether its schema registry is served. */
  async hasRegistry(): Promise<boolean> {
    return (await this.ask<{ url?: string }>("GET", "/registry")).url !== undefined;
  }

  /** The settings by which a client (kafkajs, confluent, java, ...) connects; files that they name go with the cluster. */
  async clientSettings(client: string, user?: string): Promise<Record<string, string>> {
    const answer = await this.ask<{ settings: Record<string, string>; files: Record<string, string> }>(
      "GET",
      `/security${query({ client, user })}`,
    );
    let folder = "";
    if (Object.keys(answer.files).length) {
      folder = await mkdtemp(join(tmpdir(), "momus-client-"));
      this.folders.push(folder);
      for (const [name, data] of Object.entries(answer.files))
        await writeFile(join(folder, basename(name)), Buffer.from(data, "base64"), { mode: 0o600 });
    }
    const filled = Object.entries(answer.settings).map(([name, value]) => [name, value.replaceAll("{folder}", folder)]);
    return Object.fromEntries(filled) as Record<string, string>;
  }

  // ---- its run, and its end

  /** Begins again with the data that is there, and records whatever happens from then on. */
  async record(): Promise<void> {
    await this.ask("POST", "/recording", {});
  }

  /** What was recorded so far: a file for `momus replay` and `momus open`. */
  async recording(): Promise<Buffer> {
    return Buffer.from((await this.ask<{ zip: string }>("GET", "/recording")).zip, "base64");
  }

  /** Stops, and drops what was recorded. */
  async endRecording(): Promise<void> {
    await this.ask("DELETE", "/recording");
  }

  /** Calls this, such as the end of a service that uses the cluster, before the cluster is verified and removed: the last first. */
  defer(call: () => unknown): void {
    this.deferred.push(call);
  }

  /** Makes the calls that were deferred; the first error is thrown when all are made. */
  async settle(): Promise<void> {
    const errors: unknown[] = [];
    for (let call = this.deferred.pop(); call; call = this.deferred.pop())
      try {
        await call();
      } catch (error) {
        errors.push(error);
      }
    if (errors.length) throw errors[0];
  }

  /** What a test must fail for: a sentence for each fault that never acted and each expectation that is not met. */
  async unmet(): Promise<string[]> {
    const mine = await this.ask<{ unmet: string[] }>("GET", "/verify");
    const theirs = await Promise.all(this.forks.filter((each) => each.isOpen).map((each) => each.unmet()));
    return [...mine.unmet, ...theirs.flat()];
  }

  /** Throws MomusAssertionError: a fault never acted, or an expectation is not met. */
  async verify(): Promise<void> {
    const wrong = await this.unmet();
    if (wrong.length) throw new MomusAssertionError(wrong.join("\n"));
  }

  /** Verifies and removes the cluster and its forks. A second call does nothing. */
  async close(): Promise<void> {
    if (!this.isOpen) return;
    this.signal = undefined;
    try {
      await this.settle();
      await this.verify();
    } finally {
      await this.drop();
    }
  }

  /** Removes the cluster and its forks as they are. */
  async drop(): Promise<void> {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.signal = undefined;
    for (const each of this.forks) await each.drop();
    for (const each of this.folders) await rm(each, { recursive: true, force: true });
    await this.ask("DELETE", "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The state of a cluster at a moment: what a restart would find. It is gone with its cluster. */
export class Snapshot implements Side {
  constructor(private readonly cluster: Cluster, readonly name: string) {}

  /** Goes back to it, on the same ports; connections are cut, faults and the journal begin again. */
  async restore(): Promise<void> {
    await this.cluster.beginAnew("/restore", { snapshot: this.name });
  }

  /** Another cluster that goes on from it; neither sees the other. */
  async fork(): Promise<Cluster> {
    return this.cluster.fork(this.name);
  }

  /** Gives it up; what was made from it stays. */
  async remove(): Promise<void> {
    await this.cluster.ask("DELETE", `/snapshots${part(this.name)}`);
  }

  side(): Record<string, string> {
    return { cluster: this.cluster.name, snapshot: this.name };
  }
}

export { type Key, encoded };

/** The file of a path, or those in the folder, by name; hidden ones are left out. */
async function documents(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [slashed(path)];
  const entries = await readdir(path, { withFileTypes: true });
  const names = entries.filter((each) => each.isFile() && /^[^.].*\.(json|toml|ya?ml)$/.test(each.name)).map((each) => each.name);
  return names.sort().map((name) => slashed(join(path, name)));
}

function slashed(path: string): string {
  return path.split(sep).join("/");
}
