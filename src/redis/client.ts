import { Redis, type Cluster, type RedisOptions } from "ioredis";
import { isFromReplica } from "../failure.ts";
import { checkAddress, type RedisConnectionOptions } from "./address.ts";
import { watchHandshake } from "./handshake.ts";
import type { LentClient } from "./lent-client.ts";
import { queueMicrotask, serverStandIn } from "../time/runtime.ts";

/** A client of ioredis that sends commands. */
export type RedisClient = Redis | Cluster;

/** The options of our own connections, whatever the caller's options are. */
const OURS = {
  // Each of these three timeouts makes ioredis forget a command that Redis still carries out, and with it a message.
  commandTimeout: undefined,
  blockingTimeout: undefined,
  socketTimeout: undefined,
  // 0: a command whose connection is lost is rejected, not sent again.
  maxRetriesPerRequest: 0,
  retryStrategy: (attempt: number) => Math.min(50 * 2 ** (attempt - 1), 1000),
  // A master that becomes a replica keeps its connections. Leave it, and look for the new master.
  reconnectOnError: isFromReplica,
  // Without it, behind Sentinel, a paused or cut-off master holds commands for up to 90 s.
  failoverDetector: true,
  // After that many milliseconds, a Sentinel that hangs is left for the next one.
  sentinelCommandTimeout: 2000,
  // Milliseconds that ioredis waits for a socket to end: a dead peer never acknowledges the FIN.
  disconnectTimeout: 100,
  // Milliseconds of idleness after which the kernel asks the other end each second. After ten of these questions
  // without an answer it ends the connection. That costs Redis no command, and keeps routers from forgetting it.
  keepAlive: 2000,
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

/** Whether this is a client, judged by its shape: the caller may use another copy of ioredis. */
export function isClient(redis: unknown): redis is LentClient {
  return typeof redis === "object" && redis !== null && "sendCommand" in redis;
}

export function isCluster(client: RedisClient): client is Cluster {
  return client.isCluster;
}

/**
 * Makes a client for the calls that users await. It keeps the caller's timeouts and retries.
 *
 * @throws {TypeError} unless `redis` is a URL or options, with parts that are legal.
 */
export function connectForCalls(redis: string | RedisConnectionOptions): Redis {
  const { url, options } = checkAddress(redis);
  const ours = optionsForCalls(options);
  return announced(watchHandshake(url === undefined ? new Redis(ours) : new Redis(url, ours)));
}

function optionsForCalls(options: RedisOptions) {
  const maxRetriesPerRequest =
    options.autoResendUnfulfilledCommands === false
      ? // Otherwise ioredis would never settle the commands that it must not send again.
        0
      : // No limit: Delayline limits the time of every call.
        (options.maxRetriesPerRequest ?? null);
  return {
    failoverDetector: OURS.failoverDetector,
    sentinelCommandTimeout: OURS.sentinelCommandTimeout,
    keepAlive: OURS.keepAlive,
    ...options,
    // The first call connects. A client that is never used does not keep the process alive.
    lazyConnect: true,
    // So the first command has to wait for the connection.
    enableOfflineQueue: true,
    connectionName: connectionName("commands"),
    disconnectTimeout: OURS.disconnectTimeout,
    // It must not give up for good: the user has no access to it, and could not revive it.
    retryStrategy: (attempt: number) =>
      options.retryStrategy?.(attempt) ?? OURS.retryStrategy(attempt),
    reconnectOnError: (error: Error) =>
      options.reconnectOnError?.(error) || OURS.reconnectOnError(error),
    maxRetriesPerRequest,
    replyMapping: "legacy",
  } as const satisfies RedisOptions;
}

/** Makes a client for background work, to the same address as `client`. It reconnects for ever. */
export function duplicateForBackground(client: RedisClient): RedisClient {
  const ours = { ...OURS, connectionName: connectionName("background") };
  if (!isCluster(client)) return announced(watchHandshake(client.duplicate(ours)));
  const cluster = client.duplicate([], {
    clusterRetryStrategy: OURS.retryStrategy,
    // 0: do not send again. The next refresh of the slots finds the new master.
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
  return announced(cluster);
}

/**
 * Makes a client for one purpose, to the same address as `client`. It is not connected yet. It never reconnects: when
 * its connection is lost, its owner makes a new client.
 */
export function duplicateForOneLife(
  client: Redis,
  name: string,
  keyPrefix = client.options.keyPrefix,
): Redis {
  const connection = client.duplicate({
    ...OURS,
    retryStrategy: null,
    // It follows the background client, whose detector is enough.
    failoverDetector: false,
    lazyConnect: true,
    connectionName: name,
    ...(keyPrefix !== undefined && { keyPrefix }),
  });
  return announced(watchHandshake(connection));
}

/** Shows a client to a clock that a test turns. */
export function announced<Client extends RedisClient>(client: Client): Client {
  serverStandIn()?.onClient?.(client);
  return client;
}

/**
 * The name that CLIENT LIST shows for a connection. It holds no spaces. A random `id` makes it unique. The `keyPrefix` of
 * its client stands behind an `@`.
 */
export function connectionName(role: string, key?: string, id?: string, keyPrefix = ""): string {
  const parts = [key, id].filter((part) => part !== undefined).map(encodeURIComponent);
  const behind = keyPrefix === "" ? "" : `@${encodeURIComponent(keyPrefix)}`;
  return `${["delayline", role, ...parts].join(":")}${behind}`;
}

/** Ends a client in any state. Commands without a reply are rejected. */
export function end(client: RedisClient): void {
  const isParked = client.status === "reconnecting";
  client.disconnect();
  if (!isParked || isCluster(client)) return;
  // Between two attempts to connect, disconnect() only cancels the next attempt, and never rejects the queued
  // commands. So begin an attempt, and abort it.
  client.connect().catch(() => {});
  client.disconnect();
}

/**
 * Reconnects a client that ioredis has ended. Call it when the client emits the error that says so.
 *
 * ioredis ends a client for good when a Sentinel announces a failover while the client asks for the master.
 */
export function revive(client: Redis): void {
  // The client ends right after it has emitted the error, before the rejections of its commands are handled.
  queueMicrotask(() => {
    if (client.status === "end") client.connect().catch(() => {});
  });
}
