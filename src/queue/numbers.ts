import { forecast } from "../lua/queue/forecast.ts";
import { stats } from "../lua/queue/stats.ts";
import type { QueueStats } from "../observe/queue-stats.ts";
import type { Queue } from "./queue.ts";

/** Equal spans of time, one behind the other. */
export interface Spans {
  /** Where the first begins (epoch ms). */
  readonly from: number;
  /** Milliseconds. */
  readonly step: number;
  readonly count: number;
}

/** What a handle asks of the numbers of its queue, which may be in many partitions. */
export type NumbersFace = Pick<Numbers, keyof Numbers>;

/** The numbers of one queue: how many messages are where, and how many fall due when. */
export class Numbers {
  readonly #queue: Queue;
  readonly #isOnCluster: boolean;

  constructor(queue: Queue, isOnCluster: boolean) {
    this.#queue = queue;
    this.#isOnCluster = isOnCluster;
  }

  async stats(signal?: AbortSignal): Promise<QueueStats> {
    const { channel } = this.#queue.keys;
    const found = await this.#queue.read("look at", stats, { channel }, { signal });
    const { isReliable, consumers, listeners, ...numbers } = found;
    return {
      ...numbers,
      kind: isReliable ? "reliable" : "plain",
      consumers: isReliable ? consumers : undefined,
      listeners: this.#isOnCluster || listeners < 0 ? undefined : listeners,
      perPartition: [],
    };
  }

  /** How many messages and retries fall due in each span. */
  async forecast({ from, step, count }: Spans, signal?: AbortSignal): Promise<number[]> {
    const counts: number[] = [];
    while (counts.length < count) {
      const some = Math.min(count - counts.length, SPANS);
      const args = { from: from + counts.length * step, step, count: some };
      counts.push(...(await this.#queue.read("look at", forecast, args, { signal })));
    }
    return counts;
  }
}

/** Spans per script: some 200 us of Redis's time. */
const SPANS = 100;
