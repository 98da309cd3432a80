import { RedisError } from "../errors.ts";
import { checkDatabase } from "../inspect/check-database.ts";
import type { Finding } from "./checks/finding.ts";

/**
 * Looks whether there is the database that a URL names. Returns whether it is there, as far as Redis tells: why a server
 * does not reply is told elsewhere.
 */
export async function* examineDatabase(
  url: string,
  timeout: number,
): AsyncGenerator<Finding, boolean, void> {
  try {
    await checkDatabase(url, timeout);
    return true;
  } catch (error) {
    if (!(error instanceof RedisError) || !ABOUT_DATABASE.test(error.message)) return true;
    yield {
      level: "error",
      check: "database",
      what: `${new URL(url).host}: ${error.message}`,
      why: "ioredis drops the refusal: processes with this URL offer and look in database 0; no queue was looked at",
      repair:
        "correct the number at the end of the URL; otherwise raise `databases` in redis.conf, or allow the user +select",
    };
    return false;
  }
}

/** Of what Redis replies to a SELECT that it refuses for the database, the mode or the user. */
const ABOUT_DATABASE = /\bDB index\b|\bSELECT\b.*\bcluster\b|out of range|\bNOPERM\b.*\bselect\b/i;
