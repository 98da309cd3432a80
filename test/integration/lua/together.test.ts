import { expect, test } from "vitest";
import { defineScript } from "../../../src/lua/script.ts";
import { runTogether } from "../../../src/lua/together.ts";
import { asNumber } from "../../../src/lua/reply.ts";
import { watchCommands } from "../../helpers/monitor.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { upTo } from "../../helpers/numbers.ts";

const add = defineScript({
  name: "add",
  keys: ["list", "other"],
  args: ["value"],
  lua: /* lua */ `
redis.call("RPUSH", other, value)
return redis.call("RPUSH", list, value)
`,
  reply: asNumber,
});

/** Names of queues, and what runs `add` for each of them at once. */
function scene(count: number) {
  const redis = newRedis();
  const tag = uniqueName();
  const queues = upTo(count).map((n) => ({ list: `${tag}:list:${n}`, other: `${tag}:other:${n}` }));
  const addToAll = () =>
    Promise.allSettled(queues.map((keys, i) => runTogether(redis, add, keys, { value: i })));
  /** How many scripts were sent for the first queue: those of all begin with it. */
  const watch = async () => {
    const watched = await watchCommands(queues[0]?.list ?? "");
    return async () => (await watched()).filter(([word]) => /^evalsha$/i.test(word ?? "")).length;
  };
  return { redis, queues, addToAll, watch };
}

test("runs for several queues are one command, and each gets its reply", async () => {
  const { redis, queues, addToAll, watch } = scene(3);
  await redis.rpush(queues[1]?.list ?? "", "there", "already");
  const sentCount = await watch();
  expect(await addToAll()).toEqual([1, 3, 1].map((value) => ({ status: "fulfilled", value })));
  expect(await sentCount()).toBe(1);
  const found = await Promise.all(queues.map(({ other }) => redis.lrange(other, 0, -1)));
  expect(found).toEqual([["0"], ["1"], ["2"]]);
});

test("a run that fails says why, and does not disturb the others", async () => {
  const { redis, queues, addToAll } = scene(3);
  await redis.set(queues[1]?.other ?? "", "no list");
  const [first, second, third] = await addToAll();
  expect([first, third]).toEqual([1, 1].map((value) => ({ status: "fulfilled", value })));
  expect(second).toMatchObject({
    status: "rejected",
    reason: { message: expect.stringMatching(/^WRONGTYPE/) as string },
  });
});

test("if Redis refuses all together, each is run alone", async () => {
  const { redis, queues, addToAll } = scene(3);
  const user = uniqueName("user");
  const allowed = [queues[0], queues[2]].flatMap((keys) => Object.values(keys ?? {}));
  await redis.acl("SETUSER", user, "on", "nopass", "+@all", ...allowed.map((key) => `~${key}`));
  await redis.auth(user, "any");
  const outcomes = await addToAll();
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(outcomes[1]).toMatchObject({
    reason: { message: expect.stringMatching(/^NOPERM/) as string },
  });
});

test("more than fifty runs are several commands", async () => {
  const { addToAll, watch } = scene(51);
  const sentCount = await watch();
  const outcomes = await addToAll();
  expect(outcomes.every(({ status }) => status === "fulfilled")).toBe(true);
  expect(await sentCount()).toBe(1);
});
