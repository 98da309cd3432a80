import type { DelaylineError } from "../../src/errors.ts";
import { Server } from "../../src/redis/server.ts";
import { redisUrl } from "./redis.ts";

interface ServerOptions {
  readonly url?: string;
  readonly report?: (error: DelaylineError) => void;
  readonly callTimeout?: number;
  readonly unreachableTimeout?: number;
}

/** Opens the shared Redis by default, as a client opens a server. */
export function newServer({
  url = redisUrl(),
  report = () => {},
  callTimeout = 5000,
  unreachableTimeout = 2000,
}: ServerOptions = {}): Server {
  return new Server(url, { callTimeout, unreachableTimeout }, { report, onRecovered: () => {} });
}
