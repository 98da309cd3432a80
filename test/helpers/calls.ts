import type { Redis } from "ioredis";

/** How often each command was called, also by scripts. */
export async function callsOf(redis: Redis): Promise<Record<string, number>> {
  const found = (await redis.info("commandstats")).matchAll(/cmdstat_([\w|]+):calls=(\d+)/g);
  return Object.fromEntries(Array.from(found, ([, name = "", calls]) => [name, Number(calls)]));
}
