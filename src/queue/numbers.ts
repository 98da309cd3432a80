import { forecast, stats } from "../lua/queue/stats.ts";
import type { QueueStats } from "../observe/queue-stats.ts";
import type { Call } from "./call.ts";
import type { Queue } from "./queue.ts";

/** Consecutive spans of equal length. */
export interface Spans {
  /** The beginning of the first span (epoch ms). */
  readonly from: number;
  /** The length of each span in milliseconds. */
  readonly step: number;
  readonly count: number;
}

/** The numbers of a queue, which may be in many partitions. */
export type NumbersFace = Pick<Numbers, keyof Numbers>;

/** The numbers of one ordinary queue or partition: how many messages are in each place, and how many fall due when. */
export class Numbers {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  async stats(call?: Call): Promise<QueueStats> {
    const { channel } = this.#queue.keys;
    const found = await this.#queue.read("look at", stats, { channel }, call);
    const { isReliable, consumers, listeners, ...numbers } = found;
    return {
      ...numbers,
      kind: isReliable ? "reliable" : "plain",
      consumers: isReliable ? consumers : undefined,
      listeners: this.#queue.server.isCluster || listeners < 0 ? undefined : listeners,
      perPartition: [],
    };
  }

  /** Returns how many messages and retries fall due in each span. */
  async forecast({ from, step, count }: Spans, call?: Call): Promise<number[]> {
    const counts: number[] = [];
    while (counts.length < count) {
      const some = Math.min(count - counts.length, SPANS);
      const args = { from: from + counts.length * step, step, count: some };
      counts.push(...(await this.#queue.read("look at", forecast, args, call)));
    }
    return counts;
  }
}

/** Spans per script: about 200 us of Redis's time. */
const SPANS = 100;
