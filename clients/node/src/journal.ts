/** The last requests of a cluster, each with its reply. */

import type { Cluster } from "./cluster.js";
import { type Json, MomusAssertionError, query } from "./control.js";
import { spelled } from "./faults.js";

/** Names may hold *, ? and [...]; all that are given must fit. */
export interface JournalFilters {
  api?: string;
  clientId?: string;
  principal?: string;
  connection?: string;
  group?: string;
  topic?: string;
  transactionalId?: string;
  error?: string;
}

/** Exactly so many `times`, or within limits; once or more if none is given. */
export type Limits = { times?: number } | { atLeast?: number; atMost?: number };

export interface JournalEntry {
  number: number;
  at_ms: number;
  latency_ms: number | null;
  api: string;
  version: number;
  client_id: string | null;
  software: string;
  principal: string;
  broker: number;
  errors: string[];
  /** Why it was refused. */
  why?: string;
  /** The fault that has acted on it. */
  fault?: string;
  request: Json | null;
  response: Json | null;
  [field: string]: unknown;
}

const body = (filters: JournalFilters, limits: Limits): Json => ({ filters: spelled(filters), ...spelled(limits) });

export class Journal {
  constructor(private readonly cluster: Cluster) {}

  /** The requests that fit, oldest first: the newest 10,000. */
  async entries(filters: JournalFilters = {}): Promise<JournalEntry[]> {
    const words = query({ ...(spelled(filters) as Record<string, string>), limit: 10_000 });
    return (await this.cluster.ask<{ entries: JournalEntry[] }>("GET", `/journal${words}`)).entries;
  }

  /** Why requests that fit were refused, oldest first. */
  async whys(filters: JournalFilters = {}): Promise<string[]> {
    return (await this.entries(filters)).flatMap((each) => (each.why === undefined ? [] : [each.why]));
  }

  /** Throws MomusAssertionError, with what came near: such requests did not come as often. Returns how many. */
  async verify(filters: JournalFilters, limits: Limits = {}): Promise<number> {
    const answer = await this.cluster.ask<{ met: boolean; count: number; why: string }>("POST", "/journal/verify?check=false", body(filters, limits));
    if (!answer.met) throw new MomusAssertionError(answer.why);
    return answer.count;
  }

  /** Verifies it when the test is over, over all resets and restores. */
  async expect(filters: JournalFilters, limits: Limits = {}): Promise<void> {
    await this.cluster.ask("POST", "/journal/expect", body(filters, limits));
  }

  /** Takes back what was expected. */
  async expectNothing(): Promise<void> {
    await this.cluster.ask("DELETE", "/journal/expect");
  }

  /** The last requests, a line each. */
  async last(n = 20): Promise<string[]> {
    return (await this.cluster.ask<{ lines: string[] }>("GET", `/journal/last${query({ n })}`)).lines;
  }

  /** Keeps so many bytes of the last requests; 0: none. */
  async keep(bytes: number): Promise<void> {
    await this.cluster.ask("POST", "/journal", { bytes });
  }

  /** Drops what is kept. */
  async clear(): Promise<void> {
    await this.cluster.ask("DELETE", "/journal");
  }
}
