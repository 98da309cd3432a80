import { RedisError } from "../../errors.ts";
import { beat } from "../../lua/reliable/beat.ts";
import { run } from "../../lua/script.ts";
import type { Queue } from "../../queue/queue.ts";
import type { Connections } from "../../redis/connections.ts";
import type { Troubles, Work } from "../../redis/troubles.ts";
import { DeadlineTimer } from "../../time/deadline-timer.ts";
import type { Held } from "./held.ts";
import type { InHand } from "./in-hand.ts";
import type { Membership } from "./settlements.ts";

/**
 * Keeps the leases of one consumer, and finds out which it has lost.
 *
 * A lease is the consumer's, not the entry's: a beat every third of the visibility timeout, and every 20 s at least,
 * tells Redis that the consumer lives, and with it all that it has in hand. The reply tells which entries are in
 * flight for it:
 *
 * - what it has in hand, and is not among them, has lost its lease: somebody took this process for dead;
 * - what is among them, and not in hand, is a stranger: a reply was lost that brought it. The reply may
 *   also be under way, so it has to be one in two beats in a row, and no read may be under way that was sent before
 *   the first of them. It goes back.
 *
 * If no beat has succeeded for a whole visibility timeout, others may have taken over what is in hand. Nobody can
 * tell, so the signals of the deliveries are aborted.
 *
 * A delivery that was taken by hand has a lease of its own besides: where nobody settles or extends it in time, it
 * goes back though the process lives.
 */
export class LeaseKeeper {
  readonly #queue: Queue;
  readonly #member: Membership;
  readonly #inHand: InHand;
  readonly #visibilityTimeout: number;
  readonly #connections: Connections;
  readonly #work: Work;
  readonly #onStranger: (entryId: string) => Promise<void>;
  readonly #onOverdue: (held: Held) => void;
  readonly #timers = new Map<Held, DeadlineTimer>();
  /** When the read that is under way was sent (`performance.now()`); Infinity if there is none. */
  readonly #readingSince: () => number;
  /** Entries that are in flight for this consumer, and not in hand: when each was first seen. */
  #unknown: ReadonlyMap<string, number> = new Map();
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> | undefined;
  /** When the last beat was sent that succeeded, by `performance.now()`. */
  #freshAt = -Infinity;
  #isClosed = false;

  constructor(
    queue: Queue,
    member: Membership,
    inHand: InHand,
    host: {
      readonly visibilityTimeout: number;
      readonly connections: Connections;
      readonly troubles: Troubles;
      readonly readingSince: () => number;
      /** Gives back an entry that nobody here has in hand. Never rejects. */
      readonly onStranger: (entryId: string) => Promise<void>;
      /** The lease of a delivery that was taken by hand is over. */
      readonly onOverdue: (held: Held) => void;
    },
  ) {
    this.#queue = queue;
    this.#member = member;
    this.#inHand = inHand;
    this.#visibilityTimeout = host.visibilityTimeout;
    this.#connections = host.connections;
    this.#work = host.troubles.work();
    this.#readingSince = host.readingSince;
    this.#onStranger = host.onStranger;
    this.#onOverdue = host.onOverdue;
  }

  /** Beats from now on. */
  start(): void {
    if (this.#timer !== undefined || this.#isClosed) return;
    this.#freshAt = performance.now();
    const interval = Math.min(this.#visibilityTimeout / BEATS, LONGEST);
    this.#timer = setInterval(() => this.#onTurn(), interval);
  }

  /** When the leases of what is in hand are over unless this process beats again (`performance.now()`). */
  get leasesEndAt(): number {
    return this.#freshAt + this.#visibilityTimeout;
  }

  /** Ends the lease of a delivery that was taken by hand in `duration` milliseconds. */
  limit(held: Held, duration: number): void {
    this.forget(held);
    held.leaseEndsAt = performance.now() + duration;
    const timer = new DeadlineTimer(() => {
      this.#timers.delete(held);
      this.#onOverdue(held);
    });
    timer.reset(held.leaseEndsAt);
    this.#timers.set(held, timer);
  }

  /** A delivery has left. */
  forget(held: Held): void {
    this.#timers.get(held)?.clear();
    this.#timers.delete(held);
  }

  /** Looks for strangers while no read is under way. Rejects if Redis does not reply. */
  async checkStrangers(): Promise<void> {
    const before = new Set(this.#inHand.all().map(({ entry }) => entry.entryId));
    const ours = await this.#askAll();
    const strangers = [...ours].filter((id) => !before.has(id) && !this.#inHand.has(id));
    await Promise.all(strangers.map((id) => this.#onStranger(id)));
  }

  /** Beats no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const timer of this.#timers.values()) timer.clear();
    this.#timers.clear();
    await this.#beating;
    this.#work.ended();
  }

  #onTurn(): void {
    if (performance.now() > this.leasesEndAt) {
      const reason = new Error(
        "the lease of the delivery may be lost: Redis was not reached in time",
      );
      for (const held of this.#inHand.all()) held.abort(reason);
    }
    this.#beating ??= this.#beat().finally(() => (this.#beating = undefined));
  }

  async #beat(): Promise<void> {
    try {
      // What is being settled may be gone, and what is read meanwhile may be missing.
      const before = this.#inHand.all().filter(({ isSettling }) => !isSettling);
      const sentAt = performance.now();
      const ours = await this.#askAll();
      this.#freshAt = sentAt;
      this.#work.succeeded();
      for (const held of before) {
        if (!ours.has(held.entry.entryId) && !held.isSettling) held.lose();
      }
      await this.#notice([...ours].filter((id) => !this.#inHand.has(id)));
    } catch (error) {
      if (this.#isClosed) return;
      const doing = `cannot keep the leases of queue "${this.#queue.name}"`;
      this.#work.failed(new RedisError(doing, error));
    }
  }

  /** Gives back those that were unknown before, and that no read brings any more which is under way. */
  async #notice(unknown: readonly string[]): Promise<void> {
    const readingSince = this.#readingSince();
    const isStranger = (id: string) => (this.#unknown.get(id) ?? Infinity) < readingSince;
    const strangers = unknown.filter(isStranger);
    const now = performance.now();
    this.#unknown = new Map(unknown.map((id) => [id, this.#unknown.get(id) ?? now]));
    await Promise.all(strangers.map((id) => this.#onStranger(id)));
  }

  /** Beats; returns the ids of all entries that are in flight for this consumer. */
  async #askAll(): Promise<Set<string>> {
    const ours = new Set<string>();
    const { background } = this.#connections;
    let after = "";
    for (;;) {
      const args = { ...this.#member, after, limit: PAGE };
      const ids = await run(background, beat, this.#queue.keys, args);
      for (const id of ids) ours.add(id);
      if (ids.length < PAGE) return ours;
      after = ids.at(-1) as string;
    }
  }
}

/** Beats in a visibility timeout. */
const BEATS = 3;

/** Milliseconds between two beats at most: strangers should not wait for long where leases are long. */
const LONGEST = 20_000;

/** Entries that one beat lists: some 300 microseconds of Redis's time. */
const PAGE = 500;
