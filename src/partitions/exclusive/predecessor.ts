import type { Connections } from "../../redis/connections.ts";

/**
 * Ends the connection of a process that has lost a partition without releasing it, on the server of `key`;
 * `connection` is its id and its name, with a space between.
 *
 * Ids begin again when a server is restarted. So one that has another name by now is left alone.
 *
 * Rejects with what ioredis rejects with.
 */
export async function endConnection(
  connections: Connections,
  key: string,
  connection: string,
): Promise<void> {
  const [, id, name] = /^(\d+) (\S+)$/.exec(connection) ?? [];
  if (id === undefined) return;
  const redis = await connections.nodeOf(key);
  const list = String(await redis.call("CLIENT", "LIST", "ID", id));
  if (!list.split(/\s/).includes(`name=${name}`)) return;
  await redis.call("CLIENT", "KILL", "ID", id);
}
