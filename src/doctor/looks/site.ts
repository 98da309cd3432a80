import { Redis, type RedisOptions } from "ioredis";
import type { OpenServer } from "../../client/open-server.ts";
import { callWithin } from "../../redis/call.ts";
import { isCluster, type RedisClient } from "../../redis/client.ts";
import { serverOf } from "../../redis/cluster-node.ts";

/**
 * What is behind one address that the user has given: a server, or a Cluster of several.
 *
 * Every question has a time bound, and the reason of its failure says why Redis could not be reached.
 */
export class Site {
  readonly #shared: OpenServer;
  readonly #signal: AbortSignal | undefined;

  constructor(shared: OpenServer, signal: AbortSignal | undefined) {
    this.#shared = shared;
    this.#signal = signal;
  }

  get isCluster(): boolean {
    return isCluster(this.#shared.connections.commands);
  }

  /** The user's `keyPrefix`. */
  get keyPrefix(): string {
    return this.#shared.connections.commands.options.keyPrefix ?? "";
  }

  /** Throws the signal's reason, if it is aborted. */
  throwIfAborted(): void {
    this.#signal?.throwIfAborted();
  }

  /** Asks the server, or the node of a Cluster that serves the key of the command. */
  ask<Reply>(send: (client: RedisClient) => Promise<Reply>): Promise<Reply> {
    const { connections, expiries } = this.#shared;
    return connections.call("commands", { expiries, signal: this.#signal }, send);
  }

  /** Waits for a question that goes another way, in the same time bound. */
  within<Reply>(send: () => Promise<Reply>): Promise<Reply> {
    const { expiries } = this.#shared;
    return callWithin(
      { expiries, signal: this.#signal },
      () => undefined,
      send,
      () => false,
    );
  }

  /** The server, or the nodes of the Cluster, its replicas as well. */
  async nodes(): Promise<SiteNode[]> {
    // A Cluster tells its nodes when it is connected.
    await this.ask((client) => client.ping());
    const { commands } = this.#shared.connections;
    if (!isCluster(commands)) return [new SiteNode(this, commands, serverOf(commands), "master")];
    return (["master", "slave"] as const).flatMap((role) =>
      commands
        .nodes(role)
        .map((node) => new SiteNode(this, node, `${node.options.host}:${node.options.port}`, role)),
    );
  }

  /**
   * The nodes by which the client was told to find the Cluster, with connections of their own, for when it finds no way
   * in: a node that serves nothing can still say why. None, if it is no Cluster's client. The caller ends them.
   */
  entrances(): SiteNode[] {
    const { commands } = this.#shared.connections;
    if (!isCluster(commands)) return [];
    // ioredis remembers the addresses, and does not publish them.
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
  /** As "host:port", or the path of its socket. */
  readonly address: string;
  /** What a Cluster takes it for; of a server that is alone "master". */
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

  /** A connection of its own to this server, without `keyPrefix`, for what leaves its mark on a connection. */
  duplicate(): Redis {
    const redis = this.#redis.duplicate({ ...BRIEF, lazyConnect: true });
    redis.on("error", () => {});
    return redis;
  }

  /** Ends the connection; only of one that was made for the purpose. */
  end(): void {
    this.#redis.disconnect();
  }
}

/** Of a connection that lives once. */
const BRIEF = {
  retryStrategy: null,
  keyPrefix: "",
  replyMapping: "legacy",
  connectionName: "delayline:doctor",
} as const satisfies RedisOptions;
