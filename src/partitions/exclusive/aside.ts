import { sequenceIn } from "../../queue/message/message.ts";
import type { Held } from "../../reliable/group/held.ts";

/** What may be handed out, and when. */
export interface Next {
  /** The message to hand out now, if there is one. It is still aside. */
  readonly held: Held | undefined;
  /** Milliseconds until the next one may be handed out; Infinity if all sequences are empty. */
  readonly wait: number;
}

/**
 * The messages of a partition that are aside: in flight for this process, but not handed out. They are those that
 * failed, for the rest of their pauses; behind each of them, in its sequence, the later messages with its key; and what
 * predecessors have left.
 *
 * The room is bounded. While it is full nothing more should be read, so the whole partition waits.
 */
export class Aside {
  readonly #sequences = new Map<string, Held[]>();
  #size = 0;
  #bytes = 0;
  /** No first message of a sequence may be handed out before (epoch ms on the server's clock). */
  #earliest = Infinity;
  #postponed = new WeakMap<Held, number>();

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  get isFull(): boolean {
    return this.#size >= MAX_COUNT || this.#bytes >= MAX_BYTES;
  }

  /** Whether a message with the key of this one is aside, which has to be handled before. */
  hasBefore({ entry }: Held): boolean {
    return this.#sequences.has(sequenceIn(entry.address));
  }

  /** Puts a message behind the others with its key; one that was `kept` after it failed, before them. */
  put(held: Held, isKept = false): void {
    const key = sequenceIn(held.entry.address);
    const sequence = this.#sequences.get(key) ?? [];
    if (isKept) sequence.unshift(held);
    else sequence.push(held);
    this.#sequences.set(key, sequence);
    this.#count(held, 1);
    if (sequence[0] === held) this.#earliest = Math.min(this.#earliest, this.#heldBackUntil(held));
  }

  /** Holds a message back until this instant instead (epoch ms on the server's clock). */
  postpone(held: Held, until: number): void {
    this.#postponed.set(held, until);
  }

  /** To be called when a message that is aside was lost, or the server's clock was set: nothing waits as it did. */
  review(): void {
    this.#earliest = -Infinity;
    this.#postponed = new WeakMap();
  }

  /** Takes out a message that was the first of its sequence. */
  remove(held: Held): void {
    const key = sequenceIn(held.entry.address);
    const sequence = this.#sequences.get(key);
    if (sequence?.[0] !== held) return;
    sequence.shift();
    this.#count(held, -1);
    const [first] = sequence;
    if (first === undefined) this.#sequences.delete(key);
    else this.#earliest = Math.min(this.#earliest, this.#heldBackUntil(first));
  }

  /** The first message that may be handed out at `now` (epoch ms on the server's clock), estimated by this process. */
  next(now: number): Next {
    if (this.#earliest > now) return { held: undefined, wait: this.#earliest - now };
    let earliest = Infinity;
    for (const sequence of this.#sequences.values()) {
      const [first] = sequence as [Held, ...Held[]];
      const until = this.#heldBackUntil(first);
      // Found again by the next call: `#earliest` stays in the past.
      if (until <= now) return { held: first, wait: 0 };
      earliest = Math.min(earliest, until);
    }
    this.#earliest = earliest;
    return { held: undefined, wait: earliest - now };
  }

  /** Every message that is aside. */
  all(): Held[] {
    return [...this.#sequences.values()].flat();
  }

  #heldBackUntil(held: Held): number {
    if (!held.isHeld) return -Infinity;
    return this.#postponed.get(held) ?? held.entry.heldBackUntil ?? -Infinity;
  }

  #count({ entry }: Held, step: 1 | -1): void {
    this.#size += step;
    this.#bytes += step * (entry.payload.length + entry.trailer.length);
  }
}

/** The most messages that are aside. A few more may be left by predecessors. */
const MAX_COUNT = 500;

/** The most bytes of messages that are aside, before one more. */
const MAX_BYTES = 4 * 1024 * 1024;
