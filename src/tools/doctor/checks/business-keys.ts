import type { IndexReport } from "../looks/business-keys.ts";
import type { EarlyMove } from "../looks/early-watch.ts";
import type { PartReport } from "../looks/part-report.ts";
import type { Finding } from "./finding.ts";
import { agree, count, instant, inWords } from "./words.ts";

/** Checks for entries in the index of business keys that point to no message. */
export function* checkIndex(
  queue: string,
  { keys, delayed, indexLength }: PartReport,
  { sampleCount, deadCount, earlyDeadlines }: IndexReport,
): Generator<Finding> {
  if (deadCount === 0) return;
  yield {
    // Sweeps drop dead entries only once there are more entries than messages.
    level: indexLength > delayed ? "warning" : "notice",
    check: "index",
    queue,
    what: `${deadCount} of ${sampleCount} sampled entries of ${keys.businessKeys} point to no message; it has ${indexLength} for ${count(delayed, "delayed message")}`,
    why: "they take memory, but their keys can be used again; Java and manual commands leave such entries",
    repair:
      "start a process that opens the queue: its sweeps drop them within 36 s, once there are more entries than messages",
  };
  if (earlyDeadlines.length === 0) return;
  yield {
    level: "warning",
    check: "early",
    queue,
    what: `${count(earlyDeadlines.length, "message")} with a business key left the queue before ${agree(earlyDeadlines.length, "it was", "they were")} due (one at ${instant(Math.max(...earlyDeadlines))}); this library did not remove ${agree(earlyDeadlines.length, "it", "them")}, or the key would be gone`,
    why: "a Redisson whose clock is ahead moves messages early; or a Java program or a person removed them",
    repair: "compare the clocks of all machines that run Redisson with the clock of Redis",
  };
}

/** Reports a message that became ready before it was due. */
export function* checkEarly(queue: string, { ahead }: EarlyMove): Generator<Finding> {
  yield {
    level: "error",
    check: "early",
    queue,
    what: `a message became ready ${inWords(ahead)} before it was due`,
    why: "this library moves messages by the clock of Redis, so a Redisson whose own clock is ahead moves this queue, and all its messages are early (unless somebody rescheduled this one while the doctor watched: run it again)",
    repair:
      "set the clocks of all machines that run Redisson (chrony, ntpd); or let Redisson only take: an RBlockingQueue without an RDelayedQueue moves nothing",
  };
}
