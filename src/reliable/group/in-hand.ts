import type { Entry } from "../../lua/fragments/stream/entry.ts";
import { Held } from "./held.ts";

/** What one consumer has in hand: the deliveries of which this process knows. */
export class InHand {
  readonly #held = new Map<string, Held>();
  readonly #onLeft: (held: Held) => void;

  /** `onLeft` is called when one has left. */
  constructor(onLeft: (held: Held) => void) {
    this.#onLeft = onLeft;
  }

  get size(): number {
    return this.#held.size;
  }

  add(entry: Entry): Held {
    const held = new Held(entry, this.#remove);
    this.#held.set(entry.entryId, held);
    return held;
  }

  has(entryId: string): boolean {
    return this.#held.has(entryId);
  }

  // One for all, not one for each.
  readonly #remove = (left: Held): void => {
    this.#held.delete(left.entry.entryId);
    this.#onLeft(left);
  };

  /** Those in hand now. */
  all(): Held[] {
    return [...this.#held.values()];
  }
}
