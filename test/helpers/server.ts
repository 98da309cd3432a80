import type { DelaylineError } from "../../src/errors.ts";
import { BusyWait } from "../../src/time/busy-wait.ts";
import { DEFAULTS } from "../../src/queue/options.ts";
import { Server } from "../../src/redis/server.ts";
import { redisUrl } from "./redis.ts";

interface ServerOptions {
  readonly url?: string;
  readonly report?: (error: DelaylineError) => void;
  readonly callTimeout?: number;
  readonly unreachableTimeout?: number;
  readonly heartbeat?: number;
}

/** Opens the shared Redis by default, as a client opens a server. */
export function newServer({
  url = redisUrl(),
  report = () => {},
  callTimeout = 5000,
  unreachableTimeout = 2000,
  heartbeat = DEFAULTS.heartbeat,
}: ServerOptions = {}): Server {
  const busyWait = new BusyWait(DEFAULTS.busyWait);
  const limits = { callTimeout, unreachableTimeout, heartbeat, busyWait };
  return new Server(url, limits, { report, onRecovered: () => {} });
}
