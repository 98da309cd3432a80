/** An event of an order: its number, and an instant on Redis's clock (epoch ms). */
export type OrderEvent = readonly [order: number, at: number];

/** Accounts for every order: when it was due, who took it and when. */
export class Ledger {
  readonly #deadlines = new Map<number, number>();
  /** For each order, every instant at which it was taken. There should be one. */
  readonly #takenAt = new Map<number, number[]>();
  /** How many orders each worker took. */
  readonly #shares = new Map<string, number>();

  /** Notes orders that were offered, and when they are due. */
  offer(offers: readonly OrderEvent[]): void {
    for (const [order, deadline] of offers) this.#deadlines.set(order, deadline);
  }

  /** Notes orders that a worker took, and when. */
  take(worker: string, takings: readonly OrderEvent[]): void {
    this.#shares.set(worker, (this.#shares.get(worker) ?? 0) + takings.length);
    for (const [order, at] of takings) {
      const instants = this.#takenAt.get(order);
      if (instants === undefined) this.#takenAt.set(order, [at]);
      else instants.push(at);
    }
  }

  /** How many different orders have been taken. */
  get takenCount(): number {
    return this.#takenAt.size;
  }

  get progress(): string {
    return `offered ${count(this.#deadlines.size).padStart(6)}   taken ${count(this.takenCount).padStart(6)}`;
  }

  /** Judges the promises once nobody offers or takes any more. `left` messages are still in Redis. */
  verdict(expected: number, left: number): { readonly isKept: boolean; readonly text: string } {
    const latenesses = this.#latenesses();
    const lost = expected - this.takenCount;
    const again = sum(this.#takenAt.values(), (instants) => instants.length - 1);
    const early = latenesses.filter((lateness) => lateness < 0).length;
    const nearest = `the first ${(latenesses[0] ?? NaN).toFixed(2)} ms after it`;
    const isOnce = lost === 0 && again === 0 && left === 0;
    const isNeverEarly = latenesses.length > 0 && early === 0;
    const shares = [...this.#shares].map(([worker, share]) => `${count(share)} by ${worker}`);
    return {
      isKept: isOnce && isNeverEarly,
      text: [
        `${count(this.#deadlines.size)} orders were offered and ${count(this.takenCount)} taken: ${shares.join(", ")}.`,
        "",
        `  each exactly once   ${mark(isOnce)}   ${lost} lost, ${again} taken again, ${left} left in Redis`,
        `  none early          ${mark(isNeverEarly)}   ${early} before the deadline by the clock of Redis; ${nearest}`,
        "",
        "Lateness, from the deadline until a worker has the order and has asked Redis for the time:",
        "",
        ...describe(latenesses),
      ].join("\n"),
    };
  }

  /** How late each order was when it was first taken, in milliseconds, ascending. */
  #latenesses(): number[] {
    const latenesses = [...this.#takenAt].flatMap(([order, instants]) => {
      const deadline = this.#deadlines.get(order);
      return deadline === undefined ? [] : [Math.min(...instants) - deadline];
    });
    return latenesses.toSorted((a, b) => a - b);
  }
}

/** Upper bounds of the histogram's rows, in milliseconds. */
const BOUNDS = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, Infinity];
const BAR = 40;

/** Percentiles and a histogram of ascending numbers of milliseconds. */
function describe(latenesses: readonly number[]): string[] {
  if (latenesses.length === 0) return ["  none was taken"];
  const at = (share: number) =>
    `${(latenesses[Math.ceil(share * latenesses.length) - 1] ?? NaN).toFixed(1)} ms`;
  const rows = BOUNDS.map((bound, i) => {
    const least = BOUNDS[i - 1] ?? -Infinity;
    const size = latenesses.filter((lateness) => lateness >= least && lateness < bound).length;
    const label = bound === 0 ? "early" : bound === Infinity ? `>= ${least} ms` : `< ${bound} ms`;
    return { label, size };
  });
  // From the first row that is not empty to the last.
  const first = rows.findIndex(({ size }) => size > 0);
  const last = rows.findLastIndex(({ size }) => size > 0);
  const most = Math.max(...rows.map(({ size }) => size));
  return [
    `  p50 ${at(0.5)}   p99 ${at(0.99)}   max ${at(1)}`,
    "",
    ...rows.slice(first, last + 1).map(({ label, size }) => {
      const bar = "#".repeat(Math.ceil((BAR * size) / most));
      return `  ${label.padStart(9)}  ${count(size).padStart(6)}  ${bar}`.trimEnd();
    }),
  ];
}

function sum<Item>(items: Iterable<Item>, size: (item: Item) => number): number {
  let total = 0;
  for (const item of items) total += size(item);
  return total;
}

function mark(isKept: boolean): string {
  return isKept ? "yes" : "NO ";
}

function count(value: number): string {
  return value.toLocaleString("en");
}
