import type { Entry } from "../lua/fragments/entry.ts";
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
    const held = new Held(entry, (left) => {
      this.#held.delete(entry.entryId);
      this.#onLeft(left);
    });
    this.#held.set(entry.entryId, held);
    return held;
  }

  has(entryId: string): boolean {
    return this.#held.has(entryId);
  }

  /** Those in hand now. */
  all(): Held[] {
    return [...this.#held.values()];
  }
}
