import { RedisError } from "../../errors.ts";
import { checkDatabase } from "../inspect/check-database.ts";
import type { Finding } from "./checks/finding.ts";

/**
 * Checks whether the database that a URL names exists, and returns whether it does. Returns true if the server does not
 * reply: another check reports that.
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
      why: "ioredis ignores the refusal, so processes with this URL work in database 0; no queue was checked",
      repair:
        "correct the number at the end of the URL, raise `databases` in redis.conf, or allow the user +select",
    };
    return false;
  }
}

/** Matches the replies to a SELECT that fails because of the database, the Cluster mode or the user. */
const ABOUT_DATABASE = /\bDB index\b|\bSELECT\b.*\bcluster\b|out of range|\bNOPERM\b.*\bselect\b/i;
