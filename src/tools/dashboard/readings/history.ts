import type { Row } from "./row.ts";

/** The numbers of a queue at an instant. */
export interface Point {
  readonly at: number;
  readonly delayed: number;
  readonly overdue: number;
  readonly overdueBy: number;
  readonly ready: number;
  readonly inFlight: number;
  readonly dead: number;
  readonly oldestReadyAge: number | undefined;
  /** Messages that became ready, per second since the point before. */
  readonly readied: number | undefined;
  /** Messages that left the stream, per second since the point before. */
  readonly finished: number | undefined;
}

/** The shortest time between two points (ms). */
const STEP = 10_000;

/** How many points are kept: an hour's. */
const MAX_POINTS = 360;

/** Points further apart than this (ms) get no rate, because nobody read the numbers in between. */
const MAX_GAP = 3 * STEP;

const FIELDS = [
  "at",
  "delayed",
  "overdue",
  "overdueBy",
  "ready",
  "inFlight",
  "dead",
  "oldestReadyAge",
  "readied",
  "finished",
] as const satisfies readonly (keyof Point)[];

/** The last hour of one queue, with a point every ten seconds while a page is open. Takes 29 kB. */
export class History {
  /** A ring of points. NaN stands for undefined. */
  readonly #ring = new Float64Array(MAX_POINTS * FIELDS.length);
  #count = 0;
  #last: { readonly at: number; readonly row: Row } | undefined;

  /** The time of the last point (epoch ms). */
  get lastAt(): number | undefined {
    return this.#last?.at;
  }

  /** Adds a point, unless the last one is less than ten seconds old or the numbers could not be read. */
  add(at: number, row: Row): void {
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
    const point = { ...row, at, readied: rate("readied"), finished: rate("finished") };
    const values = FIELDS.map((field) => point[field] ?? NaN);
    this.#ring.set(values, (this.#count % MAX_POINTS) * FIELDS.length);
    this.#count++;
    this.#last = { at, row };
  }

  /** The points, oldest first. */
  points(): Point[] {
    const first = Math.max(0, this.#count - MAX_POINTS);
    return Array.from({ length: this.#count - first }, (_, i) => {
      const start = ((first + i) % MAX_POINTS) * FIELDS.length;
      const entries = FIELDS.map((field, j) => {
        const value = this.#ring[start + j] as number;
        return [field, Number.isNaN(value) ? undefined : value];
      });
      return Object.fromEntries(entries) as Point;
    });
  }
}
