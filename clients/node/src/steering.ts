/** The clock of a cluster, and its virtual brokers. */

import type { Cluster } from "./cluster.js";
import { MomusError } from "./control.js";

export interface Span {
  days?: number;
  hours?: number;
  minutes?: number;
  seconds?: number;
  milliseconds?: number;
}

const inMs = (by: Span): number =>
  ((((by.days ?? 0) * 24 + (by.hours ?? 0)) * 60 + (by.minutes ?? 0)) * 60 + (by.seconds ?? 0)) * 1000 + (by.milliseconds ?? 0);

interface Time {
  now_ms: number;
  stands: boolean;
  settled?: boolean;
}

/** It moves forward only. */
export class Clock {
  constructor(private readonly cluster: Cluster) {}

  private async move(word: string, value: number | boolean, signal?: AbortSignal): Promise<void> {
    const answer = await this.cluster.ask<Time>("POST", "/clock", { [word]: value }, signal);
    if (answer.settled === false) throw new MomusError("the clock has moved, but not all that became due was done in time");
  }

  /** The cluster's time. */
  async now(): Promise<Date> {
    return new Date((await this.cluster.ask<Time>("GET", "/clock")).now_ms);
  }

  /** Whether it has been told to stand still. */
  async stands(): Promise<boolean> {
    return (await this.cluster.ask<Time>("GET", "/clock")).stands;
  }

  /** Lets time pass: sessions, transactions and retention expire as they would. Resolves when what became due is done. */
  async advance(by: Span, options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.move("advance_ms", inMs(by), options.signal);
  }

  /** Goes to a moment that has not passed, and stands there. */
  async set(at: Date, options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.move("set", at.getTime(), options.signal);
  }

  /** Stands still at the present moment. */
  async freeze(): Promise<void> {
    await this.move("freeze", true);
  }

  /** Runs on from here. */
  async resume(): Promise<void> {
    await this.move("resume", true);
  }

  /** Moves no clock: Fetches that wait have waited so much longer. */
  async passWaits(by: Span): Promise<void> {
    await this.move("pass_waits_ms", inMs(by));
  }
}

export interface Broker {
  id: number;
  up: boolean;
  lags: boolean;
  paused: boolean;
  /** Name -> HOST:PORT. */
  listeners: Record<string, string>;
}

/** Counted from 1. */
export class Brokers {
  constructor(private readonly cluster: Cluster) {}

  private async tell(id: number, verb: string): Promise<void> {
    await this.cluster.ask("POST", `/brokers/${id}/${verb}`);
  }

  /** All of them, running or not. */
  async list(): Promise<Broker[]> {
    return this.cluster.ask("GET", "/brokers");
  }

  /** Closes a broker's listeners and connections; the others lead its partitions. */
  stop(id: number): Promise<void> {
    return this.tell(id, "stop");
  }

  /** Lets it listen again, on the same ports, and lead its partitions again. */
  start(id: number): Promise<void> {
    return this.tell(id, "start");
  }

  /** Lets a broker fetch nothing of what others lead. */
  lag(id: number): Promise<void> {
    return this.tell(id, "lag");
  }

  /** Lets a broker that lags catch up. */
  release(id: number): Promise<void> {
    return this.tell(id, "release");
  }

  /** Lets a broker read and answer nothing, with its connections open. */
  pause(id: number): Promise<void> {
    return this.tell(id, "pause");
  }

  /** Lets a broker that is paused go on. */
  resume(id: number): Promise<void> {
    return this.tell(id, "resume");
  }
}
