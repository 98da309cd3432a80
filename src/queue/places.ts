import type { Queue } from "./queue.ts";

/** Where messages of a queue are: the queue itself, or one of its partitions. */
export interface Place {
  /** Its number; -1: the ordinary queue, while it is taken in. Undefined: the queue has no partitions. */
  readonly partition: number | undefined;
  readonly queue: Queue;
  /** Of a partition: what was known when it was chosen. Scripts that put messages there have to be given it. */
  readonly knownFact: string | undefined;
}

/** What a handle asks for the places of its queue. It is for those who look past its methods. */
export interface PlacesFace {
  /** All that may hold messages. */
  all(signal?: AbortSignal): Promise<readonly Place[]>;
  /** Where the messages of a bucket belong. */
  of(bucket: number, signal?: AbortSignal): Promise<Place>;
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
