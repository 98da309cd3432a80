import type { Call } from "./call.ts";
import type { Queue } from "./queue.ts";

/** A place of a queue's messages: the ordinary queue itself, or one of its partitions. */
export interface Place {
  /**
   * The partition's number; -1 for the ordinary queue while its messages move into partitions; undefined without
   * partitions.
   */
  readonly partition: number | undefined;
  readonly queue: Queue;
  /** For a partition: the fact that was known when it was chosen. Scripts that put messages there need it. */
  readonly knownFact: string | undefined;
}

/** The places of a queue, for rooms on top that bypass a handle's methods. */
export interface PlacesFace {
  /** All places that may hold messages. */
  all(call?: Call): Promise<readonly Place[]>;
  /** The place where the messages of a bucket belong. */
  of(bucket: number, call?: Call): Promise<Place>;
}

/** The only place of an ordinary queue. */
export class OnePlace implements PlacesFace {
  readonly #place: Place;

  constructor(queue: Queue) {
    this.#place = { partition: undefined, queue, knownFact: undefined };
  }

  all(): Promise<readonly Place[]> {
    return Promise.resolve([this.#place]);
  }

  of(): Promise<Place> {
    return Promise.resolve(this.#place);
  }
}
