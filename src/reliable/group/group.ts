import type { Entry } from "../../lua/places/stream.ts";
import { openGroup } from "../../lua/reliable/groups.ts";
import { leave } from "../../lua/reliable/consumers.ts";
import type { Call } from "../../queue/call.ts";
import type { PauseState } from "../../queue/pause-watch.ts";
import type { Queue } from "../../queue/queue.ts";
import { Successor } from "../../run/successor.ts";
import type { WaitOptions } from "../../run/waiters.ts";
import type { OnConnected } from "../../redis/blocking-client.ts";
import { ClosedError, QuarantineError } from "../../errors.ts";
import { newConsumerName, type Membership } from "./consumer-name.ts";
import type { ReadEntry } from "./entries-reader.ts";
import { FreedSlots } from "./freed-slots.ts";
import { HeldDeliveries, type Held, type Origin } from "./held.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import type { Notices } from "./notices.ts";
import { Reader } from "./reader.ts";
import { ReclaimTask } from "./reclaim-task.ts";
import { RevokedDeliveries } from "./revoked-deliveries.ts";
import { Settlements, type Keeping } from "./settlements.ts";
import { orAborted } from "../../time/abort.ts";
import { nextTick, queueTime } from "../../time/runtime.ts";

/** Settings of a consumer group; all but `start` must be the same for all handles of the group in one process. */
export interface GroupSettings {
  readonly group: string;
  /** The id of the stream behind which the group begins, if it is created now. */
  readonly start: string;
  /** Milliseconds. */
  readonly leaseTimeout: number;
  readonly maxAttempts: number;
  /** How long Redis remembers which messages were handled (ms); 0 if it does not. */
  readonly keepHandled: number;
}

/** What the only consumer of a partition does in its own way; see `GroupTenure`. */
export interface OnlyConsumer {
  /** Called with each connection before anything is read on it. */
  readonly onConnected: OnConnected;
  /** Given in strict order. */
  readonly keeping?: Keeping | undefined;
  /**
   * Called when an entry is in flight for this consumer but not held. Given back, it would be behind later messages; the next
   * consumer of the partition inherits it in its place.
   */
  readonly onStranger: () => void;
}

/**
 * A consumer group of one queue, and this process's consumer in it, as bytes. A client has one such object per group,
 * however many handles there are.
 *
 * The first offer or take creates the group and the stream. From the first take on, a delivery passes through these
 * steps:
 *
 * 1. {@link Reader} reads entries for the waiters, and the group sorts them into {@link HeldDeliveries}.
 * 2. {@link LeaseKeeper} beats for the consumer as long as the process lives, and finds deliveries that were lost.
 * 3. {@link Settlements} settles a delivery. It reports failures to the caller, and retries if no caller awaits the
 *    result.
 * 4. {@link ReclaimTask} watches the group's other consumers, and returns to the group what a dead one had in flight.
 *
 * Closing has two steps. `stop` ends the waits; handlers that still run can settle and offer. `close` gives back what
 * is still held and removes the consumer from the group.
 *
 * Arguments have been checked. Every method rejects with `ClosedError` once the queue is closed, and with
 * `RedisError` if Redis refuses a command or its reply is lost.
 */
export class Group implements Origin {
  readonly settings: GroupSettings;
  readonly settlements: Settlements;
  readonly #queue: Queue;
  readonly #member: Membership;
  /** Whether this is the only consumer of a partition. */
  readonly #isExclusive: boolean;
  readonly #held: HeldDeliveries;
  readonly #reader: Reader;
  readonly #keeper: LeaseKeeper;
  readonly #reclaim: ReclaimTask;
  readonly #notices: Notices;
  readonly #revoked: RevokedDeliveries;
  #isMade = false;
  /** The first creation, while it is under way. */
  #making: Promise<void> | undefined;
  readonly #successor = new Successor<Held>();
  /** Why waits were dismissed, once {@link leaveTo} was called. */
  #dismissal: Error | undefined;
  #isReading = false;
  #isStopped = false;
  #isClosed = false;

  constructor(
    queue: Queue,
    settings: GroupSettings,
    pauses: PauseState,
    notices: Notices,
    /** Given for the only consumer of a partition. */
    only?: OnlyConsumer,
  ) {
    this.settings = settings;
    this.#queue = queue;
    const { leaseTimeout, maxAttempts } = settings;
    const consumer = newConsumerName(leaseTimeout, maxAttempts);
    this.#member = { group: settings.group, consumer };
    const freedSlots = new FreedSlots(queue);
    this.#held = new HeldDeliveries(this, (held) => {
      this.#keeper.forget(held);
      this.#reader.review();
      if (held.entry.hasSlot) freedSlots.add(held.entry);
      if (held.isLost) this.#revoked.lost(held);
    });
    this.#notices = notices;
    this.#revoked = new RevokedDeliveries(queue, this.#member, this.#held, () => {
      this.#keeper.beatNow();
    });
    this.#isExclusive = only !== undefined;
    const { keepHandled } = settings;
    const settling = { isExclusive: this.#isExclusive, keeping: only?.keeping, keepHandled };
    this.settlements = new Settlements(queue, this.#member, this.#held, settling);
    this.#keeper = new LeaseKeeper(queue, this.#member, this.#held, {
      leaseTimeout,
      readingSince: () => this.#reader.readingSince,
      onStranger: async (entryId) => {
        if (only === undefined) await this.#giveBackStranger(entryId);
        else only.onStranger();
      },
      onOverdue: (held) => {
        void this.settlements.giveUp(held, new Error("the delivery was not settled in time"));
      },
      lose: (missing) => this.#revoked.lose(missing),
      livesOn: () => this.#revoked.areRunning,
    });
    this.#reclaim = new ReclaimTask(queue, this.#member, settings);
    const host = {
      onConnected: only?.onConnected,
      held: this.#held,
      isOnly: this.#isExclusive,
      accept: (read: readonly ReadEntry[], sentAt: number) => this.#accept(read, sentAt),
      // From the start of the stream: the position of the old group is lost.
      remakeGroup: () => this.#make("0"),
      checkStrangers: () => this.#keeper.checkStrangers(),
      release: (held: Held) => this.settlements.release(held),
    };
    this.#reader = new Reader(queue, this.#member, pauses, host);
  }

  /**
   * Creates the group, and with it the stream. Returns undefined if this process has done so already. Later callers
   * wait for the same creation, and so keep their order.
   */
  made(call?: Call): Promise<void> | undefined {
    if (this.#isMade) return undefined;
    if (this.#making === undefined) {
      this.#making = this.#make(this.settings.start);
      // In the next tick: until those who waited have continued, a new caller has to wait behind them.
      const end = (isMade: boolean) => {
        nextTick(() => {
          this.#isMade ||= isMade;
          this.#making = undefined;
        });
      };
      this.#making.then(
        () => end(true),
        () => end(false),
      );
    }
    return orAborted(this.#making, call?.signal);
  }

  /** @throws {ClosedError} after {@link stop}. Offers and settlements still work then. */
  checkTaking(): void {
    if (this.#isStopped) throw new ClosedError(`queue "${this.#queue.name}"`);
  }

  /** Waits for messages, `max` at most; see {@link Reader.wait}. */
  take(max: number, options: WaitOptions): Promise<readonly Held[]> {
    return this.#successor.after(this.#take, max, options);
  }

  // Not async, like all functions that every message passes: an async frame costs near a kilobyte.
  readonly #take = (max: number, options: WaitOptions): Promise<readonly Held[]> => {
    if (this.#isReading && !this.#isStopped) return this.#reader.wait(max, options);
    const before = this.#dismissal;
    const throwIfDismissed = () => {
      if (this.#dismissal !== undefined && this.#dismissal !== before) throw this.#dismissal;
    };
    return this.prepare(options).then(
      () => {
        throwIfDismissed();
        return this.#reader.wait(max, options);
      },
      (error: unknown) => {
        // The group may have been closed after that.
        throwIfDismissed();
        throw error;
      },
    );
  };

  /**
   * The queue was given partitions: waits go on by `next`, also those that are still creating the group. A message that
   * arrives for one of them is given back.
   */
  leaveTo(next: Pick<Group, "take">): void {
    this.#successor.leave(
      (max, options) => next.take(max, options),
      (reason) => {
        this.#dismissal = reason;
        this.#reader.dismiss(reason);
      },
    );
  }

  /** Ends the lease of a delivery in `duration` milliseconds, unless it is settled or limited anew before. */
  limit(held: Held, duration: number = this.settings.leaseTimeout): void {
    if (held.isHeld && !this.#isClosed) this.#keeper.limit(held, duration);
  }

  /** This process's consumer. */
  get member(): Membership {
    return this.#member;
  }

  /** Creates the group and starts to keep leases and to reclaim; {@link take} does it by itself. */
  async prepare(call: Call): Promise<void> {
    this.checkTaking();
    this.#queue.isUsed = true;
    await this.made(call);
    // The clock only converts deadlines for users, so a failure does no harm.
    const { background } = this.#queue.server.connections;
    await this.#queue.clock.ready(() => this.#queue.time(background))?.catch(() => {});
    this.checkTaking();
    this.#isReading = true;
    this.#revoked.listen(this.#notices);
    this.#keeper.start();
    this.#reclaim.start();
  }

  /** Holds entries that are in flight for this consumer although no read of its own returned them. */
  adopt(entries: readonly Entry[]): Held[] {
    return entries.map((entry) => this.#held.add(entry));
  }

  mayBeLost(held: Held): boolean {
    return this.#keeper.mayBeLost(held);
  }

  ended(held: Held): void {
    this.#revoked.ended(held);
  }

  /** The estimated time of the Redis server (epoch ms). */
  now(): number {
    return this.#queue.clock.now();
  }

  /** When the lease of a delivery ends unless it is extended or this process beats again (epoch ms). */
  leaseEndOf(held: Held): number {
    const endsAt = Math.min(held.leaseEndsAt, this.#keeper.leasesEndAt);
    return this.now() + (endsAt - queueTime.now());
  }

  /** Ends every wait. When it resolves, only deliveries that were handed out are still held. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.settlements.stop();
    await this.#reader.close();
  }

  /** Resolves when no handler holds a delivery, or `signal` is aborted. */
  handlersEnded(signal: AbortSignal): Promise<void> {
    return this.#held.emptied(signal);
  }

  /** Gives back what is still held, and leaves the group. */
  async close(): Promise<void> {
    this.#revoked.unlisten(this.#notices);
    await this.#reclaim.close();
    const closed = new ClosedError("the queue");
    for (const held of this.#held.all()) {
      if (!held.isSettling) void this.settlements.giveUp(held, closed);
    }
    await this.settlements.settled();
    // What was being settled is still held if that has failed.
    for (const held of this.#held.all()) void this.settlements.giveUp(held, closed);
    await this.settlements.settled();
    this.#isClosed = true;
    await this.settlements.close();
    await this.#keeper.close();
    if (this.#isReading && this.#queue.server.connections.background.status === "ready") {
      // If this fails, another process removes the consumer after a long silence; see `ReclaimTask`.
      await this.#queue
        .run(this.#queue.server.connections.background, leave, this.#member)
        .catch(() => {});
    }
  }

  /**
   * Sorts the entries that a read returned, which was sent at `sentAt` (`queueTime.now()`); returns the deliveries that
   * are held now.
   *
   * - A message for this group, or for all groups, is held from now on.
   * - A message that is held back goes back, and becomes a retry that is due when its pause is over. It was in flight
   *   for an exclusive consumer in strict order, and a consumer that is not exclusive has read it. An exclusive
   *   consumer holds it, and waits.
   * - A message that is held already was kept in flight as a new entry, which the group has reached only now.
   * - A message for another group is acknowledged: Redis delivers each entry to every group.
   * - A message that was revoked since is dropped.
   * - An entry in a foreign format goes to the quarantine, is reported and acknowledged.
   *
   * If one of these fails, the entry stays in flight. A later beat finds it as a stranger, and gives it back or puts
   * it into the quarantine; see {@link LeaseKeeper}.
   */
  #accept(read: readonly ReadEntry[], sentAt: number): Held[] {
    const taken: Held[] = [];
    for (const entry of read) {
      const known = this.#isExclusive ? this.#held.get(entry.entryId) : undefined;
      if ("fields" in entry) void this.#quarantine(entry.entryId, entry.fields);
      else if (known !== undefined) void this.settlements.setAside(known);
      else if (entry.group !== undefined && entry.group !== this.settings.group) {
        void this.settlements.skip(entry.entryId).catch(() => {});
      } else if (entry.heldBackUntil !== undefined && !this.#isExclusive) {
        void this.#giveBackStranger(entry.entryId);
      } else {
        const held = this.#held.add(entry, sentAt);
        if (!this.#revoked.meets(held)) taken.push(held);
      }
    }
    return taken;
  }

  async #quarantine(entryId: string, fields: readonly Buffer[]): Promise<void> {
    const isKept = await this.#queue.quarantine(Buffer.concat(fields), "unreadable");
    if (!isKept) return;
    this.#queue.report(new QuarantineError(this.#queue.name, 1));
    await this.settlements.skip(entryId).catch(() => {});
  }

  /** Gives back an entry that is not held. Needs no report: if it fails, the next beats find the stranger again. */
  async #giveBackStranger(entryId: string): Promise<void> {
    await this.settlements.giveBackStranger(entryId).catch(() => {});
  }

  async #make(start: string): Promise<void> {
    const { channel } = this.#queue.keys;
    const args = { channel, group: this.settings.group, start };
    // Safe to send twice, like the offer that waits for it: a second run changes nothing.
    await this.#queue.read("open", openGroup, args);
  }
}
