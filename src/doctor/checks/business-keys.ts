import type { IndexReport } from "../looks/business-keys.ts";
import type { EarlyMove } from "../looks/early-watch.ts";
import type { PartReport } from "../looks/part-report.ts";
import type { Finding } from "./finding.ts";
import { count, instant, inWords } from "./words.ts";

/** Entries of the index of business keys that lead nowhere. */
export function* checkIndex(
  queue: string,
  { keys, delayed, indexLength }: PartReport,
  { sampleCount, deadCount, earlyDeadlines }: IndexReport,
): Generator<Finding> {
  if (deadCount === 0) return;
  yield {
    // As long as the index is no larger than the queue nothing drops them.
    level: indexLength > delayed ? "warning" : "notice",
    check: "index",
    queue,
    what: `${deadCount} of ${sampleCount} entries of ${keys.businessKeys} that were looked at lead to no message; it has ${indexLength} for ${count(delayed, "delayed message")}`,
    why: "they take memory; the keys are free all the same. Java and hand-written commands leave them",
    repair:
      "start a process that opens the queue: its sweeps drop them, within 36 s, once there are more entries than messages",
  };
  if (earlyDeadlines.length === 0) return;
  yield {
    level: "warning",
    check: "early",
    queue,
    what: `${count(earlyDeadlines.length, "message")} with a business key left the queue before ${earlyDeadlines.length === 1 ? "it was" : "they were"} due (one at ${instant(Math.max(...earlyDeadlines))}), and not by this library, which would have dropped the key`,
    why: "a Redisson whose clock is ahead moves messages early; or a Java program, or somebody by hand, removed them",
    repair: "compare the clocks of all machines that run Redisson with that of Redis",
  };
}

/** A message that was seen to become ready before it was due. */
export function* checkEarly(queue: string, { ahead }: EarlyMove): Generator<Finding> {
  yield {
    level: "error",
    check: "early",
    queue,
    what: `a message became ready ${inWords(ahead)} before it was due`,
    why: "this library moves by the clock of Redis only: a Redisson whose own clock is ahead moves this queue, and all messages are early (unless somebody rescheduled this one in the half second of the watch: run the doctor again)",
    repair:
      "set the clocks of all machines that run Redisson (chrony, ntpd); or let Redisson only take: an RBlockingQueue without an RDelayedQueue moves nothing",
  };
}
