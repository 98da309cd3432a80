import { shellWord } from "../../inspect/shell-word.ts";
import type { Site } from "../looks/site.ts";

// A repair is prose. Each command in it is in backticks, so that it can be printed on a line of its own.

/** Makes a `delayline` command to paste into a shell, for the Redis that was examined. */
export type CommandLine = (...words: readonly string[]) => string;

/** A redis-cli command to paste into a shell. It holds no password: redis-cli reads that from `REDISCLI_AUTH`. */
export function redisCli(address: string, command: string): string {
  const [, host, port] = /^(.*):(\d+)$/.exec(address) ?? [];
  const where = host === undefined ? `-s ${shellWord(address)}` : `-h ${host} -p ${port}`;
  return inBackticks(`redis-cli ${where} ${command}`);
}

/** Marks a command in a repair. */
export function inBackticks(command: string): string {
  return `\`${command}\``;
}

/**
 * A redis-cli command about a key of a queue: in the queue's database, and on a Cluster on the node that serves the
 * key.
 */
export function redisCliAtKey(
  site: Pick<Site, "address" | "database" | "isCluster" | "keyPrefix">,
  before: string,
  key: string,
  behind = "",
): string {
  const where = site.isCluster ? "-c " : site.database === 0 ? "" : `-n ${site.database} `;
  const words = [before, shellWord(site.keyPrefix + key), behind].filter((word) => word !== "");
  return redisCli(site.address, `${where}${words.join(" ")}`);
}
