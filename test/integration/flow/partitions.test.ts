import { describe, expect, test } from "vitest";
import type { FlowOptions } from "../../../src/index.ts";
import { bucketOfKey } from "../../../src/queue/message/bucket.ts";
import { partitionName, tableOf } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { expectEachOnce } from "../../helpers/ledger.ts";
import { upTo } from "../../helpers/numbers.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { newClock, SECOND } from "../../helpers/test-clock.ts";

const MINUTE = 60_000;

const keysOf = (name: string, partition: number) => queueKeys(partitionName(name, partition));

/** A lane whose messages are in one of 2 partitions, and in another one of 5. */
const MOVING = upTo(100)
  .map((i) => `moving ${i}`)
  .find((lane) => (tableOf(5)[bucketOfKey(lane)] ?? 0) > 1) as string;

const inLane = (lane: string, count: number) =>
  upTo(count).map((i) => ({
    payload: `${lane}/${i}`,
    delay: 0,
    lane,
    key: `${lane}/${i}`,
  }));

/** Ten messages a minute, and so for the test: none after the first. */
const SLOW: FlowOptions = { lane: { rate: { limit: 1, per: MINUTE, burst: 1 } } };

describe.each(["plain", "reliable"] as const)("lanes of a %s queue in partitions", (kind) => {
  function open(name: string, options: { partitions?: number; transfer?: boolean } = {}) {
    const line = newLine();
    return kind === "plain"
      ? line.getDelayedQueue<string>(name, options)
      : line.getReliableQueue<string>(name, options);
  }

  /** A queue in which a message of each lane is ready, and the others wait. */
  async function waiting(partitions: number | undefined, lanes: readonly string[], count = 5) {
    const name = uniqueName("lanes");
    const queue = open(name, partitions === undefined ? {} : { partitions });
    await queue.flow.set(SLOW);
    await queue.offerMany(lanes.flatMap((lane) => inLane(lane, count)));
    const left = lanes.length * (count - 1);
    await eventually(async () => (await queue.stats()).waiting === left);
    return { name, queue, left };
  }

  test("each lane is in one partition, and the state has each once", async () => {
    const lanes = upTo(12).map((i) => `lane ${i}`);
    const { name, queue, left } = await waiting(4, lanes);
    expect(await queue.flow.get()).toEqual(SLOW);
    const state = await queue.flow.state();
    expect(state.waiting).toBe(left);
    expect(state.lanes.map(({ lane }) => lane).toSorted()).toEqual(lanes.toSorted());
    for (const { waiting: count, restsUntil } of state.lanes) {
      expect([count, restsUntil]).toEqual([4, expect.any(Number)]);
    }
    const redis = newRedis();
    for (const lane of lanes) {
      const own = tableOf(4)[bucketOfKey(lane)];
      for (const partition of upTo(4)) {
        const score = await redis.zscore(keysOf(name, partition).lanes, lane);
        expect(score !== null, `${lane} in ${partition}`).toBe(partition === own);
      }
    }
    await queue.flow.clear();
    await eventually(async () => (await queue.stats()).ready === 60);
    expect(await queue.flow.state()).toEqual({ waiting: 0, lanes: [] });
  });

  test("messages without a lane wait in all partitions, and are counted as one lane", async () => {
    const queue = open(uniqueName("lanes"), { partitions: 3 });
    await queue.flow.set(SLOW);
    await queue.offerMany(upTo(30).map((i) => ({ payload: `${i}`, delay: 0, key: `${i}` })));
    await eventually(async () => (await queue.stats()).waiting === 27);
    const { lanes } = await queue.flow.state();
    expect(lanes).toEqual([{ lane: "", waiting: 27, restsUntil: expect.any(Number) as number }]);
  });

  test("an offer has its lane as its partition key, and no other", async () => {
    const queue = open(uniqueName("lanes"), { partitions: 3 });
    const options = { key: "k", lane: "a", partitionKey: "b" };
    await expect(queue.offer("x", MINUTE, options)).rejects.toThrow(
      'partitionKey must be the lane, which is in one partition, or left out, got "b" and the lane "a"',
    );
    await queue.offer("x", MINUTE, { key: "k", lane: "a", partitionKey: "a" });
    expect(await queue.offer("y", MINUTE, { key: "k", lane: "a" })).toMatchObject({
      outcome: "existing",
    });
    expect(await queue.has("k", { partitionKey: "a" })).toBe(true);
    expect(await queue.cancel("k")).toBe(true);
    expect(await queue.size()).toBe(0);
  });

  test("what waits can be found, rescheduled and cancelled, with the lane as a hint or without", async () => {
    const { queue, left } = await waiting(3, ["a", "b", "c", "d"]);
    const { deadline = 0 } = (await queue.get("b/2")) ?? {};
    expect(deadline).toBeLessThan(Date.now() + SECOND);
    expect(await queue.get("b/2", { partitionKey: "b" })).toMatchObject({ lane: "b" });
    expect(await queue.cancel("b/2")).toBe(true);
    expect(await queue.cancel("b/2")).toBe(false);
    expect(await queue.cancel("c/3", { partitionKey: "c" })).toBe(true);
    expect(await queue.reschedule("d/1", MINUTE)).toBeDefined();
    expect(await queue.stats()).toMatchObject({ waiting: left - 3 });
  });

  test("a limit of the whole queue's hands is refused, before and after", async () => {
    const name = uniqueName("lanes");
    const queue = open(name, { partitions: 2 });
    await expect(queue.flow.set({ concurrency: 5 })).rejects.toThrow("limit each lane");
    expect(await queue.flow.get()).toBeUndefined();
    const ordinary = uniqueName("lanes");
    await open(ordinary).flow.set({ concurrency: 5 });
    await expect(newLine().setPartitions(ordinary, 2)).rejects.toThrow("limit each lane");
    expect(await newLine().partitions(ordinary)).toEqual([]);
  });

  test.each([
    ["more partitions", 2, 5],
    ["fewer partitions", 5, 2],
    ["partitions of an ordinary queue", undefined, 3],
  ])("%s: what waits goes on waiting, each in its lane's partition", async (_, from, to) => {
    const lanes = [...upTo(12).map((i) => `lane ${i}`), MOVING];
    const { name, queue, left } = await waiting(from, lanes);
    await queue.flow.hold("lane 1", MINUTE);
    const redis = newRedis();
    const before = await Promise.all(
      upTo(5).map(async (i) => await redis.hlen(keysOf(name, i).room)),
    );
    // Nothing that moves is forgotten; at its new place a lane begins with nothing saved.
    await newLine().setPartitions(name, to);
    const all = async () => await queue.stats();
    await eventually(async () => (await all()).waiting >= left - lanes.length);
    expect((await queue.stats()).delayed).toBeGreaterThanOrEqual(left - lanes.length);
    const rooms = await Promise.all(
      upTo(5).map(async (i) => await redis.hlen(keysOf(name, i).room)),
    );
    expect(rooms).not.toEqual(before);
    for (const lane of lanes) {
      const own = tableOf(to)[bucketOfKey(lane)];
      const prefix = String.fromCodePoint(lane.length) + lane;
      for (const partition of upTo(5)) {
        const { turns } = keysOf(name, partition);
        const count = await redis.zlexcount(turns, `[${prefix}`, `(${prefix}~`);
        if (partition !== own) expect(count, `${lane} in ${partition}`).toBe(0);
      }
    }
    expect(await queue.flow.get()).toEqual(SLOW);
    const held = (await queue.flow.state()).lanes.find(({ lane }) => lane === "lane 1");
    expect(held?.waiting).toBe(4);
    expect(await queue.cancel(`${MOVING}/4`)).toBe(true);
    await queue.flow.clear();
    const total = lanes.length * 5 - 1;
    await eventually(async () => (await queue.stats()).ready === total);
  });

  test("of a partition that is removed no key of the flow stays", async () => {
    const { name, queue } = await waiting(
      3,
      upTo(12).map((i) => `lane ${i}`),
    );
    await queue.flow.hold("lane 1", MINUTE);
    await newLine().setPartitions(name, 1);
    const redis = newRedis();
    for (const partition of [1, 2]) {
      const { flow, room, turns, lanes, resting, lanePaces, hands } = keysOf(name, partition);
      const keys = { flow, room, turns, lanes, resting, lanePaces, hands };
      for (const [what, key] of Object.entries(keys)) {
        expect([what, await redis.exists(key)]).toEqual([what, 0]);
      }
    }
    await queue.flow.clear();
    await eventually(async () => (await queue.stats()).ready === 60);
  });
});

test("what may be ready is shared among the partitions", async () => {
  const clock = await newClock();
  const queue = newLine().getReliableQueue<string>(uniqueName("lanes"), { partitions: 4 });
  await queue.flow.set({ lane: {}, ahead: 8 });
  await queue.offerMany(upTo(16).flatMap((i) => inLane(`lane ${i}`, 5)));
  await clock.advance(SECOND);
  expect(await queue.stats()).toMatchObject({ ready: 8, waiting: 72 });
});

test("a lane has no more in hand than it may, also what moved", async () => {
  const name = uniqueName("lanes");
  const line = newLine();
  const queue = line.getReliableQueue<string>(name, { partitions: 5, transfer: true });
  await queue.flow.set({ lane: { concurrency: 2 } });
  await queue.offerMany(inLane(MOVING, 6));
  await new Promise((r) => setTimeout(r, 3000));
  console.log(await queue.stats());
  await eventually(async () => (await queue.stats()).waiting === 4);
  await newLine().setPartitions(name, 2);
  await eventually(async () => (await queue.stats()).waiting === 4);
  expect(await queue.stats()).toMatchObject({ ready: 2, waiting: 4, delayed: 4 });
  const redis = newRedis();
  const { hands, stream } = keysOf(name, tableOf(2)[bucketOfKey(MOVING)] ?? 0);
  expect([await redis.zcard(hands), await redis.xlen(stream)]).toEqual([2, 2]);
  const handled: string[] = [];
  let [running, most] = [0, 0];
  queue.subscribe(
    async (payload) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
      handled.push(payload);
    },
    { concurrency: 10 },
  );
  await eventually(() => handled.length === 6);
  expectEachOnce(
    handled,
    inLane(MOVING, 6).map(({ payload }) => payload),
  );
  expect(most).toBeLessThanOrEqual(2);
});

test("retries that wait for their turn move with what they were due", async () => {
  const name = uniqueName("lanes");
  const queue = newLine().getReliableQueue<string>(name, { partitions: 5 });
  await queue.flow.set({ lane: {} });
  await queue.offerMany(inLane(MOVING, 3));
  const all = [await queue.take(), await queue.take(), await queue.take()];
  await queue.flow.set({ lane: { rate: { limit: 1, per: MINUTE, burst: 1 } } });
  await queue.flow.hold(MOVING, MINUTE);
  for (const delivery of all) await delivery.nack({ delay: 1 });
  await eventually(async () => (await queue.stats()).waiting === 3);
  await newLine().setPartitions(name, 2);
  await eventually(async () => (await queue.stats()).waiting === 3);
  const redis = newRedis();
  const { retries } = keysOf(name, tableOf(2)[bucketOfKey(MOVING)] ?? 0);
  expect(await redis.zcard(retries)).toBe(3);
  expect(await queue.cancel(`${MOVING}/1`)).toBe(true);
  await queue.flow.clear();
  const again = [await queue.take(), await queue.take()].map(({ payload }) => payload);
  expect(again.toSorted()).toEqual([`${MOVING}/0`, `${MOVING}/2`]);
});

test("what is pinned of lanes holds in new partitions as well", async () => {
  const name = uniqueName("lanes");
  const line = newLine();
  const queue = line.getReliableQueue<string>(name, { partitions: 2 });
  await queue.flow.set({ lane: {} });
  await queue.flow.pin(MOVING, { paused: true });
  await queue.flow.pin("slow", SLOW.lane ?? {});
  await line.setPartitions(name, 5);
  const redis = newRedis();
  for (const partition of upTo(5)) {
    const { flow } = keysOf(name, partition);
    const pins = await redis.hmget(flow, `pin:${MOVING}`, "pin:slow");
    expect(pins, `partition ${partition}`).toEqual([expect.any(String), expect.any(String)]);
  }
  await queue.offerMany([...inLane(MOVING, 3), ...inLane("free", 2)]);
  await eventually(async () => (await queue.stats()).ready === 2);
  expect((await queue.stats()).waiting).toBe(3);
  await queue.flow.unpin(MOVING);
  await eventually(async () => (await queue.stats()).ready === 5);
});

test("lanes and exclusive consumers refuse each other", async () => {
  const name = uniqueName("lanes");
  const line = newLine();
  const queue = line.getReliableQueue<string>(name, { partitions: 2, exclusive: true });
  const handled: string[] = [];
  const subscription = queue.subscribe((payload) => void handled.push(payload));
  await queue.offer("first", 0, { lane: "a" });
  await eventually(() => handled.length === 1);
  await expect(queue.flow.set({ lane: {} })).rejects.toThrow("is consumed exclusively");
  await queue.flow.set({ rate: { limit: 1000, per: 1 } });
  await subscription.close();
  await queue.flow.set({ lane: {} });
  const errors: Error[] = [];
  const other = newLineThatMayFail();
  other.on("error", (error) => errors.push(error));
  const late = other.getReliableQueue<string>(name, { exclusive: true });
  late.subscribe((payload) => void handled.push(payload));
  await queue.offer("second", 0, { lane: "a" });
  await eventually(() => errors.some(({ message }) => message.includes("the lease")));
  const [error] = errors;
  expect(String(error?.cause)).toContain("LANES the flow of the queue has lanes");
  expect(handled).toEqual(["first"]);
  await queue.flow.clear();
  await eventually(() => handled.length === 2);
});
