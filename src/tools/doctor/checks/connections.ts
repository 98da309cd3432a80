import type { ServerReport } from "../looks/server-report.ts";
import type { Finding } from "./finding.ts";
import { redisCli } from "./repair.ts";

/** Checks how Redis treats connections, and whether it has room for more. */
export function* checkConnections(server: ServerReport): Generator<Finding> {
  yield* checkTimeouts(server);
  yield* checkCount(server);
  yield* checkBuffers(server);
}

function* checkTimeouts({ address, config }: ServerReport): Generator<Finding> {
  const timeout = Number(config?.get("timeout") ?? 0);
  if (timeout > 0 && timeout < LONG_TIMEOUT) {
    yield {
      level: "warning",
      check: "timeout",
      what: `${address} closes connections that are idle for ${timeout} s (timeout)`,
      why: "a client that you lend, or one that only offers, loses its connection between two calls; whether a call on its way was carried out is then unknown",
      repair: redisCli(address, "CONFIG SET timeout 0"),
    };
  }
  if (config?.get("tcp-keepalive") === "0") {
    yield {
      level: "warning",
      check: "tcp-keepalive",
      what: `${address} never checks whether a client is still there (tcp-keepalive 0)`,
      why: "connections of vanished machines stay forever: they count towards maxclients, and one that blocks may swallow a message",
      repair: redisCli(address, "CONFIG SET tcp-keepalive 60"),
    };
  }
}

function* checkCount({ address, info, config }: ServerReport): Generator<Finding> {
  const most = Number(config?.get("maxclients") ?? info.get("maxclients") ?? 0);
  const count = Number(info.get("connected_clients") ?? 0);
  if (most === 0 || count < most * CROWDED) return;
  yield {
    level: "warning",
    check: "maxclients",
    what: `${address} has ${count} connections of ${most} (maxclients)`,
    why: "at the limit, a process that starts or reconnects is refused: it takes and moves nothing",
    repair: `${redisCli(address, `CONFIG SET maxclients ${Math.max(10_000, most * 2)}`)}; to see who holds them: ${redisCli(address, "CLIENT LIST")}`,
  };
}

function* checkBuffers({ address, config }: ServerReport): Generator<Finding> {
  const text = config?.get("client-output-buffer-limit") ?? "";
  for (const [, kind = "", hard = "0", soft = "0"] of text.matchAll(/(\w+) (\d+) (\d+) \d+/g)) {
    const least = LEAST_BUFFER[kind];
    const limits = [Number(hard), Number(soft)].filter((limit) => limit > 0);
    const smallest = Math.min(...limits);
    if (least === undefined || smallest >= least) continue;
    yield {
      level: "warning",
      check: "output-buffer",
      what: `${address} disconnects ${kind} clients with more than ${smallest} bytes of unsent output (client-output-buffer-limit)`,
      why:
        kind === "pubsub"
          ? "a burst of wake-ups disconnects the process that moves messages; they are late until it has reconnected"
          : "a page of 100 large messages disconnects its reader, and a take loses its messages with the connection",
      repair: redisCli(
        address,
        `CONFIG SET client-output-buffer-limit '${kind === "pubsub" ? "pubsub 33554432 8388608 60" : "normal 0 0 0"}'`,
      ),
    };
  }
}

/**
 * Bytes that each kind of client may be sent in a burst: a wake-up has about a hundred, a message at most a mebibyte.
 */
const LEAST_BUFFER: Readonly<Record<string, number>> = { pubsub: 2 ** 20, normal: 2 ** 26 };

/** Seconds. The connections of this library are busy every second or two. */
const LONG_TIMEOUT = 10;

/** The share of `maxclients` from which there is hardly room for more. */
const CROWDED = 0.8;
