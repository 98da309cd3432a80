import { RedisError, type QueueStats } from "../../../index.ts";
import { LIMITS, facts, layout, members, partitionName } from "../../../inside.ts";
import type { Inspector } from "../../view/inspector.ts";
import type { Schedule } from "../../view/schedule-state.ts";
import {
  listenersOf,
  strangersIn,
  subscribersIn,
  takersAt,
  type ClientConnection,
} from "./server-report.ts";
import { readPart, type PartReport } from "./part-report.ts";
import type { Site, SiteNode } from "./site.ts";

/** A site and the connections to it. */
export interface SiteView {
  readonly site: Site;
  readonly nodes: readonly SiteNode[];
  /** Undefined if Redis does not list them. */
  readonly connections: readonly ClientConnection[] | undefined;
}

/** Everything that the doctor has read about a queue. */
export interface QueueReport {
  readonly name: string;
  /** The fact about its partitions; undefined for an ordinary queue. */
  readonly fact: facts.Fact | undefined;
  /** The indices of the sites on which a fact was found, which is stored beside partition 0. */
  readonly factAt: readonly number[];
  readonly siteCount: number;
  /** Undefined while the number of partitions does not change. */
  readonly change: ChangeReport | undefined;
  /** Undefined if the queue cannot be opened: a key has the wrong type, or the list of servers is wrong. */
  readonly stats: QueueStats | undefined;
  /** Its schedules: the first thousand. */
  readonly schedules: readonly Schedule[];
  /** The ordinary queue and every partition. */
  readonly parts: readonly PartReport[];
  /** How many connections are subscribed to the part with the fewest subscribers; undefined if Redis does not say. */
  readonly listeners: number | undefined;
  /** The connections of this library that wait, or have waited, for its messages; undefined if Redis does not say. */
  readonly takers: readonly ClientConnection[] | undefined;
  /** As `takers`, for a queue of this name in another database, or under another `keyPrefix`. */
  readonly elsewhere: readonly ClientConnection[];
  /**
   * Whether more connections are subscribed to the queue than this library has subscribers at all: another program, which
   * is Redisson as a rule, moves its messages.
   */
  readonly isMovedByOthers: boolean;
  /** How many blocked connections belong to other programs. */
  readonly strangers: number;
}

/** A change of the number of partitions. */
export interface ChangeReport {
  /** Whether a process that works on it was seen lately. */
  readonly isWorkedOn: boolean;
  /** Whether a process that would continue it was seen lately: one that moves or takes messages. */
  readonly hasHeir: boolean;
  /** When something was last done about it (epoch ms); undefined if Redis does not show that. */
  readonly lastAt: number | undefined;
  /** The server's time (epoch ms). */
  readonly now: number;
}

/** Reads a queue. Rejects if Redis refuses a command or does not reply. */
export async function readQueue(
  name: string,
  views: readonly SiteView[],
  inspector: Inspector,
  signal: AbortSignal | undefined,
): Promise<QueueReport> {
  const found = await readFacts(name, views);
  const factAt = found.flatMap((fact, i) => (fact === undefined ? [] : [i]));
  const fact = found[factAt[0] ?? 0];
  const isMisplaced = fact !== undefined && (fact.servers !== views.length || factAt[0] !== 0);
  const numbers = [facts.ORDINARY];
  if (fact !== undefined && !isMisplaced) {
    for (let p = 0; p < facts.partitionsOf(fact); p++) numbers.push(p);
  }
  const parts = await Promise.all(
    numbers.map(async (partition) => {
      const view = viewOf(partition, views);
      const own = partition === facts.ORDINARY ? name : partitionName(name, partition);
      return await readPart(view.site, partition, own, layout.queueKeys(own));
    }),
  );
  const isReadable = !isMisplaced && parts.every(({ wrongTypes }) => wrongTypes.length === 0);
  const stats = isReadable ? await readStats(name, fact, inspector, signal) : undefined;
  return {
    name,
    fact,
    factAt,
    siteCount: views.length,
    change:
      fact === undefined || fact.state === "stable" || isMisplaced
        ? undefined
        : await readChange(parts),
    stats,
    schedules: (stats?.schedules ?? 0) > 0 ? await readSchedules(name, inspector, signal) : [],
    parts,
    ...(await readAudience(parts, fact, views)),
  };
}

async function readSchedules(
  name: string,
  inspector: Inspector,
  signal: AbortSignal | undefined,
): Promise<Schedule[]> {
  const { messages } = await inspector.open(name, signal);
  const found: Schedule[] = [];
  for await (const schedule of messages.schedules.list({ signal })) {
    if (found.push(schedule) === MOST_SCHEDULES) break;
  }
  return found;
}

const MOST_SCHEDULES = 1000;

async function readStats(
  name: string,
  fact: facts.Fact | undefined,
  inspector: Inspector,
  signal: AbortSignal | undefined,
): Promise<QueueStats> {
  try {
    // Not through an open queue: what that has open it also looks after.
    return await inspector.line.stats(name, { signal });
  } catch (error) {
    const isClosed = error instanceof RedisError && error.reply === "NOPERM";
    if (fact !== undefined || !isClosed) throw error;
    // A user with access to ordinary queues alone may not read whether there are partitions.
    const options = { codec: "bytes" } as const;
    return await inspector.line.getDelayedQueue(name, options).stats({ signal });
  }
}

async function readChange(parts: readonly PartReport[]): Promise<ChangeReport> {
  const { site, keys } = parts.find(({ partition }) => partition === 0) as PartReport;
  const now = await site.time(keys);
  const signs = await site.ask((redis) => redis.zrange(keys.members, "0", "-1", "WITHSCORES"));
  const began = await site.ask((redis) => redis.hget(keys.journal, "began"));
  const seen = signs.flatMap((sign, i) =>
    i % 2 === 0 ? (members.parseMember(sign, now - Number(signs[i + 1])) ?? []) : [],
  );
  const changers = seen.filter(({ roles }) => roles.isChanging);
  const instants = [
    Number(began ?? 0),
    ...parts.map(({ lastBatch }) => Math.floor(Number(lastBatch) / 1000)),
    ...changers.map(({ idle }) => now - idle),
  ];
  // Another program may have overwritten a number.
  const lastAt = Math.max(...instants.filter((at) => at > 0 && at <= now + LIMITS.memberIsLate));
  return {
    isWorkedOn: changers.some(({ idle }) => idle < LIMITS.memberIsLate),
    hasHeir: seen.some(({ roles, idle }) => idle < LIMITS.memberTimeout && isHeir(roles)),
    lastAt: Number.isFinite(lastAt) ? lastAt : undefined,
    now,
  };
}

function isHeir({ moves = false, takes = [], isExclusive = false }: members.Roles): boolean {
  return moves || isExclusive || takes.length > 0;
}

function viewOf(partition: number, views: readonly SiteView[]): SiteView {
  return views[Math.max(0, partition) % views.length] as SiteView;
}

async function readFacts(
  name: string,
  views: readonly SiteView[],
): Promise<(facts.Fact | undefined)[]> {
  const { partitions } = layout.queueKeys(partitionName(name, 0));
  return await Promise.all(
    views.map(async ({ site }) => {
      const text = await site.ask((redis) => redis.get(partitions)).catch(() => null);
      return text === null ? undefined : facts.parseFact(text);
    }),
  );
}

async function readAudience(
  parts: readonly PartReport[],
  fact: facts.Fact | undefined,
  views: readonly SiteView[],
): Promise<
  Pick<QueueReport, "listeners" | "takers" | "elsewhere" | "isMovedByOthers" | "strangers">
> {
  // Once a queue is partitioned, nobody listens to its ordinary queue.
  const used = fact === undefined ? parts : parts.filter(({ partition }) => partition >= 0);
  const listeners = await Promise.all(
    used.map(({ partition, keys }) => listenersOf(viewOf(partition, views).nodes, keys.channel)),
  );
  const heard = listeners.filter((one) => one !== undefined);
  const fewest = heard.length === listeners.length ? Math.min(...heard) : undefined;
  const isKnown = views.every(({ connections }) => connections !== undefined);
  const [here, there] = [true, false].map((isHere) =>
    views.flatMap(({ site, connections = [] }) =>
      connections.filter((one) => isUserOf(site, one) === isHere),
    ),
  ) as [ClientConnection[], ClientConnection[]];
  const keys = used.flatMap((part) => [part.keys.ready, part.keys.stream]);
  // A channel has neither a database nor a prefix: who listens may be elsewhere.
  const [own, others] = [subscribersIn(here).length, subscribersIn(there)];
  const isHeardElsewhere = own === 0 && (fewest ?? 0) > 0;
  const takersThere = takersAt(there, keys);
  return {
    listeners:
      isHeardElsewhere && fewest !== undefined ? Math.max(0, fewest - others.length) : fewest,
    isMovedByOthers: isKnown && heard.some((count) => count > own + others.length),
    takers: isKnown ? takersAt(here, keys) : undefined,
    elsewhere: takersThere.length === 0 && isHeardElsewhere ? others : takersThere,
    strangers: strangersIn(here),
  };
}

/** Whether a connection sees the keys of the site: those of its database, under its `keyPrefix`. */
function isUserOf(site: Site, { database, own }: ClientConnection): boolean {
  const isOfPrefix = own === undefined || own.keyPrefix === site.keyPrefix;
  return database === site.database && isOfPrefix;
}
