import type { Redis } from "ioredis";
import { isCluster, type RedisClient } from "./client.ts";
import { ownerOf } from "./cluster-node.ts";
import type { Heartbeat } from "./heartbeat.ts";

/** Whether a client is connected to the server, or the Cluster node that serves `key`, and its replies come in time. */
export function isReplying(
  client: RedisClient,
  key: string,
  heartbeats: ReadonlyMap<Redis, Heartbeat>,
): boolean {
  if (client.status !== "ready") return false;
  const node = isCluster(client) ? ownerOf(client, key) : client;
  return node !== undefined && heartbeats.get(node)?.isSilent !== true;
}
