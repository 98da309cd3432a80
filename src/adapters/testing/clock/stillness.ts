import { REAL } from "../../../time/runtime.ts";
import { awaitedBy, type Connection } from "./connection.ts";
import type { Handlers } from "./handlers.ts";
import type { TimedServer } from "./timed-server.ts";
import type { Timeline } from "./timeline.ts";

/** What a {@link Stillness} looks at. */
interface Observed {
  readonly timeline: Timeline;
  readonly handlers: Handlers;
  readonly servers: () => Iterable<TimedServer>;
  /** Grows with each script that is sent. */
  readonly scriptCount: () => number;
  /** For how many things the library waits in real time, and not for long. */
  readonly waitCount: () => number;
}

/**
 * Waits, in real time, until nothing more happens at the virtual instant that has been reached.
 *
 * Nothing happens if no command of a client waits for its reply, blocking reads apart; no handler runs that does not
 * itself wait for virtual time; no timer is due; and a barrier finds nothing new. A barrier is a round trip to each
 * server: whatever was sent before has been carried out then, and Redis has sent the wake-ups and messages that follow
 * from it. Two turns of the event loop let them in.
 */
export class Stillness {
  readonly #observed: Observed;
  readonly #patience: number;
  readonly #connections = new Set<Connection>();
  readonly #ready = new Set<Connection>();
  /** The blocking read that each connection waits for. */
  readonly #reads = new WeakMap<Connection, object>();
  #readCount = 0;
  /** What had happened at the last barrier. */
  #known = "";

  /** `patience` is how many real milliseconds may pass without progress. */
  constructor(observed: Observed, patience: number) {
    this.#observed = observed;
    this.#patience = patience;
  }

  /** Grows with each blocking read. What it has read is in flight now. */
  get readCount(): number {
    return this.#readCount;
  }

  /** Watches a connection from now on, until it ends. */
  watch(connection: Connection): void {
    this.#connections.add(connection);
  }

  /** @throws {Error} that names what does not end, after some real seconds without progress. */
  async reached(): Promise<void> {
    let isQuiet = false;
    let known = this.#events;
    let waited = 0;
    let lookedAt = REAL.now();
    for (let turn = 0; ; turn++) {
      await nextTurn();
      const awaited = this.#awaited;
      const now = REAL.now();
      waited += Math.min(now - lookedAt, LONGEST_TURN);
      lookedAt = now;
      if (this.#events !== known) {
        known = this.#events;
        waited = 0;
      } else if (waited > this.#patience) {
        const vain = this.#observed.handlers.awake ?? awaited ?? "Redis";
        throw new Error(`the test clock waits in vain for ${vain}`);
      }
      if (awaited !== undefined) {
        isQuiet = false;
        // Redis replies within a few turns. What takes longer must not keep the processor busy.
        if (turn > BUSY_TURNS) await realPause();
        continue;
      }
      const progress = `${known} ${this.#readCount}`;
      const isNew = progress !== this.#known;
      this.#known = progress;
      if (isQuiet && !isNew) return;
      isQuiet = true;
      await Promise.all([...this.#observed.servers()].map((server) => server.pass(isNew)));
      await nextTurn();
    }
  }

  /** Changes whenever something happens. A blocking read that ends without a message and begins anew is nothing. */
  get #events(): string {
    const { timeline, handlers, scriptCount } = this.#observed;
    return `${timeline.changes} ${handlers.changes} ${scriptCount()}`;
  }

  /** Whoever was heard through a connection that is lost may not be heard again. */
  #look(connection: Connection): void {
    if (connection.status === "ready") this.#ready.add(connection);
    else if (this.#ready.delete(connection)) this.#observed.timeline.happened();
  }

  /** What has to end first, in words. */
  get #awaited(): string | undefined {
    const { timeline, handlers, waitCount } = this.#observed;
    for (const connection of this.#connections) {
      this.#look(connection);
      if (connection.status === "end") this.#connections.delete(connection);
      const awaited = awaitedBy(connection);
      if (typeof awaited === "string") return awaited;
      if (awaited === undefined || this.#reads.get(connection) === awaited) continue;
      this.#reads.set(connection, awaited);
      this.#readCount++;
    }
    if (timeline.isDue) return "a timer that is due";
    if (waitCount() > 0) return "a short pause, or a module";
    return handlers.awake;
  }
}

/** Resolves in the next turn of the event loop. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => REAL.setImmediate(resolve));
}

function realPause(): Promise<void> {
  return new Promise((resolve) => REAL.network.setTimeout(resolve, 1));
}

/** Real milliseconds of one turn that count at most: a process that gets no processor is not one that makes no progress. */
const LONGEST_TURN = 100;

/** Turns of the event loop after which a wait is paced. */
const BUSY_TURNS = 200;
