import { countWaiting, forecast, stats } from "../../lua/queue/stats.ts";
import { mergeStats, numbersOf, type QueueStats } from "../../observe/queue-stats.ts";
import type { Call } from "../../queue/call.ts";
import type { Queue } from "../../queue/queue.ts";
import type { Parts } from "./parts.ts";

/** Consecutive spans of equal length. */
export interface Spans {
  /** The beginning of the first span (epoch ms). */
  readonly from: number;
  /** The length of each span in milliseconds. */
  readonly step: number;
  readonly count: number;
}

/** The numbers of a queue: how many messages are in each place, and how many fall due when. */
export class Numbers {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The sums over all parts; with partitions, the numbers of each as well. */
  async stats(call?: Call): Promise<QueueStats> {
    const parts = await this.#parts.all(call);
    const all = await Promise.all(parts.map(({ queue }) => statsOf(queue, call)));
    const merged = mergeStats(all);
    if (this.#parts.following.isOrdinary) return { ...merged, perPartition: [] };
    const perPartition = all.map((one, i) => ({
      partition: parts[i]?.partition as number,
      ...numbersOf(one),
    }));
    return { ...merged, perPartition };
  }

  /** Returns how many messages and retries have a deadline before `instant` (epoch ms), also those that wait in lanes. */
  async dueBefore(instant: number, call?: Call): Promise<number> {
    const [[count = 0], waiting] = await Promise.all([
      this.forecast({ from: 0, step: instant, count: 1 }, call),
      this.#parts.sum(({ queue }) => queue.read("look at", countWaiting, {}, call), call),
    ]);
    return count + waiting;
  }

  /** Returns how many messages and retries fall due in each span. */
  async forecast(spans: Spans, call?: Call): Promise<number[]> {
    const all = await this.#parts.onAll(({ queue }) => forecastOf(queue, spans, call), call);
    return Array.from({ length: spans.count }, (_, i) =>
      all.reduce((sum, counts) => sum + (counts[i] ?? 0), 0),
    );
  }
}

/** The numbers of one part. */
export async function statsOf(queue: Queue, call: Call | undefined): Promise<QueueStats> {
  const args = { channel: queue.keys.channel, shares: queue.shares() };
  const found = await queue.look("look at", stats, args, call);
  const { isReliable, consumers, listeners, ...numbers } = found;
  return {
    ...numbers,
    kind: isReliable ? "reliable" : "plain",
    consumers: isReliable ? consumers : undefined,
    listeners: queue.server.isCluster || listeners < 0 ? undefined : listeners,
    perPartition: [],
  };
}

async function forecastOf(
  queue: Queue,
  { from, step, count }: Spans,
  call: Call | undefined,
): Promise<number[]> {
  const counts: number[] = [];
  while (counts.length < count) {
    const some = Math.min(count - counts.length, SPANS);
    const args = { from: from + counts.length * step, step, count: some };
    counts.push(...(await queue.read("look at", forecast, args, call)));
  }
  return counts;
}

/** Spans per script: about 100 us of Redis's time. */
const SPANS = 25;
