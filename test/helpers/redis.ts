import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import type { RedisOptions } from "ioredis";
import { inject, onTestFinished } from "vitest";

/** The URL of the Redis that all tests share. Use {@link uniqueName}, and never flush it. */
export function redisUrl(): string {
  return inject("redisUrl");
}

/** A name that nobody else uses: a test's own queue in the shared Redis. */
export function uniqueName(prefix = "queue"): string {
  return `${prefix}-${inject("runId")}-${randomBytes(4).toString("hex")}`;
}

type ClientOptions = Omit<RedisOptions, "replyMapping">;

/** What a client needs to follow a master that has moved. Delayline warns of a lent one that lacks it. */
export function reconnectOnError(error: Error): boolean {
  return error.message.startsWith("READONLY");
}

/** A plain client for the test's own looks into Redis, disconnected when the test has finished. */
export function newRedis(url = redisUrl(), options: ClientOptions = {}): Redis {
  const redis = new Redis(url, { reconnectOnError, ...options });
  // A test that ends its server sees that in its commands; ioredis need not print it.
  redis.on("error", () => {});
  onTestFinished(() => redis.disconnect());
  return redis;
}
