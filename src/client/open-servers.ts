import { DEFAULTS, type DelaylineOptions, type RedisAddress } from "../queue/options.ts";
import { Server, type ServerLimits, type Servers } from "../redis/server.ts";
import type { TroublesListener } from "../redis/troubles.ts";

/**
 * Opens each server that the options name, in their order. Nothing is connected yet.
 *
 * @throws {TypeError} if an address is not legal.
 */
export function openServers(
  options: DelaylineOptions,
  limits: ServerLimits,
  listener: TroublesListener,
): Servers {
  // An unset environment variable must not lead to another Redis: only without the key, the default applies.
  const redis = "redis" in options ? options.redis : DEFAULTS.redis;
  const [first, ...others] = Array.isArray(redis) ? redis : [redis];
  if (Array.isArray(redis) && redis.length === 0) {
    throw new TypeError("redis must name at least one server, got none");
  }
  const open = (server: typeof first) => new Server(server as RedisAddress, limits, listener);
  return [open(first), ...others.map(open)];
}
