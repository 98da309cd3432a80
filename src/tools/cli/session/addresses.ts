import { Cluster } from "ioredis";
import type { DelaylineOptions } from "../../../queue/options.ts";
import { databaseOf } from "../../inspect/inspector.ts";
import { UsageError } from "./arguments.ts";

/** The Redis to connect to. */
export interface Addresses {
  readonly redis: NonNullable<DelaylineOptions["redis"]>;
  /** The hosts, for people: no user names, no passwords. */
  readonly shown: string;
  /** The URLs; empty for a Cluster. */
  readonly urls: readonly string[];
  /** Disconnects the Cluster client that was made here, if any. */
  close(): void;
}

/**
 * Parses the URLs of Redis: one server, a list of servers, or with `isCluster` some nodes of one Cluster.
 *
 * @throws {UsageError} if one is not a URL of Redis, or its database is not a number. The message does not repeat the
 * URL: it may hold a password.
 */
export function parseAddresses(urls: readonly string[], isCluster: boolean): Addresses {
  const parsed = urls.map(parse);
  if (!urls.every(hasLegalDatabase)) {
    throw new UsageError(
      "--redis must name a database by a whole number, such as redis://localhost:6379/2",
    );
  }
  const shown = parsed.map(({ host }) => host || "localhost").join(", ");
  if (!isCluster) {
    const [first = DEFAULT_URL] = urls;
    const given = urls.length > 1 ? [...urls] : first;
    return { redis: given, shown, urls: [given].flat(), close: () => {} };
  }
  checkClusterDatabase(urls);
  const [first] = parsed;
  const redisOptions = {
    ...(first?.username && { username: decodeURIComponent(first.username) }),
    ...(first?.password && { password: decodeURIComponent(first.password) }),
    ...(first?.protocol === "rediss:" && { tls: {} }),
  };
  const nodes = parsed.map(({ hostname, port }) => ({
    host: hostname,
    port: Number(port || 6379),
  }));
  const cluster = new Cluster(nodes, {
    slotsRefreshInterval: 2000,
    lazyConnect: true,
    clusterRetryStrategy: (attempt) => Math.min(100 * attempt, 2000),
    redisOptions,
  });
  // Each call rejects with its own failure.
  cluster.on("error", () => {});
  return {
    redis: cluster,
    shown: `the Cluster at ${shown}`,
    urls: [],
    close: () => cluster.disconnect(),
  };
}

/** @throws {UsageError} if a URL names a database other than 0: a Cluster has no others. */
function checkClusterDatabase(urls: readonly string[]): void {
  const other = urls.map(databaseOf).find((one) => one !== undefined && Number(one) !== 0);
  if (other === undefined) return;
  throw new UsageError(`a Cluster has only database 0, and --redis names database ${other}`);
}

function hasLegalDatabase(url: string): boolean {
  return /^\d+$/.test(databaseOf(url) ?? "0");
}

function parse(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLegal = url !== undefined && /^rediss?:$/.test(url.protocol);
  if (isLegal && [url.username, url.password, url.pathname].every(isEscaped)) return url;
  throw new UsageError("--redis must be a URL such as redis://localhost:6379 or rediss://...");
}

/** Whether every `%` in the text begins a valid escape. */
function isEscaped(text: string): boolean {
  try {
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
}

/** Used where neither `--redis` nor `REDIS_URL` is given. */
export const DEFAULT_URL = "redis://localhost:6379";

/** The passwords in some URLs of Redis, as written and decoded, so that they can be masked in messages. */
export function secretsIn(urls: readonly string[]): string[] {
  const secrets = urls.flatMap((url) => {
    const [, authority] = /^[a-z]+:\/\/[^/@]*?:(.*)@[^@]*$/s.exec(url) ?? [];
    // ioredis also reads options from the query.
    const [, query] = /[?&]password=([^&#]*)/s.exec(url) ?? [];
    return [authority, query].flatMap((one) => (one === undefined ? [] : [one, decoded(one)]));
  });
  return secrets.filter((secret) => secret !== "");
}

function decoded(written: string): string {
  try {
    return decodeURIComponent(written);
  } catch {
    return written;
  }
}
