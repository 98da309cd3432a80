import type { Held, HeldDeliveries } from "./held.ts";

/**
 * Hands out suspects alone. A suspect is an orphan (its consumer has died) that was delivered at least twice.
 *
 * A message that kills its process costs every other message that the process holds an attempt, too. While a suspect is
 * handed out, its process holds nothing else and reads nothing. So only the message that really kills runs out of
 * deliveries.
 *
 * One suspect at most rests here until nothing else is held. If a read returns several, the others are returned to the
 * group, and the next reads ask for a single message until one returns no suspect.
 *
 * The only consumer of a partition hands out one message at a time in any case, and must not rest: others are aside.
 */
export class Suspects {
  readonly #held: HeldDeliveries;
  #next: Held | undefined;
  /** The suspect that was handed out last. */
  #alone: Held | undefined;
  /** Whether the last read that returned messages returned a suspect. */
  #isWary = false;

  readonly #isOnly: boolean;

  constructor(held: HeldDeliveries, isOnly = false) {
    this.#isOnly = isOnly;
    this.#held = held;
  }

  /** Whether nothing may be read or handed out now. */
  get mustRest(): boolean {
    if (this.#alone?.isHeld === true) return true;
    return this.#next !== undefined && this.#held.size > 1;
  }

  /** How many messages a read may ask for. */
  get readLimit(): number {
    return this.#isWary ? 1 : Infinity;
  }

  /** Sifts what was read into `fresh`, to be handed out now, and `surplus`, to be returned to the group. */
  sift(read: readonly Held[]): { readonly fresh: readonly Held[]; readonly surplus: Held[] } {
    if (this.#isOnly) return { fresh: read, surplus: [] };
    const fresh = read.filter(({ isSuspect }) => !isSuspect);
    const surplus = read.filter(({ isSuspect }) => isSuspect);
    if (read.length > 0) this.#isWary = surplus.length > 0;
    this.#next ??= surplus.shift();
    return { fresh, surplus };
  }

  /** Removes and returns the suspect that rests here, if it is still held. */
  dropDelayed(): Held | undefined {
    const next = this.#next;
    this.#next = undefined;
    return next?.isHeld === true ? next : undefined;
  }

  /** Removes and returns the suspect that rests here, which is then the one that is handed out. */
  handOut(): Held | undefined {
    return (this.#alone = this.dropDelayed());
  }
}
