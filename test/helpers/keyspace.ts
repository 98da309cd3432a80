import type { Redis } from "ioredis";

/** Everything that a database holds: each key with its value, as Redis serializes it. */
export async function keyspaceOf(redis: Redis): Promise<Record<string, string>> {
  const all: Record<string, string> = {};
  for (const key of (await redis.keys("*")).toSorted()) {
    const value = await redis.dumpBuffer(key);
    if (value !== null) all[key] = value.toString("base64");
  }
  return all;
}
