import type { Held } from "./held.ts";
import type { InHand } from "./in-hand.ts";

/**
 * The messages whose consumers have died twice: each has to be the only one that its process has in hand, since
 * whatever shares the process may go down with it, and then counts as delivered.
 *
 * One waits at most, until nothing else is in hand. Of several that were read together the others go back at once,
 * and the next read is for a single one.
 */
export class Suspects {
  readonly #inHand: InHand;
  #waiting: Held | undefined;
  /** The one that was handed out last. */
  #alone: Held | undefined;
  #isWary = false;

  constructor(inHand: InHand) {
    this.#inHand = inHand;
  }

  /** Whether nothing may be read or handed out now. */
  get mustRest(): boolean {
    if (this.#alone?.isInHand === true) return true;
    return this.#waiting !== undefined && this.#inHand.size > 1;
  }

  /** How many messages a read may bring. */
  get readable(): number {
    return this.#isWary ? 1 : Infinity;
  }

  /** Sifts what was read: `fresh` is to be handed out now, and `others` have to go back. */
  sift(read: readonly Held[]): { readonly fresh: Held[]; readonly others: Held[] } {
    const fresh = read.filter(({ isSuspect }) => !isSuspect);
    const others = read.filter(({ isSuspect }) => isSuspect);
    if (read.length > 0) this.#isWary = others.length > 0;
    this.#waiting ??= others.shift();
    return { fresh, others };
  }

  /** Takes out the one that waits, if it is still in hand. */
  takeOut(): Held | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting?.isInHand === true ? waiting : undefined;
  }

  /** The same, for one that is handed out now. */
  handOut(): Held | undefined {
    return (this.#alone = this.takeOut());
  }
}
