import { expect, test } from "vitest";
import { partsOf } from "../../../src/handles/queue-handle.ts";
import { processName } from "../../../src/queue/process-name.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const by = processName();

test("what was done to a queue is in its log, the newest first, whoever reads it", async () => {
  const name = uniqueName("activity");
  const jobs = newLine({ transfer: false }).getReliableQueue<string>(name);
  await jobs.pause({ reason: "deploying" });
  await jobs.offerMany([
    { payload: "a", delay: 60_000, key: "order:1" },
    { payload: "b", delay: 60_000, key: "order:2" },
    { payload: "c", delay: 60_000, key: "other" },
  ]);
  await jobs.cancelWhere({ prefix: "order:" }, { dryRun: true });
  await jobs.cancelWhere({ prefix: "order:" });
  await jobs.cancelWhere({ prefix: "nothing:" });
  await jobs.schedules.declare(
    "nightly",
    { clean: { every: 60_000, payload: "clean" } },
    { revision: 42 },
  );
  await jobs.schedules.pause("clean");
  await jobs.schedules.pause("clean");
  await jobs.clear();
  await jobs.resume();

  const reader = newLine({ transfer: false }).getDelayedQueue(name);
  const entries = await partsOf(reader).activity.read();
  const told = entries.map(({ at, ...rest }) => ({ ...rest, hasTime: at > 0 }));
  expect(told.map(({ hasTime, ...rest }) => hasTime && rest)).toEqual([
    { by, what: "resumed" },
    { by, what: "cleared", count: 1 },
    { by, what: "schedule paused", detail: "clean" },
    { by, what: "declared", count: 1, detail: "revision 42 of nightly" },
    { by, what: "cancelled", count: 2, detail: "order:" },
    { by, what: "paused", detail: "deploying" },
  ]);
  const times = entries.map(({ at }) => at);
  expect(times).toEqual(times.toSorted((one, other) => other - one));
});

test("the log of a queue goes on when it gets partitions", async () => {
  const name = uniqueName("activity");
  const line = newLine();
  const queue = line.getDelayedQueue(name);
  await queue.pause();
  await queue.resume();
  await queue.offer("in use", 60_000);
  await line.setPartitions(name, 2);
  await line.setPartitions(name, 3);
  await line.setPartitions(name, 3);
  const entries = await partsOf(queue).activity.read();
  expect(entries.map(({ what, detail }) => [what, detail])).toEqual([
    ["partitions set", "3 instead of 2"],
    ["partitions set", "2"],
    ["resumed", undefined],
    ["paused", undefined],
  ]);
});

test.each([
  { where: "in an ordinary queue", options: {} },
  { where: "in partitions", options: { partitions: 3 } },
])(
  "a message that was dropped when it was due is told from one that was handled: $where",
  async ({ options }) => {
    const line = newLine();
    const jobs = line.getReliableQueue<string>(uniqueName("activity"), options);
    const onlyIf = { key: uniqueName("status"), exists: true };
    const { id } = await jobs.offer("late", 0, { key: "order:5", onlyIf });
    await jobs.offer("handled", 0, { key: "order:6" });
    await (await jobs.take()).ack();
    const { activity } = partsOf(jobs);
    await expect.poll(() => activity.dropOf("order:5")).toMatchObject({ reason: "onlyIf" });
    expect(await activity.dropOf(id)).toMatchObject({ key: "order:5", reason: "onlyIf" });
    expect(await activity.dropOf("order:6")).toBeUndefined();
  },
);

test("who may not write the log does what he wants all the same, and foreign entries are left out", async () => {
  const name = uniqueName("activity");
  const queue = newLine().getDelayedQueue(name);
  const redis = newRedis();
  await redis.set(`delayline_activity:{${name}}`, "of another type");
  await queue.pause();
  expect(await queue.isPaused()).toBe(true);
  await redis.del(`delayline_activity:{${name}}`);
  await queue.resume();
  await redis.lpush(`delayline_activity:{${name}}`, "foreign", '1 x ["unknown"]', "1 x {");
  expect(await partsOf(queue).activity.read()).toMatchObject([{ what: "resumed" }]);
});
