import type { ConsumerReport, GroupReport, PartReport } from "../looks/part-report.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import type { Finding } from "./finding.ts";
import { quoted } from "./repair.ts";
import { count, inWords } from "./words.ts";

/** Whether somebody takes from a reliable queue, and what the dead have left. */
export function* checkConsumers({ name, stats, parts }: QueueReport): Generator<Finding> {
  if (stats === undefined) return;
  const groups = new Map<string, Found[]>();
  for (const part of parts) {
    for (const group of part.groups) {
      groups.set(group.name, [...(groups.get(group.name) ?? []), { part, group }]);
    }
  }
  if (groups.size === 0 && stats.kind === "reliable" && stats.ready > 0) {
    yield {
      level: "error",
      check: "no-consumer",
      queue: name,
      what: `${count(stats.ready, "message")} ${stats.ready === 1 ? "is" : "are"} ready, and the queue has no consumer group`,
      why: "somebody destroyed the groups, or no consumer has ever run: nobody takes anything",
      repair: "start a consumer; it makes its group, with all that is still there",
    };
  }
  for (const [group, found] of groups) {
    if (!stats.isPaused) yield* checkAlive(name, group, found, stats.ready > 0);
    yield* checkOrphans(name, found);
  }
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

interface Found {
  readonly part: PartReport;
  readonly group: GroupReport;
}

function* checkAlive(
  queue: string,
  group: string,
  found: readonly Found[],
  isWaiting: boolean,
): Generator<Finding> {
  const consumers = found.flatMap((one) => one.group.consumers);
  const pending = found.reduce((sum, one) => sum + one.group.pending, 0);
  if (consumers.some(isAlive) || (!isWaiting && pending === 0)) return;
  const entries = found.reduce((sum, one) => sum + one.part.streamed, 0);
  const silence = Math.min(...consumers.map(({ idle }) => idle));
  const stream = found[0]?.part.keys.stream ?? "";
  yield {
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
