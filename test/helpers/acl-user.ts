import type { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { redisUrl, uniqueName } from "./redis.ts";

/** A user of the shared Redis that may do nothing but what `rules` allow. It is deleted when the test has finished. */
export async function newAclUser(
  admin: Redis,
  rules: readonly string[],
): Promise<{ readonly user: string; readonly url: URL }> {
  const user = uniqueName("user");
  await admin.call("ACL", "SETUSER", user, "on", ">secret", "resetkeys", "resetchannels", ...rules);
  onTestFinished(async () => void (await admin.call("ACL", "DELUSER", user)));
  const url = new URL(redisUrl());
  url.username = user;
  url.password = "secret";
  return { user, url };
}
