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
    }
  | { readonly what: "handled"; readonly order: number };

/** How long a worker works on an order, in milliseconds: long enough to be killed meanwhile. */
export const WORK = 1200;

/** How long a dead worker's orders stay with it, in milliseconds. */
export const LEASE_TIMEOUT = 3000;
