import { Redis } from "ioredis";
import { RedisError } from "../errors.ts";

/**
 * Makes sure that there is the database that a URL names. ioredis drops Redis's refusal of a database, and would work in
 * database 0.
 *
 * Costs a connection for a moment, where the URL names one.
 *
 * @throws {RedisError} if Redis refuses it, or cannot be asked within `timeout` milliseconds.
 */
export async function checkDatabase(url: string, timeout: number): Promise<void> {
  const database = databaseOf(url);
  if (database === undefined) return;
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: timeout,
    commandTimeout: timeout,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
  });
  redis.on("error", () => {});
  try {
    await redis.select(database);
  } catch (error) {
    throw new RedisError(`cannot select database ${database}`, error);
  } finally {
    redis.disconnect();
  }
}

/** The database that a URL names; undefined: none. */
export function databaseOf(url: string): string | undefined {
  const { pathname, searchParams } = new URL(url);
  const database = searchParams.get("db") ?? decodeURIComponent(pathname.slice(1));
  return database === "" ? undefined : database;
}
