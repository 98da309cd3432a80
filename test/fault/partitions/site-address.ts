import { Cluster, type NatMap, type RedisOptions } from "ioredis";
import type { RedisAddress } from "../../../src/queue/options.ts";

/** Where a site is, for clients in this process and in others: a server or Sentinel set-up, several, or a Cluster. */
export interface SiteAddress {
  readonly groups?: readonly Pick<
    RedisOptions,
    "host" | "port" | "sentinels" | "name" | "natMap"
  >[];
  readonly cluster?: {
    readonly nodes: readonly { readonly host: string; readonly port: number }[];
    readonly natMap: NatMap;
  };
}

/** The `redis` option of a client, and how to end the clients lent to it. */
export function redisAt({ groups, cluster }: SiteAddress): {
  readonly redis: RedisAddress | readonly RedisAddress[];
  readonly end: () => void;
} {
  if (cluster === undefined) {
    const [first, ...others] = groups ?? [];
    const isOne = first !== undefined && others.length === 0;
    return { redis: isOne ? first : (groups ?? []), end: () => {} };
  }
  const { nodes, natMap } = cluster;
  const redis = new Cluster([...nodes], { natMap, slotsRefreshInterval: 1000 });
  redis.on("error", () => {});
  return { redis, end: () => redis.disconnect() };
}
