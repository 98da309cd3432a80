import { setTimeout as sleep } from "node:timers/promises";
import { Redis, type Cluster, type RedisOptions } from "ioredis";
import { nodeOf, peerOf } from "./cluster-node.ts";
import { ClosedError } from "./errors.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { RedisClient } from "./lua/script.ts";

/**
 * The connections of one client, each opened when it is first needed.
 *
 * - `commands` carries the calls that a user awaits. It is the client that we were lent, or one made
 *   to the user's options, and what those say about retries and time-outs holds.
 * - `background` is ours: transfers, and whatever takes messages out of Redis. It never re-sends a
 *   command whose answer was lost, since the first copy may have been carried out; such a command is
 *   rejected. It connects again for ever.
 * - A dedicated connection (`open`) subscribes or blocks. It lives once: when it is lost, its owner
 *   opens a new one. On Cluster it goes to one node.
 *
 * Ours are made without the caller's `commandTimeout`, `blockingTimeout` and `socketTimeout`: each
 * makes ioredis forget a command that Redis still carries out, and with it a message.
 */
export class Connections {
  readonly commands: RedisClient;
  readonly #isLent: boolean;
  #background: RedisClient | undefined;
  readonly #heartbeats: Heartbeat[] = [];
  readonly #dedicated = new Set<Redis>();
  #readyCount = 0;
  #isClosed = false;

  constructor(redis: string | RedisOptions | RedisClient) {
    this.#isLent = isClient(redis);
    this.commands = isClient(redis) ? redis : connect(redis);
    // Nothing is added to a client that we were lent, not even a listener.
    if (this.#isLent) return;
    this.commands.on("ready", () => this.#readyCount++);
    if (!isCluster(this.commands)) this.#watch(this.commands);
  }

  /**
   * Notes the state of `commands` before something is sent. Answers a function that tells, when that
   * has failed, whether it may have been sent; only for a client of ours that is known.
   */
  watchSending(): () => boolean {
    if (this.#isLent || this.commands.status === "ready") return () => true;
    const before = this.#readyCount;
    return () => this.#readyCount > before;
  }

  get background(): RedisClient {
    if (this.#background === undefined) {
      if (this.#isClosed) throw new ClosedError("the client");
      this.#background = duplicateForBackground(this.commands);
      // Without a listener ioredis prints errors; the commands that fail tell the same to us.
      this.#background.on("error", ignore);
      // Every queue that opens a connection on a cluster may wait for "ready".
      this.#background.setMaxListeners(0);
      if (!isCluster(this.#background)) this.#watch(this.#background);
    }
    return this.#background;
  }

  /**
   * Opens a connection that does one thing. `key` tells which Cluster node it has to reach; any node
   * will do without it.
   */
  async open(role: string, key?: string): Promise<Redis> {
    if (this.#isClosed) throw new ClosedError("the client");
    const options: RedisOptions = {
      ...OURS,
      // One life: the owner opens the next one.
      retryStrategy: null,
      lazyConnect: true,
      connectionName: connectionName(role, key),
    };
    const background = this.background;
    const connection = isCluster(background)
      ? (await nodeOf(background, key)).duplicate({
          ...options,
          keyPrefix: background.options.keyPrefix,
        })
      : background.duplicate(options);
    let reason: unknown;
    connection.on("error", (error) => (reason = error));
    this.#dedicated.add(connection);
    connection.once("end", () => this.#dedicated.delete(connection));
    const timeout = setTimeout(() => {
      reason = new Error("Redis did not answer in time");
      connection.disconnect();
    }, CONNECT);
    try {
      await connection.connect();
    } catch (error) {
      connection.disconnect();
      // connect() says only that the connection is closed; the event says why.
      throw reason ?? error;
    } finally {
      clearTimeout(timeout);
    }
    return connection;
  }

  /**
   * Resolves when Redis answers a connection made for the purpose. `key` tells which Cluster node is
   * meant.
   */
  async probe(key?: string): Promise<void> {
    (await this.open("probe", key)).disconnect();
  }

  /** A client that reaches the same server as `connection`, while that one is blocked. */
  peerOf(connection: Redis): Redis {
    const background = this.background;
    return isCluster(background) ? peerOf(background, connection) : background;
  }

  /** Ends what takes and moves, but not what carries the calls that users await. */
  abandon(): void {
    for (const heartbeat of this.#heartbeats) heartbeat.stop();
    for (const connection of this.#dedicated) connection.disconnect();
    if (this.#background !== undefined) end(this.#background);
  }

  /** Ends what is ours. Answers that are still under way are lost: finish the work first. */
  close(): void {
    this.#isClosed = true;
    this.abandon();
    if (!this.#isLent) end(this.commands);
  }

  /**
   * Gives a connection up when it has died silently.
   *
   * It may carry a pop, and Redis may only be slow: then the messages would be handed to a connection
   * that is no longer there. So it is given up only where Redis answers another one meanwhile.
   * Offers that were under way are sent again.
   */
  #watch(connection: Redis): void {
    let isProbing = false;
    const heartbeat = new Heartbeat(connection, () => {
      if (isProbing) return;
      isProbing = true;
      this.probe()
        .then(() => sleep(GRACE))
        .then(() => {
          const isSilent = heartbeat.isSilent && connection.status === "ready";
          // With `true`: a plain disconnect() would be final.
          if (isSilent) connection.disconnect(true);
        })
        // Redis answers nobody: it is not this connection that is to blame.
        .catch(ignore)
        .finally(() => (isProbing = false));
    });
    this.#heartbeats.push(heartbeat);
  }
}

/** What our own connections do differently, whatever the caller's options say. */
const OURS = {
  commandTimeout: undefined,
  blockingTimeout: undefined,
  socketTimeout: undefined,
  // 0: a command whose connection is lost is rejected, not sent again.
  maxRetriesPerRequest: 0,
  retryStrategy: (attempt: number) => Math.min(50 * 2 ** (attempt - 1), 2000),
  // A master that became a replica stays connected. Leave it, and ask again who is the master.
  reconnectOnError: (error: Error) => error.message.startsWith("READONLY"),
  // Without it, a paused or cut-off master holds commands for up to 90 s behind Sentinel.
  failoverDetector: true,
  // How long a silent socket is waited for when it is given up: it answers no FIN.
  disconnectTimeout: 100,
  enableOfflineQueue: true,
  enableReadyCheck: true,
  enableAutoPipelining: false,
  autoResubscribe: false,
  lazyConnect: false,
  readOnly: false,
  monitor: false,
  stringNumbers: false,
  replyMapping: "legacy",
  scripts: undefined,
  himportFieldsets: undefined,
} satisfies RedisOptions;

// By shape, not by class: the caller may have another copy of ioredis than we have.
function isClient(redis: unknown): redis is RedisClient {
  return typeof redis === "object" && redis !== null && "sendCommand" in redis;
}

/** Ends a client in whatever state it is. What it has not answered is rejected. */
function end(client: RedisClient): void {
  const isParked = client.status === "reconnecting";
  client.disconnect();
  if (!isParked || isCluster(client)) return;
  // Between two attempts to connect, disconnect() only calls the next one off, and what waits for an
  // answer would wait for ever. So begin one, and break that off.
  client.connect().catch(ignore);
  client.disconnect();
}

function isCluster(client: RedisClient): client is Cluster {
  return client.isCluster;
}

function connect(redis: string | RedisOptions): Redis {
  // The first call opens it, so that a client made in vain holds no process.
  const ours = {
    lazyConnect: true,
    // It connects when it is first used, so the first command has to wait.
    enableOfflineQueue: true,
    connectionName: connectionName("commands"),
    disconnectTimeout: OURS.disconnectTimeout,
  };
  if (typeof redis === "string") return parsed(redis, ours).on("error", ignore);
  const options = checkOptions(redis);
  // A client that nobody but us holds must not give up for good: nobody else could revive it.
  const retryStrategy = (attempt: number) =>
    options.retryStrategy?.(attempt) ?? OURS.retryStrategy(attempt);
  // Commands that it is told not to send again ioredis would neither send nor answer.
  const maxRetriesPerRequest =
    options.autoResendUnfulfilledCommands === false ? 0 : options.maxRetriesPerRequest;
  const client = new Redis({
    ...options,
    ...ours,
    retryStrategy,
    ...(maxRetriesPerRequest !== undefined && { maxRetriesPerRequest }),
    replyMapping: "legacy",
  });
  return client.on("error", ignore);
}

function parsed(url: string, options: { lazyConnect: boolean }): Redis {
  // The URL is not shown, nor the error about it: both may hold a password.
  if (!/^(rediss?:)?\/\//.test(url)) {
    throw new TypeError("redis must be a URL that begins with redis:// or rediss://");
  }
  try {
    return new Redis(url, options);
  } catch {
    throw new TypeError("redis must be a valid URL");
  }
}

function checkOptions(options: unknown): RedisOptions {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new TypeError(
      `redis must be a URL, ioredis options, or a Redis or Cluster of ioredis; got ${typeof options}`,
    );
  }
  return options;
}

function duplicateForBackground(client: RedisClient): RedisClient {
  const ours = { ...OURS, connectionName: connectionName("background") };
  if (!isCluster(client)) return client.duplicate(ours);
  return client.duplicate([], {
    clusterRetryStrategy: OURS.retryStrategy,
    // 0: no re-sending. The next refresh of the slots finds the new master.
    retryDelayOnFailover: 0,
    slotsRefreshInterval: 2000,
    scaleReads: "master",
    enableOfflineQueue: true,
    enableReadyCheck: true,
    enableAutoPipelining: false,
    lazyConnect: false,
    scripts: undefined,
    himportFieldsets: undefined,
    redisOptions: { ...client.options.redisOptions, ...ours },
  });
}

/** Milliseconds until a connection of ours is ready, at most. */
const CONNECT = 10_000;

/** Milliseconds that an answer may be late while Redis answers others. */
const GRACE = 500;

/** Shown by CLIENT LIST. A name must not hold spaces. */
function connectionName(role: string, key?: string): string {
  return `delayline:${role}${key === undefined ? "" : `:${encodeURIComponent(key)}`}`;
}

function ignore(): void {}
