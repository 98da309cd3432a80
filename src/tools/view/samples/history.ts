import type { QueueNumbers, QueueStats } from "../../../index.ts";
import { NO_NUMBERS, NUMBERS } from "../../../inside.ts";
import { problemsIn, unread, type ProblemInWords } from "../problems.ts";

/** The numbers of one queue, as the list of queues shows them. */
export interface QueueRow extends QueueNumbers {
  readonly name: string;
  readonly kind: QueueStats["kind"];
  /** How many partitions it has; 0 for an ordinary queue. */
  readonly partitions: number;
  readonly isPaused: boolean;
  /** How long the most overdue message has been due (ms); 0 if no message is overdue. */
  readonly overdueBy: number;
  /** What is wrong with it, the worst first. */
  readonly problems: readonly ProblemInWords[];
  /** Whether there is no queue of this name: nothing of one is in Redis, and no process has it open. */
  readonly isMissing?: true;
  /** Why the numbers could not be read. If set, they are the last ones, or if there were none 0 or undefined. */
  readonly error?: string;
}

/** The numbers and the home of one partition. */
export interface PartitionRow extends QueueNumbers {
  readonly partition: number;
  readonly name: string | undefined;
  readonly node: string | undefined;
  readonly holder: string | undefined;
}

/** The numbers of one queue, with those of its partitions. */
export interface WholeQueueRow extends QueueRow {
  readonly perPartition: readonly PartitionRow[];
}

/** The row of a queue with these numbers. */
export function rowOf(name: string, partitions: number, stats: QueueStats): QueueRow {
  const { perPartition: _, serverTime, ...numbers } = stats;
  const overdueBy = Math.floor(NUMBERS.overdueBy.of(stats, serverTime));
  return { name, partitions, ...numbers, overdueBy, problems: problemsIn(stats) };
}

/** The row of a queue whose numbers could not be read. */
export function brokenRow(name: string, error: string): QueueRow {
  return { ...EMPTY, name, error, problems: [unread(error)] };
}

const EMPTY: Omit<QueueRow, "name"> = {
  kind: "plain",
  partitions: 0,
  isPaused: false,
  ...NO_NUMBERS,
  overdueBy: 0,
  problems: [],
};

/**
 * How long (ms) the message has waited that has waited longest since it was due: in vain to be moved, or to be taken. 0 if
 * none waits, undefined if Redis does not know.
 */
export function lateOf({
  overdue,
  overdueBy,
  oldestReadyAge,
  ready,
}: QueueRow): number | undefined {
  if (oldestReadyAge === undefined && ready > 0) return overdue > 0 ? overdueBy : undefined;
  return Math.max(overdueBy, oldestReadyAge ?? 0);
}

/** The numbers of a queue that are drawn over time. */
const ALWAYS_KNOWN = [
  "at",
  "delayed",
  "overdue",
  "overdueBy",
  "ready",
  "inFlight",
  "retries",
  "dead",
] as const;

/**
 * Those that may be unknown. `late`: see {@link lateOf}. `readied` and `finished`: how many messages became ready, or left
 * the stream, per second since the point before.
 */
const SOMETIMES_KNOWN = ["oldestReadyAge", "late", "readied", "finished"] as const;

const FIELDS = [...ALWAYS_KNOWN, ...SOMETIMES_KNOWN];

/** The numbers of a queue at an instant, `at`. */
export type Point = Readonly<
  Record<(typeof ALWAYS_KNOWN)[number], number> &
    Record<(typeof SOMETIMES_KNOWN)[number], number | undefined>
>;

const MINUTE = 60_000;

/** The shortest time between two points (ms). */
const STEP = 10_000;

/** How many points are kept: an hour's. */
const MAX_POINTS = 360;

/**
 * Points further apart than this (ms) get no rate, because the numbers were not read in between. While no page is open,
 * a process that keeps the history reads them once a minute.
 */
const MAX_GAP = 1.5 * MINUTE;

/** The last hour of one queue, with a point every ten seconds while a page is open. Takes 35 kB. */
export class History {
  /** A ring of points. NaN stands for undefined. */
  readonly #ring = new Float64Array(MAX_POINTS * FIELDS.length);
  #count = 0;
  #last: { readonly at: number; readonly row: QueueRow } | undefined;

  /** The time of the last point (epoch ms). */
  get lastAt(): number | undefined {
    return this.#last?.at;
  }

  /** Adds a point, unless the last one is less than ten seconds old or the numbers could not be read. */
  add(at: number, row: QueueRow): void {
    if (row.error !== undefined) return;
    const last = this.#last;
    if (last !== undefined && at - last.at < STEP) return;
    const elapsed = last === undefined ? Infinity : at - last.at;
    const rate = (field: "readied" | "finished") => {
      const [before, now] = [last?.row[field], row[field]];
      // A count goes down if the stream was deleted and created again.
      if (before === undefined || now === undefined || elapsed > MAX_GAP || now < before)
        return undefined;
      return ((now - before) * 1000) / elapsed;
    };
    const point = {
      ...row,
      at,
      late: lateOf(row),
      readied: rate("readied"),
      finished: rate("finished"),
    };
    const values = FIELDS.map((field) => point[field] ?? NaN);
    this.#ring.set(values, offsetOf(this.#count));
    this.#count++;
    this.#last = { at, row };
  }

  /** The points, oldest first. */
  points(): Point[] {
    const oldest = this.#oldest;
    return Array.from({ length: this.#count - oldest }, (_, i) => this.#pointAt(oldest + i));
  }

  /** The last point of each minute, oldest first. */
  minutes(): Point[] {
    const points: Point[] = [];
    let following: number | undefined;
    for (let i = this.#count - 1; i >= this.#oldest; i--) {
      const minute = Math.floor((this.#ring[offsetOf(i)] as number) / MINUTE);
      if (minute !== following) points.push(this.#pointAt(i));
      following = minute;
    }
    return points.toReversed();
  }

  get #oldest(): number {
    return Math.max(0, this.#count - MAX_POINTS);
  }

  #pointAt(index: number): Point {
    const offset = offsetOf(index);
    const point: Partial<Record<keyof Point, number | undefined>> = {};
    for (const [i, field] of FIELDS.entries()) {
      const value = this.#ring[offset + i] as number;
      point[field] = Number.isNaN(value) ? undefined : value;
    }
    return point as Point;
  }
}

/** Where in the ring a point begins, of all that were ever added; with its time. */
function offsetOf(index: number): number {
  return (index % MAX_POINTS) * FIELDS.length;
}

/** The most queues to keep a history of. All of them take 35 MB. */
const MAX_QUEUES = 1000;

/** How long the history of a queue is kept after its last point (ms). */
const KEPT_FOR = 3_600_000;

/** The histories of all queues, as far as this dashboard has read their numbers. */
export class Histories {
  readonly #byName = new Map<string, History>();

  /** Adds the numbers of a queue. Ignores further queues beyond the first thousand. */
  add(name: string, at: number, row: QueueRow): void {
    let history = this.#byName.get(name);
    if (history === undefined) {
      if (this.#byName.size >= MAX_QUEUES) return;
      history = new History();
      this.#byName.set(name, history);
    }
    history.add(at, row);
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  /** The points of a queue, oldest first. */
  points(name: string): Point[] {
    return this.#byName.get(name)?.points() ?? [];
  }

  /** The last point of a queue in each minute, oldest first. */
  minutes(name: string): Point[] {
    return this.#byName.get(name)?.minutes() ?? [];
  }

  /** Drops the histories that got no point in the hour before `now` (epoch ms). */
  sweep(now: number): void {
    for (const [name, { lastAt = 0 }] of this.#byName) {
      if (now - lastAt > KEPT_FOR) this.#byName.delete(name);
    }
  }
}
