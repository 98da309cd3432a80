import type { Redis } from "ioredis";
import { partitionName } from "../partitions/ring/ring.ts";
import { isCluster, type RedisClient } from "../redis/client.ts";
import type { OpenServer } from "./open-server.ts";

/**
 * The names of the queues that have keys of ours or Redisson's on a server, or on a Cluster; each once. A queue in
 * partitions is one queue.
 *
 * Reads the names of all keys of the database, a thousand per step: some 300 us of Redis's time each. A queue with nothing
 * but ready messages is found for an hour after the last was moved; then its LIST looks like any other.
 */
export async function* queueNames(
  server: OpenServer,
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

/** The masters of a Cluster, which tells them when it is connected; a server is one. */
async function nodesOf(client: RedisClient): Promise<Redis[]> {
  if (!isCluster(client)) return [client];
  await client.ping();
  return client.nodes("master");
}

/** Rejects with what ioredis rejects with. */
function ask<Reply>(
  { connections, expiries }: OpenServer,
  send: (client: RedisClient) => Promise<Reply>,
  signal?: AbortSignal,
): Promise<Reply> {
  return connections.call("commands", { expiries, signal }, send);
}

/** The keys of a node that may be those of queues, without the client's prefix. */
async function* keysOf(
  server: OpenServer,
  node: Redis,
  signal?: AbortSignal,
): AsyncGenerator<string, void, void> {
  const { keyPrefix = "" } = server.connections.commands.options;
  // Begins as all keys of queues do; one pattern, so that the keys are gone through once.
  const pattern = `${keyPrefix.replaceAll(/[*?[\]\\]/g, String.raw`\$&`)}[rd]e[dl][ia]*:*`;
  let cursor = "0";
  do {
    const scan = () => node.scan(cursor, "MATCH", pattern, "COUNT", STEP);
    const [next, keys] = await ask(server, scan, signal);
    yield* keys.map((key) => key.slice(keyPrefix.length));
    cursor = next;
  } while (cursor !== "0");
}

/** The queue that a key belongs to; undefined if it is the key of none. */
export function queueOf(key: string): string | undefined {
  const [, tagged] = KEY.exec(key) ?? [];
  if (tagged === undefined) return undefined;
  const [, inner] = /^\{([^{}]+)\}$/.exec(tagged) ?? [];
  // A name with a tag of its own.
  if (inner === undefined) return tagged.includes("{") ? tagged : undefined;
  const [, encoded, partition] = /^(.+)\/(\d{1,3})\/\d+$/s.exec(inner) ?? [];
  if (encoded === undefined || partition === undefined) return inner;
  try {
    const name = decodeURIComponent(encoded.replaceAll(/%(?!25|7B|7D)/g, "%25"));
    return partitionName(name, Number(partition)) === tagged ? name : inner;
  } catch {
    return inner;
  }
}

/** A key of a queue, without the keys that are only there for a moment. */
const KEY =
  /^(?:redisson_delay_queue_timeout|delayline_(?:keys|mover|paused|quarantine|unreadable|stream|retries|dead|partitions|members)):(.+)$/s;

/** Keys per step. */
const STEP = 1000;
