import { readFile } from "node:fs/promises";
import type { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { redisUrl, uniqueName } from "./redis.ts";

/** The access rules of docs/operations/setting-up.md, for the queue `name`. */
export async function documentedRules(name: string): Promise<string[]> {
  const url = new URL("../../docs/operations/setting-up.md", import.meta.url);
  const [, rules] = /^## Access rules.*?```\n(.*?)```/ms.exec(await readFile(url, "utf8")) ?? [];
  if (rules === undefined) throw new Error("the page has no access rules");
  return rules.replaceAll("orders", name).trim().split(/\s+/);
}

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
