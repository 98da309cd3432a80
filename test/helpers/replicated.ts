import { eventually } from "./eventually.ts";
import type { OwnServer } from "./own-server.ts";
import { newRedis } from "./redis.ts";

/**
 * Resolves when so many replicas have what their master has acknowledged until now, and tells when that was, by
 * `performance.now()`. From then on a failover to one of them loses nothing that is older.
 *
 * @param key is written: in a Cluster, one of a slot of the master's.
 */
export async function replicated(
  master: OwnServer,
  replicas: number,
  key = "delayline-test:replicated",
): Promise<number> {
  const redis = newRedis(master.url);
  const at = performance.now();
  // WAIT waits for what its own connection has written, and with it for all that was before.
  await redis.incr(key);
  await eventually(async () => (await redis.wait(replicas, 1000)) >= replicas, {
    within: 30_000,
    what: `${replicas} replicas have everything`,
  });
  return at;
}
