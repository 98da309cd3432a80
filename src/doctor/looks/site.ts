import type { Redis } from "ioredis";
import type { Shared } from "../../client/shared.ts";
import { isCluster, type RedisClient } from "../../redis/client.ts";
import { serverOf } from "../../redis/cluster-node.ts";

/**
 * What is behind one address that the user has given: a server, or a Cluster of several.
 *
 * Every question has a time bound, and the reason of its failure says why Redis could not be reached.
 */
export class Site {
  readonly #shared: Shared;
  readonly #signal: AbortSignal | undefined;

  constructor(shared: Shared, signal: AbortSignal | undefined) {
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

  /** A connection for what leaves its mark on a connection, to the node that serves `key`. The caller ends it. */
  async connect(key?: string): Promise<Redis> {
    return await this.#shared.connections.open("probe", key, CONNECT);
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
    return this.site.ask(() => send(this.#redis));
  }

  /** A connection of its own to this server; see {@link Site.connect}. */
  duplicate(): Redis {
    const redis = this.#redis.duplicate({ lazyConnect: true, retryStrategy: null });
    redis.on("error", () => {});
    return redis;
  }
}

/** Milliseconds until a connection is ready. */
const CONNECT = 3000;
