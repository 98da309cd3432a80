import { BUCKET_COUNT } from "../queue/bucket.ts";
import { destinationOf } from "./fact.ts";
import type { Parts } from "./parts.ts";

/**
 * Chooses buckets for messages that may be in any.
 *
 * Those of one turn of the event loop go to one partition, a hundred at most, so that they travel in as few scripts as
 * those of an ordinary queue. A partition whose server cannot be reached is left out, if there are others.
 */
export class Seats {
  readonly #parts: Parts;
  #partition = -1;
  #left = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
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
    const reachable = Array.from({ length: count }, (_, partition) => partition).filter(
      (partition) => this.#parts.at(partition).server.connections.readiness.wait() === undefined,
    );
    this.#partition =
      reachable.length > 0
        ? (reachable[Math.floor(Math.random() * reachable.length)] as number)
        : Math.floor(Math.random() * count);
    if (this.#left === 0) setImmediate(() => (this.#left = 0));
    this.#left = RUN;
  }
}

/** So many messages travel in one script. */
const RUN = 100;
