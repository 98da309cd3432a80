import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import type { OwnServer } from "./own-server.ts";
import { newRedis } from "./redis.ts";

/** Makes a backup of a server's data, and returns what restores it: the server is killed, and starts from the backup. */
export async function backUp(server: OwnServer): Promise<() => Promise<void>> {
  const data = join(server.directory, "dump.rdb");
  const backup = join(server.directory, "backup.rdb");
  await newRedis(server.url).save();
  await copyFile(data, backup);
  return async () => {
    await server.kill();
    await copyFile(backup, data);
    await server.restart();
  };
}
