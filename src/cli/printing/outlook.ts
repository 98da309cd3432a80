import { formatCount } from "./table.ts";

/** What one queue adds to an {@link Outlook}. */
export interface QueueOutlook {
  readonly queue: string;
  /** How many of its messages and retries are due now, and not moved yet. */
  readonly overdue: number;
  /** How many fall due in each span. */
  readonly counts: readonly number[];
  /** In all spans together. */
  readonly total: number;
}

/** What falls due when, of several queues, and what each of them has in it. */
export class Outlook {
  readonly #queues: QueueOutlook[] = [];
  readonly #counts: number[];

  /** @param spans how many there are. */
  constructor(spans: number) {
    this.#counts = Array.from({ length: spans }, () => 0);
  }

  add(queue: string, overdue: number, counts: readonly number[]): void {
    this.#queues.push({ queue, overdue, counts, total: sum(counts) });
    for (const [i, one] of counts.entries()) this.#counts[i] = (this.#counts[i] ?? 0) + one;
  }

  /** In each span, of all queues. */
  get counts(): readonly number[] {
    return this.#counts;
  }

  /** In all spans, of all queues. */
  get total(): number {
    return sum(this.#counts);
  }

  get overdue(): number {
    return sum(this.#queues.map(({ overdue }) => overdue));
  }

  /** Queues of which something is overdue or falls due, those with most first. */
  get queues(): QueueOutlook[] {
    return this.#queues
      .filter(({ overdue, total }) => overdue + total > 0)
      .toSorted((a, b) => b.overdue + b.total - (a.overdue + a.total));
  }

  /** The queues with most of something, such as `orders 5, mails 2, calls 2, 3 more 4`. */
  topOf(count: (queue: QueueOutlook) => number): string {
    const all = this.#queues
      .map((one) => ({ queue: one.queue, count: count(one) }))
      .filter((one) => one.count > 0)
      .toSorted((a, b) => b.count - a.count);
    const rest = all.slice(TOP);
    const words = all.slice(0, TOP).map((one) => `${one.queue} ${formatCount(one.count)}`);
    if (rest.length > 0) {
      words.push(
        `${formatCount(rest.length)} more ${formatCount(sum(rest.map((one) => one.count)))}`,
      );
    }
    return words.join(", ");
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, one) => all + one, 0);
}

/** Queues that are named for each span. */
const TOP = 3;
