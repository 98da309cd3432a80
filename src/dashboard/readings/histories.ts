import { History, type Point } from "./history.ts";
import type { Row } from "./row.ts";

/** How many queues are remembered: 29 MB. */
const MOST = 1000;

/** For how long a queue is remembered that is not seen any more (ms). */
const KEPT = 3_600_000;

/** The last hour of each queue, as far as somebody has looked. */
export class Histories {
  readonly #byName = new Map<string, History>();

  add(name: string, at: number, row: Row): void {
    let history = this.#byName.get(name);
    if (history === undefined) {
      if (this.#byName.size >= MOST) return;
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

  /** Forgets the queues that were not seen for an hour. */
  sweep(now: number): void {
    for (const [name, { lastAt = 0 }] of this.#byName) {
      if (now - lastAt > KEPT) this.#byName.delete(name);
    }
  }
}
