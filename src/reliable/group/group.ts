import type { Entry } from "../../lua/fragments/stream/entry.ts";
import { openGroup } from "../../lua/reliable/open-group.ts";
import { leave } from "../../lua/reliable/leave.ts";
import { run } from "../../lua/script.ts";
import type { Pauses } from "../../queue/pause-watch.ts";
import type { Queue } from "../../queue/queue.ts";
import type { WaitOptions } from "../../queue/consuming/waiters.ts";
import type { OnConnected } from "../../redis/blocking-client.ts";
import type { Connections } from "../../redis/connections.ts";
import type { Troubles, Work } from "../../redis/troubles.ts";
import { Pause } from "../../time/pause.ts";
import type { ServerClock } from "../../time/server-clock.ts";
import { ClosedError, QuarantineError, RedisError } from "../../errors.ts";
import { newConsumerName } from "./consumer-name.ts";
import type { Held } from "./held.ts";
import { InHand } from "./in-hand.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { Reader } from "./reader.ts";
import { ReclaimTask } from "./reclaim-task.ts";
import { Settlements, type Membership } from "./settlements.ts";

/** What has to be the same for all handles of a group in one process. */
export interface GroupSettings {
  readonly group: string;
  /** Where a group begins that is made now: an id of the stream. */
  readonly start: string;
  /** Milliseconds. */
  readonly visibilityTimeout: number;
  readonly maxDeliveries: number;
}

/** What handles ask of their group, whose queue may be in many partitions. */
export type GroupFace = Pick<
  Group,
  | "settings"
  | "checkTaking"
  | "take"
  | "limit"
  | "now"
  | "leaseEndsAt"
  | "release"
  | "giveUp"
  | "persist"
> & {
  readonly settlements: Pick<Settlements, "ack" | "retry" | "bury" | "extend">;
};

/**
 * A consumer group of one queue, and this process's consumer in it, as bytes. One per group and client.
 *
 * Arguments have been checked. Every method rejects with `ClosedError` once the queue is closed, and with
 * `RedisError` if Redis refuses a command or its reply is lost.
 */
export class Group {
  readonly settings: GroupSettings;
  readonly settlements: Settlements;
  readonly #queue: Queue;
  readonly #isExclusive: boolean;
  readonly #member: Membership;
  readonly #connections: Connections;
  readonly #clock: ServerClock;
  readonly #inHand: InHand;
  readonly #reader: Reader;
  readonly #keeper: LeaseKeeper;
  readonly #reclaim: ReclaimTask;
  /** How the settlements get on that nobody awaits. */
  readonly #settles: Work;
  #isMade = false;
  #isReading = false;
  readonly #closeTimeout: number;
  /** When {@link stop} was called (`performance.now()`). */
  #stoppedAt = Infinity;
  #isClosed = false;
  /** Settlements that are tried until they succeed. */
  #persistingCount = 0;
  /** Is called when there is none of them any more. */
  #onPersisted = () => {};

  constructor(
    queue: Queue,
    settings: GroupSettings,
    shared: {
      readonly connections: Connections;
      readonly clock: ServerClock;
      readonly pauses: Pauses;
      readonly troubles: Troubles;
      readonly closeTimeout: number;
    },
    /** Of the only consumer of a partition: is told of each connection before anything is read on it. */
    onConnected?: OnConnected,
  ) {
    this.#isExclusive = onConnected !== undefined;
    this.settings = settings;
    this.#queue = queue;
    this.#closeTimeout = shared.closeTimeout;
    this.#connections = shared.connections;
    this.#clock = shared.clock;
    this.#settles = shared.troubles.work();
    this.#member = {
      group: settings.group,
      consumer: newConsumerName(settings.visibilityTimeout),
    };
    this.#inHand = new InHand((held) => {
      this.#keeper.forget(held);
      this.#reader.onChange();
    });
    this.settlements = new Settlements(queue, this.#member, this.#inHand);
    this.#keeper = new LeaseKeeper(queue, this.#member, this.#inHand, {
      ...shared,
      visibilityTimeout: settings.visibilityTimeout,
      readingSince: () => this.#reader.readingSince,
      onStranger: (entryId) => this.#try(() => this.settlements.giveBackStranger(entryId)),
      onOverdue: (held) => {
        void this.giveUp(held, new Error("the delivery was not settled in time"));
      },
    });
    this.#reclaim = new ReclaimTask(queue, this.#member, settings, shared);
    const host = {
      onConnected,
      inHand: this.#inHand,
      remakeGroup: () => this.#make("0"),
      checkStrangers: () => this.#keeper.checkStrangers(),
      release: (held: Held) => this.release(held),
      skip: (entryId: string) => this.#skip(entryId),
      setAside: async (entryId: string, fields: readonly Buffer[]) => {
        await queue.quarantine(Buffer.concat(fields), "unreadable");
        queue.report(new QuarantineError(queue.name, 1));
        await this.#skip(entryId);
      },
    };
    this.#reader = new Reader(queue, this.#member, host, shared);
  }

  /** @throws {TypeError} if these are other settings than its own. */
  checkSame(settings: GroupSettings): void {
    for (const option of ["visibilityTimeout", "maxDeliveries"] as const) {
      const [own, other] = [this.settings[option], settings[option]];
      if (own === other) continue;
      throw new TypeError(
        `${option} of group "${settings.group}" of queue "${this.#queue.name}" must be the same for all its handles, ${own}, got ${other}`,
      );
    }
  }

  /** Makes the group, and with it the stream, unless this process knows that they are there. */
  made(signal?: AbortSignal): Promise<void> | undefined {
    return this.#isMade ? undefined : this.#make(this.settings.start, signal);
  }

  /** @throws {ClosedError} once {@link stop} was called, when running handlers may still offer. */
  checkTaking(): void {
    if (this.#isStopped) throw new ClosedError("the client");
  }

  /** Waits for messages, `max` at most; see {@link Reader.wait}. */
  take(max: number, options: WaitOptions): Promise<readonly Held[]> {
    // Not async, nor are others on the way of each message: a frame of an async function is near a kilobyte.
    if (this.#isReading && !this.#isStopped) return this.#reader.wait(max, options);
    return this.prepare(options.signal).then(() => this.#reader.wait(max, options));
  }

  /** Ends the lease of a delivery that was taken by hand in `duration` milliseconds, if nobody settles it. */
  limit(held: Held, duration: number = this.settings.visibilityTimeout): void {
    if (held.isInHand && !this.#isClosed) this.#keeper.limit(held, duration);
  }

  /** This process's consumer. */
  get member(): Membership {
    return this.#member;
  }

  /** Begins to keep leases, as {@link take} does. */
  async prepare(signal: AbortSignal | undefined): Promise<void> {
    this.checkTaking();
    await this.made(signal);
    // It only dates the ends of leases.
    const { background } = this.#connections;
    await this.#clock.ready(() => this.#queue.time(background))?.catch(() => {});
    this.checkTaking();
    this.#isReading = true;
    this.#keeper.start();
    this.#reclaim.start();
  }

  /** Takes entries into the hand that are in flight for this consumer. */
  adopt(entries: readonly Entry[]): Held[] {
    return entries.map((entry) => this.#inHand.add(entry));
  }

  /** The estimated time (epoch ms) of the server that a delivery came from. */
  now(_held: Held): number {
    return this.#clock.now();
  }

  /** When the lease of a delivery is over unless it is extended, or this process beats again (`performance.now()`). */
  leaseEndsAt(held: Held): number {
    return Math.min(held.leaseEndsAt, this.#keeper.leasesEndAt);
  }

  /**
   * Lets a delivery come back to whoever takes next as if it had not been made, however often it has to try. Never
   * rejects; resolves when it has left this process, or the queue is closed. While the client closes it tries for
   * `closeTimeout`.
   *
   * The only consumer of a partition leaves it in flight: the next holder begins with it, so that nothing overtakes it.
   */
  release(held: Held): Promise<void> {
    if (this.#isExclusive) return Promise.resolve(held.lose());
    return this.persist(held, () => this.settlements.giveBack(held));
  }

  /**
   * Takes a delivery out of the user's hands, which has had its time: it comes back to whoever takes next, and
   * counts. If it was the last that the message may have, the message is dead. Otherwise as {@link release}.
   */
  giveUp(held: Held, why: Error): Promise<void> {
    if (!held.isGiven) return this.release(held);
    held.abort(why);
    const { settlements, settings } = this;
    return this.persist(held, () =>
      held.attempt < settings.maxDeliveries
        ? settlements.giveBack(held, why.message)
        : settlements.bury(held, why.message),
    );
  }

  /** Settles a delivery, however often it has to try; see {@link release}. */
  async persist(held: Held, settle: () => Promise<boolean>): Promise<void> {
    let pause: Pause | undefined;
    const startedAt = performance.now();
    this.#persistingCount++;
    while (held.isInHand) {
      try {
        await settle();
        this.#settles.succeeded();
      } catch (error) {
        if (this.#isClosed || error instanceof ClosedError) break;
        if (error instanceof RedisError) this.#settles.failed(error);
        // The client waits for this before it closes. What stays in flight comes back when the lease is over.
        if (performance.now() > Math.max(startedAt, this.#stoppedAt) + this.#closeTimeout) break;
        pause ??= new Pause(100, 2000);
        await pause.wait();
      }
    }
    if (--this.#persistingCount > 0) return;
    // Where a reply was lost, a beat may have found the delivery gone before it was tried again.
    this.#settles.stopped();
    this.#onPersisted();
  }

  /** Ends every wait; resolves when nothing is in hand any more, but what was handed out. */
  async stop(): Promise<void> {
    this.#stoppedAt = performance.now();
    await this.#reader.close();
  }

  /** Gives back what is in hand, and leaves the group. */
  async close(): Promise<void> {
    await this.#reclaim.close();
    const closed = new ClosedError("the client");
    for (const held of this.#inHand.all()) {
      if (!held.isSettling) void this.giveUp(held, closed);
    }
    await this.settlements.settled();
    this.#isClosed = true;
    if (this.#persistingCount > 0) {
      await new Promise<void>((resolve) => (this.#onPersisted = resolve));
    }
    this.#settles.ended();
    await this.#keeper.close();
    if (this.#isReading && this.#connections.background.status === "ready") {
      // Otherwise the name stays behind until somebody strikes it out.
      await run(this.#connections.background, leave, this.#queue.keys, this.#member).catch(
        () => {},
      );
    }
  }

  get #isStopped(): boolean {
    return this.#stoppedAt !== Infinity;
  }

  async #make(start: string, signal?: AbortSignal): Promise<void> {
    const { channel } = this.#queue.keys;
    const args = { channel, group: this.settings.group, start };
    // Sent twice, it is made once: so it is sent again where a reply was lost, as the offers are that wait for it.
    await this.#queue.call("open", (redis, keys) => run(redis, openGroup, keys, args), signal);
    this.#isMade = true;
  }

  /** Acknowledges an entry that is not for us. */
  #skip(entryId: string): Promise<void> {
    return this.#try(() => this.settlements.skip(entryId));
  }

  /** Tries once. What fails is found again as a stranger. */
  async #try(send: () => Promise<unknown>): Promise<void> {
    await send().catch(() => {});
  }
}
