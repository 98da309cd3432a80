import { expect, test } from "vitest";
import type { Delivery, OfferResult, ReliableQueue } from "../../../src/index.ts";
import { guarded } from "../../../src/lua/guarded.ts";
import { pullOut } from "../../../src/lua/partitions/pull-out.ts";
import { run } from "../../../src/lua/script.ts";
import { partitionName, tableOf } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { bucketOfKey } from "../../../src/queue/message/bucket.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { expectEachOnce } from "../../helpers/ledger.ts";
import { upTo } from "../../helpers/numbers.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/* Offers with `once` under keys whose messages are in all stages, while the number of partitions changes. */

const MINUTE = 60_000;
const EACH = 16;

const STAGES = ["handled", "running", "retrying", "ready", "delayed"] as const;
type Stage = (typeof STAGES)[number];
type Queue = ReliableQueue<string>;

const once = { for: 60 * MINUTE };

/** A busy machine may not renew leases in time: what runs would be ready. */
const leaseTimeout = 5 * MINUTE;
const keysOf = (stage: Stage) => upTo(EACH).map((i) => `${stage}:${i}`);
const ALL = STAGES.flatMap(keysOf);

const add = (queue: Queue, keys: readonly string[], delay: number) =>
  queue.offerMany(keys.map((key) => ({ payload: key, delay, key, once })));

async function takeAll(queue: Queue, count: number): Promise<Delivery<string>[]> {
  const taken: Delivery<string>[] = [];
  while (taken.length < count) taken.push(...(await queue.takeMany({ limit: count })));
  return taken;
}

/** Brings messages to each stage. Returns what was offered under each key, and what runs. */
async function bringToAllStages(queue: Queue) {
  const first = new Map<string, OfferResult>();
  const running: Delivery<string>[] = [];
  for (const stage of STAGES) {
    const keys = keysOf(stage);
    const offered = await add(queue, keys, stage === "delayed" ? MINUTE : 0);
    for (const [i, key] of keys.entries()) first.set(key, offered[i]!);
    if (stage === "delayed" || stage === "ready") continue;
    const taken = await takeAll(queue, EACH);
    if (stage === "handled") await Promise.all(taken.map((one) => one.ack()));
    if (stage === "retrying") await Promise.all(taken.map((one) => one.nack({ delay: MINUTE })));
    if (stage === "running") running.push(...taken);
  }
  await eventually(async () => (await queue.stats()).ready === EACH);
  return { first, running };
}

/** Offers each key again; returns how far its message has come. Each finds the message that was offered first. */
async function offerAgain(queue: Queue, first: ReadonlyMap<string, OfferResult>) {
  const results = await Promise.all(
    ALL.map((key) => queue.offer("again", 0, { key, once: "handled" })),
  );
  const found = results.map(({ outcome, id }, i) => `${ALL[i]} ${outcome} ${endOf(id)}`);
  expect(found).toEqual(ALL.map((key) => `${key} existing ${endOf(first.get(key)!.id)}`));
  return new Map(ALL.map((key, i) => [key, results[i]!.stage]));
}

/** A message that is rescheduled has a new id, of which the end is the same. */
function endOf(id: string): string {
  return id.slice(id.lastIndexOf("-"));
}

/** Handles what is left, and expects one message of each key that was not handled before. */
async function expectOneEach(queue: Queue, running: readonly Delivery<string>[]) {
  for (const key of [...keysOf("retrying"), ...keysOf("delayed")]) await queue.promote(key);
  const rest = await takeAll(queue, 3 * EACH);
  const payloads = [...running, ...rest].map(({ payload }) => payload);
  expectEachOnce(
    ALL.filter((key) => !key.startsWith("handled")),
    payloads,
  );
  await Promise.all(rest.map((one) => one.ack()));
  expect(await queue.stats()).toMatchObject({ delayed: 0, ready: 0, inFlight: 0, retries: 0 });
}

test("from 2 to 5 partitions: keys in all stages stay taken, during the change and after it", async () => {
  const name = uniqueName("once");
  const [line, other] = [newLine(), newLine()];
  const [queue, theirs] = [line, other].map((one) =>
    one.getReliableQueue<string>(name, { partitions: 2, leaseTimeout }),
  ) as [Queue, Queue];
  const { first, running } = await bringToAllStages(queue);
  // Something to do for the change.
  await queue.offerMany(
    upTo(1000).map((i) => ({ payload: "filler", delay: MINUTE, key: `filler:${i}` })),
  );
  const changing = line.setPartitions(name, 5).then(() => "changed");
  let rounds = 0;
  const going = Promise.resolve("changing");
  for (; (await Promise.race([changing, going])) === "changing"; rounds++) {
    await Promise.all([offerAgain(queue, first), offerAgain(theirs, first)]);
  }
  await changing;
  expect(rounds).toBeGreaterThan(0);
  const late = newLine().getReliableQueue<string>(name, { partitions: 5 });
  for (const one of [queue, theirs, late]) {
    const stages = await offerAgain(one, first);
    for (const key of ALL) expect([key, stages.get(key)]).toEqual([key, key.split(":")[0]]);
  }
  await Promise.all(running.map((one) => one.ack()));
  const stages = await offerAgain(theirs, first);
  for (const key of keysOf("running")) expect(stages.get(key)).toBe("handled");
  expect(await queue.cancelWhere({ prefix: "filler:" })).toMatchObject({ count: 1000 });
  await expectOneEach(queue, running);
});

/** Whether a message is in a partition that goes when 6 become 2. */
function isGoing({ key = "" }): boolean {
  return (tableOf(6)[bucketOfKey(key)] ?? 0) >= 2;
}

test("from 6 to 2 partitions, with messages in hand: what was handled or runs keeps its key", async () => {
  const name = uniqueName("once");
  const [line, other] = [newLine(), newLine()];
  const [queue, theirs] = [line, other].map((one) =>
    one.getReliableQueue<string>(name, { partitions: 6, leaseTimeout }),
  ) as [Queue, Queue];
  const { first, running } = await bringToAllStages(queue);
  const progress: number[] = [];
  const changing = line.setPartitions(name, 2, { onProgress: ({ left }) => progress.push(left) });
  // The change waits for what runs in the partitions that go.
  const going = running.filter(isGoing);
  expect(going.length).toBeGreaterThan(0);
  expect(going.length).toBeLessThan(EACH);
  await eventually(() => progress.some((left) => left > 0));
  await offerAgain(theirs, first);
  for (const one of going) expect(await one.ack()).toBe(true);
  await Promise.all([changing, offerAgain(queue, first), offerAgain(theirs, first)]);
  const late = newLine().getReliableQueue<string>(name, { partitions: 2 });
  for (const one of [queue, theirs, late]) {
    const stages = await offerAgain(one, first);
    for (const key of ALL) {
      const wasHandled = going.some((delivery) => delivery.key === key);
      expect([key, stages.get(key)]).toEqual([key, wasHandled ? "handled" : key.split(":")[0]]);
    }
  }
  // Nothing is remembered where nobody looks any more.
  const redis = newRedis();
  for (const partition of [2, 3, 4, 5]) {
    const { once: records, onceEnds } = queueKeys(partitionName(name, partition));
    expect(await redis.exists(records, onceEnds)).toBe(0);
  }
  await Promise.all(running.filter((one) => !isGoing(one)).map((one) => one.ack()));
  await expectOneEach(queue, running);
});

test("an ordinary queue gets partitions: keys in all stages stay taken", async () => {
  const name = uniqueName("once");
  const [old, line] = [newLine(), newLine()];
  const before = old.getReliableQueue<string>(name, { leaseTimeout });
  const { first, running } = await bringToAllStages(before);
  const queue = line.getReliableQueue<string>(name, { partitions: 4 });
  await offerAgain(queue, first);
  await offerAgain(before, first);
  const progress: number[] = [];
  const changing = line.setPartitions(name, 4, { onProgress: ({ left }) => progress.push(left) });
  await eventually(() => progress.some((left) => left > 0));
  await offerAgain(queue, first);
  await offerAgain(before, first);
  for (const one of running) expect(await one.ack()).toBe(true);
  await Promise.all([changing, offerAgain(queue, first)]);
  const late = newLine().getReliableQueue<string>(name, { partitions: 4 });
  for (const one of [queue, late, before]) {
    const stages = await offerAgain(one, first);
    for (const key of [...keysOf("handled"), ...keysOf("running")]) {
      expect([key, stages.get(key)]).toEqual([key, "handled"]);
    }
  }
  await expectOneEach(queue, running);
});

test("a retry on its way from a partition that its key has never belonged to is found", async () => {
  const name = uniqueName("once");
  const redis = newRedis();
  const line = newLine({ transfer: false });
  const queue = line.getReliableQueue<string>(name, { partitions: 2 });
  // A key that belongs to three different partitions of 2, 7 and 3.
  const key = upTo(1000)
    .map((i) => `key ${i}`)
    .find((one) => {
      const bucket = bucketOfKey(one);
      return tableOf(2)[bucket] === 0 && tableOf(7)[bucket]! > 2 && tableOf(3)[bucket] === 2;
    }) as string;
  const keys = queueKeys(partitionName(name, 0));
  const worker = newLine().getReliableQueue<string>(name, { partitions: 2 });
  const { id } = await queue.offer("a", 0, { key, once });
  const delivery = await worker.take();
  await line.setPartitions(name, 7);
  await delivery.nack({ delay: MINUTE });
  expect(await redis.exists(keys.retries)).toBe(1);
  // A process has taken it out of partition 0 to look for it, and has died.
  const moving = "4:3:7:moving:1";
  await redis.set(keys.partitions, moving);
  const args = { own: 0, buckets: Buffer.from(tableOf(3)), knownFact: moving, ofPartition: 0 };
  const batch = await run(redis, guarded(pullOut), keys, args, [{ id: "", key, member: "" }]);
  expect(batch.rows).toHaveLength(1);

  const found = { outcome: "existing", id, stage: "retrying" };
  expect(await queue.offer("b", 0, { key, once })).toMatchObject(found);
  await line.setPartitions(name, 3);
  expect(await queue.offer("c", 0, { key, once })).toMatchObject(found);
  expect(await queue.stats()).toMatchObject({ delayed: 0, retries: 1 });
});
