import { DEFAULTS, type DelaylineOptions, type RedisAddress } from "../queue/options.ts";
import type { Sign } from "../redis/fuse.ts";
import { Server, type ServerLimits, type Servers } from "../redis/server.ts";
import type { TroublesListener } from "../redis/troubles.ts";

/** Receives what the servers of a client report. */
export interface ServersListener extends TroublesListener {
  /** A server went back to an older copy of its data. */
  readonly onFallBack?: (signs: readonly Sign[]) => void;
  /** Called after that, and again until it resolves; until then nothing is moved or taken there. */
  readonly beforeGoingOn?: (server: Server) => Promise<void>;
}

/**
 * Opens each server that the options name, in their order. Nothing is connected yet.
 *
 * @throws {TypeError} if an address is not legal.
 */
export function openServers(
  options: DelaylineOptions,
  limits: ServerLimits,
  listener: ServersListener,
): Servers {
  // An unset environment variable must not lead to another Redis: only without the key, the default applies.
  const redis = "redis" in options ? options.redis : DEFAULTS.redis;
  const [first, ...others] = Array.isArray(redis) ? redis : [redis];
  if (Array.isArray(redis) && redis.length === 0) {
    throw new TypeError("redis must name at least one server, got none");
  }
  const open = (address: typeof first) => {
    const beforeGoingOn = async () => await listener.beforeGoingOn?.(server);
    const server: Server = new Server(address as RedisAddress, limits, {
      ...listener,
      beforeGoingOn,
    });
    return server;
  };
  return [open(first), ...others.map(open)];
}
