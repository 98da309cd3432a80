import type { ServerReport } from "../looks/server-report.ts";
import type { Finding } from "./finding.ts";
import { redisCli } from "./repair.ts";
import { inWords } from "./words.ts";

/** How far the server is away, and whether its clock is right. */
export function* checkTiming(server: ServerReport): Generator<Finding> {
  const { address, clockOffset, clockError, roundTrip } = server;
  if (Math.abs(clockOffset) - clockError > FAR_OFF) {
    yield {
      level: "warning",
      check: "clock",
      what: `the clock of ${address} is ${inWords(Math.abs(clockOffset))} ${clockOffset > 0 ? "ahead of" : "behind"} that of this machine`,
      why: "delays are counted on the server's clock and stay right; dates (offerAt) and what Java offers or moves are early or late by as much",
      repair:
        "let both machines follow the same time server (chrony, ntpd), slewing; then run the doctor again",
    };
  }
  if (roundTrip > SLOW) {
    yield {
      level: "warning",
      check: "latency",
      what: `${address} replies after ${roundTrip.toFixed(1)} ms (the fastest of several commands)`,
      why: "every message is late by a round trip at least, and one worker that takes one by one takes no more than one per round trip",
      repair: `run the workers near Redis; is Redis itself slow? ${redisCli(address, "--intrinsic-latency 5")} on its machine, and ${redisCli(address, "SLOWLOG GET 10")}`,
    };
  }
}

/** Whether the clocks of several servers agree. */
export function* checkClocks(servers: readonly ServerReport[]): Generator<Finding> {
  const sorted = servers.toSorted((a, b) => a.clockOffset - b.clockOffset);
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (first === undefined || last === undefined) return;
  const difference = last.clockOffset - first.clockOffset;
  if (difference - first.clockError - last.clockError <= FAR_OFF) return;
  yield {
    level: "warning",
    check: "clock",
    what: `the clock of ${last.address} is ${inWords(difference)} ahead of that of ${first.address}`,
    why: "after a failover, or when a message changes its partition, deadlines are early or late by as much",
    repair: "let all servers follow the same time server (chrony, ntpd), slewing",
  };
}

/** Milliseconds. */
const FAR_OFF = 1000;

/** Milliseconds. */
const SLOW = 20;
