import { describe, expect, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const MINUTE = 60_000;
const NEITHER = { cancelled: false, offered: undefined };

/** A reliable queue whose messages this client moves. */
function newQueue(partitions?: number) {
  const name = uniqueName("exchange");
  const line = newLine();
  const options = partitions === undefined ? {} : { partitions };
  const queue = line.getReliableQueue<string>(name, { ...options, retry: () => MINUTE });
  return { name, line, queue };
}

describe.each([
  { kind: "an ordinary queue", partitions: undefined },
  { kind: "partitions", partitions: 3 },
])("cancel with an offer, in $kind", ({ partitions }) => {
  test.each(["id", "key"] as const)("delayed, by its %s: both", async (by) => {
    const { queue } = newQueue(partitions);
    const old = await queue.offer("old", MINUTE, { key: "order" });
    const next = { payload: "new", delay: 2 * MINUTE, key: "order", headers: { h: "v" } };
    const { cancelled, offered } = await queue.cancel(by === "id" ? old.id : "order", {
      offer: next,
    });
    expect(cancelled).toBe(true);
    expect(offered).toMatchObject({ outcome: "added" });
    const left = await collect(queue.soonest());
    expect(left).toMatchObject([
      { id: offered?.id, payload: "new", key: "order", headers: { h: "v" } },
    ]);
    expect(await queue.get("order")).toMatchObject({ payload: "new" });
    expect(queue.counters).toMatchObject({ cancelled: 1, offered: 2 });
  });

  test("waiting for its turn: both", async () => {
    const { queue } = newQueue(partitions);
    await queue.flow.set({ lane: {}, ahead: 1, order: "turns" });
    const lane = "tenant";
    for (const key of ["a", "b", "c"]) await queue.offer(key, 0, { key, lane });
    await eventually(async () => (await queue.stats()).waiting === 2);
    const offer = { payload: "new", delay: MINUTE, key: "b", lane };
    expect(await queue.cancel("b", { offer, partitionKey: lane })).toMatchObject({
      cancelled: true,
      offered: { outcome: "added" },
    });
    expect(await queue.stats()).toMatchObject({ waiting: 1, delayed: 2, ready: 1 });
  });

  test("ready: neither", async () => {
    const { queue } = newQueue(partitions);
    const { id } = await queue.offer("old", 0, { key: "order" });
    await eventually(async () => (await queue.stats()).ready === 1);
    const offer = { payload: "new", delay: MINUTE, key: "order" };
    expect(await queue.cancel("order", { offer })).toEqual(NEITHER);
    expect(await queue.cancel(id, { offer })).toEqual(NEITHER);
    expect(await queue.size()).toBe(0);
  });

  test("running: neither", async () => {
    const { queue } = newQueue(partitions);
    const { id } = await queue.offer("old", 0, { key: "order" });
    const delivery = await queue.take();
    const offer = { payload: "new", delay: MINUTE, key: "order" };
    expect(await queue.cancel("order", { offer })).toEqual(NEITHER);
    expect(await queue.cancel(id, { offer })).toEqual(NEITHER);
    expect(await delivery.ack()).toBe(true);
    expect(await queue.size()).toBe(0);
  });

  test("retrying for several groups: both, for all groups", async () => {
    const { name, line, queue } = newQueue(partitions);
    const other = line.getReliableQueue<string>(name, { group: "other", retry: () => MINUTE });
    await other.poll();
    const { id } = await queue.offer("old", 0, { key: "order" });
    for (const group of [queue, other]) expect(await (await group.take()).nack()).toBe(true);
    expect(await queue.size()).toBe(2);
    const offer = { payload: "new", delay: MINUTE, key: "order" };
    expect(await queue.cancel("order", { offer })).toMatchObject({
      cancelled: true,
      offered: { outcome: "added" },
    });
    expect(await queue.stats()).toMatchObject({ retries: 0, delayed: 1 });
    expect(await queue.cancel(id, { offer })).toEqual(NEITHER);
    expect(await queue.get("order")).toMatchObject({ payload: "new" });
  });

  test("dead, handled, gone: neither", async () => {
    const { queue } = newQueue(partitions);
    const offer = { payload: "new", delay: MINUTE };
    const dead = await queue.offer("dead", 0);
    await (await queue.take()).reject();
    const handled = await queue.offer("handled", 0);
    await (await queue.take()).ack();
    const gone = await queue.offer("gone", MINUTE);
    await queue.cancel(gone.id);
    for (const { id } of [dead, handled, gone]) {
      expect(await queue.cancel(id, { offer })).toEqual(NEITHER);
    }
    expect(await queue.cancel("nobody", { offer })).toEqual(NEITHER);
    expect(await queue.stats()).toMatchObject({ delayed: 0, dead: 1 });
  });

  test("a key that a third message holds: neither, and the answer says who", async () => {
    const { queue } = newQueue(partitions);
    const partitionKey = "saga";
    const old = await queue.offer("old", MINUTE, { key: "old", partitionKey });
    const third = await queue.offer("third", MINUTE, { key: "third", partitionKey });
    const offer = { payload: "new", delay: 0, key: "third", partitionKey };
    for (const idOrKey of [old.id, "old"]) {
      expect(await queue.cancel(idOrKey, { offer, partitionKey })).toEqual({
        cancelled: false,
        offered: { id: third.id, deadline: third.deadline, outcome: "existing" },
      });
    }
    expect(await queue.get("old", { partitionKey })).toMatchObject({ id: old.id });
    expect(await queue.size()).toBe(2);
    expect(queue.counters).toMatchObject({ cancelled: 0, offered: 2 });
  });
});

describe.each([
  { kind: "an ordinary queue", partitions: undefined },
  { kind: "partitions", partitions: 3 },
])("ack with an offer, in $kind", ({ partitions }) => {
  test("the message is acknowledged, and the next ones are there", async () => {
    const { queue } = newQueue(partitions);
    await queue.offer("first", 0, { key: "saga", partitionKey: "saga" });
    const delivery = await queue.take();
    const results = await delivery.ack({
      offer: [
        { payload: "next", delay: MINUTE, key: "saga", headers: { h: "v" } },
        { payload: "also", delay: 2 * MINUTE },
      ],
    });
    expect(results).toMatchObject([{ outcome: "added" }, { outcome: "added" }]);
    const left = await collect(queue.soonest());
    expect(left).toMatchObject([
      { payload: "next", key: "saga", headers: { h: "v" } },
      { payload: "also" },
    ]);
    expect(left.map(({ id }) => id)).toEqual((results || []).map(({ id }) => id));
    expect(await queue.stats()).toMatchObject({ inFlight: 0, ready: 0, delayed: 2 });
    expect(queue.counters).toMatchObject({ acknowledged: 1, offered: 3 });
    expect(await delivery.ack({ offer: [{ payload: "again", delay: 0 }] })).toBe(false);
    expect(await queue.size()).toBe(2);
  });

  test("a key that another message holds is left to it, and the message is acknowledged", async () => {
    const { queue } = newQueue(partitions);
    await queue.offer("first", 0, { key: "saga" });
    const delivery = await queue.take();
    // Its key is free while it runs.
    const held = await queue.offer("second", MINUTE, { key: "saga" });
    expect(
      await delivery.ack({
        offer: [
          { payload: "next", delay: 0, key: "saga" },
          { payload: "also", delay: MINUTE },
        ],
      }),
    ).toMatchObject([{ id: held.id, outcome: "existing" }, { outcome: "added" }]);
    expect(await queue.stats()).toMatchObject({ inFlight: 0, delayed: 2 });
    expect(queue.counters).toMatchObject({ acknowledged: 1, offered: 3 });
  });

  test("after a revocation, and after a lost lease, nothing is offered", async () => {
    const { queue, line, name } = newQueue(partitions);
    const offer = [{ payload: "next", delay: MINUTE }];
    const { id } = await queue.offer("first", 0);
    const revoked = await queue.take();
    await queue.revoke(id);
    expect(await revoked.ack({ offer })).toBe(false);

    const impatient = line.getReliableQueue<string>(name, { group: "other", leaseTimeout: 1000 });
    await queue.offer("second", 0);
    const lost = await impatient.take();
    // As if another process had taken it over.
    const redis = newRedis();
    for (const { queue: part } of await partsIn(name, partitions)) {
      const pending = await redis.xpending(part.stream, "other", "-", "+", 10).catch(() => []);
      for (const [entry] of pending as [string][]) {
        await redis.xclaim(part.stream, "other", "thief", 0, entry);
      }
    }
    expect(await lost.ack({ offer })).toBe(false);
    expect(await queue.size()).toBe(0);
  });

  test("batches taken by hand share a script, and each has its own answer", async () => {
    const { queue } = newQueue(partitions);
    const partitionKey = "saga";
    await queue.offerMany(
      Array.from({ length: 10 }, (_, i) => ({ payload: `${i}`, delay: 0, partitionKey })),
    );
    const taken = [];
    while (taken.length < 10) taken.push(...(await queue.takeMany({ limit: 10 - taken.length })));
    const revoked = taken[3];
    await queue.revoke(revoked?.id ?? "");
    const results = await Promise.all(
      taken.map((delivery) =>
        delivery.ack({
          offer: [
            { payload: `a${delivery.payload}`, delay: MINUTE },
            { payload: `b${delivery.payload}`, delay: MINUTE, key: "shared", partitionKey },
          ],
        }),
      ),
    );
    const outcomes = results.map((one) => one && one.map(({ outcome }) => outcome));
    expect(outcomes).toEqual(
      taken.map((delivery, i) =>
        delivery === revoked ? false : ["added", i === 0 ? "added" : "existing"],
      ),
    );
    expect(await queue.stats()).toMatchObject({ inFlight: 0, delayed: 10 });
  });
});

async function partsIn(name: string, partitions: number | undefined) {
  if (partitions === undefined) return [{ queue: queueKeys(name) }];
  const { partitionName } = await import("../../../src/partitions/ring/ring.ts");
  return Array.from({ length: partitions }, (_, i) => ({
    queue: queueKeys(partitionName(name, i)),
  }));
}
