import { RedisError } from "../../errors.ts";
import type { Inspector } from "../../inspect/inspector.ts";
import type { QueueStats } from "../../observe/queue-stats.ts";
import { ORDINARY, parseFact, partitionsOf, type Fact } from "../../partitions/ring/fact.ts";
import { partitionName } from "../../partitions/ring/ring.ts";
import { queueKeys } from "../../queue/keys.ts";
import { listenersOf, strangersIn, takersAt, type Connection } from "./clients.ts";
import { readPart, type PartReport } from "./part-report.ts";
import type { Site, SiteNode } from "./site.ts";

/** A site, and who is connected to it. */
export interface Place {
  readonly site: Site;
  readonly nodes: readonly SiteNode[];
  /** Undefined if Redis does not tell. */
  readonly connections: readonly Connection[] | undefined;
}

/** A queue as it was found. */
export interface QueueReport {
  readonly name: string;
  /** The number of its partitions; undefined: it is an ordinary queue. */
  readonly fact: Fact | undefined;
  /** On which of the sites partition 0 was found, by their place in the list. */
  readonly factAt: readonly number[];
  readonly siteCount: number;
  /** Undefined if the queue cannot be opened: a key has another type, or the list of servers is wrong. */
  readonly stats: QueueStats | undefined;
  /** The ordinary queue, and each partition. */
  readonly parts: readonly PartReport[];
  /** Of the part that is heard least: connections that hear its wake-ups. Undefined if Redis does not tell. */
  readonly listeners: number | undefined;
  /** Connections of ours that wait for messages, or have waited. Undefined if Redis does not tell. */
  readonly takers: number | undefined;
  /** Connections of other programs that wait for anything. */
  readonly strangers: number;
}

/** Looks at a queue. Rejects if Redis refuses to tell, or does not reply. */
export async function readQueue(
  name: string,
  places: readonly Place[],
  inspector: Inspector,
  signal: AbortSignal | undefined,
): Promise<QueueReport> {
  const facts = await readFacts(name, places);
  const factAt = facts.flatMap((fact, i) => (fact === undefined ? [] : [i]));
  const fact = facts[factAt[0] ?? 0];
  const isMisplaced = fact !== undefined && (fact.servers !== places.length || factAt[0] !== 0);
  const numbers = [ORDINARY];
  if (fact !== undefined && !isMisplaced) {
    for (let p = 0; p < partitionsOf(fact); p++) numbers.push(p);
  }
  const parts = await Promise.all(
    numbers.map(async (partition) => {
      const place = placeOf(partition, places);
      const own = partition === ORDINARY ? name : partitionName(name, partition);
      return await readPart(place.site, partition, own, queueKeys(own));
    }),
  );
  const isReadable = !isMisplaced && parts.every(({ wrongTypes }) => wrongTypes.length === 0);
  const stats = isReadable ? await readStats(name, fact, inspector, signal) : undefined;
  return {
    name,
    fact,
    factAt,
    siteCount: places.length,
    stats,
    parts,
    ...(await readAudience(parts, fact, places)),
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
    // A user of ordinary queues may not ask whether there are partitions.
    const options = { codec: "bytes" } as const;
    return await inspector.line.getDelayedQueue(name, options).stats({ signal });
  }
}

function placeOf(partition: number, places: readonly Place[]): Place {
  return places[Math.max(0, partition) % places.length] as Place;
}

async function readFacts(name: string, places: readonly Place[]): Promise<(Fact | undefined)[]> {
  const { partitions } = queueKeys(partitionName(name, 0));
  return await Promise.all(
    places.map(async ({ site }) => {
      const text = await site.ask((redis) => redis.get(partitions)).catch(() => null);
      return text === null ? undefined : parseFact(text);
    }),
  );
}

async function readAudience(
  parts: readonly PartReport[],
  fact: Fact | undefined,
  places: readonly Place[],
): Promise<Pick<QueueReport, "listeners" | "takers" | "strangers">> {
  // The ordinary queue has no audience once its messages are in partitions.
  const used = fact === undefined ? parts : parts.filter(({ partition }) => partition >= 0);
  const listeners = await Promise.all(
    used.map(({ partition, keys }) => listenersOf(placeOf(partition, places).nodes, keys.channel)),
  );
  const heard = listeners.filter((one) => one !== undefined);
  const connections = places.map((place) => place.connections);
  const isTold = connections.every((one) => one !== undefined);
  const all = connections.flatMap((one) => one ?? []);
  const keys = used.flatMap((part) => [part.keys.ready, part.keys.stream]);
  return {
    listeners: heard.length === listeners.length ? Math.min(...heard) : undefined,
    takers: isTold ? takersAt(all, keys) : undefined,
    strangers: strangersIn(all),
  };
}
