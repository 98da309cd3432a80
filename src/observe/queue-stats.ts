import { COUNTED, NUMBERS, type Merge, type QueueNumbers } from "../nouns/numbers.ts";

/** The numbers of a whole queue. */
export interface QueueStats extends QueueNumbers {
  /** Whether messages are acknowledged. A queue is reliable as long as its stream exists. */
  readonly kind: "plain" | "reliable";
  readonly isPaused: boolean;
  /** Why it is paused, in words, if whoever paused it has said so. */
  readonly pauseReason: string | undefined;
  /** The server's clock when the numbers were read (epoch ms). */
  readonly serverTime: number;
  /**
   * The numbers of each partition, with its number: -1 for the ordinary queue, while its messages move into partitions. Empty
   * for an ordinary queue.
   */
  readonly perPartition: readonly (QueueNumbers & { readonly partition: number })[];
}

type NumberOfAll = (name: keyof QueueNumbers, all: readonly QueueStats[]) => number | undefined;

const MERGES: Readonly<Record<Merge, NumberOfAll>> = {
  sum: (name, all) => total(known(name, all)),
  least: (name, all) => either(Math.min, known(name, all)),
  most: (name, all) => either(Math.max, known(name, all)),
  "sum of streams": (name, all) => {
    const streams = all.filter(({ kind }) => kind === "reliable");
    const values = known(name, streams);
    return values.length > 0 && values.length === streams.length ? total(values) : undefined;
  },
};

function known(name: keyof QueueNumbers, all: readonly QueueStats[]): number[] {
  return all.map((one) => one[name]).filter((value) => value !== undefined);
}

function total(values: readonly number[]): number {
  return values.reduce((sum, one) => sum + one, 0);
}

function either(
  choose: (...values: number[]) => number,
  values: readonly number[],
): number | undefined {
  return values.length > 0 ? choose(...values) : undefined;
}

/** What a queue and each of its partitions have. */
export function numbersOf(stats: QueueStats): QueueNumbers {
  const {
    kind: _,
    isPaused: _a,
    pauseReason: _b,
    serverTime: _c,
    perPartition: _d,
    ...numbers
  } = stats;
  return numbers;
}

/** Merges the numbers of a queue's partitions. */
export function mergeStats(all: readonly QueueStats[]): Omit<QueueStats, "perPartition"> {
  const numbers = COUNTED.map((name) => [name, MERGES[NUMBERS[name].merge](name, all)]);
  return {
    kind: all.some(({ kind }) => kind === "reliable") ? "reliable" : "plain",
    isPaused: all.some(({ isPaused }) => isPaused),
    pauseReason: all.find(({ pauseReason }) => pauseReason !== undefined)?.pauseReason,
    serverTime: Math.max(...all.map(({ serverTime }) => serverTime)),
    ...(Object.fromEntries(numbers) as unknown as QueueNumbers),
  };
}
