import { DEFAULTS, type DelaylineOptions } from "../queue/options.ts";
import { Server, type Servers } from "../redis/server.ts";
import type { TroublesListener } from "../redis/troubles.ts";

/**
 * Opens each server that the options name, in their order. Nothing is connected yet.
 *
 * @throws {TypeError} if an address is not legal.
 */
export function openServers(
  { redis = DEFAULTS.redis }: DelaylineOptions,
  limits: { readonly callTimeout: number; readonly closeTimeout: number },
  listener: TroublesListener,
): Servers {
  const [first, ...others] = Array.isArray(redis) ? redis : [redis];
  if (first === undefined) throw new TypeError("redis must name at least one server, got none");
  const open = (server: typeof first) => new Server(server, limits, listener);
  return [open(first), ...others.map(open)];
}
