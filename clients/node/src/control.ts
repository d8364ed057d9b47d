/** One endpoint of a momus: HTTP with JSON. */

import { AsyncLocalStorage } from "node:async_hooks";

/** A call that the momus has refused, and why, or one that was not answered. */
export class MomusError extends Error {
  /** The HTTP status of a refusal; 0: there was no answer. */
  readonly status: number;

  constructor(message: string, status = 0, options?: ErrorOptions) {
    super(`momus: ${message}`, options);
    this.name = "MomusError";
    this.status = status;
  }
}

/** What was waited for is not there in time, or what was expected is not so. */
export class MomusAssertionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MomusAssertionError";
  }
}

export type Json = Record<string, unknown>;

/** Further fields of calls, by which `momus explore` knows whose cluster they make, and what came of its test. */
export const fields = new AsyncLocalStorage<Record<string, string>>();

export class Control {
  /** Told of each call, for the test of the routes. */
  asked: (call: string) => void = () => {};

  constructor(readonly address: string, private readonly token = process.env["MOMUS_CONTROL_TOKEN"]) {}

  /** Makes a call. Throws MomusError. Fields that a later momus adds are left alone. */
  async ask<T = Json>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    return JSON.parse(await this.text(method, path, body, signal)) as T;
  }

  /** Throws the reason of the signal where that ends the call. */
  async text(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<string> {
    signal?.throwIfAborted();
    this.asked(`${method} ${path}`);
    const headers: Record<string, string> = { ...(this.token && { Authorization: `Bearer ${this.token}` }), ...fields.getStore() };
    let answer: Response, said: string;
    try {
      const sent = body === undefined ? {} : { body: JSON.stringify(body) };
      answer = await fetch(`http://${this.address}${path}`, { method, headers, ...sent, ...(signal && { signal }) });
      said = await answer.text();
    } catch (error) {
      signal?.throwIfAborted();
      const why = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
      throw new MomusError(`${method} ${path}: nothing answers at ${this.address}: ${why}`, 0, { cause: error });
    }
    if (answer.status !== 200) throw new MomusError(`${method} ${path}: ${reason(said)}`, answer.status);
    return said;
  }
}

function reason(said: string): string {
  try {
    return (JSON.parse(said) as { error?: string }).error ?? said;
  } catch {
    return said;
  }
}

/** A name as a part of a path. */
export const part = (name: string): string => `/${encodeURIComponent(name)}`;

/** Parameters of a path, without those that are undefined. */
export function query(words: Record<string, string | number | undefined>): string {
  const given = Object.entries(words).filter(([, value]) => value !== undefined);
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}
