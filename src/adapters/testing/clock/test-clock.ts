import { types } from "node:util";
import { inspect } from "node:util";
import { durationIn } from "../../../time/duration.ts";
import { LAST_DATE } from "../../../time/last-date.ts";
import {
  currentRuntime,
  REAL,
  replaceRuntime,
  type NetworkTime,
  type Runtime,
  type Time,
} from "../../../time/runtime.ts";
import type { Connection } from "./connection.ts";
import {
  followTimeouts,
  nextTimeoutOf,
  replaceDate,
  setDate,
  ticker,
  type FakeTimers,
} from "./globals.ts";
import { Handlers } from "./handlers.ts";
import { Stillness } from "./stillness.ts";
import { SIGNED } from "./signs-of-life.ts";
import { identityOf, TimedServer } from "./timed-server.ts";
import { Timeline, VirtualTimer } from "./timeline.ts";
import { virtualScript } from "./virtual-script.ts";

/** A length of time: milliseconds, or text such as `"3 days"`, `"2 min"`, `"1h 30m"` or `"2 weeks"`. */
export type Duration = number | string;

/** Options of {@link testClock}. */
export interface TestClockOptions {
  /** The instant at which the clock begins: a `Date`, text that `Date` reads, or epoch milliseconds. Defaults to now. */
  readonly now?: Date | string | number;
  /** Whether `Date` follows the clock, too. Defaults to false. */
  readonly date?: boolean;
  /**
   * Fake timers of a test library that follow the clock, so that timeouts of a handler pass as well: `vi`, `jest`, a
   * clock of `@sinonjs/fake-timers`, or `mock.timers` of `node:test`. They must be in use already. Defaults to none.
   */
  readonly timers?: FakeTimers;
  /**
   * How many real milliseconds may pass without progress, before the clock rejects because a handler does not end.
   * Less than test runners wait for a test, so that the handler is named. Defaults to 2000.
   */
  readonly patience?: number;
}

/**
 * Makes the queues of this process live by a clock that the test turns.
 *
 * Time stands still until the test lets it pass. It is the time of deadlines, retries, leases, pauses, `maxWait`,
 * waits and keys that expire, for clients that are made from now on, and in the Redis that they use; nothing else is
 * faked. Close the clients first, and then the clock: real time returns.
 *
 * ```ts
 * await using clock = await testClock({ now: "2026-03-28T08:00:00Z" });
 * await clock.advance("3 days");
 * ```
 *
 * @throws {Error} if another clock is in use, or `NODE_ENV` is `production`.
 * @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal.
 */
export async function testClock(options: TestClockOptions = {}): Promise<TestClock> {
  checkOptions(options);
  if (process.env["NODE_ENV"] === "production") {
    throw new Error('testClock must not be used in production: NODE_ENV is "production"');
  }
  if (currentRuntime().server !== undefined) {
    throw new Error("testClock must not be used twice at a time: close the other clock first");
  }
  const clock = new TestClock(options);
  await clock.settled();
  return clock;
}

/** A clock that stands still until a test lets time pass; see {@link testClock}. */
export class TestClock implements AsyncDisposable {
  readonly #timeline: Timeline;
  /** What turns an instant of the timeline into epoch milliseconds. */
  readonly #offset: number;
  readonly #handlers: Handlers;
  readonly #stillness: Stillness;
  readonly #servers = new Map<string, TimedServer>();
  readonly #serverOf = new WeakMap<object, TimedServer>();
  readonly #former = currentRuntime();
  readonly #tick: ((milliseconds: number) => unknown) | undefined;
  /** In how many milliseconds the next timeout of the fake timers passes. */
  readonly #nextTimeout: () => number | undefined;
  readonly #undo: (() => void)[] = [];
  /** What the library waits for in real time, and not for long: pauses, and what it loads. */
  readonly #waits = new Set<object>();
  /** Wakes who sleeps when the clock is closed. */
  readonly #closing = new AbortController();
  #scriptCount = 0;
  /** What had been handled and read when time last passed. */
  #usedAt = "";
  #lastStamp = 0;
  /** The call that lets time pass. */
  #turning: string | undefined;
  #isClosed = false;

  /** @internal Use {@link testClock}. */
  constructor({ now, date = false, timers, patience = PATIENCE }: TestClockOptions) {
    const start = instantOf("now", now ?? Date.now());
    this.#timeline = new Timeline(Math.ceil(currentRuntime().now()));
    this.#offset = start - this.#timeline.now;
    this.#handlers = new Handlers(() => this.#timeline.happened());
    this.#stillness = new Stillness(
      {
        timeline: this.#timeline,
        handlers: this.#handlers,
        servers: () => this.#servers.values(),
        scriptCount: () => this.#scriptCount,
        waitCount: () => this.#waits.size,
      },
      patience,
    );
    this.#tick = timers && ticker(timers);
    this.#nextTimeout = timers === undefined ? () => undefined : nextTimeoutOf(timers);
    if (timers !== undefined) {
      setDate(timers, start);
      this.#undo.push(followTimeouts(this.#timeline, () => this.#handlers.fallAsleep()));
    }
    if (date) this.#undo.push(replaceDate(() => this.#epoch));
    replaceRuntime(this.#runtime());
  }

  /** The instant that the clock shows. */
  get now(): Date {
    return new Date(this.#epoch);
  }

  /**
   * Lets time pass, from instant to instant: at each, whatever is due happens, handlers run, and the clock waits for
   * all of it. Resolves when the time has passed and nothing more happens.
   *
   * @throws {Error} if a handler does not end.
   */
  async advance(duration: Duration): Promise<void> {
    const milliseconds = checkDuration("advance", duration);
    await this.#turn("advance", () => this.#passUntil(this.#timeline.now + milliseconds));
  }

  /** Lets time pass until an instant, as {@link advance} does: a `Date`, text that `Date` reads, or epoch milliseconds. */
  async advanceTo(date: Date | string | number): Promise<void> {
    const target = instantOf("date", date);
    if (target < this.#epoch) {
      throw new RangeError(
        `advanceTo must not go back: it is ${this.now.toISOString()}, got ${new Date(target).toISOString()}`,
      );
    }
    await this.#turn("advanceTo", () => this.#passUntil(target - this.#offset));
  }

  /**
   * Lets time pass until the next instant at which something happens, and returns that instant. Beats that keep the lease of a
   * handler count; looks that find nothing, and signs of life that keep no lease, do not.
   *
   * @throws {Error} if nothing is left that could happen.
   */
  async next(): Promise<Date> {
    await this.#turn("next", async () => {
      const next = await this.#findNext(true);
      if (next === undefined) throw new Error("next has nothing to wait for: no timer is set");
      await this.#stop(next, { withoutRoutines: true });
    });
    return this.now;
  }

  /**
   * Lets time pass until a promise is settled, and returns what it resolves to.
   *
   * @throws what the promise rejects with.
   * @throws {Error} if nothing is left that could happen, and the promise is still pending.
   */
  async until<T>(promise: PromiseLike<T>): Promise<T> {
    const state = { isSettled: false };
    const settle = () => void (state.isSettled = true);
    promise.then(settle, settle);
    await this.#turn("until", async () => {
      await this.#stillness.reached();
      while (!state.isSettled) {
        const next = this.#next(Infinity);
        if (next === undefined) {
          throw new Error("until waits in vain: nothing is left that could settle the promise");
        }
        await this.#stop(next, { isEnough: () => state.isSettled });
      }
    });
    return await promise;
  }

  /** Resolves when nothing more happens at this instant: commands have their replies, and no handler runs. */
  async settled(): Promise<void> {
    await this.#turn("settled", () => this.#stillness.reached());
  }

  /**
   * Resolves when so much virtual time has passed, or the signal is aborted. A handler that awaits it does not hold up
   * the clock.
   */
  async sleep(duration: Duration, options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const milliseconds = checkDuration("sleep", duration);
    this.#checkOpen("sleep");
    const signals = [options.signal, this.#closing.signal].filter((signal) => signal !== undefined);
    if (signals.some(({ aborted }) => aborted)) return;
    const wakeUp = this.#handlers.fallAsleep();
    await new Promise<void>((resolve) => {
      const end = () => {
        this.#timeline.clear(timer);
        for (const signal of signals) signal.removeEventListener("abort", end);
        wakeUp();
        resolve();
      };
      const timer = this.#timeline.setTimeout(end, milliseconds);
      for (const signal of signals) signal.addEventListener("abort", end);
    });
  }

  /**
   * Ends virtual time. May be called twice. Close the clients first: one that is still open goes on in real time, and
   * what is due later on the virtual clock is due then in Redis.
   */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closing.abort();
    for (const undo of this.#undo.toReversed()) undo();
    this.#handlers.close();
    this.#leaveTime();
    await Promise.all([...this.#servers.values()].map((server) => server.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #epoch(): number {
    return this.#timeline.now + this.#offset;
  }

  #checkOpen(call: string): void {
    if (this.#isClosed) throw new Error(`${call} must not be called: the test clock is closed`);
  }

  /** Makes a call that lets time pass: one at a time. */
  async #turn(call: string, work: () => Promise<void>): Promise<void> {
    this.#checkOpen(call);
    if (this.#handlers.isInside) {
      throw new Error(`${call} must not be called by a handler, for which it waits: use sleep`);
    }
    if (this.#turning !== undefined) {
      throw new Error(`${call} must not be called while ${this.#turning} lets time pass`);
    }
    this.#turning = call;
    // Other processes may have done something since.
    for (const server of this.#servers.values()) server.touch();
    this.#timeline.happened();
    try {
      await work();
    } finally {
      this.#turning = undefined;
    }
  }

  /** Lets time pass until an instant of the timeline. */
  async #passUntil(target: number): Promise<void> {
    await this.#stillness.reached();
    for (;;) {
      const next = this.#next(target);
      if (next === undefined) break;
      await this.#stop(next);
    }
    await this.#moveTo(target);
    // Those that had nothing to see look now, after all that time.
    while (this.#timeline.fireOne(true)) await this.#stillness.reached();
    await this.#stillness.reached();
  }

  async #findNext(withoutRoutines: boolean): Promise<number | undefined> {
    await this.#stillness.reached();
    return this.#next(Infinity, withoutRoutines);
  }

  /** The next instant of the timeline at which a timer fires, of the library or a fake one; see {@link Timeline.next}. */
  #next(limit: number, withoutRoutines = false): number | undefined {
    const timeout = this.#nextTimeout() ?? Infinity;
    const passesAt = Math.ceil(this.#timeline.now + Math.max(MIN_TIMEOUT, timeout));
    const next = this.#timeline.next(Math.min(limit, passesAt), withoutRoutines);
    return next ?? (passesAt <= limit && passesAt < Infinity ? passesAt : undefined);
  }

  /** Moves to an instant, and fires what is due there, one after the other, until it `isEnough`. */
  async #stop(
    at: number,
    {
      isEnough = () => false,
      withoutRoutines = false,
    }: { readonly isEnough?: () => boolean; readonly withoutRoutines?: boolean } = {},
  ): Promise<void> {
    await this.#moveTo(at, withoutRoutines);
    while (!isEnough() && this.#timeline.fireOne()) await this.#stillness.reached();
  }

  /** Sets all clocks to an instant: that of {@link Timeline.next}, or an earlier one. Nothing may be under way. */
  async #moveTo(at: number, withoutRoutines = false): Promise<void> {
    const passed = at - this.#timeline.now;
    if (passed <= 0) return;
    const from = this.#epoch;
    const to = from + passed;
    if (to > LAST_DATE) throw new RangeError("time must not pass the last date");
    const servers = [...this.#servers.values()];
    const used = `${this.#handlers.changes} ${this.#stillness.readCount}`;
    if (used !== this.#usedAt) for (const server of servers) server.touch();
    this.#usedAt = used;
    const rested = this.#timeline.presenceRests(withoutRoutines) ? passed : 0;
    await Promise.all(servers.map((server) => server.step(from, to, rested)));
    this.#timeline.set(at, rested);
    if (this.#tick === undefined) return;
    await this.#tick(passed);
    // What timeouts of the test have begun belongs to this instant.
    await this.#stillness.reached();
  }

  #runtime(): Runtime {
    const timeline = this.#timeline;
    return {
      ...REAL,
      setTimeout: (callback, delay, routine) =>
        timeline.setTimeout(callback, delay, routine) as unknown as NodeJS.Timeout,
      clearTimeout,
      now: () => timeline.now,
      isExact: true,
      presence: {
        setTimeout: (callback, delay, routine) =>
          timeline.setTimeout(callback, delay, routine, "presence") as unknown as NodeJS.Timeout,
        clearTimeout,
        now: () => timeline.presence,
        isExact: true,
      },
      network: this.#network(),
      onLoading: (loading) => {
        this.#waits.add(loading);
        const end = () => void this.#waits.delete(loading);
        loading.then(end, end);
      },
      server: {
        script: (client, script, own) => this.#script(client as Connection, script, own),
        now: () => this.#epoch,
        stamp: (least) => (this.#lastStamp = Math.max(least, this.#lastStamp + 1)),
        onClient: (client) => this.#stillness.watch(client as Connection),
      },
    };
  }

  /** The network's time stays real. The clock waits until short pauses of the library are over. */
  #network(): NetworkTime {
    const waits = this.#waits;
    return {
      ...REAL.network,
      setTimeout: (callback, delay = 0) => {
        const timeout = REAL.network.setTimeout(() => {
          waits.delete(timeout);
          callback();
        }, delay);
        if (delay <= SHORT_PAUSE) waits.add(timeout);
        return timeout;
      },
      clearTimeout: (timeout) => {
        if (timeout !== undefined) waits.delete(timeout);
        REAL.network.clearTimeout(timeout);
      },
    };
  }

  #script(client: Connection, script: object, own: readonly unknown[]) {
    this.#scriptCount++;
    const server = this.#serverFor(client);
    const { keys } = script as { readonly keys: readonly string[] };
    for (const [i, role] of keys.entries()) {
      if (SIGNED.includes(role)) server.noteSigned(String(own[i + 1]));
    }
    const virtual = virtualScript(script as { readonly lua: string });
    if (virtual.touchesIdle) server.touch();
    if (virtual.expires) server.noteMortal(own.slice(1, Number(own[0]) + 1).map(String));
    const words = [virtual.usesIdle ? server.steps : "", `${this.#epoch}000`];
    return { lua: virtual.lua, sha: virtual.sha, words };
  }

  #serverFor(client: Connection): TimedServer {
    let server = this.#serverOf.get(client);
    if (server !== undefined) return server;
    // A client that was made before the clock shows itself with its first script.
    this.#stillness.watch(client);
    const identity = identityOf(client);
    server = this.#servers.get(identity) ?? new TimedServer(client, this.#epoch);
    this.#servers.set(identity, server);
    this.#serverOf.set(client, server);
    return server;
  }

  /** Gives the time back. Timers that are left go on in real time, and the local clock never goes back for them. */
  #leaveTime(): void {
    const left = this.#timeline.end();
    if (left.length === 0) {
      replaceRuntime(this.#former);
      return;
    }
    const former = this.#former;
    const ahead = (now: number): Time => {
      const by = now - former.now();
      return { ...former, now: () => former.now() + by, clearTimeout };
    };
    const { now, presence } = this.#timeline;
    for (const { timer, remaining } of left) {
      timer.successor = former.setTimeout(timer.callback, Math.min(remaining, MAX_TIMEOUT));
    }
    replaceRuntime({ ...former, ...ahead(now), presence: ahead(presence) });
  }
}

function clearTimeout(timeout: NodeJS.Timeout | undefined): void {
  const timer: unknown = timeout;
  if (timer instanceof VirtualTimer) timer.clear();
  else REAL.clearTimeout(timeout);
}

function checkOptions(options: unknown): void {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(
      `testClock options must be an object, got ${options === null ? "null" : typeof options}`,
    );
  }
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) {
    throw new TypeError(`testClock option must be one of ${OPTIONS.join(", ")}, got "${unknown}"`);
  }
  const { date, timers, patience } = options as Record<string, unknown>;
  if (date !== undefined && typeof date !== "boolean") {
    throw new TypeError(`testClock option date must be a boolean, got ${typeof date}`);
  }
  if (timers !== undefined && (timers === null || ticker(Object(timers) as object) === undefined)) {
    throw new TypeError(
      "testClock option timers must have one of the methods advanceTimersByTimeAsync, tickAsync, advanceTimersByTime and tick",
    );
  }
  if (patience !== undefined && !(typeof patience === "number" && patience > 0)) {
    throw new RangeError(
      `testClock option patience must be a number above 0, got ${describe(patience)}`,
    );
  }
}

const OPTIONS: readonly string[] = ["now", "date", "timers", "patience"];

/** Returns whole milliseconds. */
function checkDuration(call: string, duration: unknown): number {
  const milliseconds = typeof duration === "string" ? durationIn(duration.trim()) : duration;
  if (typeof milliseconds !== "number" || Number.isNaN(milliseconds)) {
    throw new TypeError(
      `${call} must be given milliseconds or text such as "3 days", "2 min" or "1h 30m", got ${describe(duration)}`,
    );
  }
  if (milliseconds < 0 || milliseconds > LAST_DATE) {
    throw new RangeError(
      `${call} must be given a duration of 0 or more, got ${describe(duration)}`,
    );
  }
  return Math.round(milliseconds);
}

/** Returns epoch milliseconds. */
function instantOf(name: string, value: unknown): number {
  const instant =
    types.isDate(value) || typeof value === "string" || typeof value === "number"
      ? new Date(value).getTime()
      : NaN;
  if (instant >= 0) return instant;
  throw new RangeError(
    `${name} must be a Date, text that Date reads, or epoch milliseconds, since 1970, got ${describe(value)}`,
  );
}

function describe(value: unknown): string {
  return inspect(value, { depth: 0, breakLength: Infinity });
}

/** Real milliseconds. */
const PATIENCE = 2000;

/** Milliseconds. A fake timeout of none passes with the next step. */
const MIN_TIMEOUT = 1;

/** A pause of the library of up to so many real milliseconds belongs to the instant. */
const SHORT_PAUSE = 50;

/** Node fires later timeouts at once. */
const MAX_TIMEOUT = 2 ** 31 - 1;
