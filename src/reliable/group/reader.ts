import { isStreamDeleted, replyOf } from "../../failure.ts";
import type { PauseState } from "../../queue/pause-watch.ts";
import type { Queue } from "../../queue/queue.ts";
import type { BlockingClient, OnConnected } from "../../redis/blocking-client.ts";
import { BlockingLoop } from "../../run/blocking-loop.ts";
import type { WaitOptions } from "../../run/waiters.ts";
import { Pause } from "../../time/pause.ts";
import type { Membership } from "./consumer-name.ts";
import { EntriesReader, readEntry, type ReadEntry } from "./entries-reader.ts";
import type { Held, HeldDeliveries } from "./held.ts";
import { ReadSize } from "./read-size.ts";
import { Suspects } from "./suspects.ts";
import { queueTime } from "../../time/runtime.ts";

/** What a reader uses of its group. */
export interface ReaderHost {
  readonly held: HeldDeliveries;
  /** Whether this is the only consumer of a partition, which hands out one message at a time. */
  readonly isOnly: boolean;
  /** Sorts what a read returned that was sent at `sentAt` (`queueTime.now()`); returns the deliveries that are held now. */
  readonly accept: (read: readonly ReadEntry[], sentAt: number) => Held[];
  /** Creates the group again after it was destroyed. */
  readonly remakeGroup: () => Promise<void>;
  /** Gives back entries whose reply was lost. No read may be under way. */
  readonly checkStrangers: () => Promise<void>;
  /** Gives a delivery that no waiter got back to the group. Never rejects. */
  readonly release: (held: Held) => Promise<void>;
  /** Called with each new connection before anything is read on it. */
  readonly onConnected: OnConnected | undefined;
}

/**
 * Reads a group's messages for all waiters of this process, over one connection. It is a {@link BlockingLoop}.
 *
 * While there are waiters, it sends one XREADGROUP after another. A read asks for no more messages than its waiters
 * want, so no message sits in a busy process. Messages that no waiter takes are returned to the group.
 *
 * A message that may kill its process is handed out alone; see {@link Suspects}.
 *
 * The first rule that applies picks the next step:
 *
 * 1. Whether the queue is paused is unknown: it asks.
 * 2. The queue is paused, or a suspect is handed out, or waits until nothing else is held: it rests.
 * 3. A suspect waits: it hands it out.
 * 4. There is no connection: it opens one, and gives back the entries whose reply was lost with the last one.
 * 5. It reads; without a block if a waiter is unserved (see `Waiters`).
 */
export class Reader {
  readonly #queue: Queue;
  readonly #member: Membership;
  readonly #pauses: PauseState;
  readonly #host: ReaderHost;
  readonly #loop: BlockingLoop<Held>;
  readonly #pause = new Pause(100, 500);
  readonly #suspects: Suspects;
  readonly #size = new ReadSize();
  readonly #unlisten: () => void;
  #hasLostConnection = false;
  /** When the read that is under way was sent (`queueTime.now()`); Infinity if none is. */
  readingSince = Infinity;

  constructor(queue: Queue, member: Membership, pauses: PauseState, host: ReaderHost) {
    this.#queue = queue;
    this.#member = member;
    this.#pauses = pauses;
    this.#host = host;
    this.#suspects = new Suspects(host.held, host.isOnly);
    this.#loop = new BlockingLoop(queue.server, {
      name: `queue "${queue.name}"`,
      step: () => this.#step(),
      giveBack: (left) => Promise.all(left.map((held) => host.release(held))),
      onLeft: () => {
        const suspect = this.#suspects.dropDelayed();
        // No one waits here now. Another process may take it.
        return suspect && host.release(suspect);
      },
      recover: (error) => this.#recover(error),
      pause: this.#pause,
    });
    this.#unlisten = this.#pauses.onChange(() => this.review());
  }

  /**
   * Waits for messages as `Waiters.wait` does.
   *
   * @throws {RedisError} also if Redis refuses the read (WRONGTYPE, NOPERM). A lost connection is only reported, and
   * the wait goes on.
   */
  wait(max: number, options: WaitOptions): Promise<readonly Held[]> {
    return this.#loop.waiters.wait(max, options);
  }

  /** Rejects every wait that is under way with `reason`. A message that arrives for one of them is given back. */
  dismiss(reason: Error): void {
    this.#loop.dismiss(reason);
  }

  /** Ends every wait with a `ClosedError`; resolves when the messages left over have been returned. */
  async close(): Promise<void> {
    this.#unlisten();
    await this.#loop.close();
  }

  /** To be called when a delivery is no longer held. */
  review(): void {
    this.#loop.review();
  }

  get #mustRest(): boolean {
    return this.#pauses.isPaused !== false || this.#suspects.mustRest;
  }

  async #step(): Promise<void> {
    if (this.#pauses.isPaused === undefined) {
      await this.#loop.prepare(() => this.#pauses.known());
      return;
    }
    if (this.#mustRest) {
      await this.#loop.rest(() => this.#mustRest);
      return;
    }
    const { client } = this.#loop;
    const suspect = this.#suspects.handOut();
    if (suspect !== undefined) await this.#loop.deliver([suspect]);
    else if (client === undefined) await this.#connect();
    else await this.#read(client);
  }

  async #connect(): Promise<void> {
    await this.#loop.open(this.#queue.keys.stream, this.#host.onConnected);
    // A reply may have been lost with the last connection.
    if (this.#hasLostConnection) await this.#host.checkStrangers();
    this.#hasLostConnection = true;
  }

  async #read(client: BlockingClient): Promise<void> {
    const { waiters } = this.#loop;
    const most = Math.min(this.#size.count, this.#suspects.readLimit);
    if (waiters.unservedCount > 0) {
      const count = Math.min(waiters.expireUnserved(), most);
      await this.#loop.take(() => this.#readAndDeliver(client, count, false));
      return;
    }
    const wanted = waiters.wanted.reduce((sum, count) => sum + count, 0);
    const count = Math.min(wanted, most);
    // Once it is in vain it stays so: whoever waits next may want less than it asks for.
    let isInVain = false;
    await this.#loop.block(
      () => this.#readAndDeliver(client, count, true),
      () => (isInVain ||= waiters.pendingCount === 0 || this.#pauses.isPaused !== false),
    );
  }

  async #readAndDeliver(client: BlockingClient, count: number, isBlocking: boolean): Promise<void> {
    let taken: readonly Held[];
    const sentAt = (this.readingSince = queueTime.now());
    try {
      taken = this.#host.accept(await this.#ask(client, count, isBlocking), sentAt);
    } finally {
      this.readingSince = Infinity;
    }
    this.#size.note(taken.map(({ entry }) => entry));
    const { fresh, surplus } = this.#suspects.sift(taken);
    for (const held of surplus) void this.#host.release(held);
    await this.#loop.deliver(fresh);
  }

  /** Reads up to `count` entries that are new to the group. If there are none, it may block. */
  async #ask(
    client: BlockingClient,
    count: number,
    isBlocking: boolean,
  ): Promise<readonly ReadEntry[]> {
    const { group, consumer } = this.#member;
    const { stream, ready } = this.#queue.keys;
    const head = ["GROUP", group, consumer, "COUNT", count] as const;
    const { redis } = client;
    const reading = new EntriesReader();
    client.readNext(reading);
    const block = (seconds: number) =>
      redis.xreadgroupBuffer(...head, "BLOCK", seconds * 1000, "STREAMS", stream, ">");
    const streams = (await (isBlocking
      ? client.block([ready], block)
      : client.watched(redis.xreadgroupBuffer(...head, "STREAMS", stream, ">")))) as StreamReply;
    if (reading.isDone) return reading.entries;
    return (streams?.[0]?.[1] ?? []).map(([id, fields]) => readEntry(id.toString(), fields));
  }

  async #recover(error: unknown): Promise<boolean> {
    if (isStreamDeleted(error)) {
      // If the partition was removed, this reader is closed during the pause. Otherwise the next read gets NOGROUP.
      await this.#pause.wait();
      return true;
    }
    if (replyOf(error) !== "NOGROUP") return false;
    try {
      await this.#host.remakeGroup();
    } catch (refusal) {
      this.#loop.waiters.failAll(refusal);
    }
    return true;
  }
}

type StreamReply = [stream: Buffer, entries: [id: Buffer, fields: Buffer[]][]][] | null;
