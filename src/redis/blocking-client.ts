import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import type { Connections } from "./connections.ts";
import { hasDied } from "./watchdog.ts";

/** Is told the id and the name of a connection on its server, before anything is taken on it. */
export type OnConnected = (id: number, name: string) => Promise<void>;

/**
 * A connection for commands that block. It lives once: after it was lost, its owner opens the next.
 *
 * While it blocks it cannot be asked whether it is alive. So a block should be short, and a connection
 * whose reply is overdue is given up if it has died; see {@link hasDied}.
 */
export class BlockingClient {
  /** Sends the commands. Each reply is to be awaited through {@link BlockingClient.watched}. */
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
   * Opens a connection. `key` tells which Cluster node it has to reach; any node will do without it. With
   * `onConnected` its name is one that no other connection has, and that is awaited first; if it rejects, the
   * connection is ended.
   *
   * Rejects with what ioredis rejects with, and what `onConnected` rejects with.
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

  /** Awaits a reply that should come within `seconds` and some: for so long the command blocks at most. */
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

  /** Ends the block that is under way, if it has reached Redis; its reply still comes. */
  async unblock(): Promise<void> {
    await this.#connections.peerOf(this.redis).client("UNBLOCK", this.id);
  }

  /** Ends the connection. A reply that is still under way is lost. */
  disconnect(): void {
    this.redis.disconnect();
  }
}

/** Milliseconds after which a reply is overdue. */
const OVERDUE = 500;

/** Milliseconds that a reply may be late while Redis replies to others. */
const GRACE = 1000;
