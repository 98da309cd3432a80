import { Command, type Cluster, type Redis, type RedisOptions } from "ioredis";
import { networkTime } from "../time/runtime.ts";

/** Finds the master that serves a key; without a key, any master. Rejects if there is none. */
export async function nodeOf(cluster: Cluster, key: string | undefined): Promise<Redis> {
  if (cluster.status !== "ready") await ready(cluster);
  let owner = find(cluster, key);
  if (owner === undefined) {
    // The slots may have moved.
    await refreshed(cluster);
    owner = find(cluster, key);
  }
  if (owner === undefined) throw new Error("no master of the cluster serves this key");
  return owner;
}

/** Refreshes the map of slots; resolves after a second even without a reply. */
export async function refreshed(cluster: Cluster): Promise<void> {
  await new Promise<void>((resolve) => {
    const timeout = networkTime.setTimeout(resolve, 1000);
    cluster.refreshSlotsCache(() => {
      networkTime.clearTimeout(timeout);
      resolve();
    });
  });
}

function find(cluster: Cluster, key: string | undefined): Redis | undefined {
  if (key !== undefined) return ownerOf(cluster, key);
  const masters = cluster.nodes("master");
  return masters[Math.floor(Math.random() * masters.length)];
}

/** The master that serves a key, as far as `cluster` knows; undefined if it has no connection to that master. */
export function ownerOf(cluster: Cluster, key: string): Redis | undefined {
  const slot = new Command("lpop", [`${cluster.options.keyPrefix ?? ""}${key}`]).getSlot();
  const [endpoint = ""] = cluster.slots[slot ?? 0] ?? [];
  const endpoints = [endpoint, translated(cluster, endpoint)];
  return cluster
    .nodes("master")
    .find(({ options: { host, port } }) => endpoints.includes(`${host}:${port}`));
}

/**
 * Translates an endpoint by the client's `natMap`. In the map of slots most are translated already. But after a
 * redirection (MOVED) ioredis notes the one that the server told, for the whole range of slots, and each further
 * redirection undoes what the next refresh of the slots mends.
 */
function translated({ options: { natMap } }: Cluster, endpoint: string): string | undefined {
  const found = typeof natMap === "function" ? natMap(endpoint) : natMap?.[endpoint];
  return found ? `${found.host}:${found.port}` : undefined;
}

async function ready(cluster: Cluster): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const settle = (error?: Error) => {
      networkTime.clearTimeout(timeout);
      cluster.off("ready", settle);
      if (error) reject(error);
      else resolve();
    };
    const timeout = networkTime.setTimeout(
      () => settle(new Error("the cluster is not ready")),
      5000,
    );
    cluster.once("ready", settle);
  });
}

/**
 * The connection of `cluster` to the node that `connection` is connected to.
 *
 * @throws {Error} if that node is no longer a master.
 */
export function peerOf(cluster: Cluster, connection: Redis): Redis {
  const { host, port } = connection.options;
  const peer = cluster.nodes("master").find((node) => isSameNode(node.options, connection.options));
  if (peer === undefined) throw new Error(`${host}:${port} is no longer a master of the cluster`);
  return peer;
}

export function isSameNode(a: RedisOptions, b: RedisOptions): boolean {
  return a.host === b.host && a.port === b.port;
}

/** The server at the other end, as "host:port". */
export function serverOf({ stream }: Redis): string {
  // There is none yet while ioredis asks the Sentinels.
  const { remoteAddress, remotePort } = (stream as Redis["stream"] | undefined) ?? {};
  return `${remoteAddress}:${remotePort}`;
}
