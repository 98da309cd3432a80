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

/** How far apart points are, at least (ms), and how many are kept: an hour. */
const STEP = 10_000;
const POINTS = 360;

/** Beyond this (ms) nobody has looked between two points, and there is no rate to tell. */
const GAP = 3 * STEP;

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

/** The last hour of one queue: a point every ten seconds, while somebody looks. 29 kB. */
export class History {
  /** A ring of points; NaN: not known. */
  readonly #ring = new Float64Array(POINTS * FIELDS.length);
  #count = 0;
  #last: { readonly at: number; readonly row: Row } | undefined;

  /** When the last point was noted (epoch ms). */
  get lastAt(): number | undefined {
    return this.#last?.at;
  }

  /** Notes the numbers, unless the last are too young. */
  add(at: number, row: Row): void {
    if (row.error !== undefined) return;
    const last = this.#last;
    if (last !== undefined && at - last.at < STEP) return;
    const elapsed = last === undefined ? Infinity : at - last.at;
    const rate = (field: "readied" | "finished") => {
      const [before, now] = [last?.row[field], row[field]];
      // It gets smaller where a stream was dropped and made anew.
      if (before === undefined || now === undefined || elapsed > GAP || now < before)
        return undefined;
      return ((now - before) * 1000) / elapsed;
    };
    const point = { ...row, at, readied: rate("readied"), finished: rate("finished") };
    const values = FIELDS.map((field) => point[field] ?? NaN);
    this.#ring.set(values, (this.#count % POINTS) * FIELDS.length);
    this.#count++;
    this.#last = { at, row };
  }

  /** The points, oldest first. */
  points(): Point[] {
    const first = Math.max(0, this.#count - POINTS);
    return Array.from({ length: this.#count - first }, (_, i) => {
      const start = ((first + i) % POINTS) * FIELDS.length;
      const entries = FIELDS.map((field, j) => {
        const value = this.#ring[start + j] as number;
        return [field, Number.isNaN(value) ? undefined : value];
      });
      return Object.fromEntries(entries) as Point;
    });
  }
}
