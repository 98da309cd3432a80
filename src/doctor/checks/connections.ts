import type { ServerReport } from "../looks/server-report.ts";
import type { Finding } from "./finding.ts";
import { redisCli } from "./repair.ts";

/** What Redis does with connections, and whether there is room for more. */
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
      what: `${address} cuts connections that are idle for ${timeout} s (timeout)`,
      why: "a client that you lend, or one that only offers, is cut off between two calls; what was under way is unknown",
      repair: redisCli(address, "CONFIG SET timeout 0"),
    };
  }
  if (config?.get("tcp-keepalive") === "0") {
    yield {
      level: "warning",
      check: "tcp-keepalive",
      what: `${address} never asks whether a client is still there (tcp-keepalive 0)`,
      why: "connections of machines that vanished stay for ever, take places of maxclients, and one that blocks may swallow a message",
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
    why: "when there is no room, a process that starts or reconnects is refused, and takes and moves nothing",
    repair: `${redisCli(address, `CONFIG SET maxclients ${Math.max(10_000, most * 2)}`)}; who holds them: ${redisCli(address, "CLIENT LIST")}`,
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
      what: `${address} cuts off ${kind} clients that are sent more than ${smallest} bytes at once (client-output-buffer-limit)`,
      why:
        kind === "pubsub"
          ? "a burst of wake-ups cuts off whoever moves messages; they are late until it has connected again"
          : "a page of 100 large messages cuts off whoever reads it, and a take loses its messages with the connection",
      repair: redisCli(
        address,
        `CONFIG SET client-output-buffer-limit '${kind === "pubsub" ? "pubsub 33554432 8388608 60" : "normal 0 0 0"}'`,
      ),
    };
  }
}

/** Bytes that each kind of client is sent in a burst. A wake-up has about a hundred, a message a mebibyte at most. */
const LEAST_BUFFER: Readonly<Record<string, number>> = { pubsub: 2 ** 20, normal: 2 ** 26 };

/** Seconds. Our own connections are busy every second or two. */
const LONG_TIMEOUT = 10;

const CROWDED = 0.8;
