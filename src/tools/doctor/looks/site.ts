import { Redis, type Cluster, type RedisOptions } from "ioredis";
import { replyOf, type InsideServer, type layout, type RedisClient } from "../../../inside.ts";

/** A server, as redis-cli reaches it. */
export interface Endpoint {
  /** "host:port", or the path of its socket. */
  readonly address: string;
  /** The user of the connection; undefined for the default user. */
  readonly user: string | undefined;
  /** The options of redis-cli for TLS, each behind a space; empty without TLS. */
  readonly tls: string;
}

/**
 * The server or the Cluster behind one address that the user gave.
 *
 * Every call has a time bound. If it fails, the error says why Redis could not be reached.
 */
export class Site implements Endpoint {
  readonly #server: InsideServer;
  readonly #signal: AbortSignal | undefined;

  constructor(server: InsideServer, signal: AbortSignal | undefined) {
    this.#server = server;
    this.#signal = signal;
  }

  get isCluster(): boolean {
    return this.#server.isCluster;
  }

  /** The server, or some node of the Cluster, as "host:port" or the path of its socket. Known once it has replied. */
  get address(): string {
    const { redis, cluster } = this.#server;
    if (redis !== undefined) return addressOf(redis);
    const { host, port } = cluster?.nodes("master")[0]?.options ?? {};
    return `${host}:${port}`;
  }

  /** The address as the user gave it, or the name by which Sentinels know it. */
  get given(): string {
    const { redis, cluster } = this.#server;
    const { path, host, port, name, sentinels } = redis?.options ?? {};
    if (cluster !== undefined) return startOf(cluster).map(hostOf)[0] ?? "";
    return path ?? (sentinels ? `${name}` : hostOf({ host, port }));
  }

  get user(): string | undefined {
    const { username } = this.#login;
    return username === "default" ? undefined : username || undefined;
  }

  /** Whether the connection needs a password. */
  get hasPassword(): boolean {
    return (this.#login.password ?? "") !== "";
  }

  get tls(): string {
    const { tls } = this.#login;
    // ioredis fills options that are left out with null.
    if (tls === undefined || tls === null) return "";
    return tls.rejectUnauthorized === false ? " --tls --insecure" : " --tls";
  }

  get #login(): RedisOptions {
    const { redis, cluster } = this.#server;
    return redis?.options ?? cluster?.options.redisOptions ?? {};
  }

  /** The number of the database. */
  get database(): number {
    return this.#server.redis?.options.db ?? 0;
  }

  /** The user's `keyPrefix`. */
  get keyPrefix(): string {
    const { redis, cluster } = this.#server;
    return (redis ?? cluster)?.options.keyPrefix ?? "";
  }

  /** The time (epoch ms) of the server that holds these keys. */
  time(keys: layout.QueueKeys): Promise<number> {
    return this.#server.time(keys, { signal: this.#signal });
  }

  /** Those of the business keys that delayed or retrying messages of an ordinary queue, or of a partition, hold. */
  held(name: string, keys: readonly string[]): Promise<string[]> {
    return this.#server.held(name, keys, { signal: this.#signal });
  }

  /** Throws the signal's reason, if it is aborted. */
  throwIfAborted(): void {
    this.#signal?.throwIfAborted();
  }

  /** Sends a command to the server, or to the node of the Cluster that serves its key. */
  ask<Reply>(send: (client: RedisClient) => Promise<Reply>): Promise<Reply> {
    return this.#server.ask(send, { signal: this.#signal });
  }

  /** Bounds the time of a call that is sent on another connection. */
  within<Reply>(send: () => Promise<Reply>): Promise<Reply> {
    return this.#server.within(send, { signal: this.#signal });
  }

  /** The server, or all nodes of the Cluster, including replicas. */
  async nodes(): Promise<SiteNode[]> {
    // A Cluster client knows its nodes once it is connected. A refusal is a reply as well: `INFO` may be answered.
    await this.ask((client) => client.time()).catch((error: unknown) => {
      if (NOT_SERVED.has(replyOf(error))) throw error;
    });
    const { redis, cluster } = this.#server;
    if (redis !== undefined) return [new SiteNode(this, redis, addressOf(redis), "master")];
    return (["master", "slave"] as const).flatMap((role) =>
      (cluster as Cluster)
        .nodes(role)
        .map((node) => new SiteNode(this, node, `${node.options.host}:${node.options.port}`, role)),
    );
  }

  /**
   * The server on a new connection, which the caller ends, and which does not wait until the server is ready to serve;
   * undefined for a Cluster. For use when the client cannot connect: the server may still say why.
   */
  entrance(): SiteNode | undefined {
    const redis = this.#server.redis?.duplicate({
      ...BRIEF,
      enableReadyCheck: false,
      lazyConnect: true,
    });
    if (redis === undefined) return undefined;
    redis.on("error", () => {});
    return new SiteNode(this, redis, this.address, "master");
  }

  /**
   * The nodes that the user gave for finding the Cluster, on new connections that the caller ends. For use when the
   * client cannot connect to the Cluster: a node that serves nothing can still say why. Empty for a single server.
   */
  entrances(): SiteNode[] {
    const { cluster } = this.#server;
    if (cluster === undefined) return [];
    return startOf(cluster).flatMap(({ host, port }) => {
      if (host === undefined || port === undefined) return [];
      const { redisOptions } = cluster.options;
      const redis = new Redis(port, host, { ...(redisOptions as RedisOptions), ...BRIEF });
      redis.on("error", () => {});
      return [new SiteNode(this, redis, `${host}:${port}`, "master")];
    });
  }
}

/** One server. */
export class SiteNode implements Endpoint {
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

  get user(): string | undefined {
    return this.site.user;
  }

  get tls(): string {
    return this.site.tls;
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

  /** Ends the connection. Only for nodes from {@link Site.entrance} and {@link Site.entrances}. */
  end(): void {
    this.#redis.disconnect();
  }
}

/** The nodes that the user gave. ioredis keeps them, but not in its public interface. */
function startOf(cluster: Cluster): RedisOptions[] {
  return (cluster as unknown as { startupNodes?: RedisOptions[] }).startupNodes ?? [];
}

function hostOf({ host, port }: { host?: string | undefined; port?: number | undefined }): string {
  return `${host}:${port}`;
}

function addressOf(redis: Redis): string {
  const { path, host, port, sentinels } = redis.options;
  // Before the connection there is only what was given. With Sentinels that is no server.
  const isGiven = redis.status !== "ready" && !sentinels;
  if (path !== undefined && path !== null) return path;
  if (isGiven) return `${host}:${port}`;
  // There is no stream yet while ioredis asks the Sentinels.
  const { remoteAddress, remotePort } = (redis.stream as Redis["stream"] | undefined) ?? {};
  return `${remoteAddress}:${remotePort}`;
}

/** What says that a server serves nobody, or not this client: no reply at all, or one about its login. */
const NOT_SERVED: ReadonlySet<string | undefined> = new Set([undefined, "WRONGPASS", "NOAUTH"]);

/** Options of a connection that does not reconnect. */
const BRIEF = {
  retryStrategy: null,
  keyPrefix: "",
  replyMapping: "legacy",
  connectionName: "delayline:doctor",
} as const satisfies RedisOptions;
