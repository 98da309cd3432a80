import type { Severity } from "../../view/severity.ts";
import { shellWord, type CommandWord } from "../../view/text.ts";
import { formatCount } from "../../view/words.js";
import type { ServerReport } from "../looks/server-report.ts";
import type { Endpoint, Site } from "../looks/site.ts";

/** The names of the checks: first those of servers, then those of queues. */
export const CHECKS = [
  "reachable",
  "usable",
  "database",
  "version",
  "scripts",
  "persistence",
  "eviction",
  "memory",
  "timeout",
  "tcp-keepalive",
  "maxclients",
  "output-buffer",
  "replication",
  "clock",
  "latency",
  "cluster",
  "access",
  "config",
  "clients",
  "queues",
  "no-queue",
  "refused",
  "key-type",
  "other-name",
  "paused",
  "overdue",
  "no-transfer",
  "deaf",
  "no-consumer",
  "plain-consumer",
  "stalled",
  "backlog",
  "orphan",
  "long-in-flight",
  "dead-letters",
  "quarantine",
  "remembered",
  "insertion-order",
  "index",
  "early",
  "unasked",
  "unpaced",
  "dropped-late",
  "unplanned",
  "paused-schedule",
  "missed-ticks",
  "dropped-runs",
  "tzdata",
  "partitions",
] as const;

export type CheckName = (typeof CHECKS)[number];

/** Something that is wrong, and has one cause. It holds no payload and no password. */
export interface Finding {
  readonly level: Severity;
  /** The check that found it. `docs/operations/watching.md` says what each one looks for. */
  readonly check: CheckName;
  /** The queue that it is about; undefined if it is about a server, or about all queues. */
  readonly queue?: string | undefined;
  /** The queues, if it is about several. */
  readonly queues?: readonly string[];
  /** The problem, with numbers. */
  readonly what: string;
  /** Why the problem matters. */
  readonly why: string;
  /** How to solve the problem. Commands are in backticks. */
  readonly repair: string;
}

// A repair is prose. Each command in it is in backticks, so that it can be printed on a line of its own.

/** Makes a `delayline` command to paste into a shell, for the Redis that was examined. */
export type CommandLine = (...words: readonly CommandWord[]) => string;

/**
 * A redis-cli command to paste into a shell, for the server, the user and the TLS of the doctor's own connection. It
 * holds no password: redis-cli reads that from `REDISCLI_AUTH`.
 */
export function redisCli({ address, user, tls }: Endpoint, command: string): string {
  const [, host, port] = /^(.*):(\d+)$/.exec(address) ?? [];
  const where =
    host === undefined ? `-s ${shellWord(address)}` : `-h ${shellWord(host)} -p ${port}`;
  const who = user === undefined ? "" : ` --user ${shellWord(user)}`;
  return inBackticks(`redis-cli ${where}${who}${tls} ${command}`);
}

/**
 * The same server for the default user, who usually may administer it: for repairs that the doctor's own user may not
 * make.
 */
export function asAdmin({ address, tls }: Endpoint): Endpoint {
  return { address, tls, user: undefined };
}

/** Whether a server has no CONFIG command: it was renamed or removed. */
export function lacksConfig({ configRefusal = "" }: ServerReport): boolean {
  return /unknown command/i.test(configRefusal);
}

/** Where settings are that no command shows or changes. */
export const PROVIDED =
  "where your provider keeps its settings (Amazon: the parameter group; others: the console), or in the file that the server is started with";

/** Commands that change settings now, and keep them for the next start; or where to change them if there are none. */
export function setConfig(server: ServerReport, ...settings: readonly string[]): string {
  if (lacksConfig(server)) {
    // In the file a value with spaces has no quotes around it.
    const lines = settings.map((setting) => `"${setting.replaceAll("'", "")}"`);
    return `set ${lines.join(" and ")} ${PROVIDED}: this server has no CONFIG command`;
  }
  const isAllowed = server.config !== undefined;
  const at = isAllowed ? server : asAdmin(server);
  const now = settings.map((setting) => redisCli(at, `CONFIG SET ${setting}`)).join("; ");
  const keep =
    (server.info.get("config_file") ?? "") === ""
      ? "and set it where this server is configured: it has no redis.conf, so a restart forgets it"
      : `then keep it: ${redisCli(at, "CONFIG REWRITE")}`;
  return `${isAllowed ? "" : "as an administrator: "}${now}; ${keep}`;
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
  site: Endpoint & Pick<Site, "database" | "isCluster" | "keyPrefix">,
  before: string,
  key: string,
  behind = "",
): string {
  const where = site.isCluster ? "-c " : site.database === 0 ? "" : `-n ${site.database} `;
  const words = [before, shellWord(site.keyPrefix + key), behind].filter((word) => word !== "");
  return redisCli(site, `${where}${words.join(" ")}`);
}

/** Queues with their number, and some of their names: `200 queues ("a", "b", "c" and 197 more)`. */
export function named(queues: readonly string[]): string {
  return `${formatCount(queues.length, "queue")} (${abridged(queues.map((name) => JSON.stringify(name)))})`;
}

/** The first few of some words: `a, b, c and 4 more`. */
export function abridged(words: readonly string[]): string {
  const rest = words.length - FEW;
  return rest <= 1 ? words.join(", ") : `${words.slice(0, FEW).join(", ")} and ${rest} more`;
}

const FEW = 3;

/** The form of a verb that agrees with a count: `is` or `are`. */
export function agree(number: number, one: string, many: string): string {
  return number === 1 ? one : many;
}
