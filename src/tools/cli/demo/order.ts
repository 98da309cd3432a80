import { formatDuration } from "../../view/words.js";

/** An order of the demo. Its business key is `order:<number>`. */
export interface Order {
  readonly number: number;
  readonly amount: number;
}

export function keyOf(number: number): string {
  return `order:${number}`;
}

/** What a worker of the demo tells the process that started it. */
export type Report =
  | { readonly what: "ready" }
  | {
      readonly what: "taken";
      readonly order: number;
      readonly attempt: number;
      /** When the handler had it, on the Redis server's clock (epoch ms). */
      readonly at: number;
      /** Since when the worker had no other order, on the same clock. */
      readonly freeSince: number;
    }
  | { readonly what: "handled"; readonly order: number };

/**
 * An order that a worker took, in words. Its lateness is from the deadline until a free worker has it; one that had to wait
 * for a worker has none.
 */
export function takenInWords(
  worker: string,
  { order, at, freeSince }: Extract<Report, { what: "taken" }>,
  deadline: number,
): string {
  if (freeSince > deadline)
    return `${keyOf(order)} was due before: ${worker} has it as soon as it is free`;
  return `${keyOf(order)} is due: ${worker} has it ${formatDuration(at - deadline)} later`;
}

/** How long a worker works on an order, in milliseconds: long enough to be killed in the middle. */
export const WORK = 1200;

/** How long a dead worker's orders stay with it, in milliseconds. */
export const LEASE_TIMEOUT = 3000;
