import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { upTo } from "../../helpers/numbers.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/* A stream that somebody deletes takes its groups with it. What comes afterwards has to reach each of them. */

const GROUPS = ["a", "b"] as const;
const SENT = upTo(30).map(String);

async function groupsOf(redis: Redis, name: string): Promise<string[]> {
  const groups = (await redis.xinfo("GROUPS", queueKeys(name).stream)) as unknown[][];
  return groups.map((fields) => String(fields[fields.indexOf("name") + 1]));
}

test("the stream is deleted while memory is full: each group gets what becomes due afterwards", async () => {
  const server = await startOwnServer({ args: ["--maxmemory-policy", "noeviction"] });
  const [redis, name] = [newRedis(server.url), uniqueName()];
  const seen = new Map(GROUPS.map((group) => [group, [] as string[]]));
  const line = newLineThatMayFail({ redis: server.url });
  const [queue] = GROUPS.map((group) => {
    const one = line.getReliableQueue<string>(name, { group });
    one.subscribe((payload) => seen.get(group)?.push(payload));
    return one;
  });
  await eventually(async () => expect(await groupsOf(redis, name)).toEqual(GROUPS));
  await queue?.offerMany(SENT.map((payload) => ({ payload, delay: 300 })));
  await redis.config("SET", "maxmemory", "1");
  await redis.del(queueKeys(name).stream);
  // Both have tried to create their groups again.
  await eventually(async () => {
    const [, refused] = /errorstat_OOM:count=(\d+)/.exec(await redis.info("errorstats")) ?? [];
    expect(Number(refused)).toBeGreaterThan(5);
  });
  await redis.config("SET", "maxmemory", "0");
  for (const group of GROUPS) {
    await eventually(() => expect(seen.get(group)?.toSorted()).toEqual(SENT.toSorted()));
  }
});

test("a group whose processes are away gets what becomes due after the stream was deleted", async () => {
  const [redis, name] = [newRedis(), uniqueName()];
  const { stream } = queueKeys(name);
  const away = newLine();
  await away.getReliableQueue<string>(name, { group: "away", start: "new" }).poll();
  await away.close();
  const here = newLine().getReliableQueue<string>(name, { group: "here" });
  const seen: string[] = [];
  here.subscribe((payload) => seen.push(payload));
  for (const round of [1, 2]) {
    await eventually(async () => expect(await groupsOf(redis, name)).toHaveLength(2));
    await redis.del(stream);
    await here.offer(`message ${round}`, 0);
    await eventually(() => expect(seen).toHaveLength(round));
  }
  const back = newLine().getReliableQueue<string>(name, { group: "away", start: "new" });
  expect(await back.take()).toMatchObject({ payload: "message 2" });
});

test("a group that was given up is not created again", async () => {
  const [redis, name] = [newRedis(), uniqueName()];
  const { stream } = queueKeys(name);
  const line = newLine();
  const [old, next] = ["old", "next"].map((group) =>
    line.getReliableQueue<string>(name, { group }),
  );
  await old?.poll();
  await redis.xgroup("DESTROY", stream, "old");
  await next?.poll();
  expect(await groupsOf(redis, name)).toEqual(["next"]);
  await redis.del(stream);
  await next?.offer("message", 0);
  expect(await next?.take()).toMatchObject({ payload: "message" });
  expect(await groupsOf(redis, name)).toEqual(["next"]);
});
