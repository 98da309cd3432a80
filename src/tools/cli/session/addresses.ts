import { Cluster, type RedisOptions } from "ioredis";
import type { DelaylineOptions } from "../../../index.ts";
import { databaseOf } from "../../view/inspector.ts";
import { UsageError } from "./arguments.ts";

/** The Redis to connect to. */
export interface Addresses {
  readonly redis: NonNullable<DelaylineOptions["redis"]>;
  /** The hosts, for people: no user names, no passwords. */
  readonly shown: string;
  /** Disconnects the Cluster client that was made here, if any. */
  close(): void;
}

/** What the URLs stand for, unless it is one server or a list of servers. */
export interface Topology {
  /** They are nodes of one Cluster. */
  readonly isCluster: boolean;
  /** They are Sentinels, which watch a master of this name. */
  readonly sentinel: string | undefined;
}

/**
 * Parses the URLs of Redis: one server, a list of servers, some nodes of one Cluster, or some Sentinels. User, password,
 * database and key prefix in the first URL are those of Redis, behind Sentinels too.
 *
 * @throws {UsageError} if one is not a URL of Redis, or its database is not a number. The message does not repeat the
 * URL: it may hold a password.
 */
export function parseAddresses(
  urls: readonly string[],
  { isCluster, sentinel }: Topology,
): Addresses {
  const parsed = urls.map(parse);
  if (!urls.every(hasLegalDatabase)) {
    throw new UsageError(
      "--redis must name a database by a whole number, such as redis://localhost:6379/2",
    );
  }
  const shown = parsed.map(({ host }) => host || "localhost").join(", ");
  const [first] = parsed;
  if (first === undefined || !(isCluster || sentinel !== undefined)) {
    const [only = DEFAULT_URL] = urls;
    const given = urls.length > 1 ? [...urls] : only;
    return { redis: given, shown, close: () => {} };
  }
  if (sentinel !== undefined) {
    if (isCluster) throw new UsageError("give either --cluster or --sentinel");
    if (sentinel === "") throw new UsageError("--sentinel must be the name of a master");
    const redis = sentinelOptions(parsed, sentinel);
    return {
      redis,
      shown: `the master ${JSON.stringify(sentinel)} of the Sentinels at ${shown}`,
      close: () => {},
    };
  }
  checkClusterDatabase(urls);
  const keyPrefix = first.searchParams.get("keyPrefix");
  const cluster = new Cluster(nodesOf(parsed, 6379), {
    slotsRefreshInterval: 2000,
    lazyConnect: true,
    clusterRetryStrategy: (attempt) => Math.min(100 * attempt, 2000),
    redisOptions: loginOf(first),
    ...(keyPrefix !== null && { keyPrefix }),
  });
  // Each call rejects with its own failure.
  cluster.on("error", () => {});
  return {
    redis: cluster,
    shown: `the Cluster at ${shown}`,
    close: () => cluster.disconnect(),
  };
}

/** Options that find the master through the Sentinels. */
function sentinelOptions(urls: readonly URL[], name: string): RedisOptions {
  const [first] = urls as readonly [URL, ...URL[]];
  const database = databaseOf(first.href);
  const { searchParams } = first;
  const keyPrefix = searchParams.get("keyPrefix");
  const [username, password] = ["sentinelUsername", "sentinelPassword"].map((one) =>
    searchParams.get(one),
  );
  const login = loginOf(first);
  return {
    sentinels: nodesOf(urls, 26_379),
    name,
    ...login,
    ...(login.tls && { sentinelTLS: login.tls, enableTLSForSentinelMode: true }),
    ...(username && { sentinelUsername: username }),
    ...(password && { sentinelPassword: password }),
    ...(database !== undefined && { db: Number(database) }),
    ...(keyPrefix !== null && { keyPrefix }),
  };
}

function loginOf({
  username,
  password,
  protocol,
}: URL): Pick<RedisOptions, "username" | "password" | "tls"> {
  return {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(protocol === "rediss:" && { tls: {} }),
  };
}

function nodesOf(urls: readonly URL[], defaultPort: number): { host: string; port: number }[] {
  return urls.map(({ hostname, port }) => ({
    host: hostname || "localhost",
    port: Number(port || defaultPort),
  }));
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

/** The URL with this password, if it names a user and has none. */
export function withPassword(url: string, password: string): string {
  if (password === "" || !URL.canParse(url)) return url;
  const parsed = new URL(url);
  if (parsed.username === "" || parsed.password !== "") return url;
  parsed.password = encodeURIComponent(password);
  return parsed.href;
}

/**
 * The URL with its user and without its password, which then has to come from `REDISCLI_AUTH`; undefined if it may hold
 * other secrets.
 */
export function withoutPassword(url: string): string | undefined {
  const parsed = new URL(url);
  const { searchParams } = parsed;
  const isSecret = parsed.password !== "" || searchParams.has("password");
  const others = [...searchParams.keys()].filter((name) => name !== "password");
  if (!others.every((name) => HARMLESS.has(name))) return undefined;
  if (!isSecret) return url;
  parsed.username ||= encodeURIComponent(searchParams.get("username") ?? "default");
  parsed.password = "";
  searchParams.delete("password");
  searchParams.delete("username");
  return parsed.href;
}

/** Options in a URL that are no secrets. */
const HARMLESS = new Set(["db", "keyPrefix", "username"]);

/** The passwords in some URLs of Redis, as written and decoded, so that they can be masked in messages. */
export function secretsIn(urls: readonly string[]): string[] {
  const secrets = urls.flatMap((url) => {
    const [, authority] = /^[a-z]+:\/\/[^/@]*?:(.*)@[^@]*$/s.exec(url) ?? [];
    // ioredis also reads options from the query.
    const [, query] = /[?&]password=([^&#]*)/s.exec(url) ?? [];
    const [, sentinels] = /[?&]sentinelPassword=([^&#]*)/s.exec(url) ?? [];
    return [authority, query, sentinels].flatMap((one) =>
      one === undefined ? [] : [one, decoded(one)],
    );
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
