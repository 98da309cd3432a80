import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { Bypass, type ReplyReader } from "./bypass.ts";
import type { Connections } from "./connections.ts";
import { sleepForNetwork } from "../time/sleep.ts";
import { Progress } from "./progress.ts";
import { hasDied } from "./watchdog.ts";
import { networkTime } from "../time/runtime.ts";

/** Receives the id and the name that a connection has on its server, before anything is taken through it. */
export type OnConnected = (id: number, name: string) => Promise<void>;

/**
 * A connection for blocking commands. It never reconnects: when it is lost, its owner opens a new one.
 *
 * While it blocks, it has no heartbeat. {@link Blocks} decides how long a block lasts, and when it is ended to see
 * whether the connection replies. A connection with an overdue reply is ended if it has died: nothing comes any more, not
 * even a part of the reply; see {@link hasDied}.
 */
export class BlockingClient {
  /** Sends the commands. Await each reply through {@link BlockingClient.watched}. */
  readonly redis: Redis;
  /** The connection's id on the server. */
  readonly id: number;
  readonly #connections: Connections;
  readonly #key: string | undefined;
  #bypass: Bypass | undefined;
  /** The block that is under way. */
  #block: { readonly sentAt: number; readonly watch: ReplyWatch } | undefined;

  private constructor(connections: Connections, key: string | undefined, redis: Redis, id: number) {
    this.#connections = connections;
    this.#key = key;
    this.redis = redis;
    this.id = id;
  }

  /**
   * Opens a connection; on a Cluster, to the node that serves `key`, or to any node without a key.
   *
   * With `onConnected`, the connection gets a name that no other connection has, and `onConnected` is awaited before
   * this resolves. If it rejects, the connection is ended.
   *
   * Rejects with ioredis's errors, or the one of `onConnected`.
   */
  static async open(
    connections: Connections,
    key?: string,
    onConnected?: OnConnected,
  ): Promise<BlockingClient> {
    const id = onConnected && randomUUID();
    const redis = await connections.open("blocking", key, undefined, id);
    try {
      const client = new BlockingClient(connections, key, redis, await redis.client("ID"));
      await onConnected?.(client.id, redis.options.connectionName ?? "");
      return client;
    } catch (error) {
      redis.disconnect();
      throw error;
    }
  }

  get isLost(): boolean {
    return this.redis.status !== "ready";
  }

  /**
   * To be called right before a command is sent: its reply is for `reader`, if that can read it. Then the command returns
   * null.
   */
  readNext(reader: ReplyReader): void {
    this.#bypass ??= Bypass.before(this.redis);
    this.#bypass?.open(reader);
  }

  /**
   * Sends a command that blocks for the `seconds` it is given at most, and awaits its reply; ends the connection if it
   * turns out to be dead. `lists` are the ready LISTs of the queues that it waits for.
   */
  async block<Reply>(
    lists: readonly string[],
    send: (seconds: number) => Promise<Reply>,
  ): Promise<Reply> {
    const block = this.#connections.blocks.begin(lists, () => void this.#prove());
    const watch = this.#watch(block.seconds * 1000);
    this.#block = { sentAt: networkTime.now(), watch };
    try {
      return await send(block.seconds);
    } catch (error) {
      throw await this.#connections.ofNode(error);
    } finally {
      watch.noteReply();
      block.end();
      this.#block = undefined;
    }
  }

  /** Awaits the reply of a command that does not block; ends the connection if it turns out to be dead. */
  async watched<Reply>(reply: Promise<Reply>): Promise<Reply> {
    const watch = this.#watch(0);
    try {
      return await reply;
    } catch (error) {
      throw await this.#connections.ofNode(error);
    } finally {
      watch.noteReply();
    }
  }

  /** Ends the current block, if the command has reached Redis. Its reply still comes. */
  async unblock(): Promise<void> {
    const block = this.#block;
    const hasEnded = await this.#connections.peerOf(this.redis).client("UNBLOCK", this.id);
    if (block === undefined || block !== this.#block) return;
    // If nothing was blocked, the reply is under way, or the command has not come yet. That does not take long.
    const isOld = networkTime.now() - block.sentAt > ARRIVED;
    if (hasEnded === 1 || isOld) block.watch.expectNow();
  }

  /** Ends the current block, which the connection has to tell then. */
  async #prove(): Promise<void> {
    const block = this.#block;
    const isUnderWay = () => block !== undefined && block === this.#block;
    while (isUnderWay()) {
      try {
        await this.unblock();
        return;
      } catch {
        // The connection that carries it was lost, and is opened again.
        await sleepForNetwork(RETRY);
      }
    }
  }

  /** Watches over the reply of a command that is about to be sent, which comes within `timeout` milliseconds. */
  #watch(timeout: number): ReplyWatch {
    const progress = Progress.of(this.redis);
    const watch: ReplyWatch = new ReplyWatch(progress, () => void this.#onOverdue(watch), timeout);
    return watch;
  }

  async #onOverdue(watch: ReplyWatch): Promise<void> {
    const isDead = await hasDied({
      isAwaited: () => watch.isPending,
      isSilent: () => watch.isSilent,
      probe: () => this.#connections.probe(this.#key),
      grace: GRACE,
    });
    if (isDead) this.disconnect();
  }

  /** Ends the connection. A reply that is still under way is lost. */
  disconnect(): void {
    this.redis.disconnect();
  }
}

/** Waits for a reply that may be overdue one day. */
class ReplyWatch {
  readonly #progress: Progress;
  readonly #onOverdue: () => void;
  #timer: NodeJS.Timeout;
  #isExpected = false;
  isPending = true;

  /** The reply comes within `timeout` milliseconds, unless it is overdue. */
  constructor(progress: Progress, onOverdue: () => void, timeout: number) {
    this.#progress = progress;
    progress.look();
    this.#onOverdue = onOverdue;
    this.#timer = networkTime.setTimeout(onOverdue, timeout + OVERDUE);
  }

  /** Whether no part of the reply comes. */
  get isSilent(): boolean {
    return this.#progress.hasStoodStill(OVERDUE);
  }

  /** Nothing keeps the reply back any more. */
  expectNow(): void {
    if (this.#isExpected || !this.isPending) return;
    this.#isExpected = true;
    networkTime.clearTimeout(this.#timer);
    this.#timer = networkTime.setTimeout(this.#onOverdue, OVERDUE);
  }

  noteReply(): void {
    this.isPending = false;
    // Only what comes later is a sign that the next reply comes.
    this.#progress.look();
    networkTime.clearTimeout(this.#timer);
  }
}

/** Milliseconds that a reply may take on its way. */
const OVERDUE = 500;

/** Milliseconds after which a command has reached a Redis that replies to others. */
const ARRIVED = 900;

/** Milliseconds until another attempt to end a block. */
const RETRY = 500;

/** See `Suspect.grace` in `watchdog.ts`. Longer than for other connections, because a popped message may be lost. */
const GRACE = 1000;
