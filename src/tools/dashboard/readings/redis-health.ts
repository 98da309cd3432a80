import { readEntrance } from "../../doctor/looks/server-report.ts";
import { Site, type SiteNode } from "../../doctor/looks/site.ts";
import type { Inspector } from "../../view/inspector.ts";

/** What a server says of itself. Sizes are in bytes, durations in milliseconds; undefined where it does not say. */
export interface RedisHealth {
  readonly address: string;
  /** Why it could not be asked; then nothing else is known. */
  readonly error?: string;
  readonly version?: string | undefined;
  readonly role?: string | undefined;
  readonly uptime?: number | undefined;
  readonly usedMemory?: number | undefined;
  /** 0 stands for no limit. */
  readonly maxMemory?: number | undefined;
  readonly policy?: string | undefined;
  readonly fragmentation?: number | undefined;
  readonly clients?: number | undefined;
  readonly blockedClients?: number | undefined;
  readonly maxClients?: number | undefined;
  readonly operations?: number | undefined;
  readonly evicted?: number | undefined;
  readonly isAppending?: boolean | undefined;
  readonly appendStatus?: string | undefined;
  /** When the last snapshot was saved (epoch ms). */
  readonly savedAt?: number | undefined;
  readonly saveStatus?: string | undefined;
  /** Whether it saves snapshots by itself; undefined if it may not be asked. */
  readonly isSaving?: boolean | undefined;
  /** How many it has saved since it started. */
  readonly saves?: number | undefined;
  readonly replicas?: number | undefined;
  /** Of a replica: whether it is connected to its master. */
  readonly masterLink?: string | undefined;
}

/** Which Redis it is, in a few words: `redis-1:6379, database 3`. */
export function whereIs({ servers }: Inspector): string {
  const [first, ...others] = servers.map((server) => {
    const { given, isCluster, database, keyPrefix } = new Site(server, undefined);
    const where = isCluster ? `Cluster of ${given}` : `${given}, database ${database}`;
    return keyPrefix === "" ? where : `${where}, prefix ${keyPrefix}`;
  });
  return others.length === 0 ? `${first}` : `${first}, and ${others.length} more`;
}

/** Asks every server, and every node of a Cluster, for its health: one `INFO` and one `CONFIG GET` each. */
export async function redisHealth(
  inspector: Inspector,
  signal: AbortSignal,
): Promise<readonly RedisHealth[]> {
  const sites = inspector.servers.map((server) => new Site(server, signal));
  const all = sites.map(async (site): Promise<readonly RedisHealth[]> => {
    try {
      const nodes = await site.nodes();
      return await Promise.all(
        nodes.map(async (node) => {
          try {
            const { info } = await readEntrance(node);
            return { ...healthOf(node.address, info), isSaving: await isSaving(node) };
          } catch (error) {
            return failed(node.address, error);
          }
        }),
      );
    } catch (error) {
      return [failed(site.address, error)];
    }
  });
  return (await Promise.all(all)).flat();
}

/** INFO tells when it was saved last, and has the start of the server there if it never was. */
async function isSaving(node: SiteNode): Promise<boolean | undefined> {
  try {
    const [, save] = await node.ask((redis) => redis.config("GET", "save"));
    return save === undefined ? undefined : save !== "";
  } catch {
    return undefined;
  }
}

function failed(address: string, error: unknown): RedisHealth {
  return { address, error: error instanceof Error ? error.message : String(error) };
}

function healthOf(address: string, info: ReadonlyMap<string, string>): RedisHealth {
  const number = (field: string, unit = 1) => {
    const value = Number(info.get(field) ?? Number.NaN);
    return Number.isNaN(value) ? undefined : value * unit;
  };
  const appends = info.get("aof_enabled");
  return {
    address,
    version: info.get("valkey_version") ?? info.get("redis_version"),
    role: info.get("role"),
    uptime: number("uptime_in_seconds", 1000),
    usedMemory: number("used_memory"),
    maxMemory: number("maxmemory"),
    policy: info.get("maxmemory_policy"),
    fragmentation: number("mem_fragmentation_ratio"),
    clients: number("connected_clients"),
    blockedClients: number("blocked_clients"),
    maxClients: number("maxclients"),
    operations: number("instantaneous_ops_per_sec"),
    evicted: number("evicted_keys"),
    isAppending: appends === undefined ? undefined : appends === "1",
    appendStatus: info.get("aof_last_write_status"),
    savedAt: number("rdb_last_save_time", 1000),
    saveStatus: info.get("rdb_last_bgsave_status"),
    saves: number("rdb_saves"),
    replicas: number("connected_slaves"),
    masterLink: info.get("master_link_status"),
  };
}
