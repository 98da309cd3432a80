import { formatCount } from "./table.ts";

/** The counts of one queue in an {@link Outlook}. */
export interface QueueOutlook {
  readonly queue: string;
  /** How many messages and retries are due and have not been moved. */
  readonly overdue: number;
  /** How many fall due in each time span. */
  readonly counts: readonly number[];
  /** The sum over all spans. */
  readonly total: number;
}

/** How many messages of several queues fall due in each of some time spans. */
export class Outlook {
  readonly #queues: QueueOutlook[] = [];
  readonly #counts: number[];

  /** @param spans the number of spans. */
  constructor(spans: number) {
    this.#counts = Array.from({ length: spans }, () => 0);
  }

  add(queue: string, overdue: number, counts: readonly number[]): void {
    this.#queues.push({ queue, overdue, counts, total: sum(counts) });
    for (const [i, one] of counts.entries()) this.#counts[i] = (this.#counts[i] ?? 0) + one;
  }

  /** The counts of all queues in each span. */
  get counts(): readonly number[] {
    return this.#counts;
  }

  /** The counts of all queues in all spans. */
  get total(): number {
    return sum(this.#counts);
  }

  get overdue(): number {
    return sum(this.#queues.map(({ overdue }) => overdue));
  }

  /** The queues in which something is overdue or falls due, largest count first. */
  get queues(): QueueOutlook[] {
    return this.#queues
      .filter(({ overdue, total }) => overdue + total > 0)
      .toSorted((a, b) => b.overdue + b.total - (a.overdue + a.total));
  }

  /** The queues with the largest counts, and the sum of the others: `orders 5, mails 2, calls 2, 3 more 4`. */
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

/** How many queues to name for each span. */
const TOP = 3;
