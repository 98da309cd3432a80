import type { Redis } from "ioredis";
import { eventually } from "./eventually.ts";

/** The connections that block for a queue now, as CLIENT LIST prints them. */
export async function blockedConnections(redis: Redis, queue: string): Promise<string[]> {
  const clients = String(await redis.client("LIST")).split("\n");
  return clients.filter(
    (client) => client.includes(` name=delayline:blocking:${queue} `) && / flags=\S*b/.test(client),
  );
}

/** Resolves when one connection blocks for a message of a queue. */
export async function someoneWaits(redis: Redis, queue: string): Promise<void> {
  await eventually(async () => (await blockedConnections(redis, queue)).length === 1);
}
