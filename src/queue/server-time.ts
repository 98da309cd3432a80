import { tellTime } from "../lua/queue/stats.ts";
import { run } from "../lua/script.ts";
import { isCluster, type RedisClient } from "../redis/client.ts";
import { askTime } from "../time/server-clock.ts";
import type { QueueKeys } from "./keys.ts";

/**
 * Returns the time (epoch ms) of the server that holds these keys.
 *
 * Rejects with ioredis's errors.
 */
export async function serverTime(redis: RedisClient, keys: QueueKeys): Promise<number> {
  if (isCluster(redis)) return await run(redis, tellTime, keys, {});
  return await askTime(redis);
}
