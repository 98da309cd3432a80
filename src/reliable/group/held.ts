import type { Entry } from "../../lua/fragments/stream/entry.ts";

/**
 * A delivery that this process has in hand, as bytes: from the moment it was read until Redis has said what
 * became of it.
 *
 * It is in hand as long as the entry is in flight for this process's consumer. It leaves when it was *settled*
 * by us, or when it turns out to be *lost*: the lease has passed to another consumer. A settlement whose
 * reply was lost leaves it in hand: it may be tried again.
 */
export class Held {
  readonly entry: Entry;
  /** 1 on the first delivery. */
  readonly attempt: number;
  /**
   * When its lease is over unless it is extended (`performance.now()`); Infinity while a handler runs, whose lease
   * lasts as long as the process beats.
   */
  leaseEndsAt = Infinity;
  /** The fence of the lease on its partition, if that is consumed exclusively. */
  fence: number | undefined;
  /** When it was handed out (epoch ms on the server's clock, as far as that is known). */
  takenAt = NaN;
  /** When it is handed out at the earliest, if that is not as soon as its entry was added (as {@link takenAt}). */
  heldBackUntil: number | undefined;
  /** Whether the user's code has been given it. */
  isGiven = false;
  readonly #onLeft: (held: Held) => void;
  #state: "in hand" | "settled" | "lost" = "in hand";
  #settling: Promise<boolean> | undefined;
  #aborting: AbortController | undefined;
  #abortReason: { readonly reason: unknown } | undefined;

  /** `onLeft` is called when it leaves. */
  constructor(entry: Entry, onLeft: (held: Held) => void) {
    this.entry = entry;
    this.attempt = entry.attempts + 1;
    this.#onLeft = onLeft;
  }

  /**
   * Whether it has to be the only one that this process has in hand: its consumers have died twice, and
   * whatever shares a process with it may go down with it.
   */
  get isSuspect(): boolean {
    return this.entry.isOrphan && this.entry.attempts >= SUSPECT_AFTER;
  }

  /** When the message became ready, for this attempt (epoch ms on the server's clock). */
  get readyAt(): number {
    // The id of an entry begins with the instant at which it was added.
    return this.heldBackUntil ?? Number.parseInt(this.entry.entryId, 10);
  }

  get isInHand(): boolean {
    return this.#state === "in hand";
  }

  /** Aborted when the lease is lost, or by {@link abort}. Made when it is asked for. */
  get signal(): AbortSignal {
    this.#aborting ??= new AbortController();
    if (this.#abortReason !== undefined) this.#aborting.abort(this.#abortReason.reason);
    return this.#aborting.signal;
  }

  abort(reason: unknown): void {
    this.#abortReason ??= { reason };
    this.#aborting?.abort(reason);
  }

  /**
   * Settles it: `send` resolves to whether it was still ours. Returns false without sending if it has left.
   * Of two at once the second waits for the first.
   */
  async settle(send: () => Promise<boolean>): Promise<boolean> {
    while (this.#settling !== undefined) await this.#settling.catch(() => {});
    if (!this.isInHand) return false;
    this.#settling = send();
    try {
      const isSettled = await this.#settling;
      this.#leave(isSettled ? "settled" : "lost");
      return isSettled;
    } finally {
      this.#settling = undefined;
    }
  }

  /** Renews the lease: `send` resolves to whether it is still ours. */
  async extend(send: () => Promise<boolean>): Promise<boolean> {
    if (!this.isInHand) return false;
    const isOurs = await send();
    if (!isOurs) this.lose();
    return isOurs;
  }

  /** Another consumer has it, or it is gone. */
  lose(): void {
    this.#leave("lost");
  }

  /** Whether a settlement is under way. */
  get isSettling(): boolean {
    return this.#settling !== undefined;
  }

  #leave(state: "settled" | "lost"): void {
    if (!this.isInHand) return;
    this.#state = state;
    if (state === "lost") this.abort(new Error("the lease of the delivery was lost"));
    this.#onLeft(this);
  }
}

/** Deliveries after which a message whose consumer died again is handed out alone. */
const SUSPECT_AFTER = 2;
