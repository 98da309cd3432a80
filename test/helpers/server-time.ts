import type { Redis } from "ioredis";

/** The Redis server's clock in epoch milliseconds, with fractions. */
export async function serverTime(redis: Redis): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}
