import type { PartReport } from "../looks/part-report.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import type { Finding } from "./finding.ts";
import { quoted } from "./repair.ts";
import { count, instant, inWords } from "./words.ts";

/** What waits for a human, and what should have been cleared away. */
export function* checkLeftovers({ name, parts, stats }: QueueReport): Generator<Finding> {
  const now = stats?.serverTime ?? Date.now();
  const sum = (number: (part: PartReport) => number) =>
    parts.reduce((total, part) => total + number(part), 0);
  const [payloads, members] = [sum((part) => part.quarantined), sum((part) => part.unreadable)];
  const shell = quoted(name);
  if (payloads + members > 0) {
    yield {
      level: "warning",
      check: "quarantine",
      queue: name,
      what: `${count(payloads + members, "message")} in the quarantine: ${payloads} that a codec refused or whose poll was given up, ${members} of unknown layout`,
      why: "a consumer has another codec than the producers, or somebody writes what nobody can read; they are delivered to nobody",
      repair: `npx delayline quarantine list ${shell}; when the right codec is deployed: npx delayline quarantine requeue ${shell}`,
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
      repair: `npx delayline dead list ${shell} tells the reasons; mend the handler, then npx delayline dead redrive ${shell}`,
    };
  }
  for (const part of parts) yield* checkOrder(name, part);
}

/** The insertion order, of which dead elements are dropped as messages move and with each sweep. */
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
    what: `the insertion order ${keys.order} has ${orderLength} elements for ${count(delayed, "delayed message")}; ${most} at most should remain`,
    why: "dead elements take memory, and reading in insertion order (peek, readAll) gets slow; nobody tidies, since no process of this library moves the queue",
    repair:
      "start a process that opens the queue: its sweeps tidy, within 36 s. If only Java moves it, run one that does nothing else",
  };
}

/** Addresses of 24 bytes that may remain, however few messages there are. */
const SPARE = 2000;
