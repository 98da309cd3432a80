import { expect, test } from "vitest";
import { guarded } from "../../../src/lua/guarded.ts";
import { pullOut } from "../../../src/lua/partitions/pull-out.ts";
import { run } from "../../../src/lua/script.ts";
import { partitionName, tableOf } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { bucketOfKey } from "../../../src/queue/message/bucket.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { upTo } from "../../helpers/numbers.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const MINUTE = 60_000;
const MOVING = "2:8:2:moving:1";

test("by id and by key, in the partition of the message", async () => {
  const queue = newLine().getReliableQueue<number>(uniqueName(), { partitions: 4 });
  const numbers = upTo(20);
  const offered = await queue.offerMany(
    numbers.map((i) => ({ payload: i, delay: MINUTE, key: `key ${i}`, partitionKey: `${i % 7}` })),
  );
  for (const i of numbers) {
    const options = i % 4 === 1 ? { partitionKey: `${i % 7}` } : {};
    const idOrKey = i % 2 === 0 ? offered[i]!.id : `key ${i}`;
    expect(await queue.stage(idOrKey, options)).toMatchObject({ stage: "delayed" });
    const revoked = await queue.revoke(idOrKey, options);
    expect(revoked).toMatchObject({ stage: "delayed", id: offered[i]?.id, places: [{}] });
  }
  expect(await queue.size()).toBe(0);
  expect(await queue.revoke("key 1")).toMatchObject({ stage: "gone", places: [] });
});

test("what is ready and what runs, in all partitions", async () => {
  const queue = newLine().getReliableQueue<number>(uniqueName(), { partitions: 3 });
  const offered = await queue.offerMany(
    upTo(12).map((i) => ({ payload: i, delay: 0, key: `key ${i}`, partitionKey: `${i}` })),
  );
  await eventually(async () => (await queue.stats()).ready === 12);
  const taken = await queue.takeMany({ limit: 6 });
  const running = new Set(taken.map(({ payload }) => payload));
  for (const [i, { id }] of offered.entries()) {
    const { stage, places } = await queue.revoke(i % 2 === 0 ? id : `key ${i}`);
    // The process may have got more than it was asked for.
    expect(running.has(i) ? ["running"] : ["ready", "running"]).toContain(stage);
    expect(places).toHaveLength(1);
  }
  for (const delivery of taken) expect(await delivery.ack()).toBe(false);
  expect(await queue.stats()).toMatchObject({ ready: 0, inFlight: 0 });
});

test.each(["who knows of it", "who does not"])(
  "a message on its way to another partition is found (%s)",
  async (who) => {
    const name = uniqueName();
    const redis = newRedis();
    const keysOf = (partition: number) => queueKeys(partitionName(name, partition));
    const old = newLine({ transfer: false }).getReliableQueue<number>(name, { partitions: 2 });
    await old.stats();
    // Keys that belong to partition 0 of 2, and to another one of 8.
    const keys = upTo(200)
      .map((i) => `key ${i}`)
      .filter((one) => {
        const bucket = bucketOfKey(one);
        return tableOf(2)[bucket] === 0 && (tableOf(8)[bucket] ?? 0) > 1;
      })
      .slice(0, 3);
    const [first = "", second = "", third = ""] = keys;
    const offered = await Promise.all(keys.map((key) => old.offer(1, MINUTE, { key })));
    await redis.set(keysOf(0).partitions, MOVING);
    // A process has taken two of them out of partition 0, and has died.
    const args = { own: 0, buckets: Buffer.from(tableOf(8)), knownFact: MOVING, ofPartition: 0 };
    const rows = [first, second].map((key) => ({ id: "", key, member: "" }));
    await run(redis, guarded(pullOut), keysOf(0), args, rows);
    const queue =
      who === "who does not"
        ? old
        : newLine({ transfer: false }).getReliableQueue<number>(name, { partitions: 5 });
    const [byKey, byId, left] = await Promise.all([
      queue.revoke(first),
      queue.revoke(offered[1]!.id),
      queue.revoke(third),
    ]);
    expect([byKey, byId, left].map(({ stage, id }) => [stage, id])).toEqual(
      offered.map(({ id }) => ["delayed", id]),
    );
    expect(await queue.size()).toBe(0);
  },
);

test("what runs stays in its partition when their number changes, and is found there", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue<number>(name, { partitions: 2 });
  const offered = await queue.offerMany(
    upTo(20).map((i) => ({ payload: i, delay: 0, key: `key ${i}` })),
  );
  await eventually(async () => (await queue.stats()).ready === 20);
  const taken: Awaited<ReturnType<typeof queue.takeMany>> = [];
  while (taken.length < 20) taken.push(...(await queue.takeMany({ limit: 20 })));
  await line.setPartitions(name, 7);
  const stages = await Promise.all(
    offered.map(({ id }, i) => queue.revoke(i % 2 === 0 ? id : `key ${i}`)),
  );
  expect(stages.map(({ stage }) => stage)).toEqual(offered.map(() => "running"));
  for (const delivery of taken) expect(await delivery.ack()).toBe(false);
});

test("a queue that gets partitions while its messages run", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue<number>(name);
  const [first, second] = await queue.offerMany(
    [1, 2].map((payload) => ({ payload, delay: 0, key: `key ${payload}` })),
  );
  await eventually(async () => (await queue.stats()).ready === 2);
  const [one] = await queue.takeMany({ limit: 1 });
  const changing = line.setPartitions(name, 3);
  expect(await queue.revoke(first!.id, { wait: 10 })).toMatchObject({ stage: "running" });
  await eventually(() => one?.signal.aborted === true);
  expect(await one?.ack()).toBe(false);
  await changing;
  expect(await queue.revoke("key 2")).toMatchObject({ stage: "ready", id: second?.id });
});

test("tells what runs in all partitions", async () => {
  const queue = newLine().getReliableQueue<number>(uniqueName(), { partitions: 3 });
  await queue.offerMany(upTo(9).map((i) => ({ payload: i, delay: 0, key: `key ${i}` })));
  const taken: Awaited<ReturnType<typeof queue.takeMany>> = [];
  while (taken.length < 9) taken.push(...(await queue.takeMany({ limit: 9 })));
  const running: string[] = [];
  for await (const { key = "" } of queue.running()) running.push(key);
  expect(running.toSorted()).toEqual(upTo(9).map((i) => `key ${i}`));
});
