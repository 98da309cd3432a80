import type { Delivered } from "./delivery.ts";
import type { Held } from "../group/held.ts";

/**
 * The deliveries that handlers of one subscription have, or are about to get. When it closes, it aborts their
 * signals.
 */
export class Running {
  readonly #batches = new Set<readonly Delivered<unknown>[]>();
  #closing: AbortSignal | undefined;

  /** `closing` must be the same signal each time: one listener serves all deliveries. */
  add(batch: readonly Delivered<unknown>[], closing: AbortSignal): void {
    this.#batches.add(batch);
    if (this.#closing !== undefined) return;
    this.#closing = closing;
    closing.addEventListener("abort", () => {
      for (const held of this.all()) held.abort(closing.reason);
    });
  }

  delete(batch: readonly Delivered<unknown>[]): void {
    this.#batches.delete(batch);
  }

  all(): Held[] {
    return [...this.#batches].flat().map(({ held }) => held);
  }
}
