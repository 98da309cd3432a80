import { BUCKET_COUNT } from "../../queue/message/bucket.ts";
import type { Connections } from "../../redis/connections.ts";
import { destinationOf } from "../ring/fact.ts";
import type { Part } from "../parts/part.ts";
import type { Parts } from "../parts/parts.ts";

/**
 * Chooses buckets for messages that may be in any.
 *
 * Those of one turn of the event loop go to one partition, a hundred at most, so that they travel in as few scripts as
 * those of an ordinary queue. A partition whose server does not reply is left out, if there are others.
 */
export class Seats {
  readonly #parts: Parts;
  #partition = -1;
  #left = 0;
  #isConnecting = false;
  #connecting: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Resolves when one of several servers can be reached, or a second later; undefined if one can be now. All who come
   * meanwhile wait for the same promise, and so keep their order. The fact is known.
   */
  ready(): Promise<void> | undefined {
    if (this.#parts.serverCount === 1) return undefined;
    if (this.#connecting === undefined && !this.#isConnecting) {
      this.#isConnecting = true;
      this.#connecting = this.#connect().finally(() => {
        // Not at once: whoever comes before those who waited have gone on has to wait behind them.
        process.nextTick(() => (this.#connecting = undefined));
      });
    }
    return this.#connecting;
  }

  /** A bucket for the next message. The fact is known. */
  next(): number {
    const { fact } = this.#parts;
    if (fact === undefined) throw new TypeError("the partitions are not known yet");
    if (this.#left === 0 || this.#partition >= fact.to) this.#choose(fact.to);
    this.#left--;
    // A partition has every P-th bucket or so.
    for (;;) {
      const bucket = Math.floor(Math.random() * BUCKET_COUNT);
      if (destinationOf(fact, bucket) === this.#partition) return bucket;
    }
  }

  #choose(count: number): void {
    // In turn, so that all get equally many; each process begins somewhere else.
    const last = this.#partition < 0 ? Math.floor(Math.random() * count) : this.#partition;
    this.#partition = (last + 1) % count;
    if (count > 1 && !isReplying(this.#parts.at(this.#partition))) {
      const others = Array.from({ length: count }, (_, partition) => partition);
      const replying = others.filter((partition) => isReplying(this.#parts.at(partition)));
      const found = replying[Math.floor(Math.random() * replying.length)];
      if (found !== undefined) this.#partition = found;
    }
    if (this.#left === 0) setImmediate(() => (this.#left = 0));
    this.#left = RUN;
  }

  /** Connects to all servers, once: each is connected when it is first used, and one that was never chosen never was. */
  async #connect(): Promise<void> {
    const all = new Set(this.#parts.active.map((partition) => this.#parts.at(partition).server));
    const connected = Array.from(all, ({ connections }) => reached(connections));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, PATIENCE)));
    // All may have been ended; the offer says so.
    await Promise.race([Promise.any(connected).catch(() => late), late]);
    clearTimeout(timer);
  }
}

function isReplying({ queue, server }: Part): boolean {
  return server.connections.isReplying(queue.keys.ready);
}

async function reached({ readiness }: Connections): Promise<void> {
  await readiness.wait();
}

/** So many messages travel in one script. */
const RUN = 100;

/** Milliseconds until an offer is sent to any server, if none is known to be reachable. */
const PATIENCE = 1000;
