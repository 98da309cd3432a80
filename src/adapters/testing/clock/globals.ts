import type { Timeline } from "./timeline.ts";

/**
 * Fake timers of a test library: `vi`, `jest`, a clock of `@sinonjs/fake-timers`, or `mock.timers` of `node:test`. They
 * must be in use already.
 */
export type FakeTimers =
  | { advanceTimersByTimeAsync(milliseconds: number): Promise<unknown> }
  | { tickAsync(milliseconds: number): Promise<unknown> }
  | { advanceTimersByTime(milliseconds: number): unknown }
  | { tick(milliseconds: number): unknown };

/** How to move the time of fake timers forward; undefined if these are none. */
export function ticker(timers: object): ((milliseconds: number) => unknown) | undefined {
  const names = ["advanceTimersByTimeAsync", "tickAsync", "advanceTimersByTime", "tick"] as const;
  const found = timers as Partial<Record<string, (milliseconds: number) => unknown>>;
  const name = names.find((one) => typeof found[one] === "function");
  return name && ((milliseconds) => found[name]?.(milliseconds));
}

/** A clock of `@sinonjs/fake-timers`, as far as this looks at it. Vitest's and Jest's fake timers are such a clock. */
interface SinonClock {
  readonly now: number;
  /** Those that are set, by id. Those of an interval have one. */
  readonly timers?: Readonly<
    Record<string, { readonly callAt: number; readonly interval?: number | undefined }>
  >;
}

/**
 * Returns a function that tells in how many milliseconds the next timeout of fake timers passes; undefined if none is
 * set, or these timers do not show them.
 */
export function nextTimeoutOf(timers: object): () => number | undefined {
  return () => {
    const behindGlobals = (globalThis.setTimeout as { readonly clock?: object }).clock;
    const clock = [timers, behindGlobals].find(isSinonClock);
    const timeouts = Object.values(clock?.timers ?? {}).filter(
      ({ interval }) => interval === undefined,
    );
    if (clock === undefined || timeouts.length === 0) return undefined;
    return Math.min(...timeouts.map(({ callAt }) => callAt)) - clock.now;
  };
}

function isSinonClock(clock: object | undefined): clock is SinonClock {
  const { now, tick } = (clock ?? {}) as { readonly now?: unknown; readonly tick?: unknown };
  return typeof now === "number" && typeof tick === "function";
}

/** Makes fake timers show a date (epoch ms), if they replace `Date`. */
export function setDate(timers: object, date: number): void {
  const { setSystemTime, setTime } = timers as Partial<Record<string, (date: number) => unknown>>;
  if (setSystemTime !== undefined) {
    setSystemTime.call(timers, date);
    return;
  }
  try {
    setTime?.call(timers, date);
  } catch {
    // Those of node:test refuse it if they leave `Date` alone.
  }
}

/** Replaces a global; returns a function that restores it, unless it was replaced again. */
function replaceGlobal<Name extends "Date" | "setTimeout" | "clearTimeout">(
  name: Name,
  value: (typeof globalThis)[Name],
): () => void {
  const former = globalThis[name];
  globalThis[name] = value;
  return () => {
    if (globalThis[name] === value) globalThis[name] = former;
  };
}

/** Makes `Date` show `now()` (epoch ms). Returns a function that undoes this. */
export function replaceDate(now: () => number): () => void {
  const Former = globalThis.Date;
  const date = new Proxy(Former, {
    construct: (target, args: unknown[], newTarget) =>
      Reflect.construct(
        target,
        args.length === 0 ? [now()] : args,
        newTarget as new () => object,
      ) as object,
    apply: () => new Former(now()).toString(),
    get: (target, name, receiver) =>
      name === "now" ? now : (Reflect.get(target, name, receiver) as unknown),
  });
  return replaceGlobal("Date", date);
}

/**
 * Notes the timeouts that are set on fake timers, so that the clock stops for each, and knows which handler waits for
 * it. Returns a function that undoes this.
 */
export function followTimeouts(timeline: Timeline, fallAsleep: () => () => void): () => void {
  const { setTimeout: fakeSet, clearTimeout: fakeClear } = globalThis;
  const stops = new Map<unknown, () => void>();
  const set = (callback: unknown, delay?: number, ...args: unknown[]) => {
    const wakeUp = fallAsleep();
    const stop = timeline.setTimeout(() => {}, Math.max(1, delay ?? 1));
    const end = () => {
      stops.delete(timeout);
      timeline.clear(stop);
      wakeUp();
    };
    const timeout: unknown = fakeSet(() => {
      end();
      if (typeof callback === "function") callback(...args);
    }, delay);
    stops.set(timeout, end);
    return timeout;
  };
  const clear = (timeout?: unknown) => {
    stops.get(timeout)?.();
    fakeClear(timeout as NodeJS.Timeout);
  };
  const undo = [
    replaceGlobal("setTimeout", Object.assign(set, fakeSet) as unknown as typeof fakeSet),
    replaceGlobal("clearTimeout", clear),
  ];
  return () => {
    for (const restore of undo) restore();
    for (const end of stops.values()) end();
  };
}
