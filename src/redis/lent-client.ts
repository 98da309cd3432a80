import type { ClusterOptions, RedisOptions } from "ioredis";

/**
 * A client that the user lends to Delayline: a `Redis` or `Cluster` of ioredis 5.8 or later, or of ioredis 6.
 *
 * This type describes its shape. The classes of ioredis have private members: their types would only accept clients of
 * one copy and version of the package.
 */
export interface LentClient {
  readonly isCluster: boolean;
  readonly status: string;
  readonly options: object;
  sendCommand(...args: never): unknown;
  duplicate(...args: never): unknown;
}

/**
 * Emits a process warning, once for each client, if a lent client lacks an option without which a failover loses
 * offers, or has them refused for ever. The options of a lent client are never changed.
 */
export function warnOfMissingOptions(client: LentClient): void {
  if (warned.has(client)) return;
  warned.add(client);
  const missing = missingOption(client);
  if (missing === undefined) return;
  process.emitWarning(`the ioredis client that was lent to Delayline has no ${missing}`, {
    type: "DelaylineWarning",
    code: "DELAYLINE_LENT_CLIENT",
  });
}

const warned = new WeakSet<LentClient>();

function missingOption({ isCluster, options }: LentClient): string | undefined {
  const { slotsRefreshInterval, sentinels, failoverDetector, reconnectOnError } =
    options as ClusterOptions & RedisOptions;
  if (isCluster) {
    if (slotsRefreshInterval) return undefined;
    return "slotsRefreshInterval: while a master hangs, calls wait for it even after a failover. Set it to 2000";
  }
  if (sentinels != null && !failoverDetector) {
    return "failoverDetector: after a failover it goes on writing to the old master, and those offers are lost. Set it to true";
  }
  if (!reconnectOnError?.(new Error(READONLY))) {
    return 'reconnectOnError: if its server becomes a replica, every offer is refused. Set it to (error) => error.message.startsWith("READONLY")';
  }
  return undefined;
}

const READONLY = "READONLY You can't write against a read only replica.";
