import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import ioredis from "ioredis/package.json" with { type: "json" };
import type { TestProject } from "vitest/node";
import { putServerOnPath } from "../../scripts/server/on-path.ts";
import { startRedis } from "../../src/adapters/testing/index.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The Redis that all tests share. */
    redisUrl: string;
    /** Part of every name that this run uses in Redis. */
    runId: string;
  }
}

/** Provides one Redis for the whole run. If none can be started the run fails; no test is skipped. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Needed even with a `REDIS_URL`: some tests start, and break, servers of their own.
  await putServerOnPath();
  const redis = await startRedis();
  const runId = randomBytes(4).toString("hex");
  console.log(
    `Tests run on Node.js ${process.version}, with ioredis ${ioredis.version}, against ${redis.description}.`,
  );
  project.provide("redisUrl", redis.url);
  project.provide("runId", runId);
  return async () => {
    // Leave a lent Redis as it was: without our keys, with everybody else's.
    if (redis.source === "REDIS_URL") await removeKeys(redis.url, `*${runId}*`);
    await redis.stop();
  };
}

async function removeKeys(url: string, match: string): Promise<void> {
  const redis = new Redis(url);
  try {
    let cursor = "0";
    do {
      const [next, keys] = await redis.scan(cursor, "MATCH", match, "COUNT", 1_000);
      if (keys.length > 0) await redis.unlink(keys);
      cursor = next;
    } while (cursor !== "0");
  } finally {
    redis.disconnect();
  }
}
