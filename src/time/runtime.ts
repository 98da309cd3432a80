/**
 * The runtime's timers and its monotonic clock, taken once, when this module is loaded. All code of the library uses
 * these, so that fake timers, which a test installs later, do not stop it.
 *
 * `node:timers` and `node:perf_hooks` are asked rather than the globals: a test framework may have replaced those before.
 *
 * There are three kinds of time. The **queue's time** is that of deadlines, leases, pauses and waits. The **time of
 * presence** is that of the signs by which processes know of each other that they are alive, and of what ends without
 * such signs. The **network's time** bounds the wait for replies and connections, and paces attempts after a failure. All
 * are the same, unless a test turns the queue's clock: then the network's time is real, and the time of presence stands
 * still while no process can die.
 */
import { performance as clock } from "node:perf_hooks";
import * as timers from "node:timers";

/** What gives signs of life, and when the time of presence may stand still for it. */
export interface Presence {
  /** Whether it goes on as before, as far as it knows: it can give its signs, and waits for no other process. Defaults to true. */
  readonly isSteady?: () => boolean;
  /** Who gives these signs. */
  readonly name?: string | undefined;
  /** Whose signs have to come by the same clock. Others may die at any time. */
  readonly needs?: () => readonly string[];
}

/** What a process does again and again. */
export type Routine = object & Presence;

/** A monotonic clock and its timers. */
export interface Time {
  /**
   * `routine` is the task that looks again and again, if nothing but looking depends on this timer; in the time of
   * presence, the task whose signs it is for. A clock that a test turns need not stop for it.
   */
  readonly setTimeout: (callback: () => void, delay?: number, routine?: Routine) => NodeJS.Timeout;
  readonly clearTimeout: (timeout: NodeJS.Timeout | undefined) => void;
  /** Milliseconds on a clock that is never set. */
  readonly now: () => number;
  /** Whether timers fire just when they are due, as they do if a test turns the clock. */
  readonly isExact?: boolean;
}

/** The time of the network, in which some things happen at intervals. */
export interface NetworkTime extends Time {
  readonly setInterval: (callback: () => void, delay?: number) => NodeJS.Timeout;
  readonly clearInterval: (interval: NodeJS.Timeout | undefined) => void;
}

/** What measures time and waits. Its own `Time` is the queue's time. */
export interface Runtime extends Time {
  readonly setImmediate: (callback: () => void) => NodeJS.Immediate;
  readonly clearImmediate: (immediate: NodeJS.Immediate | undefined) => void;
  readonly nextTick: (callback: () => void) => void;
  readonly queueMicrotask: (callback: () => void) => void;
  readonly network: NetworkTime;
  /** The time of presence. Defaults to the queue's time. */
  readonly presence?: Time;
  /** Told of what is loaded, which shows neither as a timer nor as a command. */
  readonly onLoading?: (loading: Promise<unknown>) => void;
  /** Stands in for the clock of Redis. */
  readonly server?: ServerStandIn;
}

/** Gives the queues in Redis a time other than that of the server's clock. */
export interface ServerStandIn {
  /**
   * Returns what is sent instead of a script: its text and digest, and words to follow its own, which begin with the
   * number of keys and the keys.
   */
  readonly script: (
    client: object,
    script: object,
    own: readonly unknown[],
  ) => { readonly lua: string; readonly sha: string; readonly words: readonly string[] };
  /** Returns the instant (epoch ms) that replaces a reply to TIME; without it the reply counts. */
  readonly now?: (client: object) => number;
  /** Returns the order stamp that follows all stamps of this process, `least` or later. */
  readonly stamp?: (least: number) => number;
  /** Called with each client that is made. */
  readonly onClient?: (client: object) => void;
}

// Node would pass further arguments on to the callback.
const REAL_TIME: NetworkTime = {
  setTimeout: (callback, delay) => timers.setTimeout(callback, delay),
  clearTimeout: timers.clearTimeout,
  setInterval: (callback, delay) => timers.setInterval(callback, delay),
  clearInterval: timers.clearInterval,
  now: clock.now.bind(clock),
};

export const REAL: Runtime = {
  ...REAL_TIME,
  setImmediate: timers.setImmediate,
  clearImmediate: timers.clearImmediate,
  // No module has these two.
  nextTick: process.nextTick.bind(process),
  queueMicrotask: globalThis.queueMicrotask,
  network: REAL_TIME,
};

/** All copies of the package in a process share it: ES modules and CommonJS have one each. */
const HOLDER: unique symbol = Symbol.for("delayline.runtime");

const holder = ((globalThis as { [HOLDER]?: { current: Runtime } })[HOLDER] ??= { current: REAL });

/** Replaces all timers and clocks, for tests of code that waits. Without an argument the real ones return. */
export function replaceRuntime(runtime: Runtime = REAL): void {
  holder.current = runtime;
}

/** What stands in for the clock of Redis, if anything does. */
export function serverStandIn(): ServerStandIn | undefined {
  return holder.current.server;
}

/** What counts now, for whoever replaces it. */
export function currentRuntime(): Runtime {
  return holder.current;
}

/** The time of deadlines, leases, pauses and waits. */
export const queueTime: Time = {
  setTimeout: (callback, delay, routine) => holder.current.setTimeout(callback, delay, routine),
  clearTimeout: (timeout) => holder.current.clearTimeout(timeout),
  now: () => holder.current.now(),
  get isExact() {
    return holder.current.isExact ?? false;
  },
};

/** The time of signs of life, and of what ends without them. */
export const presenceTime: Time = {
  // A routine of the queue's time must depend on nothing.
  setTimeout: (callback, delay, routine) =>
    holder.current.presence?.setTimeout(callback, delay, routine) ??
    holder.current.setTimeout(callback, delay),
  clearTimeout: (timeout) => presenceOf(holder.current).clearTimeout(timeout),
  now: () => presenceOf(holder.current).now(),
  get isExact() {
    return presenceOf(holder.current).isExact ?? false;
  },
};

function presenceOf(runtime: Runtime): Time {
  return runtime.presence ?? runtime;
}

/** The time of replies, connections and attempts after a failure. */
export const networkTime: NetworkTime = {
  setTimeout: (callback, delay) => holder.current.network.setTimeout(callback, delay),
  clearTimeout: (timeout) => holder.current.network.clearTimeout(timeout),
  setInterval: (callback, delay) => holder.current.network.setInterval(callback, delay),
  clearInterval: (interval) => holder.current.network.clearInterval(interval),
  now: () => holder.current.network.now(),
};

/** Passes on what is loaded. A clock that a test turns stands still until it is there. */
export function loading<T>(promise: Promise<T>): Promise<T> {
  holder.current.onLoading?.(promise);
  return promise;
}

// The functions below have the names of the globals that they stand for: they tell order, not time.

export function setImmediate(callback: () => void): NodeJS.Immediate {
  return holder.current.setImmediate(callback);
}

export function clearImmediate(immediate: NodeJS.Immediate | undefined): void {
  holder.current.clearImmediate(immediate);
}

/** `process.nextTick`. */
export function nextTick(callback: () => void): void {
  holder.current.nextTick(callback);
}

export function queueMicrotask(callback: () => void): void {
  holder.current.queueMicrotask(callback);
}
