import type { Inspector } from "../inspector.ts";
import { loadOf, type Beyond } from "../load.ts";
import { notReadyIn } from "../places.ts";
import type { Sampler } from "./sampler.ts";
import { networkTime } from "../../../inside.ts";

/** The coming month: how many messages of all queues become due in each hour. */
export interface Month {
  /** When the first hour begins (epoch ms). */
  readonly from: number;
  /** The length of an interval (ms). */
  readonly step: number;
  /** For each interval the messages of all queues. */
  readonly totals: readonly number[];
  /** The schedules whose later ticks are not among these messages, since they are not placed yet. */
  readonly beyond: readonly Beyond[];
  /** Queues that could not be read. */
  readonly failed: readonly string[];
}

interface Cells {
  readonly month: Month;
  readonly byQueue: ReadonlyMap<string, readonly number[]>;
}

const HOUR = 3_600_000;
const HOURS = 31 * 24;

/** How long a month is reused (ms). */
const FRESH_FOR = 60_000;

/** How many queues are read at once. */
const CONCURRENCY = 4;

/** How many months are kept: one for each time zone that pages are in. */
const MOST_KEPT = 8;

/**
 * Counts when messages become due, over all queues. A script counts fifty hours of a queue or partition in some 200
 * us; queues without delayed messages, retries and schedules are left out. The result is reused for a minute.
 */
export class Months {
  readonly #inspector: Inspector;
  readonly #sampler: Sampler;
  readonly #kept = new Map<number, { readonly until: number; readonly cells: Promise<Cells> }>();

  #latest: Promise<unknown> = Promise.resolve();

  constructor(inspector: Inspector, sampler: Sampler) {
    this.#inspector = inspector;
    this.#sampler = sampler;
  }

  /** Returns the month that begins at `from` (epoch ms). */
  async month(from: number): Promise<Month> {
    return (await this.#cells(from)).month;
  }

  /** Returns the queues with messages in the interval at `index`, those with the most first. */
  async cell(
    from: number,
    index: number,
  ): Promise<readonly { readonly name: string; readonly count: number }[]> {
    const { byQueue } = await this.#cells(from);
    return Array.from(byQueue, ([name, counts]) => ({ name, count: counts[index] ?? 0 }))
      .filter(({ count }) => count > 0)
      .toSorted((a, b) => b.count - a.count);
  }

  #cells(from: number): Promise<Cells> {
    const now = networkTime.now();
    for (const [other, { until }] of this.#kept) if (until < now) this.#kept.delete(other);
    const known = this.#kept.get(from);
    if (known !== undefined) return known.cells;
    // One after another, whatever months are asked for at once.
    const cells = this.#latest.then(() => this.#read(from));
    this.#latest = cells.catch(() => {});
    const [oldest] = this.#kept.keys();
    if (this.#kept.size >= MOST_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    this.#kept.set(from, { until: now + FRESH_FOR, cells });
    cells.catch(() => this.#kept.delete(from));
    return cells;
  }

  async #read(from: number): Promise<Cells> {
    const { samples } = await this.#sampler.round();
    const withMessages = Array.from(samples.values(), ({ row }) => row).filter(
      (row) => notReadyIn(row) + row.schedules > 0,
    );
    const byQueue = new Map<string, readonly number[]>();
    const beyond: Beyond[] = [];
    const failed: string[] = [];
    const rest = withMessages.values();
    const bounds = Array.from({ length: HOURS + 1 }, (_, hour) => from + hour * HOUR);
    const work = async () => {
      for (const { name } of rest) {
        try {
          const queue = await this.#inspector.open(name);
          const load = await loadOf(queue, bounds);
          byQueue.set(name, load.counts);
          beyond.push(...load.beyond);
        } catch {
          failed.push(name);
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    const totals = Array.from({ length: HOURS }, (_, index) =>
      [...byQueue.values()].reduce((sum, counts) => sum + (counts[index] ?? 0), 0),
    );
    return { month: { from, step: HOUR, totals, beyond, failed }, byQueue };
  }
}
