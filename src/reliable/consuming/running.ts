import type { Delivered } from "./deliverer.ts";
import type { Held } from "../group/held.ts";

/** What the handlers of one subscription have in hand, or are about to. When it begins to close, their signals abort. */
export class Running {
  readonly #batches = new Set<readonly Delivered<unknown>[]>();
  #closing: AbortSignal | undefined;

  /** `closing` is the subscription's, and the same each time: one listener serves all. */
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
