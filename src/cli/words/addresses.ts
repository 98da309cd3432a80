import { Cluster } from "ioredis";
import { databaseOf } from "../../inspect/check-database.ts";
import type { DelaylineOptions } from "../../queue/options.ts";
import { UsageError } from "./usage-error.ts";

/** Where Redis is, and how the connection ends that was made for it. */
export interface Addresses {
  readonly redis: NonNullable<DelaylineOptions["redis"]>;
  /** For people: without user names and passwords. */
  readonly shown: string;
  /** The URLs, unless they are those of a Cluster. */
  readonly urls: readonly string[];
  /** Ends what was opened here. */
  close(): void;
}

/**
 * Reads the addresses of Redis: one, a list of servers, or with `isCluster` some nodes of one Cluster.
 *
 * @throws {UsageError} if one is no URL, or names a database by no number. What it was is not told: there may be a password in it.
 */
export function readAddresses(urls: readonly string[], isCluster: boolean): Addresses {
  const parsed = urls.map(parse);
  if (!urls.every(hasLegalDatabase)) {
    throw new UsageError(
      "--redis must name a database by a whole number, such as redis://localhost:6379/2",
    );
  }
  const shown = parsed.map(({ host }) => host || "the socket").join(", ");
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
  // Calls tell what they fail for.
  cluster.on("error", () => {});
  return {
    redis: cluster,
    shown: `the Cluster at ${shown}`,
    urls: [],
    close: () => cluster.disconnect(),
  };
}

/** What must not be shown of these addresses: their passwords, as they are written and as they are meant. */
export function secretsOf(urls: readonly string[]): string[] {
  const secrets = urls.flatMap((url) => {
    const [, written] = /^[a-z]+:\/\/[^/@]*?:(.*)@[^@]*$/s.exec(url) ?? [];
    // ioredis takes its options from there, too.
    const [, asked] = /[?&]password=([^&#]*)/s.exec(url) ?? [];
    return [written, asked].flatMap((one) => (one === undefined ? [] : [one, decoded(one)]));
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

/** @throws {UsageError} if a URL names another database than 0: a Cluster has no other. */
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

/** Whether each `%` begins the escape of a character. */
function isEscaped(text: string): boolean {
  try {
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
}

const DEFAULT_URL = "redis://localhost:6379";
