import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import type { RedisOptions } from "ioredis";
import { inject, onTestFinished } from "vitest";

/** The URL of the Redis that all tests share. Use {@link uniqueName}, and never flush it. */
export function redisUrl(): string {
  return inject("redisUrl");
}

/** A name that no other test uses, for a queue in the shared Redis. */
export function uniqueName(prefix = "queue"): string {
  return `${prefix}-${inject("runId")}-${randomBytes(4).toString("hex")}`;
}

type ClientOptions = Omit<RedisOptions, "replyMapping">;

/** A lent client needs this to follow a master that has moved; without it Delayline warns. */
export function reconnectOnError(error: Error): boolean {
  return error.message.startsWith("READONLY");
}

/** A plain client for the test's own use, disconnected when the test has finished. */
export function newRedis(url = redisUrl(), options: ClientOptions = {}): Redis {
  const redis = new Redis(url, { reconnectOnError, ...options });
  // A test that stops its server sees its commands fail; ioredis need not print that as well.
  redis.on("error", () => {});
  onTestFinished(() => redis.disconnect());
  return redis;
}
