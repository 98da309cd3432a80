import { bucketOfHash } from "../../queue/message/bucket.ts";
import type { Connections } from "../../redis/connections.ts";
import { sleepForNetwork } from "../../time/sleep.ts";
import type { Part } from "../parts/part.ts";
import type { Parts } from "../parts/parts.ts";
import { destinationOf } from "../ring/fact.ts";
import { nextTick, setImmediate } from "../../time/runtime.ts";

/**
 * Chooses hashes, and with them partitions, for messages that have neither a partition key nor a business key.
 *
 * The messages of one turn of the event loop go to one partition, up to a hundred, so they need as few scripts as in an
 * ordinary queue. Partitions whose server does not reply are skipped, unless none replies.
 */
export class Seats {
  readonly #parts: Parts;
  #partition = -1;
  /** How many more messages go to the same partition. */
  #left = 0;
  #isConnecting = false;
  #connecting: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Resolves once one of several servers can be reached, or after a second. Returns undefined on one server, and after
   * the first wait. Callers that come during the wait get the same promise and so keep their order. The fact must be
   * known.
   */
  ready(): Promise<void> | undefined {
    if (this.#parts.serverCount === 1) return undefined;
    if (this.#connecting === undefined && !this.#isConnecting) {
      this.#isConnecting = true;
      this.#connecting = this.#connect().finally(() => {
        // Not at once: a caller that comes before the earlier ones have resumed must queue up behind them.
        nextTick(() => (this.#connecting = undefined));
      });
    }
    return this.#connecting;
  }

  /** A hash for the next message, instead of a key's. The fact must be known. */
  next(): number {
    const { fact } = this.#parts.following;
    if (fact === undefined) throw new TypeError("the partitions are not known yet");
    if (this.#left === 0 || this.#partition >= fact.to) this.#choose(fact.to);
    this.#left--;
    // A partition has about every P-th hash, so this takes about P tries.
    for (;;) {
      const hash = Math.floor(Math.random() * 2 ** 32);
      if (destinationOf(fact, bucketOfHash(hash)) === this.#partition) return hash;
    }
  }

  #choose(count: number): void {
    // In turn, so that all partitions get equally many. Each process starts at a random one.
    const last = this.#partition < 0 ? Math.floor(Math.random() * count) : this.#partition;
    this.#partition = (last + 1) % count;
    if (count > 1 && !isReplying(this.#parts.at(this.#partition))) {
      const all = Array.from({ length: count }, (_, partition) => partition);
      const replying = all.filter((partition) => isReplying(this.#parts.at(partition)));
      const found = replying[Math.floor(Math.random() * replying.length)];
      if (found !== undefined) this.#partition = found;
    }
    if (this.#left === 0) setImmediate(() => (this.#left = 0));
    this.#left = RUN;
  }

  /** Connects to all servers, which otherwise connect on first use: a server that is never chosen would never reply. */
  async #connect(): Promise<void> {
    const all = new Set(this.#parts.active.map(({ queue }) => queue.server));
    const connected = Array.from(all, ({ connections }) => reached(connections));
    const done = new AbortController();
    const late = sleepForNetwork(PATIENCE, done.signal);
    // If no server can be reached, the offer reports it.
    await Promise.race([Promise.any(connected).catch(() => late), late]);
    done.abort();
  }
}

function isReplying({ queue }: Part): boolean {
  return queue.server.connections.isReplying(queue.keys.ready);
}

async function reached({ readiness }: Connections): Promise<void> {
  await readiness.wait();
}

/** How many messages an offer script takes. */
const RUN = 100;

/** Milliseconds after which an offer is sent even if no server is known to be reachable. */
const PATIENCE = 1000;
