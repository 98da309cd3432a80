import { BOUNDS, LAWS, problemsOf } from "../../view/health.ts";
import { shellWord } from "../../view/text.ts";
import type { ConsumerReport, GroupReport, PartReport } from "../looks/part-report.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import { takersAt, type ClientConnection } from "../looks/server-report.ts";
import {
  abridged,
  agree,
  inBackticks,
  redisCliAtKey,
  type CheckName,
  type CommandLine,
  type Finding,
} from "./finding.ts";
import { formatCount, formatDuration } from "../../view/words.js";

/**
 * Checks for messages that dead consumers hold, for messages that live ones have had in flight for long, and for messages
 * of a reliable queue that have been ready for long.
 * Groups that seem to have no live consumer are left to {@link checkGroups}: one finding for one cause.
 */
export function* checkConsumers(report: QueueReport, commandLine: CommandLine): Generator<Finding> {
  if (report.stats === undefined) return;
  const idle = idleGroups(report);
  let isStalled = false;
  for (const [group, found] of groupsOf(report)) {
    yield* checkOrphans(report.name, found, idle.includes(group));
    const stall = stallOf(report, found);
    isStalled ||= stall !== "";
    yield* checkInFlight(report.name, group, found, stall, commandLine);
  }
  if (idle.length === 0 && !isStalled) yield* checkAge(report);
  yield* checkPlainTakers(report);
}

/** Checks whether processes take from a reliable queue as if it was plain. */
function* checkPlainTakers({ name, stats, parts, takers = [] }: QueueReport): Generator<Finding> {
  if (stats?.kind !== "reliable") return;
  const lists = parts.map(({ keys }) => keys.ready);
  // Consumers of the reliable queue watch its LIST by another command.
  const plain = takersAt(takers, lists).filter(({ command }) => /^b?lpop/.test(command));
  if (plain.length === 0) return;
  yield {
    level: "warning",
    check: "plain-consumer",
    queue: name,
    what: `${formatCount(plain.length, "connection")} ${agree(plain.length, "takes", "take")} from the reliable queue as if it was plain: ${origins(plain)}`,
    why: "due messages go into its stream, so a plain consumer waits in vain; and what it does get, it gets at most once",
    repair: `replace the consumer in that process, whose "error" events say WRONG_HANDLE: ${inBackticks(`line.getReliableQueue(${JSON.stringify(name)}).subscribe(...)`)}`,
  };
}

/** Where connections come from: `10.0.0.7:51234 and 2 more`. */
function origins(connections: readonly ClientConnection[]): string {
  return abridged(connections.map(({ address }) => address));
}

/**
 * Adds to a finding about messages that nobody moves or takes that workers of a queue of this name look elsewhere, which
 * explains it.
 */
export function withElsewhere(finding: Finding, { elsewhere, parts }: QueueReport): Finding {
  const [first] = elsewhere;
  const [{ site } = { site: undefined }] = parts;
  if (first === undefined || site === undefined || !UNSERVED.has(finding.check)) return finding;
  const { length } = elsewhere;
  const place = placeOf(first.database, first.own?.keyPrefix);
  const own = placeOf(site.database, site.keyPrefix);
  return {
    ...finding,
    what: `${finding.what}; ${formatCount(length, "connection")} of this library ${agree(length, "serves", "serve")} a queue of this name in ${place} (${origins(elsewhere)}), and these messages are in ${own}`,
    repair: `give the workers the redis options of the producers, with database and keyPrefix; or if those serve another system: ${finding.repair}`,
  };
}

function placeOf(database: number, keyPrefix = ""): string {
  return `database ${database}${keyPrefix === "" ? "" : ` under keyPrefix ${JSON.stringify(keyPrefix)}`}`;
}

const UNSERVED: ReadonlySet<CheckName> = new Set(["overdue", "no-transfer", "no-consumer"]);

/** The groups that have work and no live consumer. An empty name stands for all: the queue has no groups. */
export function idleGroups(report: QueueReport): string[] {
  const { stats } = report;
  if (stats?.kind !== "reliable" || stats.isPaused) return [];
  const groups = groupsOf(report);
  if (groups.size === 0) return stats.ready > 0 ? [""] : [];
  return [...groups].filter(([, found]) => isIdle(found)).map(([group]) => group);
}

/** Checks whether the groups of a reliable queue have consumers; `after` was read half a second after `before`. */
export function* checkGroups(before: QueueReport, after: QueueReport): Generator<Finding> {
  const were = idleGroups(before);
  const still = idleGroups(after).filter((group) => were.includes(group));
  // A consumer has started in the meantime, but may be too slow.
  if (were.length > 0 && still.length === 0) yield* checkAge(after);
  for (const group of still) {
    const found = groupsOf(after).get(group);
    if (found !== undefined) yield withoutConsumer(after, group, found);
    else {
      const ready = after.stats?.ready ?? 0;
      yield {
        level: LAWS["no-consumer"].level,
        check: "no-consumer",
        queue: after.name,
        what: `the queue has no consumer group, and ${formatCount(ready, "message")} ${agree(ready, "is", "are")} ready`,
        why: "nobody takes messages: either somebody destroyed the groups, or no consumer has ever run",
        repair: "start a consumer: it creates its group, which gets everything that is still there",
      };
    }
  }
}

/** Checks how long the oldest message of a reliable queue has been ready. */
function* checkAge({ name, stats }: QueueReport): Generator<Finding> {
  if (stats === undefined || !problemsOf(stats).includes("backlog")) return;
  const { ready, oldestReadyAge = 0 } = stats;
  yield {
    level: LAWS.backlog.level,
    check: "backlog",
    queue: name,
    what: `${formatCount(ready, "message")} ${agree(ready, "is", "are")} ready, the oldest for ${formatDuration(oldestReadyAge)}`,
    why: "consumers are too slow or stuck",
    repair:
      "start more consumers, or raise concurrency; check whether the services that the handlers call reply",
  };
}

interface Found {
  readonly part: PartReport;
  readonly group: GroupReport;
}

/** The groups of a queue by name, with each partition in which they are. */
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
 * Whether a group has work and no live consumer. A live consumer that holds no message may look dead, and Redis 7.0 may
 * not even list it; but it would have taken the messages that are there.
 */
function isIdle(found: readonly Found[]): boolean {
  const consumers = found.flatMap(({ group }) => group.consumers);
  const isHeld = consumers.some((one) => one.inFlight > 0 && one.leaseTimeout !== undefined);
  return (isHeld || found.some(({ group }) => group.hasUnread)) && !consumers.some(isAlive);
}

function withoutConsumer(report: QueueReport, group: string, found: readonly Found[]): Finding {
  const { name, stats } = report;
  const consumers = found.flatMap((one) => one.group.consumers);
  const inFlight = found.reduce((sum, one) => sum + one.group.inFlight, 0);
  const entries = found.reduce((sum, one) => sum + one.part.inStream, 0);
  const silence = Math.min(...consumers.map(({ idle }) => idle));
  const age = stats?.oldestReadyAge ?? 0;
  const destroy = found.map(({ part: { site, keys } }) =>
    redisCliAtKey(site, "XGROUP DESTROY", keys.stream, shellWord(group)),
  );
  // Nobody would read a stream without groups.
  const isOnly = groupsOf(report).size === 1;
  return {
    level: LAWS["no-consumer"].level,
    check: "no-consumer",
    queue: name,
    what: `the group ${group} has no live consumer${consumers.length === 0 ? "" : `, for ${formatDuration(silence)}`}; ${formatCount(entries, "message")} ${agree(entries, "waits", "wait")}, ${inFlight} of them in flight${age >= BOUNDS.backlog ? `, the oldest ready for ${formatDuration(age)}` : ""}`,
    why: "nobody takes its messages or reclaims those in flight; an abandoned group keeps every message in memory",
    repair: isOnly
      ? "start a consumer of the group, such as your worker; if nobody needs the messages any more, offer and consume under another name, and delete this queue as docs/operations/deploying.md says"
      : `start a consumer of the group; or, if nobody needs it any more: ${destroy.join("; ")}`,
  };
}

/**
 * Checks for messages in flight that nobody reclaims. Live consumers reclaim those of a dead one within a lease
 * timeout; in a group without live consumers (`isIdleGroup`) the lack of consumers is the finding.
 */
function* checkOrphans(
  queue: string,
  found: readonly Found[],
  isIdleGroup: boolean,
): Generator<Finding> {
  for (const { part, group } of found) {
    for (const consumer of group.consumers) {
      const { name, inFlight, idle, leaseTimeout } = consumer;
      if (inFlight === 0) continue;
      const isForeign = leaseTimeout === undefined;
      if (isIdleGroup) continue;
      if (!isForeign && idle <= FORGOTTEN * leaseTimeout + GRACE) continue;
      const { site, keys } = part;
      const list = redisCliAtKey(
        site,
        "XPENDING",
        keys.stream,
        `${shellWord(group.name)} - + 100 ${shellWord(name)}`,
      );
      yield {
        level: "warning",
        check: "orphan",
        queue,
        what: `${formatCount(inFlight, "message")} ${agree(inFlight, "is", "are")} in flight for ${name} (group ${group.name}), which was last seen ${formatDuration(idle)} ago`,
        why: isForeign
          ? "it is not a consumer of this library, and shows no signs of life: live consumers reclaim its messages after their lease timeout, and hand them out again while it may still work on them"
          : `its lease timeout of ${formatDuration(leaseTimeout)} has passed twice, and nobody has reclaimed its messages`,
        repair: isForeign
          ? `end that program, or give it a group of its own; to see the messages: ${list}`
          : "start another consumer of the group: it reclaims them within a lease timeout. Never run XGROUP DELCONSUMER: it loses them",
      };
    }
  }
}

/** That the live consumers of a group take nothing although messages are ready, as a part of a sentence; or nothing. */
function stallOf({ stats }: QueueReport, found: readonly Found[]): string {
  const { ready = 0, oldestReadyAge = 0, isPaused = false } = stats ?? {};
  const groups = found.map(({ group }) => group);
  const ago = Math.min(
    ...groups.map((one) => one.takenAgo ?? (one.inFlight === 0 ? Infinity : -Infinity)),
  );
  const isWaiting = ready > 0 && groups.some(({ hasUnread }) => hasUnread);
  const isLong = Math.min(ago, oldestReadyAge) >= STALL && ago < Infinity;
  if (isPaused || !isWaiting || !isLong || !groups.some((one) => one.consumers.some(isAlive)))
    return "";
  const inFlight = groups.reduce((sum, one) => sum + one.inFlight, 0);
  return `${formatCount(ready, "message")} ${agree(ready, "is", "are")} ready, and its consumers have taken none for ${formatDuration(ago)}: they hold ${formatCount(inFlight)} that they do not finish`;
}

/** Milliseconds for which live consumers take nothing. Most handlers take milliseconds. */
const STALL = 10_000;

/** Checks how long live consumers have had messages of the group in flight. */
function* checkInFlight(
  queue: string,
  group: string,
  found: readonly Found[],
  stall: string,
  commandLine: CommandLine,
): Generator<Finding> {
  const long = found.flatMap(({ group: { oldest, consumers } }) => {
    // Those of other programs are orphans.
    const own = consumers.filter((one) => one.leaseTimeout !== undefined && isAlive(one));
    return oldest.flatMap(({ consumer, age }) => {
      const holder = own.find(({ name }) => name === consumer);
      return holder === undefined || age < BOUNDS.inFlight ? [] : [{ ...holder, age }];
    });
  });
  const [first] = long.toSorted((one, other) => other.age - one.age);
  const see = `see which messages those are: ${commandLine("list", queue, "--state", "in-flight")}`;
  if (first === undefined) {
    if (stall !== "") yield stalled(queue, `${stall} (group ${group})`, see);
    return;
  }
  const { name, age, process = name } = first;
  yield {
    level: LAWS["long-in-flight"].level,
    check: "long-in-flight",
    queue,
    what: `a message has been in flight for ${formatDuration(age)}, in ${process} (group ${group})${stall === "" ? "" : `; ${stall}`}`,
    why: "its handler hangs, or its work takes that long; nobody else gets the message while that process lives",
    repair: `${see}; give the handler a time limit, and restart the process: its messages are handled again`,
  };
}

function stalled(queue: string, what: string, see: string): Finding {
  return {
    level: LAWS.backlog.level,
    check: "stalled",
    queue,
    what,
    why: "their handlers hang, or are so slow that nothing else is handled meanwhile",
    repair: `${see}; give the handlers a time limit; if they are only slow, raise concurrency, or start more consumers`,
  };
}

function isAlive({ idle, leaseTimeout }: ConsumerReport): boolean {
  return idle <= (leaseTimeout ?? 60_000) + GRACE;
}

/** Lease timeouts after which live consumers have reclaimed the messages of a dead one. */
const FORGOTTEN = 2;

/** Milliseconds. */
const GRACE = 1000;

/** Checks whether somebody takes the ready messages of a plain queue; `after` was read half a second after `before`. */
export function* checkBacklog(before: QueueReport, after: QueueReport): Generator<Finding> {
  const [was, is] = [before.stats, after.stats];
  if (was?.kind !== "plain" || is?.kind !== "plain" || is.isPaused) return;
  const { ready } = is;
  if (was.ready === 0 || ready < was.ready) return;
  const { name, takers, strangers } = after;
  // A connection that waits would have got what is there.
  const quiet = Math.min(...(takers ?? []).map(({ isBlocked, idle }) => (isBlocked ? 0 : idle)));
  const grown = ready - was.ready;
  const growth = grown === 0 ? "none was taken" : `${grown} more came than were taken`;
  const what = `${formatCount(ready, "message")} ${agree(ready, "is", "are")} ready, ${growth} within half a second`;
  if (takers?.length === 0) {
    const others =
      strangers === 0
        ? ""
        : `; ${formatCount(strangers, "connection")} of other programs ${agree(strangers, "waits", "wait")} at keys that Redis does not name`;
    yield {
      level: LAWS["no-consumer"].level,
      check: "no-consumer",
      queue: name,
      what: `${what}, and no connection of this library waits for ${agree(ready, "it", "them")}${others}`,
      why: "ready messages stay in memory until somebody takes them",
      repair: `start a consumer, with the same database and keyPrefix as the producers: ${inBackticks(`line.getBlockingQueue(${JSON.stringify(name)}).subscribe(...)`)}`,
    };
  } else if (quiet >= STALL && quiet < Infinity) {
    yield stalled(
      name,
      `${what}, and no consumer has asked for any for ${formatDuration(quiet)}`,
      "restart those processes if they hang: their messages are lost, as a plain queue hands each out at most once",
    );
  } else if (ready >= MANY) {
    yield {
      level: LAWS.backlog.level,
      check: "backlog",
      queue: name,
      what,
      why: "consumers are too slow or stuck: messages are taken later and later",
      repair:
        "start more consumers, or raise concurrency; check whether the services that the handlers call reply",
    };
  }
}

/** Fewer ready messages may come and go at any moment. */
const MANY = 100;
