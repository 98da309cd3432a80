import type { Entry } from "../../lua/fragments/entry.ts";
import { Held, type Origin } from "./held.ts";

/** Every delivery that this process holds for one consumer, by the id of its entry. */
export class HeldDeliveries {
  readonly #held = new Map<string, Held>();
  readonly #group: Origin;
  readonly #onLeft: (held: Held) => void;

  /** `onLeft` is called with each delivery that is settled or lost, after it was removed. */
  constructor(group: Origin, onLeft: (held: Held) => void) {
    this.#group = group;
    this.#onLeft = onLeft;
  }

  get size(): number {
    return this.#held.size;
  }

  add(entry: Entry): Held {
    const held = new Held(entry, this.#group, this.#remove);
    this.#held.set(entry.entryId, held);
    return held;
  }

  has(entryId: string): boolean {
    return this.#held.has(entryId);
  }

  // One function for all deliveries, rather than a closure for each.
  readonly #remove = (left: Held): void => {
    this.#held.delete(left.entry.entryId);
    this.#onLeft(left);
  };

  /** A copy: deliveries may leave while the caller iterates. */
  all(): Held[] {
    return [...this.#held.values()];
  }
}
