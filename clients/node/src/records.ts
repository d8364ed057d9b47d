/** Records that a test produces and reads. */

import type { Cluster } from "./cluster.js";
import { MomusAssertionError, part } from "./control.js";
import type { Waiting } from "./groups.js";

export type Key = string | Uint8Array | null;

/** A value: a text, bytes, null, or what becomes JSON; or all of a record. */
export type Message = Key | Whole | { json: unknown };

/** Without a partition it goes where Java's producer sends its key; without a key to each partition in turn. */
export interface Whole {
  value: Key | object;
  key?: Key;
  partition?: number;
  headers?: Record<string, Key>;
  timestamp?: Date;
}

export interface Place {
  partition: number;
  offset: number;
}

export interface Received {
  topic: string;
  partition: number;
  offset: number;
  timestamp: Date;
  key: Buffer | null;
  /** null: a tombstone. */
  value: Buffer | null;
  headers: [string, Buffer | null][];
}

export interface Reading extends Waiting {
  partition?: number;
  /** Of that partition. */
  offset?: number;
  /** Only records with this key. */
  key?: Key;
  /** "committed" leaves out what open and aborted transactions have written. */
  isolation?: "committed" | "uncommitted" | "read_committed" | "read_uncommitted";
}

const MOST = 10_000; // of one answer
/** Of one wait; longer ones ask again. */
export const LONGEST_MS = 20_000;

type Encoded = string | null | { base64: string };

export const encoded = (value: Key): Encoded =>
  value instanceof Uint8Array ? { base64: Buffer.from(value).toString("base64") } : value;

const decoded = (value: Encoded): Buffer | null =>
  value === null ? null : typeof value === "string" ? Buffer.from(value) : Buffer.from(value.base64, "base64");

export function row(message: Message): Record<string, unknown> {
  if (message === null || typeof message === "string" || message instanceof Uint8Array) return { value: encoded(message) };
  if ("json" in message) return { value: JSON.stringify(message.json) };
  const { value, key, partition, headers, timestamp } = message;
  const isPlain = value === null || typeof value === "string" || value instanceof Uint8Array;
  return {
    // as a text, so that no key of it is mistaken for a word of the control plane
    value: isPlain ? encoded(value as Key) : JSON.stringify(value),
    key: encoded(key ?? null),
    partition,
    headers: headers && Object.entries(headers).map(([name, each]) => [name, encoded(each)]),
    timestamp_ms: timestamp?.getTime(),
  };
}

interface Row {
  partition: number;
  offset: number;
  timestamp_ms: number;
  key: Encoded;
  value: Encoded;
  headers: [string, Encoded][];
}

interface Answer {
  records: Row[];
  met: boolean;
  more: boolean;
  offsets: Record<string, number>;
  source: string;
}

export async function consume(cluster: Cluster, topic: string, least: number, reading: Reading): Promise<Received[]> {
  const { key, timeoutMs = 10_000, signal, ...rest } = reading;
  const found: Received[] = [];
  const end = Date.now() + timeoutMs;
  let after: { offsets?: Record<string, number>; source?: string } = {};
  for (let more = true; more; ) {
    const answer = await cluster.ask<Answer>("POST", `/topics${part(topic)}/consume?check=false`, {
      ...rest,
      ...(key === undefined ? {} : { key: encoded(key) }),
      ...after,
      least: Math.max(0, Math.min(least - found.length, MOST)),
      timeout_ms: Math.max(0, Math.min(end - Date.now(), LONGEST_MS)),
    }, signal);
    for (const each of answer.records)
      found.push({
        topic,
        partition: each.partition,
        offset: each.offset,
        timestamp: new Date(each.timestamp_ms),
        key: decoded(each.key),
        value: decoded(each.value),
        headers: each.headers.map(([name, value]) => [name, decoded(value)]),
      });
    after = { offsets: answer.offsets, source: answer.source };
    more = answer.more;
    if (!answer.met) {
      more = Date.now() < end;
      if (!more) throw new MomusAssertionError(`${topic} has ${found.length} records after ${timeoutMs} ms, not ${least}`);
    }
  }
  return found;
}
