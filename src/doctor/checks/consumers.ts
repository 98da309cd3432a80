import type { ConsumerReport, GroupReport, PartReport } from "../looks/part-report.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import type { Finding } from "./finding.ts";
import { quoted } from "./repair.ts";
import { count, inWords } from "./words.ts";

/** What the dead have left, and how long messages of a reliable queue have been ready. */
export function* checkConsumers(report: QueueReport): Generator<Finding> {
  const { name, stats } = report;
  if (stats === undefined) return;
  for (const found of groupsOf(report).values()) yield* checkOrphans(name, found);
  const age = stats.oldestReadyAge ?? 0;
  if (age > OLD && !stats.isPaused) {
    yield {
      level: "warning",
      check: "backlog",
      queue: name,
      what: `${count(stats.ready, "message")} ${stats.ready === 1 ? "is" : "are"} ready, the oldest for ${inWords(age)}`,
      why: "consumers are too slow, stuck, or not there",
      repair: "start more consumers, or raise concurrency; does what the handlers call reply?",
    };
  }
}

/** The groups that have something to do, and nobody who is alive; an empty name: there is no group at all. */
export function idleGroups(report: QueueReport): string[] {
  const { stats } = report;
  if (stats?.kind !== "reliable" || stats.isPaused) return [];
  const groups = groupsOf(report);
  if (groups.size === 0) return stats.ready > 0 ? [""] : [];
  return [...groups].filter(([, found]) => isIdle(found)).map(([group]) => group);
}

/** Whether nobody takes from a reliable queue; `after` was seen a moment after `before`. */
export function* checkGroups(before: QueueReport, after: QueueReport): Generator<Finding> {
  const were = idleGroups(before);
  const { name, stats } = after;
  for (const group of idleGroups(after)) {
    if (!were.includes(group)) continue;
    const found = groupsOf(after).get(group);
    if (found !== undefined) yield withoutConsumer(name, group, found);
    else {
      yield {
        level: "error",
        check: "no-consumer",
        queue: name,
        what: `the queue has no consumer group, and ${count(stats?.ready ?? 0, "message")} ready`,
        why: "somebody destroyed the groups, or no consumer has ever run: nobody takes anything",
        repair: "start a consumer; it makes its group, with all that is still there",
      };
    }
  }
}

interface Found {
  readonly part: PartReport;
  readonly group: GroupReport;
}

/** The groups of a queue by name, each in all partitions. */
function groupsOf({ parts }: QueueReport): Map<string, Found[]> {
  const groups = new Map<string, Found[]>();
  for (const part of parts) {
    for (const group of part.groups) {
      groups.set(group.name, [...(groups.get(group.name) ?? []), { part, group }]);
    }
  }
  return groups;
}

/**
 * Whether there is something to do for the group and nobody alive. A consumer that has nothing in hand is silent, and
 * Redis 7.0 may not even know it; but then it would have taken what is there.
 */
function isIdle(found: readonly Found[]): boolean {
  const consumers = found.flatMap(({ group }) => group.consumers);
  const isHeld = consumers.some((one) => one.pending > 0 && one.visibilityTimeout !== undefined);
  return (isHeld || found.some(({ group }) => group.hasUnread)) && !consumers.some(isAlive);
}

function withoutConsumer(queue: string, group: string, found: readonly Found[]): Finding {
  const consumers = found.flatMap((one) => one.group.consumers);
  const pending = found.reduce((sum, one) => sum + one.group.pending, 0);
  const entries = found.reduce((sum, one) => sum + one.part.streamed, 0);
  const silence = Math.min(...consumers.map(({ idle }) => idle));
  const stream = found[0]?.part.keys.stream ?? "";
  return {
    level: "error",
    check: "no-consumer",
    queue,
    what: `the group ${group} has no consumer that is alive${consumers.length === 0 ? "" : `, for ${inWords(silence)}`}; ${count(entries, "message")} ${entries === 1 ? "waits" : "wait"}, ${pending} of them in flight`,
    why: "nobody takes its messages or reclaims what the dead had in hand; a group that nobody consumes holds every message in memory",
    repair: `start a consumer of the group; or, if nobody needs it any more: redis-cli XGROUP DESTROY ${quoted(stream)} ${quoted(group)}`,
  };
}

/** What consumers have in flight that are gone. Others give it back within a visibility timeout. */
function* checkOrphans(queue: string, found: readonly Found[]): Generator<Finding> {
  for (const { part, group } of found) {
    for (const consumer of group.consumers) {
      const { name, pending, idle, visibilityTimeout } = consumer;
      if (pending === 0) continue;
      const isForeign = visibilityTimeout === undefined;
      if (!isForeign && idle <= FORGOTTEN * visibilityTimeout + GRACE) continue;
      yield {
        level: "warning",
        check: "orphan",
        queue,
        what: `${count(pending, "message")} ${pending === 1 ? "is" : "are"} in flight for ${name} (group ${group.name}), which was last seen ${inWords(idle)} ago`,
        why: isForeign
          ? "it is no consumer of this library: nobody reclaims what it has in hand"
          : `it has been dead since its visibility timeout of ${inWords(visibilityTimeout)}, and nobody has reclaimed what it had in hand`,
        repair: isForeign
          ? `end that program, then let a consumer of ours take over: redis-cli XPENDING ${quoted(part.keys.stream)} ${quoted(group.name)} shows the ids, XCLAIM gives them away`
          : "start a consumer of the group: it reclaims within a visibility timeout. Never XGROUP DELCONSUMER: that loses the messages",
      };
    }
  }
}

function isAlive({ idle, visibilityTimeout }: ConsumerReport): boolean {
  return idle <= (visibilityTimeout ?? 60_000) + GRACE;
}

/** So many visibility timeouts later the living have reclaimed it. */
const FORGOTTEN = 2;

/** Milliseconds. */
const GRACE = 1000;

/** Milliseconds. */
const OLD = 5 * 60_000;
