/** What is to go wrong in a cluster; docs/faults.md tells of each. A fault that never acted fails the test. */

import type { Cluster } from "./cluster.js";
import { type Json, part } from "./control.js";
import { type Waiting, wait } from "./groups.js";

export type Trigger =
  | "once" | "every_time" | { on_call: number } | { times: number } | { with_probability: number; seed?: number };

export const once: Trigger = "once";
export const onCall = (n: number): Trigger => ({ on_call: n });
export const times = (n: number): Trigger => ({ times: n });
export const withProbability = (p: number, seed?: number): Trigger =>
  seed === undefined ? { with_probability: p } : { with_probability: p, seed };

type When = "before" | "after";
/** What a cluster can be made to do; docs/faults.md says what each is. */
export type ClusterEvent =
  | "rebalance"
  | "expel_member"
  | "expire_offsets"
  | "move_coordinator"
  | "move_leader"
  | "restart"
  | "abort_transaction"
  | "fence_producer";

/** Names may hold *, ? and [...]; all that are given must fit. */
export interface Filters {
  version?: number | [number, number];
  clientId?: string;
  principal?: string;
  connection?: string;
  listener?: string;
  broker?: number;
  topic?: string;
  partition?: number;
  group?: string;
  transactionalId?: string;
  trigger?: Trigger;
  /** A name of your own for the fault. */
  name?: string;
}

export type DiskFilters = Pick<Filters, "topic" | "partition" | "trigger" | "name">;
export type LetterFilters = DiskFilters & Pick<Filters, "group">;
export interface RegistryWords {
  when?: When;
  status?: number;
  code?: number;
  ms?: number;
  route?: string;
  subject?: string;
  principal?: string;
  trigger?: Trigger;
  name?: string;
}

export interface FaultState {
  name: string;
  fault: string;
  /** How many requests have matched it. */
  calls: number;
  /** On how many it has acted. */
  hits: number;
  /** How many requests and replies it keeps now. */
  held: number;
  [word: string]: unknown;
}

export interface Kind {
  fault: string;
  about: string;
  fields: Json[];
  filters: Json[];
}

type Api = string | string[];

/** The control plane's spelling of a filter. */
export function spelled(words: object): Json {
  const found = Object.entries(words).map(([name, value]) => [name.replace(/[A-Z]/g, (each) => `_${each.toLowerCase()}`), value]);
  return Object.fromEntries(found) as Json;
}

export class Faults {
  constructor(private readonly cluster: Cluster) {}

  /** Sets a fault by its words, as a JSON file has them. */
  async add(words: Json): Promise<Fault> {
    return new Fault(this.cluster, (await this.cluster.ask<FaultState>("POST", "/faults", words)).name);
  }

  private set(fault: string, words: object): Promise<Fault> {
    return this.add({ ...spelled(words), fault });
  }

  /** Refuses requests with an error of Kafka's, such as NOT_COORDINATOR; they take no effect. */
  injectError(api: Api, error: string, filters: Filters = {}): Promise<Fault> {
    return this.set("inject_error", { api, error, ...filters });
  }

  /** Keeps replies back so long, or requests (when: "before"), by the cluster's clock. */
  delayOn(api: Api, ms: number, filters: Filters & { when?: When } = {}): Promise<Fault> {
    return this.set("delay_on", { api, ms, ...filters });
  }

  /** Keeps replies, or requests (when: "before"), until `release`. */
  hold(api: Api, filters: Filters & { when?: When } = {}): Promise<Fault> {
    return this.set("hold", { api, ...filters });
  }

  /** Makes something happen in the cluster at a request, before it takes effect, or after it. */
  makeEvent(event: ClusterEvent, api: Api, filters: Filters & { when?: When } = {}): Promise<Fault> {
    return this.set("make_event", { event, api, ...filters });
  }

  /** Closes the connection before the request takes effect, after it, or in the middle of the reply. */
  disconnectOn(api: Api, filters: Filters & { when?: When | "middle" } = {}): Promise<Fault> {
    return this.set("disconnect_on", { api, ...filters });
  }

  /** Neither serves nor answers a client; its connections stay open until the fault is removed. */
  blackholeClient(clientId: string, filters: Filters = {}): Promise<Fault> {
    return this.set("blackhole_client", { ...filters, clientId });
  }

  /** Sends each reply only when its bytes have had their time. */
  throttle(bytesPerSecond: number, filters: Filters & { api?: Api } = {}): Promise<Fault> {
    return this.set("throttle", { bytesPerSecond, ...filters });
  }

  /** Changes one byte of the reply: the one `at` this place after the correlation id, else any. */
  corruptReply(api: Api, filters: Filters & { at?: number } = {}): Promise<Fault> {
    return this.set("corrupt_reply", { api, ...filters });
  }

  /** Lets the request take effect twice, as after a lost reply; the client gets the second reply. */
  deliverTwice(api: Api, filters: Filters = {}): Promise<Fault> {
    return this.set("deliver_twice", { api, ...filters });
  }

  /** Lets each write and each sync take so much longer. */
  slowDisk(ms: number, filters: DiskFilters = {}): Promise<Fault> {
    return this.set("slow_disk", { ms, ...filters });
  }

  /** Lets writes fail for want of room, once so many bytes have been written. */
  fullDisk(freeBytes = 0, filters: DiskFilters = {}): Promise<Fault> {
    return this.set("full_disk", { freeBytes, ...filters });
  }

  /** Lets writes fail. */
  failWrite(filters: DiskFilters = {}): Promise<Fault> {
    return this.set("fail_write", filters);
  }

  /** Lets syncs fail. */
  failFsync(filters: DiskFilters = {}): Promise<Fault> {
    return this.set("fail_fsync", filters);
  }

  /** Refuses what the broker writes to the dead-letter queue (topic) of a share group (group). */
  failDeadLetter(error: string, filters: LetterFilters = {}): Promise<Fault> {
    return this.set("fail_dead_letter", { error, ...filters });
  }

  /** Lets a request of the schema registry meet an error, a delay, a hold or a disconnect. */
  registry(does: "error" | "delay" | "hold" | "disconnect", words: RegistryWords = {}): Promise<Fault> {
    return this.set("registry", { do: does, ...words });
  }

  /** All that are set. */
  list(): Promise<FaultState[]> {
    return this.cluster.ask("GET", "/faults");
  }

  /** All kinds there are, each with its fields and filters. */
  kinds(): Promise<Kind[]> {
    return this.cluster.ask("GET", "/faults/kinds");
  }

  /** Removes all, also those that never acted; what they keep goes on. */
  async clear(): Promise<void> {
    await this.cluster.ask("DELETE", "/faults");
  }
}

export class Fault {
  private readonly path: string;

  constructor(private readonly cluster: Cluster, readonly name: string) {
    this.path = `/faults${part(name)}`;
  }

  /** The fault as it is now. */
  state(): Promise<FaultState> {
    return this.cluster.ask("GET", this.path);
  }

  /** How many requests have matched it. */
  async calls(): Promise<number> {
    return (await this.state()).calls;
  }

  /** On how many it has acted. */
  async hits(): Promise<number> {
    return (await this.state()).hits;
  }

  /** How many requests and replies it keeps now. */
  async held(): Promise<number> {
    return (await this.state()).held;
  }

  /** Waits until it keeps n requests or replies; one unless told otherwise. */
  async waitUntilHeld(options: Waiting & { n?: number } = {}): Promise<void> {
    await this.wait("held", options);
  }

  /** Waits until it has acted n times; once unless told otherwise. */
  async waitUntilHit(options: Waiting & { n?: number } = {}): Promise<void> {
    await this.wait("hits", options);
  }

  private async wait(what: string, options: Waiting & { n?: number }): Promise<void> {
    await wait(this.cluster, `${this.path}/wait`, { [what]: options.n ?? 1 }, options);
  }

  /** Lets go the `most` oldest that it keeps; without a number all, and replies still to come. Returns how many. */
  async release(most?: number): Promise<number> {
    return (await this.cluster.ask<{ released: number }>("POST", `${this.path}/release`, { most })).released;
  }

  /** Takes it away; what it keeps goes on. */
  async remove(): Promise<void> {
    await this.cluster.ask("DELETE", this.path);
  }
}
