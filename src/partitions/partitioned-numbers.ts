import { mergeStats, type QueueStats } from "../observe/queue-stats.ts";
import type { Call } from "../queue/call.ts";
import type { NumbersFace, Spans } from "../queue/numbers.ts";
import type { Part } from "./parts/part.ts";
import type { Parts } from "./parts/parts.ts";

/** The numbers of a partitioned queue: the sums, and the numbers of each partition. */
export class PartitionedNumbers implements NumbersFace {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async stats(call?: Call): Promise<QueueStats> {
    const all = await this.#onAll(async (part) => await part.numbers.stats(call), call);
    const perPartition = all.map(({ partition, result }) => {
      const { kind: _, isPaused: __, serverTime: ___, perPartition: ____, ...numbers } = result;
      return { partition, ...numbers };
    });
    return { ...mergeStats(all.map(({ result }) => result)), perPartition };
  }

  async forecast(spans: Spans, call?: Call): Promise<number[]> {
    const all = await this.#onAll((part) => part.numbers.forecast(spans, call), call);
    return Array.from({ length: spans.count }, (_, i) =>
      all.reduce((sum, { result }) => sum + (result[i] ?? 0), 0),
    );
  }

  async #onAll<Result>(
    act: (part: Part) => Promise<Result>,
    call?: Call,
  ): Promise<{ partition: number; result: Result }[]> {
    await this.#parts.all(call);
    return await Promise.all(
      this.#parts.active.map(async (partition) => {
        return { partition, result: await act(this.#parts.at(partition)) };
      }),
    );
  }
}
