import { AsyncLocalStorage } from "node:async_hooks";

/** Whose code runs: a simulated process, or the world. */
export interface Owner {
  readonly name: string;
  /** What `process.pid` says in it. */
  readonly pid: number;
  isAlive: boolean;
  /** Until when its event loop stands still (elapsed ms). */
  stalledUntil: number;
}

/** Follows calls, promises and callbacks. Nobody owns the machine's own code. */
export const owners = new AsyncLocalStorage<Owner>();
