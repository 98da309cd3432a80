import { shellWord } from "../../inspect/text.ts";
import type { Site } from "../looks/site.ts";

/**
 * How bad a finding is. An error stops a queue or loses messages, now or at the next restart; a notice only informs.
 */
type Level = "error" | "warning" | "notice";

/** The names of the checks: first those of servers, then those of queues. */
export const CHECKS = [
  "reachable",
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
  "paused",
  "overdue",
  "no-transfer",
  "deaf",
  "no-consumer",
  "backlog",
  "orphan",
  "dead-letters",
  "quarantine",
  "insertion-order",
  "index",
  "early",
  "partitions",
] as const;

export type CheckName = (typeof CHECKS)[number];

/** Something that is wrong. It holds no payload and no password. */
export interface Finding {
  readonly level: Level;
  /** The check that found it. `docs/operations/watching.md` says what each one looks for. */
  readonly check: CheckName;
  /** The queue that it is about; undefined if it is about a server, or about all queues. */
  readonly queue?: string;
  /** The problem, with numbers. */
  readonly what: string;
  /** Why the problem matters. */
  readonly why: string;
  /** How to solve the problem. Commands are in backticks. */
  readonly repair: string;
}

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

/** A duration (milliseconds) in words: `340 ms`, `12 s`, `5 min`, `3 h 20 min`, `2 d 4 h`. */
export function inWords(duration: number): string {
  if (duration < 1000) return `${Math.round(duration)} ms`;
  const seconds = Math.floor(duration / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return join(`${hours} h`, minutes % 60, "min");
  return join(`${Math.floor(hours / 24)} d`, hours % 24, "h");
}

/** An instant (epoch ms) in UTC. */
export function instant(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? `${at} ms` : date.toISOString();
}

/** How many of what: `1 message`, `2 messages`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** The form of a verb that agrees with a count: `is` or `are`. */
export function agree(number: number, one: string, many: string): string {
  return number === 1 ? one : many;
}

function join(large: string, rest: number, unit: string): string {
  return rest === 0 ? large : `${large} ${rest} ${unit}`;
}
