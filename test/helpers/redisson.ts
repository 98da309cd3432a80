import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import { queueKeys } from "../../src/queue/keys.ts";

// Redisson's own scripts (RedissonDelayedQueue.java).

/** The layout in which a Redisson offers: ids of 8 or 16 bytes, or `"old"`, which it used before 3.21.1. */
export type Layout = "8-byte ids" | "16-byte ids" | "old";

/** Offers a payload as Redisson does; returns its deadline, by the caller's own clock. */
export async function offerAsRedisson(
  redis: Redis,
  name: string,
  payload: string | Buffer,
  delay: number,
  layout: Layout = "8-byte ids",
): Promise<number> {
  const { ready, timeouts, order, channel } = queueKeys(name);
  const deadline = Date.now() + delay;
  const pack =
    layout === "old"
      ? "struct.pack('dLc0', tonumber(ARGV[2]), string.len(ARGV[3]), ARGV[3])"
      : "struct.pack('Bc0Lc0', string.len(ARGV[2]), ARGV[2], string.len(ARGV[3]), ARGV[3])";
  const randomId =
    layout === "old"
      ? String(randomBytes(8).readBigInt64LE())
      : randomBytes(layout === "8-byte ids" ? 8 : 16);
  await redis.eval(
    `local value = ${pack};
    redis.call('zadd', KEYS[2], ARGV[1], value);
    redis.call('rpush', KEYS[3], value);
    local v = redis.call('zrange', KEYS[2], 0, 0);
    if v[1] == value then
      redis.call('publish', KEYS[4], ARGV[1]);
    end;`,
    4,
    ready,
    timeouts,
    order,
    channel,
    deadline,
    randomId,
    payload,
  );
  return deadline;
}

/** Moves due messages as Redisson 3.21.1 and later does, by the caller's own clock. */
export async function transferAsRedisson(redis: Redis, name: string): Promise<string | null> {
  const { ready, timeouts, order } = queueKeys(name);
  const next = await redis.eval(
    `local expiredValues = redis.call('zrangebyscore', KEYS[2], 0, ARGV[1], 'limit', 0, ARGV[2]);
    if #expiredValues > 0 then
      for i, v in ipairs(expiredValues) do
        local randomId, value = struct.unpack('Bc0Lc0', v);
        redis.call('rpush', KEYS[1], value);
        redis.call('lrem', KEYS[3], 1, v);
      end;
      redis.call('zrem', KEYS[2], unpack(expiredValues));
    end;
    local v = redis.call('zrange', KEYS[2], 0, 0, 'WITHSCORES');
    if v[1] ~= nil then
      return v[2];
    end
    return nil;`,
    3,
    ready,
    timeouts,
    order,
    Date.now(),
    100,
  );
  return next as string | null;
}
