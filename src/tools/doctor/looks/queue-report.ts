import { RedisError } from "../../../errors.ts";
import type { Inspector } from "../../inspect/inspector.ts";
import type { QueueStats } from "../../../observe/queue-stats.ts";
import { ORDINARY, parseFact, partitionsOf, type Fact } from "../../../partitions/ring/fact.ts";
import { partitionName } from "../../../partitions/ring/ring.ts";
import { queueKeys } from "../../../queue/keys.ts";
import { listenersOf, strangersIn, takersAt, type Connection } from "./server-report.ts";
import { readPart, type PartReport } from "./part-report.ts";
import type { Site, SiteNode } from "./site.ts";

/** A site and the connections to it. */
export interface SiteView {
  readonly site: Site;
  readonly nodes: readonly SiteNode[];
  /** Undefined if Redis does not list them. */
  readonly connections: readonly Connection[] | undefined;
}

/** Everything that the doctor has read about a queue. */
export interface QueueReport {
  readonly name: string;
  /** The fact about its partitions; undefined for an ordinary queue. */
  readonly fact: Fact | undefined;
  /** The indices of the sites on which a fact was found, which is stored beside partition 0. */
  readonly factAt: readonly number[];
  readonly siteCount: number;
  /** Undefined if the queue cannot be opened: a key has the wrong type, or the list of servers is wrong. */
  readonly stats: QueueStats | undefined;
  /** The ordinary queue and every partition. */
  readonly parts: readonly PartReport[];
  /** How many connections are subscribed to the part with the fewest subscribers; undefined if Redis does not say. */
  readonly listeners: number | undefined;
  /** How many connections of this library wait, or have waited, for messages; undefined if Redis does not say. */
  readonly takers: number | undefined;
  /** How many blocked connections belong to other programs. */
  readonly strangers: number;
}

/** Reads a queue. Rejects if Redis refuses a command or does not reply. */
export async function readQueue(
  name: string,
  views: readonly SiteView[],
  inspector: Inspector,
  signal: AbortSignal | undefined,
): Promise<QueueReport> {
  const facts = await readFacts(name, views);
  const factAt = facts.flatMap((fact, i) => (fact === undefined ? [] : [i]));
  const fact = facts[factAt[0] ?? 0];
  const isMisplaced = fact !== undefined && (fact.servers !== views.length || factAt[0] !== 0);
  const numbers = [ORDINARY];
  if (fact !== undefined && !isMisplaced) {
    for (let p = 0; p < partitionsOf(fact); p++) numbers.push(p);
  }
  const parts = await Promise.all(
    numbers.map(async (partition) => {
      const view = viewOf(partition, views);
      const own = partition === ORDINARY ? name : partitionName(name, partition);
      return await readPart(view.site, partition, own, queueKeys(own));
    }),
  );
  const isReadable = !isMisplaced && parts.every(({ wrongTypes }) => wrongTypes.length === 0);
  const stats = isReadable ? await readStats(name, fact, inspector, signal) : undefined;
  return {
    name,
    fact,
    factAt,
    siteCount: views.length,
    stats,
    parts,
    ...(await readAudience(parts, fact, views)),
  };
}

async function readStats(
  name: string,
  fact: Fact | undefined,
  inspector: Inspector,
  signal: AbortSignal | undefined,
): Promise<QueueStats> {
  try {
    return (await inspector.open(name, signal)).stats;
  } catch (error) {
    const isClosed = error instanceof RedisError && error.reply === "NOPERM";
    if (fact !== undefined || !isClosed) throw error;
    // A user with access to ordinary queues alone may not read whether there are partitions.
    const options = { codec: "bytes" } as const;
    return await inspector.line.getDelayedQueue(name, options).stats({ signal });
  }
}

function viewOf(partition: number, views: readonly SiteView[]): SiteView {
  return views[Math.max(0, partition) % views.length] as SiteView;
}

async function readFacts(name: string, views: readonly SiteView[]): Promise<(Fact | undefined)[]> {
  const { partitions } = queueKeys(partitionName(name, 0));
  return await Promise.all(
    views.map(async ({ site }) => {
      const text = await site.ask((redis) => redis.get(partitions)).catch(() => null);
      return text === null ? undefined : parseFact(text);
    }),
  );
}

async function readAudience(
  parts: readonly PartReport[],
  fact: Fact | undefined,
  views: readonly SiteView[],
): Promise<Pick<QueueReport, "listeners" | "takers" | "strangers">> {
  // Once a queue is partitioned, nobody listens to its ordinary queue.
  const used = fact === undefined ? parts : parts.filter(({ partition }) => partition >= 0);
  const listeners = await Promise.all(
    used.map(({ partition, keys }) => listenersOf(viewOf(partition, views).nodes, keys.channel)),
  );
  const heard = listeners.filter((one) => one !== undefined);
  const connections = views.map((view) => view.connections);
  const isKnown = connections.every((one) => one !== undefined);
  const all = connections.flatMap((one) => one ?? []);
  const keys = used.flatMap((part) => [part.keys.ready, part.keys.stream]);
  return {
    listeners: heard.length === listeners.length ? Math.min(...heard) : undefined,
    takers: isKnown ? takersAt(all, keys) : undefined,
    strangers: strangersIn(all),
  };
}
