import type { Connections } from "../../redis/connections.ts";

/**
 * Kills the connection of a process that lost a partition without releasing it, on the server of `key`. `connection` is
 * the id and the name of the connection, separated by a space.
 *
 * A restarted server assigns the same ids again, so a connection with another name is left alone.
 *
 * Rejects with errors of ioredis.
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
