import { performance } from "node:perf_hooks";
import * as timers from "node:timers";
import type { NetworkTime, Runtime } from "../../../src/time/runtime.ts";
import { owners, type Owner } from "./owner.ts";

/** Virtual time, and the timers that wait in it. Nothing fires by itself: the machine fires what is due. */
export class VirtualClock {
  /** Milliseconds since the run began. */
  now = 0;
  readonly timers = new Set<VirtualTimer>();
  /** How many timers were ever armed. */
  armCount = 0;

  /** Arms a timer of the process that runs now. */
  arm(callback: () => void, delay = 0, interval?: number): VirtualTimer {
    const owner = owners.getStore();
    if (owner === undefined) throw new Error("only simulated code has virtual timers");
    const timer = new VirtualTimer(this, owner, callback, this.now + delay, interval);
    this.armCount++;
    // Nothing of a dead process runs any more.
    if (owner.isAlive) this.timers.add(timer);
    return timer;
  }

  /** When the next timer may fire; Infinity if none is armed. */
  get nextDueAt(): number {
    let next = Infinity;
    for (const { dueAt, owner } of this.timers) {
      next = Math.min(next, Math.max(dueAt, owner.stalledUntil));
    }
    return next;
  }

  fire(timer: VirtualTimer): void {
    if (timer.interval === undefined) this.timers.delete(timer);
    else {
      timer.dueAt = this.now + timer.interval;
      timer.age = undefined;
    }
    owners.run(timer.owner, timer.callback);
  }

  /** Removes all timers of a process. */
  drop(owner: Owner): void {
    for (const timer of this.timers) if (timer.owner === owner) this.timers.delete(timer);
  }

  /** What the library sees in place of Node's timers and clock. Code of the machine gets the real ones. */
  get runtime(): Runtime {
    const clear = (timer: unknown) => {
      if (timer instanceof VirtualTimer) timer.close();
      else REAL.clearTimeout(timer as NodeJS.Timeout);
    };
    const time: NetworkTime = {
      setTimeout: (callback, delay) =>
        isReal() ? REAL.setTimeout(callback, delay) : nodes(this.arm(callback, asNode(delay))),
      clearTimeout: clear,
      setInterval: (callback, delay) =>
        isReal()
          ? REAL.setInterval(callback, delay)
          : nodes(this.arm(callback, asNode(delay), asNode(delay))),
      clearInterval: clear,
      // Not 0 at the beginning: some code subtracts from it.
      now: () => (isReal() ? REAL.now() : this.now + 1_000_000),
    };
    return {
      ...time,
      network: time,
      // A turn of the event loop takes its time: code may wait for an instant from turn to turn.
      setImmediate: (callback) =>
        isReal()
          ? REAL.setImmediate(callback)
          : (this.arm(callback, TURN) as unknown as NodeJS.Immediate),
      clearImmediate: (immediate) => {
        if (immediate instanceof VirtualTimer) immediate.close();
        else REAL.clearImmediate(immediate);
      },
      nextTick: REAL.nextTick,
      queueMicrotask: REAL.queueMicrotask,
    };
  }
}

function isReal(): boolean {
  return owners.getStore() === undefined;
}

function nodes(timer: VirtualTimer): NodeJS.Timeout {
  return timer as unknown as NodeJS.Timeout;
}

/** Whether code of a process may run at an instant. */
export function mayRun(owner: Owner, now: number): boolean {
  return owner.isAlive && owner.stalledUntil <= now;
}

/** A timer as Node returns it. */
export class VirtualTimer {
  readonly owner: Owner;
  readonly callback: () => void;
  readonly interval: number | undefined;
  dueAt: number;
  /** How old it is among what is held; undefined until it is due. */
  age: number | undefined;
  readonly #clock: VirtualClock;

  constructor(
    clock: VirtualClock,
    owner: Owner,
    callback: () => void,
    dueAt: number,
    interval: number | undefined,
  ) {
    this.#clock = clock;
    this.owner = owner;
    this.callback = callback;
    this.dueAt = dueAt;
    this.interval = interval;
  }

  close(): this {
    this.#clock.timers.delete(this);
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }
}

/** Node fires at once after more than 2^31 - 1 ms, and never in less than 1 ms. */
function asNode(delay = 1): number {
  return delay >= 1 && delay < 2 ** 31 ? Math.trunc(delay) : 1;
}

/** Taken before anything is replaced. */
const REAL = {
  setTimeout: timers.setTimeout,
  clearTimeout: timers.clearTimeout,
  setInterval: timers.setInterval,
  clearInterval: timers.clearInterval,
  setImmediate: timers.setImmediate,
  clearImmediate: timers.clearImmediate,
  nextTick: process.nextTick.bind(process),
  queueMicrotask: globalThis.queueMicrotask,
  now: performance.now.bind(performance),
};

/** Milliseconds that a turn of the event loop takes. */
const TURN = 0.5;
