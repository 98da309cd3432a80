import { History, type Point } from "./history.ts";
import type { Row } from "./row.ts";

/** The most queues to keep a history of. All of them take 29 MB. */
const MAX_QUEUES = 1000;

/** How long the history of a queue is kept after its last point (ms). */
const KEPT_FOR = 3_600_000;

/** The histories of all queues, as far as this dashboard has read their numbers. */
export class Histories {
  readonly #byName = new Map<string, History>();

  /** Adds the numbers of a queue. Ignores further queues beyond the first thousand. */
  add(name: string, at: number, row: Row): void {
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

  /** Drops the histories that got no point in the hour before `now` (epoch ms). */
  sweep(now: number): void {
    for (const [name, { lastAt = 0 }] of this.#byName) {
      if (now - lastAt > KEPT_FOR) this.#byName.delete(name);
    }
  }
}
