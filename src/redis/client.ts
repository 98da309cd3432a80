import { Redis, type Cluster, type RedisOptions } from "ioredis";
import type { LentClient } from "./lent-client.ts";

/** A client that commands can be sent through. */
export type RedisClient = Redis | Cluster;

/**
 * ioredis's options, of whichever copy of the package, and an address as a URL in place of `host`, `port`
 * and the like.
 *
 * The one that is missing takes a class with protected members, which no other copy's class matches.
 */
export type ConnectionOptions = Omit<RedisOptions, "Connector"> & { readonly url?: string };

/**
 * What our own connections do differently, whatever the caller's options say. Each of the three time-outs
 * makes ioredis forget a command that Redis still carries out, and with it a message.
 */
const OURS = {
  commandTimeout: undefined,
  blockingTimeout: undefined,
  socketTimeout: undefined,
  // 0: a command whose connection is lost is rejected, not sent again.
  maxRetriesPerRequest: 0,
  retryStrategy: (attempt: number) => Math.min(50 * 2 ** (attempt - 1), 1000),
  reconnectOnError: hasBecomeReplica,
  // Without it, a paused or cut-off master holds commands for up to 90 s behind Sentinel.
  failoverDetector: true,
  // A Sentinel that hangs is left for the next one.
  sentinelCommandTimeout: 2000,
  // How long a silent socket is waited for when it is given up: it acknowledges no FIN.
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

/** Whether it is a client, by its shape: the caller may have another copy of ioredis than we have. */
export function isClient(redis: unknown): redis is LentClient {
  return typeof redis === "object" && redis !== null && "sendCommand" in redis;
}

export function isCluster(client: RedisClient): client is Cluster {
  return client.isCluster;
}

/**
 * A client for the calls that users await. It keeps the caller's time-outs and retries.
 *
 * @throws {TypeError} if this is no URL and no options.
 */
export function connectForCalls(redis: string | ConnectionOptions): Redis {
  if (typeof redis === "string") return fromUrl(redis, optionsForCalls({}));
  const { url, ...options } = checkOptions(redis);
  if (url === undefined) return new Redis(optionsForCalls(options));
  return fromUrl(url, optionsForCalls(options));
}

function optionsForCalls(options: RedisOptions) {
  const maxRetriesPerRequest =
    options.autoResendUnfulfilledCommands === false
      ? // Commands that it is told not to send again ioredis would neither send nor settle.
        0
      : // Every call has a bound of ours.
        (options.maxRetriesPerRequest ?? null);
  return {
    failoverDetector: OURS.failoverDetector,
    sentinelCommandTimeout: OURS.sentinelCommandTimeout,
    ...options,
    // The first call opens it, so that a client made in vain holds no process.
    lazyConnect: true,
    // It connects when it is first used, so the first command has to wait.
    enableOfflineQueue: true,
    connectionName: connectionName("commands"),
    disconnectTimeout: OURS.disconnectTimeout,
    // A client that nobody but us holds must not give up for good: nobody else could revive it.
    retryStrategy: (attempt: number) =>
      options.retryStrategy?.(attempt) ?? OURS.retryStrategy(attempt),
    reconnectOnError: (error: Error) =>
      options.reconnectOnError?.(error) || OURS.reconnectOnError(error),
    maxRetriesPerRequest,
    replyMapping: "legacy",
  } as const satisfies RedisOptions;
}

/** A client for background work, to the same address as `client`. It connects again for ever. */
export function duplicateForBackground(client: RedisClient): RedisClient {
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

/**
 * A client that does one thing, to the same address as `client`. It lives once: when its connection is
 * lost, its owner makes the next one. It is not connected yet.
 */
export function duplicateForOneLife(
  client: Redis,
  name: string,
  keyPrefix = client.options.keyPrefix,
): Redis {
  return client.duplicate({
    ...OURS,
    retryStrategy: null,
    // Its owner follows the background client, which has a detector: one is enough for a process.
    failoverDetector: false,
    lazyConnect: true,
    connectionName: name,
    ...(keyPrefix !== undefined && { keyPrefix }),
  });
}

/** Shown by CLIENT LIST. A name must not hold spaces. With an `id` no other connection has it. */
export function connectionName(role: string, key?: string, id?: string): string {
  const parts = [key, id].filter((part) => part !== undefined).map(encodeURIComponent);
  return ["delayline", role, ...parts].join(":");
}

/** Ends a client in whatever state it is. What has no reply yet is rejected. */
export function end(client: RedisClient): void {
  const isParked = client.status === "reconnecting";
  client.disconnect();
  if (!isParked || isCluster(client)) return;
  // Between two attempts to connect, disconnect() only calls the next one off, and what waits for
  // a reply would wait for ever. So begin one, and break that off.
  client.connect().catch(() => {});
  client.disconnect();
}

/**
 * Connects a client again, to be called when it emits the error that ioredis has ended it.
 *
 * ioredis ends a client for good when a Sentinel announces a failover while the client asks for the master.
 */
export function revive(client: Redis): void {
  // It ends once it has told the error, and before anybody who awaits a command of its goes on.
  queueMicrotask(() => {
    if (client.status === "end") client.connect().catch(() => {});
  });
}

/** A master that became a replica stays connected. Leave it, and ask again who is the master. */
function hasBecomeReplica(error: Error): boolean {
  return error.message.startsWith("READONLY");
}

function fromUrl(url: unknown, options: ReturnType<typeof optionsForCalls>): Redis {
  // The URL is not shown, nor the error about it: both may hold a password.
  if (typeof url !== "string" || !/^(rediss?:)?\/\//.test(url)) {
    throw new TypeError("redis must be a URL that begins with redis:// or rediss://");
  }
  try {
    return new Redis(url, options);
  } catch {
    throw new TypeError("redis must be a valid URL");
  }
}

function checkOptions(options: unknown): ConnectionOptions {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new TypeError(
      `redis must be a URL, ioredis options, or a Redis or Cluster of ioredis; got ${typeof options}`,
    );
  }
  return options;
}
