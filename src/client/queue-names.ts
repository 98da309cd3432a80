import type { Redis } from "ioredis";
import { partitionNamed } from "../partitions/ring/ring.ts";
import { KEYS, type KeyOfQueue } from "../queue/keys.ts";
import { isCluster, type RedisClient } from "../redis/client.ts";
import type { Server } from "../redis/server.ts";

/**
 * Yields the names of the queues on a server, or on a Cluster, each once. Recognises queues by their keys, including
 * those that Redisson wrote. A partitioned queue is one name. See `Delayline.queues` for the cost and the limits.
 *
 * Rejects with ioredis's errors.
 */
export async function* queueNames(
  server: Server,
  signal?: AbortSignal,
): AsyncGenerator<string, void, void> {
  const names = new Set<string>();
  for (const node of await ask(server, nodesOf, signal)) {
    for await (const key of keysOf(server, node, signal)) {
      const name = queueOf(key);
      if (name === undefined || names.has(name)) continue;
      names.add(name);
      yield name;
    }
  }
}

/** The masters of a Cluster, or the only server. */
async function nodesOf(client: RedisClient): Promise<Redis[]> {
  if (!isCluster(client)) return [client];
  // The client knows its masters once it is connected.
  await client.ping();
  return client.nodes("master");
}

function ask<Reply>(
  { connections, expiries }: Server,
  send: (client: RedisClient) => Promise<Reply>,
  signal?: AbortSignal,
): Promise<Reply> {
  return connections.call("commands", { expiries, signal }, send);
}

/** The keys of a node that may belong to queues, without the client's key prefix. */
async function* keysOf(
  server: Server,
  node: Redis,
  signal?: AbortSignal,
): AsyncGenerator<string, void, void> {
  const { keyPrefix = "" } = server.connections.commands.options;
  // Matches all keys of queues, and some others. Two exact patterns would need two scans.
  const pattern = `${keyPrefix.replaceAll(/[*?[\]\\]/g, String.raw`\$&`)}[rd]e[dl][ia]*:*`;
  let cursor = "0";
  do {
    const scan = () => node.scan(cursor, "MATCH", pattern, "COUNT", STEP);
    const [next, keys] = await ask(server, scan, signal);
    yield* keys.map((key) => key.slice(keyPrefix.length));
    cursor = next;
  } while (cursor !== "0");
}

/** The name of the queue that a key belongs to; undefined if it belongs to none. */
export function queueOf(key: string): string | undefined {
  const [, tagged] = KEY.exec(key) ?? [];
  if (tagged === undefined) return undefined;
  const [, inner] = /^\{([^{}]+)\}$/.exec(tagged) ?? [];
  // The queue's name has its own tag.
  if (inner === undefined) return tagged.includes("{") ? tagged : undefined;
  return partitionNamed(tagged)?.queue ?? inner;
}

/** Matches the keys by which a queue is recognised. */
const KEY = new RegExp(
  `^(?:${Object.values<KeyOfQueue>(KEYS)
    .flatMap(({ prefix, marksQueue }) => (marksQueue ? [prefix] : []))
    .join("|")})(.+)$`,
  "s",
);

/** Keys per SCAN. */
const STEP = 1000;
