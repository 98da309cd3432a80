import { createRequire, syncBuiltinESMExports } from "node:module";
import { createId } from "../../../src/queue/message/message.ts";
import { replaceRuntime, type Runtime } from "../../../src/time/runtime.ts";
import type { Random } from "../random.ts";
import type { VirtualClock } from "./clock.ts";
import { owners, type Owner } from "./owner.ts";

/** What simulated code finds in place of Node's own clocks and random numbers. */
export interface Surroundings {
  readonly clock: VirtualClock;
  /** The instant that `Date.now()` shows (epoch ms). */
  readonly date: () => number;
  readonly random: Random;
}

/**
 * Makes everything that simulated code takes from Node depend on the seed: timers (ioredis uses the global ones),
 * `Date.now`, random numbers, the process's id and the host's name. Code of the machine, which nobody owns, gets the
 * real ones.
 *
 * It can be undone only by ending the process: simulate in a process of its own.
 */
export function surround(surroundings: Surroundings): void {
  current = surroundings;
  runtime = surroundings.clock.runtime;
  replaceRuntime(runtime);
  if (!isInstalled) install();
  isInstalled = true;
  drainPool();
}

let current: Surroundings | undefined;
let runtime: Runtime;
let isInstalled = false;
const pages = { page: 0 };

const NOBODY: Owner = { name: "", pid: 1, isAlive: true, stalledUntil: 0 };

/** The surroundings, if simulated code asks. */
function here(): Surroundings | undefined {
  return owners.getStore() === undefined ? undefined : current;
}

function install(): void {
  const { now: date } = Date;
  const { random } = Math;
  type Callback = (...args: unknown[]) => void;
  // Whatever ioredis arms is a timer of the network.
  Object.assign(globalThis, {
    setTimeout: (callback: Callback, delay?: number, ...args: unknown[]) =>
      runtime.setTimeout(() => callback(...args), delay),
    setInterval: (callback: Callback, delay?: number, ...args: unknown[]) =>
      runtime.network.setInterval(() => callback(...args), delay),
    setImmediate: (callback: Callback, ...args: unknown[]) =>
      runtime.setImmediate(() => callback(...args)),
    clearTimeout: (timer: NodeJS.Timeout | undefined) => runtime.clearTimeout(timer),
    clearInterval: (timer: NodeJS.Timeout | undefined) => runtime.network.clearInterval(timer),
    clearImmediate: (timer: NodeJS.Immediate | undefined) => runtime.clearImmediate(timer),
  });
  Date.now = () => here()?.date() ?? date();
  Math.random = () => here()?.random.next() ?? random();
  installRandomBytes();
  const { pid } = process;
  Object.defineProperty(process, "pid", { get: () => owners.getStore()?.pid ?? pid });
  const os = require("node:os") as { hostname: () => string };
  const { hostname } = os;
  os.hostname = () => (here() === undefined ? hostname() : "simulated");
  syncBuiltinESMExports();
}

const require = createRequire(import.meta.url);

/** Named imports of built-in modules follow the CommonJS module, once they are told to. */
function installRandomBytes(): void {
  const crypto = require("node:crypto") as Record<string, (...args: any[]) => unknown>;
  const real = { ...crypto };
  const instead = (name: string, seeded: (random: Random, ...args: any[]) => unknown) => {
    crypto[name] = (...args: unknown[]) => {
      const place = here();
      return place === undefined ? real[name]?.(...args) : seeded(place.random, ...args);
    };
  };
  instead("randomUUID", (random) => {
    const hex = bytesOf(random, 16).toString("hex");
    const parts = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`];
    return [...parts, `8${hex.slice(17, 20)}`, hex.slice(20)].join("-");
  });
  instead("randomBytes", bytesOf);
  instead("randomInt", (random, first: number, second?: number) =>
    second === undefined ? random.int(first) : first + random.int(second - first),
  );
  instead("randomFillSync", (random, bytes: Uint8Array) => {
    pages.page++;
    random.fill(bytes);
    return bytes;
  });
}

function bytesOf(random: Random, count: number): Buffer {
  const bytes = Buffer.alloc(count);
  random.fill(bytes);
  return bytes;
}

/** Ids take random bytes from a page, of which an earlier run has left a rest. Begins a new page. */
function drainPool(): void {
  owners.run(NOBODY, () => {
    const { page } = pages;
    while (pages.page === page) createId(0);
  });
}
