import { Redis, type RedisOptions } from "ioredis";
import { suggest } from "../words/did-you-mean.ts";

/**
 * The options of ioredis, and a `url` that may stand in for `host`, `port` and the like.
 *
 * They may come from any copy of ioredis. `Connector` is left out: it takes a class with protected members, which
 * would only match the class of our own copy.
 */
export type RedisConnectionOptions = Omit<RedisOptions, "Connector"> & { readonly url?: string };

/**
 * Checks a user's address of Redis: a URL, or options. Returns the two apart.
 *
 * No error shows a URL or the value of an option: both may hold a password.
 *
 * @throws {TypeError} if it is neither, or a part of it would quietly lead somewhere else.
 */
export function checkAddress(redis: unknown): {
  readonly url: string | undefined;
  readonly options: RedisConnectionOptions;
} {
  if (typeof redis === "string") return { url: checkUrl(redis), options: {} };
  checkIsObject(redis);
  const { url, ...options } = redis;
  for (const name of ["url", "host"] as const) {
    if (name in redis && (redis[name] === undefined || redis[name] === "")) throw unset(name);
  }
  const unknown = Object.keys(options).find((name) => !KNOWN.has(name));
  if (unknown !== undefined) {
    throw new TypeError(
      `redis has an option that ioredis does not know: "${unknown}"${didYouMean(unknown)}`,
    );
  }
  checkNumber("db", options.db, 0, MAX_DATABASE);
  checkNumber("port", options.port, 1, MAX_PORT);
  return { url: url === undefined ? undefined : checkUrl(url), options };
}

function checkUrl(url: unknown): string {
  if (typeof url !== "string" || !/^(rediss?:)?\/\//.test(url)) {
    const got = url === "" ? ", got an empty string" : "";
    throw new TypeError(`redis must be a URL that begins with redis:// or rediss://${got}`);
  }
  const full = url.startsWith("//") ? `redis:${url}` : url;
  const { pathname, searchParams } = parse(full);
  for (const database of [pathname.replace(/^\/|\/$/g, ""), searchParams.get("db") ?? ""]) {
    if (/^\d*$/.test(database) && Number(database) <= MAX_DATABASE) continue;
    throw new TypeError(
      "redis must name a database by a whole number, such as redis://localhost:6379/2; an unset variable in the URL?",
    );
  }
  return url;
}

function parse(url: string): URL {
  try {
    return new URL(url);
  } catch {
    throw new TypeError("redis must be a valid URL");
  }
}

function checkIsObject(redis: unknown): asserts redis is RedisConnectionOptions {
  const form = "redis must be a URL, ioredis options, or a Redis or Cluster of ioredis";
  if (redis === undefined) throw new TypeError(`${form}; got undefined: ${UNSET}`);
  if (typeof redis !== "object" || redis === null || Array.isArray(redis)) {
    throw new TypeError(`${form}; got ${redis === null ? "null" : typeof redis}`);
  }
  // A Map or a URL has its contents elsewhere, and would be taken for no options at all.
  if (isPlain(redis) || Object.keys(redis).length > 0) return;
  const kind = redis.constructor.name;
  const wayOut = kind === "URL" ? ": give its href" : ": give a plain object";
  throw new TypeError(`${form}; got a ${kind}${wayOut}`);
}

function didYouMean(unknown: string): string {
  const meant = ELSEWHERE.get(unknown) ?? suggest(unknown, KNOWN);
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}

/** What other clients of Redis call these options. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ["user", "username"],
  ["pass", "password"],
  ["auth", "password"],
  ["auth_pass", "password"],
  ["database", "db"],
  ["hostname", "host"],
  ["uri", "url"],
  ["socket", "host, port and tls"],
  ["ssl", "tls"],
  ["prefix", "keyPrefix"],
  ["masterName", "name"],
]);

/** Also if it comes from another realm, as objects do in tests with Jest. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function checkNumber(name: string, value: unknown, least: number, most: number): void {
  if (value === undefined || (typeof value === "string" && /^\d+$/.test(value))) return;
  if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return;
  const got = typeof value === "number" ? String(value) : typeof value;
  throw new TypeError(
    `${name} of redis must be a whole number between ${least} and ${most}, got ${got}${Number.isNaN(value) ? `: ${UNSET}` : ""}`,
  );
}

function unset(name: string): TypeError {
  return new TypeError(`${name} of redis must not be empty: ${UNSET}, or leave ${name} out`);
}

const UNSET = "an environment variable that is not set? Set it";

const MAX_DATABASE = 2 ** 31 - 1;

const MAX_PORT = 65_535;

/** The options that have a default. A later ioredis may have more. */
const { defaultOptions = {} } = Redis as unknown as { readonly defaultOptions?: object };

/** The options of ioredis, and those of Node's sockets that make sense for it. */
const KNOWN: ReadonlySet<string> = new Set([
  ...Object.keys(defaultOptions),
  "Connector",
  "autoSelectFamily",
  "autoSelectFamilyAttemptTimeout",
  "blockingTimeout",
  "commandTimeout",
  "commandQueue",
  "himportFieldsets",
  "hints",
  "keepAliveInitialDelay",
  "localAddress",
  "localPort",
  "lookup",
  "monitor",
  "offlineQueue",
  "path",
  "preferredSlaves",
  "protocol",
  "replyMapping",
  "scripts",
  "sentinelCommandTimeout",
  "sentinelPassword",
  "sentinelTLS",
  "sentinelUsername",
  "showFriendlyErrorStack",
  "signal",
  "socketTimeout",
  "tls",
]);
