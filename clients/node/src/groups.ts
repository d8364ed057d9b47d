/** Groups of a cluster: what they have committed, and waits. */

import type { Cluster } from "./cluster.js";
import { type Json, MomusAssertionError, part } from "./control.js";
import { LONGEST_MS } from "./records.js";

/** Topic -> partition -> offset. */
export type Offsets = Record<string, Record<number, number>>;

export interface Group {
  group: string;
  /** Dead where there is none. */
  state: string;
  type: string;
  members: string[];
}

export type GroupState =
  | "dead" | "empty" | "stable" | "assigning" | "reconciling" | "preparing-rebalance" | "completing-rebalance" | "not-ready";

export interface Waited {
  met: boolean;
  why: string;
}

/** How long a call waits, and what ends it before. */
export interface Waiting {
  /** 10,000. */
  timeoutMs?: number;
  /** Ends the call, which throws the signal's reason. */
  signal?: AbortSignal;
}

/** Asks until what is waited for is there. Throws MomusAssertionError: it is not in time. */
export async function wait<T extends Waited>(cluster: Cluster, suffix: string, body: Json, waiting: Waiting): Promise<T> {
  const { timeoutMs = 10_000, signal } = waiting;
  for (const end = Date.now() + timeoutMs; ; ) {
    const timeout_ms = Math.max(0, Math.min(end - Date.now(), LONGEST_MS));
    const answer = await cluster.ask<T>("POST", `${suffix}?check=false`, { ...body, timeout_ms }, signal);
    if (answer.met) return answer;
    if (Date.now() >= end) throw new MomusAssertionError(`${answer.why}, after ${timeoutMs} ms`);
  }
}

export class Groups {
  constructor(private readonly cluster: Cluster) {}

  /** Shows a group. */
  async show(group: string): Promise<Group> {
    return this.cluster.ask("GET", `/groups${part(group)}`);
  }

  /** The offsets that a group has committed. */
  async committed(group: string): Promise<Offsets> {
    const found: Offsets = {};
    const rows = await this.cluster.ask<{ topic: string; partition: number; offset: number }[]>("GET", `/groups${part(group)}/offsets`);
    for (const each of rows) (found[each.topic] ??= {})[each.partition] = each.offset;
    return found;
  }

  /** Waits until a group has a state and so many members (undefined: any). Returns their ids. */
  async waitFor(group: string, state: GroupState, options: Waiting & { members?: number } = {}): Promise<string[]> {
    const { members } = options;
    const found = await wait<Group & Waited>(this.cluster, `/groups${part(group)}/wait`, { state, members }, options);
    return found.members;
  }

  /** Waits until a group has committed these offsets, or later ones. */
  async waitForCommitted(group: string, offsets: Offsets, options: Waiting = {}): Promise<void> {
    const rows = Object.entries(offsets).flatMap(([topic, partitions]) =>
      Object.entries(partitions).map(([partition, offset]) => ({ topic, partition: Number(partition), offset })));
    await wait(this.cluster, `/groups${part(group)}/wait-for-offsets`, { offsets: rows }, options);
  }

  /** Waits until a group is at most so many records after the ends of its partitions, of all topics or of one. */
  async waitForLag(group: string, lag: number, options: Waiting & { topic?: string } = {}): Promise<void> {
    await wait(this.cluster, `/groups${part(group)}/wait-for-lag`, { lag, topic: options.topic }, options);
  }

  /** Lets the members of a classic group join again; others get the next epoch. Returns their ids. */
  async rebalance(group: string): Promise<string[]> {
    return (await this.cluster.ask<Group>("POST", `/groups${part(group)}/rebalance`)).members;
  }

  /** Removes a member, by its id or instance id: its next request meets UNKNOWN_MEMBER_ID. */
  async expel(group: string, member: string): Promise<void> {
    await this.cluster.ask("POST", `/groups${part(group)}/expel`, { member });
  }

  /** Deletes a group without members, with its offsets. */
  async remove(group: string): Promise<void> {
    await this.cluster.ask("DELETE", `/groups${part(group)}`);
  }
}
