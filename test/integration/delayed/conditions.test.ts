import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, onTestFinished, test } from "vitest";
import type { DroppedEvent } from "../../../src/events.ts";
import type { OfferOptions } from "../../../src/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { MINUTE, newClock } from "../../helpers/test-clock.ts";

/** A new queue name, and a key of the user's in its slot. */
function names() {
  const name = uniqueName("conditions");
  return { name, status: `{${name}}:status` };
}

test.each(["plain", "reliable"])("a %s queue delivers only what is still wanted", async (kind) => {
  const { name, status } = names();
  const redis = newRedis();
  const line = newLine();
  const orders =
    kind === "plain" ? line.getDelayedQueue<string>(name) : line.getReliableQueue<string>(name);
  const heard: DroppedEvent[] = [];
  const hear = (event: unknown) => heard.push(event as DroppedEvent);
  subscribe("delayline:dropped", hear);
  onTestFinished(() => void unsubscribe("delayline:dropped", hear));
  await redis.mset(`${status}:1`, "unpaid", `${status}:2`, "unpaid");
  const onlyIf = (n: number) => ({ onlyIf: { key: `${status}:${n}`, is: "unpaid" } });
  await orders.offer("remind 1", 300, { key: "order:1", ...onlyIf(1) });
  const { id } = await orders.offer("remind 2", 300, { key: "order:2", ...onlyIf(2) });
  expect(await orders.get("order:2")).toMatchObject({ payload: "remind 2", ...onlyIf(2) });
  await redis.set(`${status}:2`, "paid");

  const taken =
    kind === "plain"
      ? await line.getBlockingQueue<string>(name).take()
      : await line.getReliableQueue<string>(name).take();
  expect(typeof taken === "string" ? taken : taken.payload).toBe("remind 1");
  await eventually(() => orders.counters.dropped === 1);
  const event = { queue: name, id, key: "order:2", reason: "onlyIf" };
  expect(heard.filter(({ queue }) => queue === name)).toEqual([event]);
  expect(await orders.get("order:2")).toBeUndefined();
  expect(await orders.get(id)).toBeUndefined();
  expect(await orders.cancel(id)).toBe(false);
  expect(await orders.offer("again", MINUTE, { key: "order:2" })).toMatchObject({
    outcome: "added",
  });
  expect(await orders.stats()).toMatchObject({ dropped: 1, droppedLate: 0, dead: 0 });
});

test("what fell due while nobody moved is dropped, or delivered in time", async () => {
  const { name } = names();
  const clock = await newClock();
  const producer = newLine({ transfer: false });
  const offers = producer.getDelayedQueue<string>(name);
  await offers.offerMany([
    { payload: "late", delay: MINUTE, deliverWithin: 5 * MINUTE },
    { payload: "in time", delay: 20 * MINUTE, deliverWithin: 15 * MINUTE },
    { payload: "any time", delay: MINUTE },
  ]);
  await clock.advance(30 * MINUTE);
  const ready = newLine().getBlockingQueue<string>(name);
  expect([await ready.take(), await ready.take()]).toEqual(["any time", "in time"]);
  expect(await offers.stats()).toMatchObject({ dropped: 1, droppedLate: 1 });
});

test("a rescheduled message keeps its conditions; the window follows the new deadline", async () => {
  const { name } = names();
  const clock = await newClock();
  const line = newLine();
  const orders = line.getDelayedQueue<string>(name);
  await orders.offer("a", MINUTE, { key: "k", deliverWithin: 1000 });
  await orders.reschedule("k", 10 * MINUTE);
  expect(await orders.get("k")).toMatchObject({ deliverWithin: 1000 });
  await clock.advance(11 * MINUTE);
  expect(await line.getBlockingQueue<string>(name).take()).toBe("a");
});

test.each(["replace", "update"] as const)(
  "with onDuplicate %j the conditions of the new offer count, and none of the old one",
  async (onDuplicate) => {
    const { name, status } = names();
    const orders = newLine({ transfer: false }).getDelayedQueue<string>(name);
    const onlyIf = { key: status, is: "unpaid" };
    const conditions = { onlyIf, deliverWithin: 5000 };
    await orders.offer("a", MINUTE, { key: "k", ...conditions });
    await orders.offer("b", MINUTE, { key: "k", onDuplicate });
    const bare = await orders.get("k");
    expect(bare).toMatchObject({ payload: "b" });
    expect(bare).not.toHaveProperty("onlyIf");
    expect(bare).not.toHaveProperty("deliverWithin");
    await orders.offer("c", MINUTE, { key: "k", onDuplicate, ...conditions });
    expect(await orders.get("k")).toMatchObject({ payload: "c", ...conditions });
  },
);

test("a deliverWithin that somebody meant in seconds is refused, in a batch too", async () => {
  const line = newLine({ transfer: false });
  const orders = line.getDelayedQueue<string>(names().name);
  const told = "deliverWithin must be at least 1000 ms, got 5; seconds? write 5000";
  await expect(orders.offer("a", 0, { deliverWithin: 5 })).rejects.toThrow(told);
  const both = [1000, 5].map((deliverWithin) => ({ payload: "a", delay: 0, deliverWithin }));
  await expect(orders.offerMany(both)).rejects.toThrow(told);
  expect(await orders.size()).toBe(0);
  const quick = line.getDelayedQueue<string>(names().name, { anyTime: true });
  await quick.offer("a", MINUTE, { deliverWithin: 5 });
  expect(await quick.size()).toBe(1);
});

test("a retry is not asked again", async () => {
  const { name, status } = names();
  const redis = newRedis();
  const orders = newLine().getReliableQueue<string>(name, { retry: { initial: 10 } });
  await redis.set(status, "unpaid");
  await orders.offer("remind", 0, { onlyIf: { key: status, is: "unpaid" }, deliverWithin: 5000 });
  const first = await orders.take();
  await redis.set(status, "paid");
  await first.nack({ delay: 10 });
  const second = await orders.take();
  expect(second).toMatchObject({ payload: "remind", attempt: 2 });
  await second.ack();
});

test("a payment that was stored before the deadline is never followed by a reminder", async () => {
  const { name, status } = names();
  const line = newLine();
  const redis = newRedis();
  const orders = line.getDelayedQueue<number>(name);
  const count = 300;
  const paid = new Map<number, number>();
  const offered = await Promise.all(
    Array.from({ length: count }, (_, n) =>
      orders.offer(n, 150 + n / 3, { onlyIf: { key: `${status}:${n}`, exists: false } }),
    ),
  );
  // Each is paid about its deadline; the server says when.
  await Promise.all(
    offered.map(async ({ deadline }, n) => {
      await eventually(async () => (await line.serverTime()) >= deadline - 15 - (n % 5));
      const done = await redis.multi().set(`${status}:${n}`, "paid").time().exec();
      const [, [, time]] = done as [unknown, [null, [string, string]]];
      const [seconds, micros] = time;
      paid.set(n, Number(seconds) * 1000 + Number(micros) / 1000);
    }),
  );
  await eventually(async () => (await orders.size()) === 0);
  const ready = await line.getBlockingQueue<number>(name).readAll();
  const wrong = ready.filter((n) => (paid.get(n) ?? Infinity) < (offered[n]?.deadline ?? 0));
  expect(wrong).toEqual([]);
  // The reply that counts the last ones may still be under way.
  await eventually(() => orders.counters.dropped + ready.length === count);
  expect(orders.counters.dropped).toBeGreaterThan(0);
});

test("the key has the client's prefix, as in other commands of that client", async () => {
  const { name, status } = names();
  const line = newLine({ redis: { url: redisUrl(), keyPrefix: "shop:" } });
  const redis = newRedis();
  await redis.set(`shop:${status}`, "unpaid");
  const orders = line.getDelayedQueue<string>(name);
  await orders.offer("a", 0, { key: "k", onlyIf: { key: status, is: "unpaid" } });
  expect(await line.getBlockingQueue<string>(name).take()).toBe("a");
});

test("where Redis does not let the mover look at the key, the message is delivered", async () => {
  const { name } = names();
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  await redis.acl("SETUSER", "mover", "on", ">secret", "+@all", "allkeys", "allchannels");
  await redis.acl("SETUSER", "mover", "resetkeys", `~*${name}*`);
  const line = newLine({ redis: server.url.replace("//", "//mover:secret@") });
  await line.getDelayedQueue<string>(name).offerMany([
    { payload: "hidden", delay: 0, onlyIf: { key: "status", is: "unpaid" } },
    { payload: "unmet", delay: 0, onlyIf: { key: `${name}:status`, is: "unpaid" } },
    { payload: "last", delay: 1 },
  ]);
  const ready = line.getBlockingQueue<string>(name);
  expect([await ready.take(), await ready.take()]).toEqual(["hidden", "last"]);
});

test.each<[options: OfferOptions | object, error: string]>([
  [{ onlyIf: "paid" }, "onlyIf must be an object such as { key, is }, got a string"],
  [{ onlyIf: { is: "x" } }, "onlyIf.key must be a string, got undefined"],
  [{ onlyIf: { key: "k" } }, "onlyIf must have exactly one of is, isNot and exists, got none"],
  [
    { onlyIf: { key: "k", is: "a", isNot: "b" } },
    "onlyIf must have exactly one of is, isNot and exists, got 2",
  ],
  [
    { onlyIf: { key: "k", is: 1 } },
    "onlyIf.is must be a string, got number; Redis compares text, convert it with String",
  ],
  [{ onlyIf: { key: "", is: "a" } }, "onlyIf.key must have 1 to 1000 bytes of UTF-8, got 0"],
  [
    { onlyIf: { key: "k", isNot: "x".repeat(1001) } },
    "onlyIf.isNot must have 0 to 1000 bytes of UTF-8, got 1001",
  ],
  [{ onlyIf: { key: "k", exists: "yes" } }, "onlyIf.exists must be a boolean, got string"],
  [
    { onlyIf: { key: "k", equals: "yes" } },
    'property of onlyIf must be one of key, field, is, isNot, exists, got "equals"',
  ],
  [{ deliverWithin: -1 }, "deliverWithin must be between 0 and 946728000000 ms (30 years), got -1"],
])("%j is refused, and nothing is sent", async (options, error) => {
  const { name } = names();
  const orders = newLine().getDelayedQueue<string>(name);
  await expect(orders.offer("a", MINUTE, options)).rejects.toThrow(error);
  const messages = [
    { payload: "a", delay: MINUTE },
    { payload: "b", delay: MINUTE, ...options },
  ];
  await expect(orders.offerMany(messages)).rejects.toThrow(error);
  expect(await orders.size()).toBe(0);
});

test("without conditions, no command more; with one, a read when it is due", async () => {
  const { name, status } = names();
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const line = newLine({ redis: server.url });
  const orders = line.getDelayedQueue<string>(name);
  const ready = line.getBlockingQueue<string>(name);
  const readsOf = async (options: OfferOptions) => {
    await redis.config("RESETSTAT");
    const taken = ready.take();
    await orders.offer("a", 20, options);
    await taken;
    await eventually(async () => (await orders.size()) === 0);
    const stats = await redis.info("commandstats");
    return ["get", "hget", "exists", "hexists", "hmget"].map((command) =>
      Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0),
    );
  };
  await readsOf({});
  const bare = await readsOf({});
  expect(await readsOf({ deliverWithin: 60_000 })).toEqual(bare);
  const [gets = 0, ...others] = bare;
  expect(await readsOf({ onlyIf: { key: status, isNot: "x" } })).toEqual([gets + 1, ...others]);
});
