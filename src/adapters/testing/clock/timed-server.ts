import { REAL } from "../../../time/runtime.ts";
import { PAST, ServerClock } from "../../../time/server-clock.ts";
import { ClusterBus } from "./cluster-bus.ts";
import type { Connection } from "./connection.ts";
import { PUT_OFF } from "./signs-of-life.ts";

/** From this real instant on (epoch ms on the server's clock), the virtual clock showed `virtual` (epoch ms). */
interface Step {
  readonly real: number;
  readonly virtual: number;
}

/**
 * One server or Cluster, and what has a time there although no script reads it from a clock: the idle times of
 * entries and consumers, and the time that keys have left to live.
 *
 * Redis keeps idle times by its own clock. The steps tell which virtual time it was then. So a step begins in a real
 * millisecond of its own, at least two after whatever happened before it: a script may read Redis's clock a
 * millisecond later than Redis reads it for its idle times. If nothing has changed idle times since the last step, that
 * step is moved instead, which takes no real time.
 */
export class TimedServer {
  readonly #connection: Connection;
  readonly #bus = new ClusterBus();
  readonly #steps: Step[];
  /** The steps as scripts read them. */
  #text: string | undefined;
  /** The server's real time at the first look after all that has happened. */
  #quietAt = -Infinity;
  #lastAt = -Infinity;
  /** Keys that scripts may have given a time to live. */
  readonly #mortal = new Set<string>();
  /** Virtual milliseconds that these keys have not aged yet. */
  #unaged = 0;
  /** Keys that hold signs of life. */
  readonly #signed = new Set<string>();
  /** Whether idle times may have changed since the last step. */
  #isTouched = true;

  /** `client` is any client of the server; `virtual` is the virtual instant now. */
  constructor(client: Connection, virtual: number) {
    this.#connection = duplicate(client);
    this.#connection.on("error", () => {});
    const seenAt = REAL.now();
    const first = { real: 0, virtual };
    this.#steps = [first];
    // Until the server has told its time, nothing there is idle.
    this.#ask().then(
      (real) => {
        first.real = Math.floor(real - (REAL.now() - seenAt)) - MARGIN;
        this.#text = undefined;
      },
      () => {},
    );
  }

  /** The steps, newest first. */
  get steps(): string {
    this.#text ??= this.#steps.map(({ real, virtual }) => `${real}:${virtual}`).join(",");
    return this.#text;
  }

  /** Notes that idle times may change at this instant. */
  touch(): void {
    this.#isTouched = true;
  }

  /** Notes keys that a script may give a time to live. */
  noteMortal(keys: readonly string[]): void {
    for (const key of keys) this.#mortal.add(key);
  }

  /** Notes a key in which a script may note a sign of life. */
  noteSigned(key: string): void {
    this.#signed.add(key);
  }

  /**
   * A barrier: resolves when the server has carried out what was sent before, and the nodes of a Cluster have passed on
   * what was published. `isFirst` says whether anything has happened since the last barrier.
   */
  async pass(isFirst: boolean): Promise<void> {
    if (this.#connection.isCluster) await this.#bus.pass(await this.#nodes());
    this.#lastAt = await this.#ask();
    if (!isFirst) return;
    // Redis may have replied here before it wrote to the connections for which it had something, too. It has now.
    this.#lastAt = await this.#ask();
    this.#quietAt = Math.floor(this.#lastAt);
  }

  /**
   * Moves from one virtual instant to another. Presence rests for `rested` milliseconds of that. Nothing may be under way.
   */
  async step(from: number, to: number, rested: number): Promise<void> {
    if (rested > 0) await this.#putOff(rested, from);
    this.#unaged += to - from;
    if (this.#isTouched || this.#unaged >= MAX_UNAGED) await this.#age();
    if (this.#isTouched) await this.#begin(to);
    else this.#steps[0] = { real: this.#steps[0]?.real ?? 0, virtual: to };
    this.#text = undefined;
  }

  async #begin(virtual: number): Promise<void> {
    while (this.#lastAt < this.#quietAt + MARGIN) this.#lastAt = await this.#ask();
    const real = Math.floor(this.#lastAt);
    this.#steps.unshift({ real, virtual });
    if (this.#steps.length > MAX_STEPS) this.#thinOut();
    // What happens from now on may happen in this very millisecond.
    this.#quietAt = real;
    this.#isTouched = false;
  }

  /** Resolves when the connection has ended. */
  async close(): Promise<void> {
    this.#bus.close();
    await this.#connection.quit().catch(() => {});
    this.#connection.disconnect();
  }

  /** The server's real time (epoch ms); of a Cluster's nodes, the latest. */
  async #ask(): Promise<number> {
    const times = await Promise.all((await this.#nodes()).map((node) => node.time()));
    return Math.max(...times.map((time) => ServerClock.fromTime(time)));
  }

  /** The server, or the masters of the Cluster, which are known once it has replied. */
  async #nodes(): Promise<readonly Connection[]> {
    const connection = this.#connection;
    if (connection.nodes === undefined) return [connection];
    if (connection.status !== "ready") await connection.time();
    return connection.nodes("master");
  }

  /** Makes signs of life as recent as they were. */
  async #putOff(rested: number, from: number): Promise<void> {
    const ask = async (key: string) => {
      const isThere = await this.#connection.eval(PUT_OFF, 1, key, rested, from, PAST);
      if (isThere === 0) this.#signed.delete(key);
    };
    await Promise.all([...this.#signed].map(ask));
  }

  /** Takes the time that has passed from what keys have left to live. */
  async #age(): Promise<void> {
    const passed = this.#unaged;
    this.#unaged = 0;
    const ask = async (key: string) => {
      if ((await this.#connection.eval(AGE, 1, key, passed)) === 0) this.#mortal.delete(key);
    };
    await Promise.all([...this.#mortal].map(ask));
  }

  /**
   * Merges every other pair of the older half. What happened in either step counts as having happened in the later one:
   * it seems a little less idle than it is, compared with its age, so no consumer is taken for dead too early.
   */
  #thinOut(): void {
    const older = this.#steps.splice(MAX_STEPS / 2);
    for (let i = 0; i < older.length; i += 2) {
      const [later, earlier] = [older[i] as Step, older[i + 1]];
      this.#steps.push({ real: earlier?.real ?? later.real, virtual: later.virtual });
    }
  }
}

/** The same server, database and key prefix, over a connection of our own. */
function duplicate(client: Connection): Connection {
  const ours = {
    connectionName: "delayline:test-clock",
    lazyConnect: false,
    enableOfflineQueue: true,
    enableAutoPipelining: false,
    maxRetriesPerRequest: 1,
    commandTimeout: undefined,
    retryStrategy: () => 50,
  };
  if (!client.isCluster) return client.duplicate(ours);
  const { redisOptions } = client.options as { readonly redisOptions?: object };
  return client.duplicate([], { lazyConnect: false, redisOptions: { ...redisOptions, ...ours } });
}

/** What tells a server from another: its address, and what decides about the names of keys there. */
export function identityOf(client: Connection): string {
  const { host, port, path, db, keyPrefix, sentinels, name } = client.options as Readonly<
    Record<string, unknown>
  >;
  const { startupNodes } = client as { readonly startupNodes?: unknown };
  if (client.isCluster) return JSON.stringify(["cluster", startupNodes, keyPrefix]);
  return JSON.stringify([host, port, path, db, keyPrefix, sentinels, name]);
}

/** Takes milliseconds from what a key has left to live. Replies 0 if it lives for ever, or no longer. */
const AGE = /* lua */ `
local left = redis.call("PTTL", KEYS[1])
if left < 0 then return 0 end
left = left - ARGV[1]
if left > 0 then return redis.call("PEXPIRE", KEYS[1], string.format("%.0f", left)) end
redis.call("DEL", KEYS[1])
return 0
`;

/** Milliseconds between what happens before a step and the step. */
const MARGIN = 2;

/** Virtual milliseconds that may pass until keys age. They live for more than a minute. */
const MAX_UNAGED = 5000;

/** The most steps that scripts get. Even. */
const MAX_STEPS = 400;
