import type { QueueStats } from "../../../index.ts";
import { isOverdue, LAWS, problemsOf } from "../../view/health.ts";
import { notReadyIn } from "../../view/places.ts";
import { escapeControl, shellWord } from "../../view/text.ts";
import type { ClientConnection } from "../looks/server-report.ts";
import type { PartReport } from "../looks/part-report.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import { agree, redisCli, type CommandLine, type Finding } from "./finding.ts";
import { formatInstant } from "../../view/instants.ts";
import { formatCount, formatDuration } from "../../view/words.js";

/** Whether no process has the queue open, as far as Redis shows. */
export function isClosed({ listeners, takers = [] }: QueueReport): boolean {
  return listeners === 0 && takers.length === 0;
}

/**
 * Checks whether some process moves due messages. If no process has the queue open, that explains ready messages that nobody takes, too.
 */
export function* checkTransfer(report: QueueReport, commandLine: CommandLine): Generator<Finding> {
  const { stats, listeners, takers = [] } = report;
  if (stats === undefined) return;
  // The stats of a Cluster do not say who listens.
  const problems = problemsOf({ ...stats, listeners });
  if (problems.includes("paused")) yield paused(report, stats, commandLine);
  if (problems.includes("overdue")) yield overdue(report, stats);
  if (listeners === 0 && takers.length > 0 && !stats.isPaused) yield deaf(report, takers);
  else if (problems.includes("no-transfer")) yield noTransfer(report, stats);
  if (report.parts.some(({ hasConditions }) => hasConditions)) yield* checkConditions(report);
  if (report.parts.some(({ hasFlow }) => hasFlow)) yield* checkFlow(report);
}

/** Checks whether every mover asks the conditions of messages. */
function* checkConditions(report: QueueReport): Generator<Finding> {
  const isOlder = report.parts.some(({ isMovedUnasked }) => isMovedUnasked);
  yield* checkMovers(report, isOlder, {
    check: "unasked",
    what: "messages of the queue have conditions (onlyIf, deliverWithin)",
    why: "Java and older releases deliver due messages without asking their conditions",
  });
}

/** Checks whether every mover keeps the queue's flow. */
function* checkFlow(report: QueueReport): Generator<Finding> {
  const isOlder = report.parts.some(({ isMovedUnpaced }) => isMovedUnpaced);
  yield* checkMovers(report, isOlder, {
    check: "unpaced",
    what: "the queue has a flow",
    why: "Java and older releases move due messages past its rates and lanes",
  });
}

function* checkMovers(
  { name, isMovedByOthers }: QueueReport,
  isOlder: boolean,
  { check, what, why }: Pick<Finding, "check" | "what" | "why">,
): Generator<Finding> {
  if (!isOlder && !isMovedByOthers) return;
  yield {
    level: "warning",
    check,
    queue: name,
    what: `${what}, and ${isOlder ? "a process of an older release moved its messages last" : "a program other than this library, such as Redisson, is subscribed to it"}`,
    why,
    repair: isOlder
      ? "update every process that opens the queue, also one that only offers (or give that one transfer: false)"
      : "let Redisson only take: an RBlockingQueue without an RDelayedQueue moves nothing",
  };
}

/** Whether messages were dropped since they were late, and a process moves messages: the next look shows whether it goes on. */
export function mayDropLate({ stats, listeners = 0 }: QueueReport): boolean {
  return stats !== undefined && !stats.isPaused && stats.droppedLate > 0 && listeners > 0;
}

/** Checks whether messages are dropped as late while a process moves them. */
export function* checkDrops(before: QueueReport, after: QueueReport): Generator<Finding> {
  if (!mayDropLate(before) || !mayDropLate(after)) return;
  const total = after.stats?.droppedLate ?? 0;
  const more = total - (before.stats?.droppedLate ?? 0);
  if (more <= 0) return;
  yield {
    level: "warning",
    check: "dropped-late",
    queue: after.name,
    what: `${formatCount(more, "message")} ${agree(more, "was", "were")} dropped in the last half second, since ${agree(more, "its", "their")} deliverWithin had passed; ${total} so far`,
    why: "a process moves the queue's messages, so nothing is down: deliverWithin is shorter than a message takes to be moved, and nearly every such message is lost",
    repair:
      "give a longer deliverWithin, which counts in milliseconds; what has been dropped is gone, and the channel delayline:dropped tells of each",
  };
}

function paused({ name }: QueueReport, stats: QueueStats, commandLine: CommandLine): Finding {
  const late = lateness(stats);
  const { overdue: due } = stats;
  return {
    level: LAWS.paused.level,
    check: "paused",
    queue: name,
    what: `the queue is paused${stats.pauseReason === undefined ? "" : ` (${escapeControl(stats.pauseReason)})`}; ${formatCount(due, "message")} ${agree(due, "is", "are")} due${late > 0 ? `, the first for ${formatDuration(late)}` : ""}`,
    why: "nothing becomes ready and nothing is delivered until somebody resumes it; messages can still be offered",
    repair: `see who paused it, and when: ${commandLine("log", name)}; then: ${commandLine("resume", name)}`,
  };
}

function overdue(report: QueueReport, stats: QueueStats): Finding {
  const { name } = report;
  const { overdue: due, nextDeadline = NaN, serverTime, perPartition } = stats;
  const late = perPartition
    .filter((one) => one.overdue > 0 && isOverdue(one.nextDeadline, serverTime))
    .map((one) => one.partition);
  const where =
    late.length === 0 || late.length === perPartition.length
      ? ""
      : `, in partition ${late.join(", ")}`;
  const nobody = isClosed(report);
  return {
    level: LAWS.overdue.level,
    check: "overdue",
    queue: name,
    what: `${formatCount(due, "message")} ${agree(due, "is", "are")} overdue, the first since ${formatInstant(nextDeadline)} (${formatDuration(serverTime - nextDeadline)})${where}${nobody ? `; no process listens to the queue${alsoReady(stats)}` : ""}`,
    why: "no process moves due messages, so no consumer receives them",
    repair: nobody
      ? "start a process that opens the queue, such as your worker: it moves overdue messages at once"
      : 'read the "error" events of the processes that open the queue: they name the reply of Redis (NOPERM, ERR, WRONGTYPE, READONLY, OOM); a process with transfer: false moves nothing, so start one without',
  };
}

function deaf({ name, parts }: QueueReport, takers: readonly ClientConnection[]): Finding {
  const [part] = parts.filter(({ partition }) => partition >= 0).concat(parts) as [PartReport];
  const rule = `&redisson_delay_queue_channel:${part.keys.channel.replace(/^[^:]*:/, "")}`;
  const [{ user } = { user: "default" }] = takers;
  const allow = redisCli(part.site, `ACL SETUSER ${shellWord(user)} ${shellWord(rule)}`);
  return {
    level: "warning",
    check: "deaf",
    queue: name,
    what: `${formatCount(takers.length, "connection")} ${agree(takers.length, "takes", "take")} messages from the queue, and none is subscribed to its channel`,
    why: "wake-ups do not arrive: messages are up to a second late, and a pause takes effect late",
    repair: `allow the channel to their user: ${allow}; if a proxy stands between, let it pass SUBSCRIBE`,
  };
}

function noTransfer({ name }: QueueReport, stats: QueueStats): Finding {
  const notReady = notReadyIn(stats);
  const first = formatInstant(stats.nextDeadline ?? NaN);
  // Ready messages stand still already.
  const check = stats.ready > 0 ? "no-consumer" : "no-transfer";
  return {
    level: LAWS[check].level,
    check,
    queue: name,
    what: `no process listens to the queue, and ${formatCount(notReady, "message")} ${agree(notReady, `waits in it, due at ${first}`, `wait in it, the first due at ${first}`)}${alsoReady(stats)}`,
    why: "a due message becomes ready only while some process has the queue open, without transfer: false, and nobody takes the ready ones",
    repair:
      "start your worker before then, or any process that calls line.getDelayedQueue(name) with the name of the queue",
  };
}

function alsoReady({ ready }: QueueStats): string {
  return ready === 0 ? "" : `; ${formatCount(ready, "message")} ${agree(ready, "is", "are")} ready`;
}

/** How many milliseconds ago the first deadline passed; negative if it has not. */
function lateness({ nextDeadline, serverTime }: QueueStats): number {
  return nextDeadline === undefined ? -Infinity : serverTime - nextDeadline;
}
