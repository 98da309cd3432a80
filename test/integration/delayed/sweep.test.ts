import type { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import type { DelayedQueue } from "../../../src/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { watchCommands } from "../../helpers/monitor.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { OFTEN, startTransferTask } from "../../helpers/transfer-task.ts";

// Now and then a task sweeps its queue, for messages without a wake-up and for leftovers of other programs.

const HOUR = 3_600_000;

let redis: Redis;
let name: string;
let keys: QueueKeys;
let delayed: DelayedQueue<string>;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("sweep");
  keys = queueKeys(name);
  delayed = newLine({ codec: "string", transfer: false }).getDelayedQueue<string>(name);
});

/**
 * Two messages that stay, and between them 900 with keys that another program removes from the ZSET. Java does the same
 * when it moves messages, and leaves the library's entries behind.
 */
async function leaveBehind(): Promise<void> {
  const stays = { payload: "stays", delay: 2 * HOUR };
  const goes = Array.from({ length: 900 }, (_, i) => ({ payload: "x", delay: HOUR, key: `k${i}` }));
  await delayed.offerMany([stays, ...goes, stays]);
  await redis.zremrangebyrank(keys.timeouts, 0, 899);
}

const left = async () => ({
  elements: (await redis.llen(keys.order)) + (await redis.llen(keys.compacted)),
  keys: await redis.hlen(keys.businessKeys),
});

test("leftovers of a killed process are tidied by the next one, although another process moves", async () => {
  await redis.set(keys.mover, "one that was killed");
  await leaveBehind();
  expect(await left()).toEqual({ elements: 902, keys: 900 });
  newLine({ codec: "string" }).getDelayedQueue(name);
  await eventually(async () => (await left()).keys === 0);

  // At most this many elements may stay.
  for (let i = 0; i < 3; i++) await leaveBehind();
  newLine({ codec: "string" }).getDelayedQueue(name);
  await eventually(async () => expect(await left()).toEqual({ elements: 8, keys: 0 }));
});

test("a task on stand-by tidies as well", async () => {
  startTransferTask(name, OFTEN);
  await eventually(async () => Number((await redis.pubsub("NUMSUB", keys.channel))[1]) === 1);
  // It is woken for due messages, and finds that another task has moved them.
  await redis.set(keys.mover, "another");
  const watched = await watchCommands(keys.mover);
  await eventually(async () => {
    await redis.publish(keys.channel, "1000");
    // The grace of a task on stand-by: it takes only overdue messages.
    return (await watched()).some((words) => words.at(-5) === "50");
  });

  for (let i = 0; i < 3; i++) await leaveBehind();
  await eventually(async () => expect(await left()).toEqual({ elements: 6, keys: 0 }));
  expect(await redis.get(keys.mover)).toBe("another");
});

test("a queue in which nothing ever moves is tidied", async () => {
  startTransferTask(name, OFTEN);
  await delayed.offer("stays", HOUR);
  const results = await delayed.offerMany(
    Array.from({ length: 3000 }, (_, i) => ({ payload: "x", delay: HOUR + i })),
  );
  await delayed.cancelMany(results.map(({ id }) => id));
  await eventually(async () => expect((await left()).elements).toBe(1));
  for (let i = 0; i < 2500; i += 100) {
    const rescheduling = Array.from({ length: 100 }, (_, k) =>
      delayed.offer("again", HOUR + i + k, { key: "again", onDuplicate: "replace" }),
    );
    await Promise.all(rescheduling);
  }
  await eventually(async () => expect((await left()).elements).toBe(2));
});

test.for(["none", "redisson"] as const)(
  "a sweep that finds nothing is one script (interop %s)",
  async (interop) => {
    const queue = newLine({ transfer: false, interop }).getDelayedQueue<string>(name);
    for (let i = 0; i < 20; i++) await queue.offer("stays", HOUR, { key: `k${i}` });
    // Some have gone, but too few to be tidied.
    if (interop === "none") await queue.cancelMany(["k5", "k6"]);
    const watched = await watchCommands(keys.order);
    startTransferTask(name, OFTEN, {
      elements: interop === "redisson" ? "members" : "addresses",
    });
    const scripts = async () => (await watched()).filter(([word]) => /^eval/i.test(word ?? ""));
    await eventually(async () => (await scripts()).length >= 20);
    // The first one is sent as a text if Redis does not know it.
    const [, ...others] = (await scripts()).filter(([word]) => /^evalsha$/i.test(word ?? ""));
    expect(new Set(others.map(([, sha]) => sha)).size).toBe(1);
    const texts = (await scripts()).filter(([word]) => /^eval$/i.test(word ?? ""));
    expect(texts.length).toBeLessThanOrEqual(1);
  },
);
