import { Redis, type RedisOptions } from "ioredis";
import type { Server } from "../../../redis/server.ts";
import { callWithin } from "../../../redis/call.ts";
import { isCluster, type RedisClient } from "../../../redis/client.ts";
import { serverOf } from "../../../redis/cluster-node.ts";

/**
 * The server or the Cluster behind one address that the user gave.
 *
 * Every call has a time bound. If it fails, the error says why Redis could not be reached.
 */
export class Site {
  readonly #shared: Server;
  readonly #signal: AbortSignal | undefined;

  constructor(shared: Server, signal: AbortSignal | undefined) {
    this.#shared = shared;
    this.#signal = signal;
  }

  get isCluster(): boolean {
    return isCluster(this.#shared.connections.commands);
  }

  /** The server, or some node of the Cluster, as "host:port" or the path of its socket. Known once it has replied. */
  get address(): string {
    const { commands } = this.#shared.connections;
    if (!isCluster(commands)) return addressOf(commands);
    const { host, port } = commands.nodes("master")[0]?.options ?? {};
    return `${host}:${port}`;
  }

  /** The number of the database. */
  get database(): number {
    const { commands } = this.#shared.connections;
    return isCluster(commands) ? 0 : (commands.options.db ?? 0);
  }

  /** The user's `keyPrefix`. */
  get keyPrefix(): string {
    return this.#shared.connections.commands.options.keyPrefix ?? "";
  }

  /** Throws the signal's reason, if it is aborted. */
  throwIfAborted(): void {
    this.#signal?.throwIfAborted();
  }

  /** Sends a command to the server, or to the node of the Cluster that serves its key. */
  ask<Reply>(send: (client: RedisClient) => Promise<Reply>): Promise<Reply> {
    const { connections, expiries } = this.#shared;
    return connections.call("commands", { expiries, signal: this.#signal }, send);
  }

  /** Bounds the time of a call that is sent on another connection. */
  within<Reply>(send: () => Promise<Reply>): Promise<Reply> {
    const { expiries } = this.#shared;
    return callWithin(
      { expiries, signal: this.#signal },
      () => undefined,
      send,
      () => false,
    );
  }

  /** The server, or all nodes of the Cluster, including replicas. */
  async nodes(): Promise<SiteNode[]> {
    // A Cluster client knows its nodes once it is connected.
    await this.ask((client) => client.ping());
    const { commands } = this.#shared.connections;
    if (!isCluster(commands)) return [new SiteNode(this, commands, addressOf(commands), "master")];
    return (["master", "slave"] as const).flatMap((role) =>
      commands
        .nodes(role)
        .map((node) => new SiteNode(this, node, `${node.options.host}:${node.options.port}`, role)),
    );
  }

  /**
   * The nodes that the user gave for finding the Cluster, on new connections that the caller ends. For use when the
   * client cannot connect to the Cluster: a node that serves nothing can still say why. Empty for a single server.
   */
  entrances(): SiteNode[] {
    const { commands } = this.#shared.connections;
    if (!isCluster(commands)) return [];
    // ioredis keeps these addresses, but not in its public interface.
    const { startupNodes = [] } = commands as unknown as { startupNodes?: unknown[] };
    return startupNodes.flatMap((node) => {
      const { host, port } = node as RedisOptions;
      if (host === undefined || port === undefined) return [];
      const { redisOptions } = commands.options;
      const redis = new Redis(port, host, { ...(redisOptions as RedisOptions), ...BRIEF });
      redis.on("error", () => {});
      return [new SiteNode(this, redis, `${host}:${port}`, "master")];
    });
  }

  close(): void {
    this.#shared.troubles.close();
    this.#shared.subscriber.close();
    this.#shared.connections.close();
  }
}

/** One server. */
export class SiteNode {
  readonly site: Site;
  /** "host:port", or the path of its socket. */
  readonly address: string;
  /** Its role in the Cluster; "master" for a single server. */
  readonly role: "master" | "slave";
  readonly #redis: Redis;

  constructor(site: Site, redis: Redis, address: string, role: "master" | "slave") {
    this.site = site;
    this.address = address;
    this.role = role;
    this.#redis = redis;
  }

  ask<Reply>(send: (redis: Redis) => Promise<Reply>): Promise<Reply> {
    return this.site.within(() => send(this.#redis));
  }

  /** A new connection to this server, without `keyPrefix`, for commands that change the state of their connection. */
  duplicate(): Redis {
    const redis = this.#redis.duplicate({ ...BRIEF, lazyConnect: true });
    redis.on("error", () => {});
    return redis;
  }

  /** Ends the connection. Only for nodes from {@link Site.entrances}. */
  end(): void {
    this.#redis.disconnect();
  }
}

function addressOf(redis: Redis): string {
  return redis.options.path ?? serverOf(redis);
}

/** Options of a connection that does not reconnect. */
const BRIEF = {
  retryStrategy: null,
  keyPrefix: "",
  replyMapping: "legacy",
  connectionName: "delayline:doctor",
} as const satisfies RedisOptions;
