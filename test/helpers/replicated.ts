import { eventually } from "./eventually.ts";
import type { OwnServer } from "./own-server.ts";
import { newRedis } from "./redis.ts";

/**
 * Resolves when `replicas` replicas have everything that their master has acknowledged until now. Returns the instant of
 * the call (`performance.now()`): a failover to one of them loses nothing that was acknowledged before.
 *
 * @param key is written. In a Cluster it must belong to a slot of the master.
 */
export async function replicated(
  master: OwnServer,
  replicas: number,
  key = "delayline-test:replicated",
): Promise<number> {
  const redis = newRedis(master.url);
  const at = performance.now();
  // WAIT waits for the writes of its own connection, and so for all earlier writes.
  await redis.incr(key);
  await eventually(async () => (await redis.wait(replicas, 1000)) >= replicas, {
    within: 30_000,
    what: `${replicas} replicas have everything`,
  });
  return at;
}
