import type { RevokedError } from "../../errors.ts";
import { checkFollows } from "../../run/modes.ts";
import type { Entry } from "../../lua/places/stream.ts";
import type { NextStep } from "../../queue/landing.ts";
import type { OfferResult } from "../../queue/offering.ts";
import type { Call } from "../../queue/call.ts";
import { deadlineIn } from "../../queue/message/message.ts";
import { queueTime } from "../../time/runtime.ts";

/** The group that a delivery is from: it settles the delivery, and knows how long the lease lasts. */
export interface Origin {
  readonly settings: { readonly maxAttempts: number };
  /** See `Settlements`. */
  readonly settlements: {
    ack(held: Held, call?: Call): Promise<boolean>;
    ackAndOffer(held: Held, step: NextStep, call?: Call): Promise<OfferResult[] | false>;
    retry(held: Held, delay: number, failure?: string, call?: Call): Promise<boolean>;
    bury(held: Held, reason: string, call?: Call): Promise<boolean>;
    finish(held: Held): Promise<unknown>;
    extend(held: Held, call?: Call): Promise<boolean>;
    release(held: Held): Promise<void>;
    giveUp(held: Held, why: Error): Promise<void>;
    persist(held: Held, settle: () => Promise<boolean>): Promise<void>;
  };
  /** The estimated time of the group's Redis server (epoch ms). */
  now(): number;
  /** Whether the delivery may have gone to another process; see `LeaseKeeper`. */
  mayBeLost(held: Held): boolean;
  /** When the lease ends unless it is extended or this process beats again (epoch ms on the server's clock). */
  leaseEndOf(held: Held): number;
  /** Ends the lease in `duration` milliseconds, or a lease timeout, unless it is settled or limited anew before. */
  limit(held: Held, duration?: number): void;
  /** The user's code is done with a delivery that is no longer held; see `RevokedDeliveries`. */
  ended(held: Held): void;
}

/** A lease on a partition that is consumed exclusively. */
interface PartitionLease {
  readonly fence: number;
  /** Whether a handler may begin. */
  readonly isOurs: boolean;
}

/**
 * One delivery that this process holds, as bytes.
 *
 * *Held* is this process's view, *in flight* is Redis's. A delivery is held from the moment when its entry was read
 * until it is *settled* by this process, or *lost*: Redis has replied that it is not in flight for this consumer. It is
 * always in exactly one mode:
 *
 * - **open**: held, and not being settled. A settlement begins → *settling*.
 * - **settling**: a settlement is under way. Carried out → *settled*; not in flight → *lost*. Redis refused, or the reply
 *   was lost → *open*, so it can be tried again; or → *asked* if the user's code or the outcome of its handler decided it.
 * - **asked**: held, and a settlement was asked for that has failed so far. It goes before whatever else would settle the
 *   delivery later, but for another call of the user → *settling*.
 * - **settled**, **lost**: left. Nothing follows. It may be found to be lost in any mode above.
 *
 * What each verb does in each mode:
 *
 * | verb | open | settling | asked | settled, lost |
 * |---|---|---|---|---|
 * | `settle` | sends | waits for the end, then as there | sends | false |
 * | `beginSettling`, `endSettling` around a script for many | sends | false | false | false |
 * | `settleAsAsked` | as it is told | waits for the end, then as there | sends what was asked for | false |
 * | `Settlements.finish` | acknowledges in the script of the turn | as `settleAsAsked` | as `settleAsAsked` | nothing |
 * | `Settlements.persist` | as `settleAsAsked`, until it has left | the same | the same | nothing |
 *
 * Usually a held entry is in flight for this process's consumer, and the other way round. `LeaseKeeper` finds and
 * repairs the differences.
 */
export class Held {
  readonly entry: Entry;
  readonly group: Origin;
  /** 1 on the first delivery. */
  readonly attempt: number;
  /**
   * When the lease of this delivery ends unless it is extended (`queueTime.now()`). Infinity in a handler, where the
   * lease lasts as long as the process beats.
   */
  leaseEndsAt = Infinity;
  /** The lease on its partition, if the queue is consumed exclusively. */
  lease: PartitionLease | undefined;
  /** When it was handed out (epoch ms, estimated on the server's clock). */
  takenAt = NaN;
  /**
   * When the command was sent whose reply last showed that it is in flight for this consumer (`queueTime.now()`).
   * Never, until one has.
   */
  confirmedAt = -Infinity;
  /** Whether it was handed to the user's code. */
  isGiven = false;
  /** Whether it was taken by hand: then the user's code is done with it when it settles it. */
  isByHand = false;
  /** Whether the user's code is done with it. */
  isOver = false;
  /** Why its signal is aborted, if its message was revoked. */
  revokedBy: RevokedError | undefined;
  /** Whether `Settlements.handOut` was sent, after which a read of the entry changes nothing. */
  isHandedOut = false;
  /** The neighbours in {@link HeldDeliveries}. */
  previous: Held | undefined;
  next: Held | undefined;
  readonly #onLeft: (held: Held) => void;
  #mode: Mode = "open";
  /** Called when the settlement that is under way has ended. */
  #onSettlingEnd: (() => void)[] | undefined;
  /** Sends the settlement again that was asked for. */
  #asked: (() => Promise<boolean>) | undefined;
  #aborting: AbortController | undefined;
  #abortReason: { readonly reason: unknown } | undefined;

  /** `onLeft` is called once, when it is settled or lost. */
  constructor(entry: Entry, group: Origin, onLeft: (held: Held) => void) {
    this.entry = entry;
    this.group = group;
    this.attempt = entry.attempts + 1;
    this.#onLeft = onLeft;
  }

  /**
   * Whether it has to be looked at before it is handed out: it is lost, or Redis has to be asked. A lease on its partition
   * says more, and is asked instead.
   */
  get isInDoubt(): boolean {
    return !this.isHeld || (this.lease === undefined && this.group.mayBeLost(this));
  }

  /** Whether it may kill its process, and must be handed out alone; see `Suspects`. */
  get isSuspect(): boolean {
    return this.entry.isOrphan && this.entry.attempts >= SUSPECT_AFTER;
  }

  /** When the message was due for its first attempt (epoch ms on the server's clock). */
  get deadline(): number {
    return deadlineIn(this.entry.address);
  }

  /** When the message became ready for this attempt (epoch ms on the server's clock). */
  get readyAt(): number {
    // An entry's id begins with the instant at which it was added.
    return Math.max(Number.parseInt(this.entry.entryId, 10), this.entry.heldBackUntil ?? 0);
  }

  get isHeld(): boolean {
    return this.#mode !== "settled" && this.#mode !== "lost";
  }

  /** Aborted when the lease is lost, or by {@link abort}. Created on first use. */
  get signal(): AbortSignal {
    this.#aborting ??= new AbortController();
    if (this.#abortReason !== undefined) this.#aborting.abort(this.#abortReason.reason);
    return this.#aborting.signal;
  }

  abort(reason: unknown): void {
    this.#abortReason ??= { reason };
    this.#aborting?.abort(reason);
  }

  /** Whether this is the last of the group's `maxAttempts`: if it fails, the message dies. Scripts decide by `orBury`. */
  get isLast(): boolean {
    return this.attempt >= this.group.settings.maxAttempts;
  }

  /**
   * Settles the delivery by `send`, which resolves to whether the entry was in flight for this consumer. Returns false
   * without sending if it is no longer held. A second call waits for the first to end.
   *
   * If it rejects and `isAsked`, it stays asked for, unless its caller has aborted the call, or a TypeError says that it can
   * never be carried out.
   */
  async settle(
    send: (call?: Call) => Promise<boolean>,
    isAsked = false,
    call?: Call,
  ): Promise<boolean> {
    while (this.isSettling) await this.#settlingEnded();
    if (!this.isHeld) return false;
    this.#enter("settling");
    try {
      const isSettled = await send(call);
      this.endSettling(isSettled);
      return isSettled;
    } catch (error) {
      const isWithdrawn = call?.signal?.aborted === true || error instanceof TypeError;
      if (isAsked) this.#asked = isWithdrawn ? undefined : () => send();
      this.endSettling();
      throw error;
    }
  }

  /**
   * Begins a settlement, whose outcome {@link endSettling} tells: {@link settle} without a promise, for what every message
   * passes. Returns false, and begins nothing, if the delivery is not held, another settlement is under way, or one was
   * asked for.
   */
  beginSettling(): boolean {
    if (this.#mode !== "open") return false;
    this.#enter("settling");
    return true;
  }

  /**
   * The settlement that is under way has ended. `isSettled`: whether the entry was in flight for this consumer;
   * undefined if that is not known, and the delivery is still held.
   */
  endSettling(isSettled?: boolean): void {
    if (isSettled !== undefined) this.#leave(isSettled ? "settled" : "lost");
    else if (this.isSettling) this.#enter(this.#asked === undefined ? "open" : "asked");
    const callers = this.#onSettlingEnd;
    this.#onSettlingEnd = undefined;
    callers?.forEach((goOn) => goOn());
  }

  async #settlingEnded(): Promise<void> {
    await new Promise<void>((resolve) => (this.#onSettlingEnd ??= []).push(resolve));
  }

  /** Tries the settlement again that was asked for; if none was, calls `settle`. */
  settleAsAsked(settle: () => Promise<boolean>): Promise<boolean> {
    // Not async, like all functions that every message passes.
    if (this.#mode === "open") return settle();
    return this.#settleAsAsked(settle);
  }

  async #settleAsAsked(settle: () => Promise<boolean>): Promise<boolean> {
    while (this.isSettling) await this.#settlingEnded();
    return await (this.#asked === undefined ? settle() : this.settle(this.#asked, true));
  }

  /** Whether a settlement was asked for that has failed so far. */
  get isAsked(): boolean {
    return this.#asked !== undefined;
  }

  /** Renews the lease by `send`, which resolves to whether the entry is in flight for this consumer. */
  async extend(send: () => Promise<boolean>): Promise<boolean> {
    if (!this.isHeld) return false;
    const sentAt = queueTime.now();
    const isOurs = await send();
    if (isOurs) this.confirmedAt = sentAt;
    else this.lose();
    return isOurs;
  }

  /** The entry is no longer in flight for this consumer, or must be left to its successor. */
  lose(): void {
    this.#leave("lost");
  }

  /** The message was revoked, so the entry is nowhere any more. */
  revoke(error: RevokedError): void {
    this.revokedBy ??= error;
    this.#leave("lost", error);
  }

  get isRevoked(): boolean {
    return this.revokedBy !== undefined;
  }

  /** Whether Redis has replied that it is not in flight for this consumer. */
  get isLost(): boolean {
    return this.#mode === "lost";
  }

  /** The user's code is done with it, and has nothing left to settle. */
  doneWith(): void {
    this.isOver = true;
    if (!this.isHeld) this.group.ended(this);
  }

  /** Whether a settlement is under way. */
  get isSettling(): boolean {
    return this.#mode === "settling";
  }

  /** Sets the mode. Nothing else does. */
  #enter(mode: Mode): void {
    checkFollows<Mode>(NEXT, this.#mode, mode);
    this.#mode = mode;
  }

  #leave(mode: "settled" | "lost", why?: Error): void {
    if (!this.isHeld) return;
    this.#enter(mode);
    if (mode === "lost") this.abort(why ?? new Error("the lease of the delivery was lost"));
    this.#onLeft(this);
  }
}

/** The modes of a {@link Held} delivery, each with the modes that may follow it. */
const NEXT = {
  open: ["settling", "lost"],
  settling: ["open", "asked", "settled", "lost"],
  asked: ["settling", "lost"],
  settled: [],
  lost: [],
} as const;

type Mode = keyof typeof NEXT;

/**
 * Every delivery that this process holds for one consumer, in the order in which they came.
 *
 * They are linked. A Map that is filled and emptied all the time makes one table after another, and what the old tables
 * refer to lives until a full garbage collection: that took a worker a third of its time.
 */
export class HeldDeliveries {
  readonly #group: Origin;
  readonly #onLeft: (held: Held) => void;
  #first: Held | undefined;
  #last: Held | undefined;
  #size = 0;
  #onEmpty = () => {};

  /** `onLeft` is called with each delivery that is settled or lost, after it was removed. */
  constructor(group: Origin, onLeft: (held: Held) => void) {
    this.#group = group;
    this.#onLeft = onLeft;
  }

  get size(): number {
    return this.#size;
  }

  /** Holds an entry that is in flight for the consumer, as the reply to a command shows that was sent at `sentAt`. */
  add(entry: Entry, sentAt = -Infinity): Held {
    const held = new Held(entry, this.#group, this.#remove);
    held.confirmedAt = sentAt;
    held.previous = this.#last;
    if (this.#last === undefined) this.#first = held;
    else this.#last.next = held;
    this.#last = held;
    this.#size++;
    return held;
  }

  /** Looks through all. */
  get(entryId: string): Held | undefined {
    let held = this.#first;
    while (held !== undefined && held.entry.entryId !== entryId) held = held.next;
    return held;
  }

  /** Returns those of these ids whose entries are not held. */
  unheldOf(entryIds: Iterable<string>): string[] {
    const held = new Set(this.all().map(({ entry }) => entry.entryId));
    return [...entryIds].filter((id) => !held.has(id));
  }

  // One function for all deliveries, rather than a closure for each.
  readonly #remove = (left: Held): void => {
    const { previous, next } = left;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    // An old delivery keeps no young one from being collected.
    left.previous = undefined;
    left.next = undefined;
    this.#size--;
    this.#onLeft(left);
    if (this.#size === 0) this.#onEmpty();
  };

  /** Resolves when nothing is held, or `signal` is aborted. Called once at most. */
  async emptied(signal: AbortSignal): Promise<void> {
    if (this.#size === 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  /** A copy: deliveries may leave while the caller iterates. */
  all(): Held[] {
    const all: Held[] = [];
    for (let held = this.#first; held !== undefined; held = held.next) all.push(held);
    return all;
  }
}

/** Deliveries after which an orphan is handed out alone. */
const SUSPECT_AFTER = 2;
