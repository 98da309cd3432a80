import { beat } from "../../lua/reliable/consumers.ts";
import type { Queue } from "../../queue/queue.ts";
import { Task } from "../../run/task.ts";
import { DeadlineTimer } from "../../time/deadline-timer.ts";
import { Pause } from "../../time/pause.ts";
import type { Membership } from "./consumer-name.ts";
import type { Held, HeldDeliveries } from "./held.ts";
import { queueTime } from "../../time/runtime.ts";

/**
 * Keeps the leases of one consumer, and finds the deliveries that it has lost.
 *
 * A lease belongs to the consumer, not to an entry. Every third of the lease timeout, and at least every 20 s,
 * the keeper sends a beat. It shows Redis that the consumer lives, which renews the lease of everything in flight for
 * it. The reply lists these entries, and the keeper compares them with the held deliveries:
 *
 * - A delivery that is held but not in flight is **lost**: another process took this consumer for dead, or the message was
 *   revoked. Its signal is aborted.
 * - An entry that is in flight but not held is a **stranger**: a reply that contained it was lost. It is given back.
 *   Since the reply may still be on its way, an entry counts as a stranger only if an earlier beat has listed it, and
 *   no read that was sent before that beat is still under way.
 *
 * If no beat succeeds for a whole lease timeout, other processes may have reclaimed everything: Redis was out of reach,
 * or this process stood still. The signals of all deliveries that were handed out are aborted. Those that were not are
 * in doubt, and Redis is asked about each before it is handed out. So are those that a beat renews only after such a
 * gap, unless it has listed them: the reply of a read may have waited here while the process stood still.
 *
 * A delivery that was taken by hand also has a time limit of its own. It is given back if it was not settled or extended in time,
 * even though the process lives.
 */
export class LeaseKeeper {
  readonly #queue: Queue;
  readonly #member: Membership;
  readonly #held: HeldDeliveries;
  readonly #leaseTimeout: number;
  readonly #onStranger: (entryId: string) => Promise<void>;
  readonly #onOverdue: (held: Held) => void;
  readonly #lose: (missing: readonly Held[]) => Promise<void>;
  readonly #livesOn: () => boolean;
  readonly #timers = new Map<Held, DeadlineTimer>();
  /** When the read that is under way was sent (`queueTime.now()`); Infinity if none is. */
  readonly #readingSince: () => number;
  /** Entries in flight but not held at the last beat: when a beat first listed each (`queueTime.now()`). */
  #firstSeen: ReadonlyMap<string, number> = new Map();
  /** Milliseconds between two beats. */
  readonly #interval: number;
  readonly #beats: Task;
  readonly #ending = new DeadlineTimer(() => this.#onEnd());
  /** When the last successful beat was sent (`queueTime.now()`). */
  #freshAt = -Infinity;
  /** When the beat was sent since which no gap was as long as the lease (`queueTime.now()`). */
  #keptSince = -Infinity;

  constructor(
    queue: Queue,
    member: Membership,
    held: HeldDeliveries,
    host: {
      readonly leaseTimeout: number;
      readonly readingSince: () => number;
      /** Gives back a stranger. Never rejects. */
      readonly onStranger: (entryId: string) => Promise<void>;
      /** Called when the time limit of a delivery is over. */
      readonly onOverdue: (held: Held) => void;
      /** Loses deliveries that are not in flight any more. Never rejects. */
      readonly lose: (missing: readonly Held[]) => Promise<void>;
      /** Whether the consumer has to show that it lives, though nothing is in flight for it. */
      readonly livesOn: () => boolean;
    },
  ) {
    this.#queue = queue;
    this.#member = member;
    this.#held = held;
    this.#leaseTimeout = host.leaseTimeout;
    this.#readingSince = host.readingSince;
    this.#onStranger = host.onStranger;
    this.#onOverdue = host.onOverdue;
    this.#lose = host.lose;
    this.#livesOn = host.livesOn;
    this.#interval = Math.min(host.leaseTimeout / BEATS_PER_TIMEOUT, MAX_INTERVAL);
    this.#beats = new Task(
      () => this.#beat(),
      `cannot keep the leases of queue "${queue.name}"`,
      queue.server.troubles.work(),
      // The leases are lost soon if the next beats fail, too.
      new Pause(Math.min(this.#interval, RETRY), this.#interval),
      () => this.#isIdle,
    );
  }

  /** Starts to beat. */
  start(): void {
    if (this.#freshAt !== -Infinity || this.#beats.isStopped) return;
    this.#renewAll(queueTime.now());
    this.#beats.start(this.#queue.server.steps.until(this.#interval));
  }

  /** Whether there is no lease to keep. */
  get #isIdle(): boolean {
    return this.#held.size === 0;
  }

  /** When the consumer's leases end unless it beats again (`queueTime.now()`). */
  get leasesEndAt(): number {
    return this.#freshAt + this.#leaseTimeout;
  }

  /**
   * Whether other processes may have reclaimed a delivery, as far as this process's clock tells: there was a gap after
   * Redis has shown that it is in flight for this consumer, or there is one now.
   */
  mayBeLost(held: Held): boolean {
    return queueTime.now() >= this.#endOf(held);
  }

  /** When the lease of a delivery ends unless Redis hears of this consumer again (`queueTime.now()`). */
  #endOf({ confirmedAt }: Held): number {
    if (confirmedAt < this.#keptSince) return -Infinity;
    return Math.max(this.#freshAt, confirmedAt) + this.#leaseTimeout;
  }

  /** Ends the lease of one delivery in `duration` milliseconds, whatever limit it had before. */
  limit(held: Held, duration: number): void {
    this.forget(held);
    held.leaseEndsAt = queueTime.now() + duration;
    const timer = new DeadlineTimer(() => {
      this.#timers.delete(held);
      this.#onOverdue(held);
    });
    timer.reset(held.leaseEndsAt);
    this.#timers.set(held, timer);
  }

  /** Drops the time limit of a delivery. */
  forget(held: Held): void {
    this.#timers.get(held)?.clear();
    this.#timers.delete(held);
  }

  /** Looks now at what is in flight. */
  beatNow(): void {
    if (this.#freshAt !== -Infinity) this.#beats.wake();
  }

  /** Gives back strangers at once; no read may be under way. Rejects if Redis does not reply. */
  async checkStrangers(): Promise<void> {
    // A delivery that is settled while the beat is under way may still be in the reply.
    const before = new Set(this.#held.all().map(({ entry }) => entry.entryId));
    const ours = await this.#askAll();
    const strangers = this.#held.unheldOf(ours).filter((id) => !before.has(id));
    await Promise.all(strangers.map((id) => this.#onStranger(id)));
  }

  /** Stops beating; resolves when no beat is under way. */
  async close(): Promise<void> {
    for (const timer of this.#timers.values()) timer.clear();
    this.#timers.clear();
    this.#ending.clear();
    await this.#beats.close();
  }

  /** A beat that was sent at `at` (`queueTime.now()`) has renewed the leases of everything in flight. */
  #renewAll(at: number): void {
    this.#freshAt = at;
    if (!this.#beats.isStopped)
      this.#ending.reset(this.leasesEndAt, this.#isIdle ? this : undefined);
  }

  #onEnd(): void {
    const reason = new Error(
      "the lease of the delivery may be lost: Redis was not reached in time",
    );
    const now = queueTime.now();
    // What is handed out before a beat succeeds again is as unsafe.
    let next = now + this.#interval;
    for (const held of this.#held.all()) {
      if (!held.isGiven) continue;
      const endsAt = this.#endOf(held);
      if (endsAt <= now) held.abort(reason);
      else next = Math.min(next, endsAt);
    }
    this.#ending.reset(next, this.#isIdle ? this : undefined);
  }

  /** Returns the milliseconds until the next beat. */
  async #beat(): Promise<number> {
    // A delivery that is being settled, or has just been read, may be missing from the reply without being lost.
    const before = this.#held.all().filter(({ isSettling }) => !isSettling);
    const sentAt = queueTime.now();
    const ours = await this.#askAll();
    if (queueTime.now() >= this.leasesEndAt) this.#keptSince = sentAt;
    this.#renewAll(sentAt);
    const missing: Held[] = [];
    for (const held of before) {
      if (ours.has(held.entry.entryId)) held.confirmedAt = sentAt;
      else if (held.isHeld && !held.isSettling) missing.push(held);
    }
    if (missing.length > 0) await this.#lose(missing);
    await this.#giveBackStrangers(this.#held.unheldOf(ours));
    if (this.#isIdle) return this.#queue.server.steps.until(this.#interval);
    // Never at once: a Redis that takes this long to reply is busy.
    return Math.max(sentAt + this.#interval - queueTime.now(), this.#interval / 4);
  }

  /** Gives back the strangers among the entries that are not held. */
  async #giveBackStrangers(unheld: readonly string[]): Promise<void> {
    const readingSince = this.#readingSince();
    // The connection may be dead that should have brought them.
    if (unheld.length > 0) this.#queue.server.blocks.happened(this.#queue.keys.ready);
    const isStranger = (id: string) => (this.#firstSeen.get(id) ?? Infinity) < readingSince;
    const strangers = unheld.filter(isStranger);
    const now = queueTime.now();
    this.#firstSeen = new Map(unheld.map((id) => [id, this.#firstSeen.get(id) ?? now]));
    await Promise.all(strangers.map((id) => this.#onStranger(id)));
  }

  /** Beats; returns the ids of all entries in flight for this consumer. */
  async #askAll(): Promise<Set<string>> {
    const ours = new Set<string>();
    const { background } = this.#queue.server.connections;
    let after = "";
    for (;;) {
      const isReading = this.#readingSince() === Infinity && !this.#livesOn() ? 0 : 1;
      const args = { ...this.#member, after, limit: PAGE, isReading };
      // Without a lease to keep, it need not be punctual.
      const ids = await (this.#isIdle
        ? this.#queue.runTogether(background, beat, args)
        : this.#queue.run(background, beat, args));
      for (const id of ids) ours.add(id);
      if (ids.length < PAGE) return ours;
      after = ids.at(-1) as string;
    }
  }
}

/** Milliseconds until the next beat after one that has failed, at first. */
const RETRY = 500;

/** Beats per lease timeout. */
const BEATS_PER_TIMEOUT = 3;

/** The longest interval between two beats (ms), so that strangers do not wait long where leases are long. */
const MAX_INTERVAL = 20_000;

/** The most entries that one beat lists: about 300 us of Redis's time. */
const PAGE = 500;
