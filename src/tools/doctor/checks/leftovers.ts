import type { PartReport } from "../looks/part-report.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import type { Finding } from "./finding.ts";
import type { CommandLine } from "./repair.ts";
import { count, instant, inWords } from "./words.ts";

/** Checks for messages that wait for a person, and for remains that should have been tidied. */
export function* checkLeftovers(
  { name, parts, stats }: QueueReport,
  commandLine: CommandLine,
): Generator<Finding> {
  const now = stats?.serverTime ?? Date.now();
  const sum = (number: (part: PartReport) => number) =>
    parts.reduce((total, part) => total + number(part), 0);
  const [payloads, members] = [sum((part) => part.quarantined), sum((part) => part.unreadable)];
  if (payloads + members > 0) {
    yield {
      level: "warning",
      check: "quarantine",
      queue: name,
      what: `${count(payloads + members, "message")} in the quarantine: ${payloads} that a codec refused or whose poll was given up, ${members} of unknown layout`,
      why: "they are delivered to nobody; either a consumer has another codec than the producers, or something else writes into the queue",
      repair: `look at them: ${commandLine("quarantine", "list", name)}; once the right codec is deployed: ${commandLine("quarantine", "requeue", name)}`,
    };
  }
  const dead = parts.flatMap((part) => part.dead ?? []);
  if (dead.length > 0) {
    const number = dead.reduce((total, one) => total + one.count, 0);
    const firstAt = Math.min(...dead.map((one) => one.firstAt));
    const lastAt = Math.max(...dead.map((one) => one.lastAt));
    yield {
      level: "warning",
      check: "dead-letters",
      queue: name,
      what: `${count(number, "dead letter")}, the first since ${instant(firstAt)}, the last ${inWords(Math.max(0, now - lastAt))} ago`,
      why: "these messages failed for good; nobody handles them until they are redriven",
      repair: `read the reasons: ${commandLine("dead", "list", name)}; once the handler is fixed: ${commandLine("dead", "redrive", name)}`,
    };
  }
  for (const part of parts) yield* checkOrder(name, part);
}

/** Checks the length of the insertion order. Every sweep, and every hundredth transfer, drops dead elements. */
function* checkOrder(
  queue: string,
  { orderLength, delayed, keys }: PartReport,
): Generator<Finding> {
  const most = 2 * delayed + SPARE;
  if (orderLength <= most) return;
  yield {
    level: "warning",
    check: "insertion-order",
    queue,
    what: `the insertion order ${keys.order} has ${count(orderLength, "element")} for ${count(delayed, "delayed message")}; at most ${most} should remain`,
    why: "dead elements take memory and slow down reading in insertion order (peek, readAll); nothing drops them because no process of this library moves the queue",
    repair:
      "start a process that opens the queue: its sweeps tidy the order within 36 s. If only Java moves the queue, run one that does nothing else",
  };
}

/** Dead addresses of 24 bytes that may remain in any queue, however few messages it has. */
const SPARE = 2000;
