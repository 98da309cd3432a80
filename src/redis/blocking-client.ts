import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import type { Connections } from "./connections.ts";
import { hasDied } from "./watchdog.ts";
import { clearTimeout, setTimeout } from "../time/network.ts";

/** Receives the id and the name that a connection has on its server, before anything is taken through it. */
export type OnConnected = (id: number, name: string) => Promise<void>;

/**
 * A connection for blocking commands. It never reconnects: when it is lost, its owner opens a new one.
 *
 * While it blocks, it has no heartbeat. So a block should be short, and a connection with an overdue reply is ended if
 * it has died; see {@link hasDied}.
 */
export class BlockingClient {
  /** Sends the commands. Await each reply through {@link BlockingClient.watched}. */
  readonly redis: Redis;
  /** The connection's id on the server. */
  readonly id: number;
  readonly #connections: Connections;
  readonly #key: string | undefined;

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
   * Awaits the reply of a command that blocks for `seconds` at most; ends the connection if it turns out to be dead.
   */
  async watched<Reply>(seconds: number, reply: Promise<Reply>): Promise<Reply> {
    let isSilent = true;
    const watchdog = setTimeout(
      () => {
        const probe = () => this.#connections.probe(this.#key);
        void hasDied({ isSilent: () => isSilent, probe, grace: GRACE }).then((isDead) => {
          if (isDead) this.disconnect();
        });
      },
      seconds * 1000 + OVERDUE,
    );
    try {
      return await reply;
    } finally {
      isSilent = false;
      clearTimeout(watchdog);
    }
  }

  /** Ends the current block, if the command has reached Redis. Its reply still comes. */
  async unblock(): Promise<void> {
    await this.#connections.peerOf(this.redis).client("UNBLOCK", this.id);
  }

  /** Ends the connection. A reply that is still under way is lost. */
  disconnect(): void {
    this.redis.disconnect();
  }
}

/** Milliseconds after the end of a block after which its reply is overdue. */
const OVERDUE = 500;

/** See `Suspect.grace` in `watchdog.ts`. Longer than for other connections, because a popped message may be lost. */
const GRACE = 1000;
