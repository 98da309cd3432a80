import { LAWS } from "../../view/health.ts";
import { shellWord } from "../../view/text.ts";
import type { EarlyMove, IndexReport } from "../looks/close-look.ts";
import type { PartReport } from "../looks/part-report.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import { agree, redisCliAtKey, type CommandLine, type Finding } from "./finding.ts";
import { formatInstant } from "../../view/instants.ts";
import { formatCount, formatDuration } from "../../view/words.js";

/** Checks whether another program uses a key of the queue. */
export function* checkKeys(queue: string, { wrongTypes, site }: PartReport): Generator<Finding> {
  for (const { key, found, expected } of wrongTypes) {
    const taken = site.keyPrefix + key;
    // In the same slot of a Cluster.
    const other = shellWord(taken.includes("{") ? `set-aside:${taken}` : `{${taken}}:set-aside`);
    yield {
      level: "error",
      check: "key-type",
      queue,
      what: `the key ${key} holds a ${found}; the queue needs a ${expected} there`,
      why: "Redis refuses every script that touches it (WRONGTYPE); the rest of the queue was not checked",
      repair: `find out which program writes it, then move it away: ${redisCliAtKey(site, "RENAME", key, other)}; or give the queue another name`,
    };
  }
}

/** Checks whether some process uses the queue under the name that differs in braces alone. */
export function* checkOtherName(
  queue: string,
  { otherList, keys, site }: PartReport,
): Generator<Finding> {
  if (otherList === undefined) return;
  const { key, length } = otherList;
  const here = shellWord(site.keyPrefix + keys.ready);
  const move = redisCliAtKey(site, `-r ${length} LMOVE`, key, `${here} LEFT RIGHT`);
  yield {
    level: "warning",
    check: "other-name",
    queue,
    what: `the LIST ${key} holds ${formatCount(length, "element")}: the ready messages of queue ${JSON.stringify(key)}, which has all other keys in common with this one`,
    why: "processes that use the two names move each other's messages, each into the LIST of its own name, where consumers of the other do not look",
    repair: `use one of the names in all processes; then move what is left under the other one, here for ${JSON.stringify(queue)}: ${move}; if another program writes that LIST, give the queue another name`,
  };
}

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
      level: LAWS.quarantine.level,
      check: "quarantine",
      queue: name,
      what: `${formatCount(payloads + members, "message")} in the quarantine: ${payloads} that a codec refused or whose poll was given up, ${members} of unknown layout`,
      why: "they are delivered to nobody; either a consumer has another codec than the producers, or something else writes into the queue",
      repair: repairQuarantine(name, payloads, members, commandLine),
    };
  }
  const dead = parts.flatMap((part) => part.dead ?? []);
  if (dead.length > 0) {
    const number = dead.reduce((total, one) => total + one.count, 0);
    const firstAt = Math.min(...dead.map((one) => one.firstAt));
    const lastAt = Math.max(...dead.map((one) => one.lastAt));
    yield {
      level: LAWS["dead-letters"].level,
      check: "dead-letters",
      queue: name,
      what: `${formatCount(number, "dead letter")}, the first since ${formatInstant(firstAt)}, the last ${formatDuration(Math.max(0, now - lastAt))} ago`,
      why: "these messages failed for good; nobody handles them until they are redriven",
      repair: `count them by reason: ${commandLine("dead", "reasons", name)}; once a cause is gone, redrive those of its reason (--reason), or all: ${commandLine("dead", "redrive", name)}`,
    };
  }
  const since = parts.flatMap((part) => part.remembersOnlySince ?? []);
  if (since.length > 0) {
    const at = Math.max(...since);
    yield {
      level: "notice",
      check: "remembered",
      queue: name,
      what: `the record of handled messages (keepHandled) is full${since.length < parts.length ? ` in ${since.length} of ${parts.length} partitions` : ""}: it reaches back to ${formatInstant(at)} only, ${formatDuration(Math.max(0, now - at))}`,
      why: "it holds some 100,000 messages, and the oldest go first, before the time of keepHandled is over: nobody can tell whether an earlier message was handled",
      repair:
        "give keepHandled a shorter time, so that it says what is true; or spread the queue over more partitions, each of which has a record of its own",
    };
  }
  for (const part of parts) yield* checkOrder(name, part);
}

function repairQuarantine(
  name: string,
  payloads: number,
  members: number,
  commandLine: CommandLine,
): string {
  const requeue =
    payloads === 0
      ? ""
      : `; once the right codec is deployed: ${commandLine("quarantine", "requeue", name)}`;
  // No codec helps these.
  const remove =
    members === 0
      ? ""
      : `; those of unknown layout cannot be requeued: find out who writes them, and then ${payloads === 0 ? "" : "(after requeueing the others) "}remove them: ${commandLine("quarantine", "remove", name)}`;
  return `look at them: ${commandLine("quarantine", "list", name)}${requeue}${remove}`;
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
    what: `the insertion order ${keys.order} has ${formatCount(orderLength, "element")} for ${formatCount(delayed, "delayed message")}; at most ${most} should remain`,
    why: "dead elements take memory and slow down reading in insertion order (peek, readAll); nothing drops them because no process of this library moves the queue",
    repair:
      "start a process that opens the queue: its sweeps tidy the order within 36 s. If only Java moves the queue, run one that does nothing else",
  };
}

/** Dead addresses of 24 bytes that may remain in any queue, however few messages it has. */
const SPARE = 2000;

/** Checks for entries in the index of business keys that point to no message. */
export function* checkIndex(
  queue: string,
  { keys, delayed, retries, indexLength }: PartReport,
  { sampleCount, deadCount, earlyDeadlines }: IndexReport,
): Generator<Finding> {
  if (deadCount === 0) return;
  yield {
    // Sweeps drop dead entries only once there are more entries than messages.
    level: indexLength > delayed + retries ? "warning" : "notice",
    check: "index",
    queue,
    what: `${deadCount} of ${sampleCount} sampled entries of ${keys.businessKeys} point to no message; it has ${indexLength} for ${formatCount(delayed, "delayed message")}${retries > 0 ? ` and ${retries} retrying` : ""}`,
    why: "they take memory, but their keys can be used again; Java and manual commands leave such entries",
    repair:
      "start a process that opens the queue: its sweeps drop them within 36 s, once there are more entries than messages",
  };
  if (earlyDeadlines.length === 0) return;
  yield {
    level: "warning",
    check: "early",
    queue,
    what: `${formatCount(earlyDeadlines.length, "message")} with a business key left the queue before ${agree(earlyDeadlines.length, "it was", "they were")} due (one at ${formatInstant(Math.max(...earlyDeadlines))}); this library did not remove ${agree(earlyDeadlines.length, "it", "them")}, or the key would be gone`,
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
    what: `a message became ready ${formatDuration(ahead)} before it was due`,
    why: "this library moves messages by the clock of Redis, so a Redisson whose own clock is ahead moves this queue, and all its messages are early (unless somebody rescheduled this one while the doctor watched: run it again)",
    repair:
      "set the clocks of all machines that run Redisson (chrony, ntpd); or let Redisson only take: an RBlockingQueue without an RDelayedQueue moves nothing",
  };
}
