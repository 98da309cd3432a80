import type { OfferBatch } from "../delayed/offer-batch.ts";
import type { DelaylineError } from "../errors.ts";
import { DEFAULTS, type DelaylineOptions } from "../queue/options.ts";
import { isCluster } from "../redis/client.ts";
import { Connections } from "../redis/connections.ts";
import { Subscriber } from "../redis/subscriber.ts";
import { Troubles, type TroublesListener } from "../redis/troubles.ts";
import { Expiries } from "../time/expiries.ts";
import { ServerClock } from "../time/server-clock.ts";

/** What all queues of a client share that are on one server, or one Cluster. */
export interface Shared {
  readonly connections: Connections;
  readonly subscriber: Subscriber;
  readonly clock: ServerClock;
  readonly offerBatches: Set<OfferBatch>;
  /** The time bound of every awaited call. */
  readonly expiries: Expiries;
  readonly closeTimeout: number;
  readonly report: (error: DelaylineError) => void;
  readonly troubles: Troubles;
}

/**
 * One for each server that the options name, in their order. Nothing is connected yet.
 *
 * @throws {TypeError} if an address is not legal.
 */
export function shareServers(
  { redis = DEFAULTS.redis }: DelaylineOptions,
  { callTimeout, closeTimeout }: { readonly callTimeout: number; readonly closeTimeout: number },
  listener: TroublesListener,
): readonly [Shared, ...Shared[]] {
  const [first, ...others] = Array.isArray(redis) ? redis : [redis];
  if (first === undefined) throw new TypeError("redis must name a server at least, got none");
  const share = (server: typeof first): Shared => {
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
  return [share(first), ...others.map(share)];
}

/**
 * The clock of a server, or of some node of a Cluster (epoch ms).
 *
 * Rejects with what ioredis rejects with.
 */
export async function askServerTime(
  { connections, clock, expiries }: Shared,
  signal?: AbortSignal,
): Promise<number> {
  const limit = { expiries, signal };
  return await connections.call("commands", limit, async (redis) => {
    const ask = async () => ServerClock.fromTime(await redis.time());
    // Nothing else hears of a Cluster's clocks in this place.
    if (isCluster(redis)) return await ask();
    await clock.ready(ask);
    return clock.now();
  });
}
