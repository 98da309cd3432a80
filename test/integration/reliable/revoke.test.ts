import { expect, it } from "vitest";
import { RevokedError, type Delivery, type RevokeOptions } from "../../../src/index.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { collect } from "../../helpers/collect.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { queueKeys } from "../../../src/queue/keys.ts";

function newQueue(lineOf = newLine, options: { readonly transfer?: boolean } = {}) {
  const name = uniqueName("revoke");
  const line = lineOf(options);
  return { name, line, keys: queueKeys(name), queue: line.getReliableQueue<number>(name) };
}

it("revokes a delayed message by its id and by its key, and frees the key", async () => {
  const { queue } = newQueue(newLine, { transfer: false });
  const { id } = await queue.offer(1, 60_000);
  const keyed = await queue.offer(2, 60_000, { key: "order:2" });

  expect(await queue.stage(id)).toEqual({
    stage: "delayed",
    id,
    hasEnded: true,
    places: [{ id, stage: "delayed", group: undefined, attempts: 0 }],
  });
  expect(await queue.revoke(id)).toMatchObject({ stage: "delayed", id, hasEnded: true });
  expect(await queue.revoke("order:2")).toMatchObject({ stage: "delayed", id: keyed.id });
  expect(await queue.size()).toBe(0);
  expect(await queue.revoke(id)).toEqual({
    stage: "gone",
    id: undefined,
    hasEnded: true,
    places: [],
  });
  expect((await queue.offer(3, 60_000, { key: "order:2" })).outcome).toBe("added");
  expect(queue.counters).toMatchObject({ revoked: 2, cancelled: 0 });
});

it("revokes a ready message, which no consumer gets", async () => {
  const { queue } = newQueue();
  const first = await queue.offer(1, 0, { key: "a" });
  const second = await queue.offer(2, 0, { key: "b" });
  await eventually(async () => (await queue.stats()).ready === 2);

  expect(await queue.stage("a")).toMatchObject({ stage: "ready", id: first.id });
  expect(await queue.revoke(first.id)).toMatchObject({ stage: "ready", hasEnded: true });
  expect(await queue.revoke("b")).toMatchObject({ stage: "ready", id: second.id });
  expect(await queue.poll()).toBeUndefined();
  expect((await queue.stats()).ready).toBe(0);
});

it("aborts the signal of a handler that runs, and its settlement counts for nothing", async () => {
  const { queue } = newQueue();
  const running = new Gate();
  const seen: unknown[] = [];
  const results: boolean[] = [];
  queue.subscribe(async (_, delivery) => {
    running.open();
    await new Promise<void>((resolve) => {
      delivery.signal.addEventListener("abort", () => resolve());
    });
    seen.push(delivery.signal.reason);
    results.push(await delivery.ack(), await delivery.nack(), await delivery.extend(1000));
    delivery.signal.throwIfAborted();
  });
  const { id } = await queue.offer(1, 0, { key: "a" });
  await running.opened;

  const startedAt = performance.now();
  const revoked = await queue.revoke("a", { reason: "paid", wait: 10_000 });
  // The beat would take seconds.
  expect(performance.now() - startedAt).toBeLessThan(2000);
  const place = { id, stage: "running", group: "default", attempts: 1 };
  expect(revoked).toEqual({ stage: "running", id, places: [place], hasEnded: true });
  expect(seen).toEqual([expect.any(RevokedError)]);
  expect(seen[0]).toMatchObject({ code: "REVOKED", reason: "paid", queue: queue.name });
  expect(results).toEqual([false, false, false]);
  expect(await queue.stage(id)).toMatchObject({ stage: "gone" });
  expect(queue.counters).toMatchObject({ failed: 0, retried: 0, dead: 0, acknowledged: 0 });
});

it("says that a handler still runs, once the time to wait is over", async () => {
  const { queue, keys } = newQueue();
  const [running, mayEnd] = [new Gate(), new Gate()];
  queue.subscribe(async () => {
    running.open();
    await mayEnd.opened;
  });
  const { id } = await queue.offer(1, 0);
  await running.opened;
  expect(await queue.revoke(id, { wait: 20 })).toMatchObject({ stage: "running", hasEnded: false });
  const redis = newRedis();
  expect(await redis.hlen(keys.revoked)).toBe(1);
  expect(await redis.ttl(keys.revoked)).toBeGreaterThan(3500);
  mayEnd.open();
  await eventually(async () => (await redis.hlen(keys.revoked)) === 0);
});

it("reports what a revoked handler throws, unless it is the reason", async () => {
  const { queue, line } = newQueue(newLineThatMayFail);
  const errors: unknown[] = [];
  line.on("error", (error) => errors.push(error));
  const running = new Gate();
  queue.subscribe(async (_, { signal }) => {
    running.open();
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    throw new Error("of its own");
  });
  const { id } = await queue.offer(1, 0);
  await running.opened;
  expect(await queue.revoke(id, { wait: 10_000 })).toMatchObject({ hasEnded: true });
  await eventually(() => errors.length === 1);
  expect(errors[0]).toMatchObject({ code: "HANDLER", cause: { message: "of its own" } });
  expect(queue.counters).toMatchObject({ failed: 0, retried: 0, dead: 0 });
  expect((await queue.stats()).retries).toBe(0);
});

it("waits until a delivery that was taken by hand is settled", async () => {
  const { queue } = newQueue();
  const { id } = await queue.offer(1, 0);
  const delivery = await queue.take();
  let isOver = false;
  const revoking = queue.revoke(id, { wait: 10_000 }).finally(() => (isOver = true));
  await eventually(() => delivery.signal.aborted);
  expect(delivery.signal.reason).toBeInstanceOf(RevokedError);
  expect(isOver).toBe(false);
  expect(await delivery.ack()).toBe(false);
  expect(await revoking).toMatchObject({ stage: "running", hasEnded: true });
});

it("waits until the body of a loop asks for the next message", async () => {
  const { queue } = newQueue();
  const { id } = await queue.offer(1, 0);
  const running = new Gate();
  const mayEnd = new Gate();
  void (async () => {
    for await (const delivery of queue) {
      void delivery;
      running.open();
      await mayEnd.opened;
    }
  })();
  await running.opened;
  expect(await queue.revoke(id, { wait: 20 })).toMatchObject({ hasEnded: false });
  const again = await queue.offer(2, 0);
  mayEnd.open();
  await eventually(async () => (await queue.stage(again.id)).stage === "running");
  expect(await queue.revoke(again.id, { wait: 10_000 })).toMatchObject({ stage: "running" });
});

it("revokes a retrying message of all groups", async () => {
  const { name, line, queue } = newQueue();
  const other = line.getReliableQueue<number>(name, { group: "other" });
  for (const one of [queue, other]) await one.poll();
  const { id } = await queue.offer(1, 0, { key: "a" });
  for (const group of [queue, other]) {
    const delivery = await group.take();
    await delivery.nack({ delay: 60_000 });
  }
  expect(await queue.stage("a")).toEqual({
    stage: "retrying",
    id,
    hasEnded: true,
    places: [
      { id, stage: "retrying", group: "default", attempts: 1 },
      { id, stage: "retrying", group: "other", attempts: 1 },
    ],
  });
  expect(await queue.revoke("a")).toMatchObject({ stage: "retrying", places: [{}, {}] });
  expect(await queue.has("a")).toBe(false);
  expect((await queue.stats()).retries).toBe(0);
});

it("tells each group's place, and the furthest is the stage", async () => {
  const { name, line, queue } = newQueue();
  const groups = ["two", "three", "four"].map((group) =>
    line.getReliableQueue<number>(name, { group }),
  );
  // All groups exist before the message is ready.
  for (const one of [queue, ...groups]) await one.poll();
  const [two, three] = groups as [typeof queue, typeof queue];
  const { id } = await queue.offer(1, 0);
  const running = await queue.take();
  await (await two.take()).nack({ delay: 60_000 });
  await (await three.take()).reject("no");

  const revoked = await queue.revoke(id);
  expect(revoked).toMatchObject({ stage: "running", id, hasEnded: false });
  const places = revoked.places.map(
    ({ group, stage, attempts }) => `${group} ${stage} ${attempts}`,
  );
  const expected = ["default running 1", "two retrying 1", "three dead 1", "four ready 0"];
  expect(new Set(places)).toEqual(new Set(expected));
  expect(await running.ack()).toBe(false);
  expect(await queue.stage(id)).toMatchObject({ stage: "gone" });
  expect(await queue.stats()).toMatchObject({ ready: 0, inFlight: 0, retries: 0, dead: 0 });
});

it("removes the dead letter, so that a redrive brings nothing back", async () => {
  const { queue } = newQueue();
  const { id } = await queue.offer(1, 0, { key: "a" });
  await (await queue.take()).reject("no");
  expect(await queue.revoke("a")).toMatchObject({ stage: "dead", id, places: [{ attempts: 1 }] });
  expect(await queue.deadLetters.redrive("all")).toBe(0);
});

it("revokes by key every message that was offered with it", async () => {
  const { queue } = newQueue();
  const dead = await queue.offer(1, 0, { key: "a" });
  await (await queue.take()).reject("no");
  const running = await queue.offer(2, 0, { key: "a" });
  const delivery = await queue.take();
  const ready = await queue.offer(3, 0, { key: "a" });
  await eventually(async () => (await queue.stats()).ready === 1);
  const delayed = await queue.offer(4, 60_000, { key: "a" });
  await queue.offer(5, 60_000, { key: "b" });

  const revoked = await queue.revoke("a");
  expect(revoked).toMatchObject({ stage: "running", id: running.id });
  const places = Object.fromEntries(revoked.places.map(({ id, stage }) => [stage, id]));
  expect(places).toEqual({
    dead: dead.id,
    delayed: delayed.id,
    ready: ready.id,
    running: running.id,
  });
  expect(revoked.places).toHaveLength(4);
  expect(await delivery.ack()).toBe(false);
  expect(await queue.stage("a")).toMatchObject({ stage: "gone" });
  expect(await queue.has("b")).toBe(true);
});

it("finds a message among thousands, by key and by an id that was moved late", async () => {
  const { queue, name } = newQueue(newLine, { transfer: false });
  const late = await queue.offerAt(-1, Date.now() - 7200_000, { key: "late" });
  await queue.offerMany(Array.from({ length: 700 }, (_, i) => ({ payload: i, delay: 0 })));
  const moving = newLine();
  moving.getReliableQueue(name);
  await eventually(async () => (await queue.stats()).ready === 701);
  await queue.offerMany(
    Array.from({ length: 700 }, (_, i) => ({ payload: i, delay: 0, key: `order:${i}` })),
  );
  await eventually(async () => (await queue.stats()).ready === 1401);

  expect(await queue.stage("order:650")).toMatchObject({ stage: "ready" });
  const keys = ["order:0", "order:650", "order:699", "none", "late"];
  const all = await Promise.all(keys.map((key) => queue.revoke(key)));
  expect(all.map(({ stage }) => stage)).toEqual(["ready", "ready", "ready", "gone", "ready"]);
  expect(all.at(-1)?.id).toBe(late.id);
  expect((await queue.stats()).ready).toBe(1397);
  expect(await queue.stage(late.id)).toMatchObject({ stage: "gone" });
});

it("shares the scripts of one turn", async () => {
  const { queue } = newQueue(newLine, { transfer: false });
  const offered = await queue.offerMany(
    Array.from({ length: 1000 }, (_, i) => ({ payload: i, delay: 60_000, key: `order:${i}` })),
  );
  const names = offered.map(({ id }, i) => (i % 2 === 0 ? id : `order:${i}`));
  const all = await Promise.all(names.map((one) => queue.revoke(one)));
  expect(all.every(({ stage, id }, i) => stage === "delayed" && id === offered[i]?.id)).toBe(true);
  expect(await queue.size()).toBe(0);
  // One message named twice in one turn has one answer.
  const { id } = await queue.offer(1, 60_000, { key: "twice" });
  const twice = await Promise.all([queue.revoke(id), queue.revoke(id)]);
  expect(twice.map(({ stage }) => stage)).toEqual(["delayed", "gone"]);
});

it("drops what was delivered, and has not begun", async () => {
  const { queue } = newQueue();
  const begun: number[] = [];
  const mayEnd = new Gate();
  queue.subscribe(
    async (payload) => {
      begun.push(payload);
      await mayEnd.opened;
    },
    // All wait for the first one of their sequence.
    { concurrency: 5, orderBy: () => "one" },
  );
  const offered = await queue.offerMany([1, 2, 3].map((payload) => ({ payload, delay: 0 })));
  await eventually(async () => (await queue.stats()).inFlight === 3);
  const [, second] = offered;
  expect(await queue.revoke(second!.id, { wait: 10_000 })).toMatchObject({
    stage: "running",
    hasEnded: true,
  });
  mayEnd.open();
  await eventually(() => begun.length === 2);
  expect(begun).toEqual([1, 3]);
});

it("revokes one of a batch: the others are acknowledged", async () => {
  const { queue } = newQueue();
  const batches: (readonly Delivery<number>[])[] = [];
  const mayEnd = new Gate();
  await queue.offerMany([1, 2, 3].map((payload) => ({ payload, delay: 0, key: `${payload}` })));
  await eventually(async () => (await queue.stats()).ready === 3);
  queue.subscribeBatch(
    async (batch) => {
      batches.push(batch);
      await mayEnd.opened;
    },
    { limit: 3 },
  );
  await eventually(() => batches.length === 1);
  const [batch = []] = batches;
  expect(batch).toHaveLength(3);
  expect(await queue.revoke("2")).toMatchObject({ stage: "running" });
  await eventually(() => batch[1]?.signal.aborted === true);
  expect(batch.map(({ signal }) => signal.aborted)).toEqual([false, true, false]);
  mayEnd.open();
  await eventually(() => queue.counters.acknowledged === 2);
  expect(await queue.stats()).toMatchObject({ ready: 0, inFlight: 0, retries: 0 });
});

it("takes a dead process's handler for ended", async () => {
  const { queue, keys } = newQueue();
  const { id } = await queue.offer(1, 0);
  const redis = newRedis();
  const consumer = "delayline:100:3:host/1:00000000-0000-0000-0000-000000000000";
  await eventually(async () => (await redis.xlen(keys.stream)) === 1);
  await redis.xreadgroup("GROUP", "default", consumer, "COUNT", 1, "STREAMS", keys.stream, ">");
  // Nobody renews its lease of 100 ms. Until then it counts as alive.
  expect(await queue.revoke(id, { wait: 10_000 })).toMatchObject({
    stage: "running",
    hasEnded: true,
  });
});

it("tells who runs what", async () => {
  const { queue } = newQueue();
  const { id } = await queue.offer(1, 0, { key: "a" });
  await queue.offer(2, 0);
  await eventually(async () => (await queue.stats()).ready === 2);
  await queue.take();
  const running = await collect(queue.running());
  expect(running).toEqual([
    {
      id,
      key: "a",
      group: "default",
      consumer: expect.stringMatching(/^delayline:/),
      host: expect.any(String),
      pid: process.pid,
      since: expect.any(Date),
      attempt: 1,
    },
  ]);
});

it("refuses options that are not legal", async () => {
  const { queue } = newQueue(newLine, { transfer: false });
  const bad: [RevokeOptions, string][] = [
    [{ reason: "" }, "reason must have 1 to 500 characters, got 0"],
    [{ wait: -1 }, "wait"],
    [{ waits: 1 } as RevokeOptions, "waits"],
  ];
  for (const [options, text] of bad) await expect(queue.revoke("a", options)).rejects.toThrow(text);
  await expect(queue.revoke("")).rejects.toThrow(RangeError);
  await expect(queue.stage("a", { reason: "x" } as never)).rejects.toThrow(TypeError);
  expect(() => queue.running({ limit: 1 } as never)).toThrow(TypeError);
  const aborted = AbortSignal.abort(new Error("enough"));
  await expect(queue.revoke("a", { signal: aborted })).rejects.toThrow("enough");
});
