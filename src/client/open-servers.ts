import type { OfferBatch } from "../delayed/offering/offer-batch.ts";
import type { DelaylineError } from "../errors.ts";
import { DEFAULTS, type DelaylineOptions } from "../queue/options.ts";
import { isCluster } from "../redis/client.ts";
import { Connections } from "../redis/connections.ts";
import { Subscriber } from "../redis/subscriber.ts";
import { Troubles, type TroublesListener } from "../redis/troubles.ts";
import { Expiries } from "../time/expiries.ts";
import { ServerClock } from "../time/server-clock.ts";

/** Everything that a client has running for one server, or one Cluster. All its queues there share it. */
export interface OpenServer {
  readonly connections: Connections;
  readonly subscriber: Subscriber;
  readonly clock: ServerClock;
  readonly offerBatches: Set<OfferBatch>;
  /** The time limit of every awaited call. */
  readonly expiries: Expiries;
  /** Milliseconds. */
  readonly closeTimeout: number;
  readonly report: (error: DelaylineError) => void;
  readonly troubles: Troubles;
}

/**
 * Opens each server that the options name, in their order. Nothing is connected yet.
 *
 * @throws {TypeError} if an address is not legal.
 */
export function openServers(
  { redis = DEFAULTS.redis }: DelaylineOptions,
  { callTimeout, closeTimeout }: { readonly callTimeout: number; readonly closeTimeout: number },
  listener: TroublesListener,
): readonly [OpenServer, ...OpenServer[]] {
  const [first, ...others] = Array.isArray(redis) ? redis : [redis];
  if (first === undefined) throw new TypeError("redis must name at least one server, got none");
  const open = (server: typeof first): OpenServer => {
    const troubles = new Troubles(listener);
    const clock = new ServerClock();
    const connections = new Connections(server, {
      onTime: (serverTime, sentAt) => {
        clock.observe(serverTime, sentAt);
        troubles.heard();
      },
      troubles,
    });
    return {
      connections,
      subscriber: new Subscriber(connections, troubles),
      clock,
      offerBatches: new Set(),
      expiries: new Expiries(callTimeout),
      closeTimeout,
      report: listener.report,
      troubles,
    };
  };
  return [open(first), ...others.map(open)];
}

/**
 * Returns the clock of a server, or of any node of a Cluster (epoch ms).
 *
 * Rejects with ioredis's errors.
 */
export async function askServerTime(
  { connections, clock, expiries }: OpenServer,
  signal?: AbortSignal,
): Promise<number> {
  const limit = { expiries, signal };
  return await connections.call("commands", limit, async (redis) => {
    const ask = async () => ServerClock.fromTime(await redis.time());
    // The clocks of a Cluster's nodes differ, so none is estimated here.
    if (isCluster(redis)) return await ask();
    await clock.ready(ask);
    return clock.now();
  });
}
