import { Redis } from "ioredis";
import { RedisError } from "../../errors.ts";

/**
 * Checks that the database in a URL exists. ioredis ignores Redis's refusal of a database and works in database 0
 * instead.
 *
 * Opens a connection if the URL names a database, and closes it again.
 *
 * @throws {RedisError} if Redis refuses the database, or does not reply within `timeout` milliseconds.
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

/** The database that a URL names; undefined if it names none. */
export function databaseOf(url: string): string | undefined {
  const { pathname, searchParams } = new URL(url);
  const database = searchParams.get("db") ?? decodeURIComponent(pathname.slice(1));
  return database === "" ? undefined : database;
}
