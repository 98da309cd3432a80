import type { Redis } from "ioredis";
import type { RedisClient } from "./client.ts";

/**
 * Prints a warning, once for each client, if a client that we were lent lacks an option without which
 * a failover loses offers or refuses them for ever. We change no option of a client that is not ours.
 */
export function warnOfMissingOptions(client: RedisClient): void {
  if (warned.has(client)) return;
  warned.add(client);
  const missing = missingOption(client);
  if (missing === undefined) return;
  process.emitWarning(`the ioredis client that was lent to Delayline has no ${missing}`, {
    type: "DelaylineWarning",
    code: "DELAYLINE_LENT_CLIENT",
  });
}

const warned = new WeakSet<RedisClient>();

function missingOption(client: RedisClient): string | undefined {
  if (client.isCluster) {
    const { slotsRefreshInterval } = client.options as { readonly slotsRefreshInterval?: number };
    if (slotsRefreshInterval) return undefined;
    return "slotsRefreshInterval: while a master hangs, calls wait for it even after a failover. Set it to 2000";
  }
  const { sentinels, failoverDetector, reconnectOnError } = (client as Redis).options;
  if (sentinels != null && !failoverDetector) {
    return "failoverDetector: after a failover it goes on writing to the old master, and those offers are lost. Set it to true";
  }
  if (!reconnectOnError?.(new Error(READONLY))) {
    return 'reconnectOnError: if its server becomes a replica, every offer is refused. Set it to (error) => error.message.startsWith("READONLY")';
  }
  return undefined;
}

const READONLY = "READONLY You can't write against a read only replica.";
