import type { ServerReport } from "../looks/server-report.ts";
import type { Finding } from "./finding.ts";
import { inBackticks, redisCli } from "./repair.ts";
import { inWords } from "./words.ts";

/** Checks the clock of a server, and how long it takes to reply. */
export function* checkTiming(server: ServerReport): Generator<Finding> {
  const { address, clockOffset, clockError, roundTrip } = server;
  if (Math.abs(clockOffset) - clockError > FAR_OFF) {
    yield {
      level: "warning",
      check: "clock",
      what: `the clock of ${address} is ${inWords(Math.abs(clockOffset))} ${clockOffset > 0 ? "ahead of" : "behind"} the clock of this machine`,
      why: "delays count on the server's clock and stay right; dates (offerAt), and everything that Java offers or moves, are early or late by as much",
      repair:
        "let both machines follow the same time server (chrony, ntpd), slewing their clocks; then run the doctor again",
    };
  }
  if (roundTrip > SLOW) {
    yield {
      level: "warning",
      check: "latency",
      what: `${address} replies after ${roundTrip.toFixed(1)} ms (the fastest of several commands)`,
      why: "every message is late by at least a round trip, and a worker that takes messages one by one takes at most one per round trip",
      repair: `run the workers close to Redis; to see whether Redis itself is slow: ${redisCli(address, "SLOWLOG GET 10")}, and on its machine ${inBackticks("redis-cli --intrinsic-latency 5")}`,
    };
  }
}

/** Checks whether the clocks of several servers agree. */
export function* checkClocks(servers: readonly ServerReport[]): Generator<Finding> {
  const sorted = servers.toSorted((a, b) => a.clockOffset - b.clockOffset);
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (first === undefined || last === undefined) return;
  const difference = last.clockOffset - first.clockOffset;
  if (difference - first.clockError - last.clockError <= FAR_OFF) return;
  yield {
    level: "warning",
    check: "clock",
    what: `the clock of ${last.address} is ${inWords(difference)} ahead of the clock of ${first.address}`,
    why: "after a failover, or when a message moves to another partition, its deadline is early or late by as much",
    repair: "let all servers follow the same time server (chrony, ntpd), slewing their clocks",
  };
}

/** Milliseconds by which clocks may differ. */
const FAR_OFF = 1000;

/** Milliseconds that a round trip may take. */
const SLOW = 20;
