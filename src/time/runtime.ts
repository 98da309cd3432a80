/**
 * The runtime's timers and its monotonic clock, taken once, when this module is loaded. All code of the library uses
 * these, so that fake timers, which a test installs later, do not stop it.
 *
 * `node:timers` and `node:perf_hooks` are asked rather than the globals: a test framework may have replaced those before.
 */
import { performance as clock } from "node:perf_hooks";
import * as timers from "node:timers";

/** What measures time and waits. */
export interface Runtime {
  readonly setTimeout: (callback: () => void, delay?: number) => NodeJS.Timeout;
  readonly clearTimeout: (timeout: NodeJS.Timeout | undefined) => void;
  readonly setInterval: (callback: () => void, delay?: number) => NodeJS.Timeout;
  readonly clearInterval: (interval: NodeJS.Timeout | undefined) => void;
  readonly setImmediate: (callback: () => void) => NodeJS.Immediate;
  readonly clearImmediate: (immediate: NodeJS.Immediate | undefined) => void;
  readonly nextTick: (callback: () => void) => void;
  readonly queueMicrotask: (callback: () => void) => void;
  /** Milliseconds on a clock that nobody sets. */
  readonly now: () => number;
}

const REAL: Runtime = {
  setTimeout: timers.setTimeout,
  clearTimeout: timers.clearTimeout,
  setInterval: timers.setInterval,
  clearInterval: timers.clearInterval,
  setImmediate: timers.setImmediate,
  clearImmediate: timers.clearImmediate,
  // No module has these two.
  nextTick: process.nextTick.bind(process),
  queueMicrotask: globalThis.queueMicrotask,
  now: clock.now.bind(clock),
};

let current = REAL;

/** Replaces all timers and the clock, for tests of code that waits. Without an argument the real ones return. */
export function replaceRuntime(runtime: Runtime = REAL): void {
  current = runtime;
}

// The functions below have the names of the globals that they stand for.

export function setTimeout(callback: () => void, delay?: number): NodeJS.Timeout {
  return current.setTimeout(callback, delay);
}

export function clearTimeout(timeout: NodeJS.Timeout | undefined): void {
  current.clearTimeout(timeout);
}

export function setInterval(callback: () => void, delay?: number): NodeJS.Timeout {
  return current.setInterval(callback, delay);
}

export function clearInterval(interval: NodeJS.Timeout | undefined): void {
  current.clearInterval(interval);
}

export function setImmediate(callback: () => void): NodeJS.Immediate {
  return current.setImmediate(callback);
}

export function clearImmediate(immediate: NodeJS.Immediate | undefined): void {
  current.clearImmediate(immediate);
}

/** `process.nextTick`. */
export function nextTick(callback: () => void): void {
  current.nextTick(callback);
}

export function queueMicrotask(callback: () => void): void {
  current.queueMicrotask(callback);
}

export const performance = { now: (): number => current.now() };
