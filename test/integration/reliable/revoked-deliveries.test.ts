import { expect, test } from "vitest";
import { RejectError, RevokedError, type Delivery, type MessageId } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { documentedRules, newAclUser } from "../../helpers/acl-user.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/** How consumers learn that what they hold was revoked. */

/** A handler that runs until its delivery's signal is aborted; the deliveries that it got. */
function untilAborted(deliveries: Delivery<number>[]) {
  return async (_: number, delivery: Delivery<number>) => {
    deliveries.push(delivery);
    await new Promise<void>((resolve) => {
      delivery.signal.addEventListener("abort", () => resolve());
    });
  };
}

test.each(["the consumer", "who revokes"])(
  "where %s may not use the channel, the next beat tells",
  async (who) => {
    const name = uniqueName("revoke");
    const rules = (await documentedRules(name)).filter((rule) => !rule.includes("_notices"));
    const { url } = await newAclUser(newRedis(), rules);
    const limited = newLine({ redis: url.href });
    const [mine, other] = who === "the consumer" ? [limited, newLine()] : [newLine(), limited];
    const held: Delivery<number>[] = [];
    // A beat every 100 ms.
    mine.getReliableQueue<number>(name, { leaseTimeout: 300 }).subscribe(untilAborted(held));
    const queue = other.getReliableQueue<number>(name);
    // Its wake-ups come all the same.
    const { id } = await queue.offer(1, 50);
    await eventually(() => held.length === 1);
    const revoked = await queue.revoke(id, { reason: "paid", wait: 10_000 });
    expect(revoked).toMatchObject({ stage: "running", hasEnded: true });
    expect(held[0]?.signal.reason).toBeInstanceOf(RevokedError);
    expect(held[0]?.signal.reason).toMatchObject({ reason: "paid" });
  },
);

test("a handler that throws before it hears of the revocation has not failed, and its error is told", async () => {
  const name = uniqueName("revoke");
  const rules = (await documentedRules(name)).filter((rule) => !rule.includes("_notices"));
  const { url } = await newAclUser(newRedis(), rules);
  // It hears of nothing before its next beat, in 20 s.
  const line = newLineThatMayFail({ redis: url.href });
  const queue = line.getReliableQueue<string>(name, { leaseTimeout: 600_000 });
  const mayThrow = new Gate();
  const told: unknown[] = [];
  let running = 0;
  queue.subscribe(
    async (payload) => {
      running++;
      await mayThrow.opened;
      throw payload === "rejected" ? new RejectError("mine") : new Error("mine");
    },
    { concurrency: 2, onError: (error) => void told.push(error) },
  );
  const other = newLine().getReliableQueue<string>(name);
  const ids = await queue.offerMany(
    ["thrown", "rejected"].map((payload) => ({ payload, delay: 0 })),
  );
  await eventually(() => running === 2);
  for (const { id } of ids) expect(await other.revoke(id)).toMatchObject({ stage: "running" });
  mayThrow.open();
  await eventually(() => told.length === 1);
  expect(told).toEqual([new Error("mine")]);
  for (const { id } of ids) expect(await queue.stage(id)).toMatchObject({ stage: "gone" });
  expect(queue.counters).toMatchObject({ failed: 0, retried: 0, dead: 0 });

  // What was not revoked has failed.
  await queue.offer("next", 3_600_000, { key: "next" });
  await queue.promote("next");
  await eventually(() => told.length === 2);
  expect(queue.counters).toMatchObject({ failed: 1, retried: 1 });
});

test("in strict order each stage tells how many deliveries were made", async () => {
  const queue = newLine().getReliableQueue<string>(uniqueName("revoke"), {
    exclusive: true,
    strict: true,
    partitions: 1,
    retry: [200],
  });
  const told: unknown[] = [];
  const look = async (id: MessageId) => {
    const { places } = await queue.stage(id);
    told.push(places.map(({ stage, attempts }) => `${stage} ${attempts}`).join());
  };
  queue.subscribe(
    async (_, { id, attempt }) => {
      await look(id);
      if (attempt < 3) throw new Error("no");
    },
    { onError: (_error, payload) => look(ids.get(payload) as MessageId) },
  );
  const ids = new Map<string, MessageId>();
  const { id } = await queue.offer("a", 500, { key: "k" });
  ids.set("a", id);
  await eventually(() => told.length === 5);
  expect(told).toEqual(["running 1", "retrying 1", "running 2", "retrying 2", "running 3"]);
});

test("a subscriber that was away looks as soon as it is back", async () => {
  const name = uniqueName("revoke");
  const { url } = await startOwnServer();
  const line = newLine({ redis: url });
  const queue = line.getReliableQueue<number>(name, { leaseTimeout: 600_000 });
  const held: Delivery<number>[] = [];
  queue.subscribe(untilAborted(held));
  const { id } = await queue.offer(1, 0);
  await eventually(() => held.length === 1);
  const redis = newRedis(url);
  const { stream, revoked } = queueKeys(name);
  // As `revoke` leaves it, while nobody hears its notice. The beat comes after 20 s.
  const [[entry = ""] = []] = (await redis.xpending(stream, "default", "-", "+", 1)) as string[][];
  const [[, consumer = ""] = []] = (await redis.xinfo(
    "CONSUMERS",
    stream,
    "default",
  )) as string[][];
  await redis.hset(revoked, `${entry} default`, JSON.stringify([consumer, "paid"]));
  await redis.xack(stream, "default", entry);
  await redis.xdel(stream, entry);
  expect(held[0]?.signal.aborted).toBe(false);
  await redis.call("CLIENT", "KILL", "TYPE", "pubsub");
  await eventually(() => held[0]?.signal.aborted === true);
  expect(held[0]?.signal.reason).toMatchObject({ code: "REVOKED", reason: "paid" });
  expect(await queue.stage(id)).toMatchObject({ stage: "gone" });
});

test("a consumer lives on while a revoked handler runs that holds nothing any more", async () => {
  const name = uniqueName("revoke");
  // It runs one handler, so it reads nothing meanwhile.
  const queue = newLine().getReliableQueue<number>(name, { leaseTimeout: 300 });
  const mayEnd = new Gate();
  let isRunning = false;
  queue.subscribe(async () => {
    isRunning = true;
    await mayEnd.opened;
  });
  const { id } = await queue.offer(1, 0);
  await eventually(() => isRunning);
  // More than three leases.
  expect(await queue.revoke(id, { wait: 1000 })).toMatchObject({ hasEnded: false });
  mayEnd.open();
});

test("the slot of a lane is free at once, though the handler goes on", async () => {
  const name = uniqueName("revoke");
  const queue = newLine().getReliableQueue<string>(name);
  await queue.flow.set({ lane: { concurrency: 1 } });
  const begun: string[] = [];
  const mayEnd = new Gate();
  queue.subscribe(
    async (payload) => {
      begun.push(payload);
      if (payload === "first") await mayEnd.opened;
    },
    { concurrency: 5 },
  );
  const first = await queue.offer("first", 0, { lane: "a" });
  await eventually(() => begun.length === 1);
  const waits = await queue.offer("second", 0, { lane: "a" });
  await queue.offer("third", 0, { lane: "a" });
  await eventually(async () => (await queue.stage(waits.id)).stage === "waiting");
  expect(await queue.revoke(waits.id)).toMatchObject({ stage: "waiting" });
  expect(begun).toEqual(["first"]);
  const startedAt = performance.now();
  expect(await queue.revoke(first.id)).toMatchObject({ stage: "running" });
  await eventually(() => begun.length === 2);
  // A lane that nobody tells of looks again after a second.
  expect(performance.now() - startedAt).toBeLessThan(700);
  expect(begun).toEqual(["first", "third"]);
  mayEnd.open();
});

test("a retry that waits for its turn is retrying", async () => {
  const queue = newLine().getReliableQueue<string>(uniqueName("revoke"));
  await queue.flow.set({ lane: { concurrency: 1 } });
  const { id } = await queue.offer("first", 0, { lane: "a" });
  const delivery = await queue.take();
  const second = await queue.offer("second", 0, { lane: "a" });
  await eventually(async () => (await queue.stage(second.id)).stage === "waiting");
  await delivery.nack({ delay: 200 });
  const other = await queue.take();
  expect(other.payload).toBe("second");
  await eventually(async () => (await queue.stats()).waiting === 1);
  expect(await queue.revoke(id)).toMatchObject({
    stage: "retrying",
    id,
    places: [{ group: "default", attempts: 1 }],
  });
  expect((await queue.stats()).waiting).toBe(0);
  await other.ack();
});

test("what is held back in strict order never begins, and holds up nothing", async () => {
  const name = uniqueName("revoke");
  const settings = { partitions: 1, exclusive: true, strict: true, retry: [60_000] };
  const queue = newLine().getReliableQueue<string>(name, settings);
  const handled: string[] = [];
  queue.subscribe(
    (payload) => {
      handled.push(payload);
      if (payload === "bad") throw new Error("not yet");
    },
    { onError: () => {} },
  );
  const bad = await queue.offer("bad", 0, { partitionKey: "k" });
  await eventually(() => handled.length === 1);
  const second = await queue.offer("second", 0, { partitionKey: "k" });
  await queue.offer("third", 0, { partitionKey: "k" });
  await eventually(async () => (await queue.stats()).inFlight === 3);
  // What is behind the failed message was read and put aside: it has not begun.
  await eventually(async () => {
    expect(await queue.stage(second.id)).toMatchObject({
      stage: "ready",
      places: [{ attempts: 0 }],
    });
  });
  expect(await queue.revoke(second.id)).toMatchObject({ stage: "ready", hasEnded: true });
  expect(await queue.revoke(bad.id)).toMatchObject({
    stage: "retrying",
    places: [{ group: "default", attempts: 1 }],
  });
  await eventually(() => handled.length === 2);
  expect(handled).toEqual(["bad", "third"]);
});

test("an exclusive consumer keeps its partition, and goes on when the handler has ended", async () => {
  const name = uniqueName("revoke");
  const settings = { partitions: 1, exclusive: true };
  const queue = newLine().getReliableQueue<string>(name, settings);
  const events: string[] = [];
  const fences = new Set<number | undefined>();
  queue.subscribe(async (payload, { signal, fence }) => {
    fences.add(fence);
    events.push(`${payload} begins`);
    if (payload === "second") return;
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    events.push(`${payload} ends: ${(signal.reason as Error).name}`);
  });
  const first = await queue.offer("first", 0, { partitionKey: "k" });
  await queue.offer("second", 0, { partitionKey: "k" });
  await eventually(() => events.length === 1);
  expect(await queue.revoke(first.id, { wait: 10_000 })).toMatchObject({
    stage: "running",
    hasEnded: true,
  });
  await eventually(() => events.length === 3);
  expect(events).toEqual(["first begins", "first ends: RevokedError", "second begins"]);
  expect(fences.size).toBe(1);
});

/** The consumer that reads this queue, once there is one. */
async function consumerOf(redis: ReturnType<typeof newRedis>, stream: string): Promise<string> {
  let name = "";
  await eventually(async () => {
    const [found = []] = (await redis.xinfo("CONSUMERS", stream, "default")) as string[][];
    name = found[1] ?? "";
    return name !== "";
  });
  return name;
}

test("a notice that comes before the reply with its entry: no handler gets it", async () => {
  const name = uniqueName("revoke");
  const queue = newLine().getReliableQueue<number>(name);
  const begun: number[] = [];
  queue.subscribe((payload) => void begun.push(payload));
  await queue.offer(1, 0);
  await eventually(() => begun.length === 1);
  const redis = newRedis();
  const { stream, revoked, notices } = queueKeys(name);
  const consumer = await consumerOf(redis, stream);
  // That of the next entry.
  const info = (await redis.xinfo("STREAM", stream)) as string[];
  const [last = ""] = (info[info.indexOf("last-generated-id") + 1] ?? "").split("-");
  const id = `${last}-7`;
  await redis.hset(revoked, `${id} default`, JSON.stringify([consumer, ""]));
  await redis.publish(notices, JSON.stringify([id, "default", consumer, ""]));
  // What no consumer of this process has, and what is no notice, changes nothing.
  await redis.publish(notices, JSON.stringify([id, "default", "another", ""]));
  await redis.publish(notices, "no notice");
  await redis.xadd(stream, id, "a", "x".repeat(24), "p", "\u0002");
  await redis.xadd(stream, "*", "a", "y".repeat(24), "p", "\u0003");
  await eventually(() => begun.includes(3));
  expect(begun).toEqual([1, 3]);
  await eventually(async () => (await redis.hlen(revoked)) === 0);
});

test("a notice that comes after the handler's end tells that it has ended", async () => {
  const name = uniqueName("revoke");
  const queue = newLine().getReliableQueue<number>(name);
  const held: Delivery<number>[] = [];
  const mayEnd = new Gate();
  queue.subscribe(async (_, delivery) => {
    held.push(delivery);
    await mayEnd.opened;
  });
  await queue.offer(1, 0);
  await eventually(() => held.length === 1);
  const redis = newRedis();
  const { stream, revoked, notices } = queueKeys(name);
  const consumer = await consumerOf(redis, stream);
  const [[id = ""] = []] = (await redis.xpending(stream, "default", "-", "+", 1)) as string[][];
  await redis.xack(stream, "default", id);
  await redis.xdel(stream, id);
  mayEnd.open();
  // Its acknowledgement finds nothing.
  await eventually(() => held[0]?.signal.aborted === true);
  await redis.hset(revoked, `${id} default`, JSON.stringify([consumer, ""]));
  await redis.publish(notices, JSON.stringify([id, "default", consumer, ""]));
  await eventually(async () => (await redis.hlen(revoked)) === 0);
  expect(queue.counters).toMatchObject({ acknowledged: 0, retried: 0, failed: 0 });
});

test("a notice whose entry never comes counts as told", async () => {
  const name = uniqueName("revoke");
  const queue = newLine().getReliableQueue<number>(name);
  queue.subscribe(() => {});
  const redis = newRedis();
  const { stream, revoked, notices } = queueKeys(name);
  await queue.offer(1, 0);
  const consumer = await consumerOf(redis, stream);
  await eventually(() => queue.counters.acknowledged === 1);
  await redis.hset(revoked, "1-1 default", JSON.stringify([consumer, ""]));
  await redis.publish(notices, JSON.stringify(["1-1", "default", consumer, ""]));
  await eventually(async () => (await redis.hlen(revoked)) === 0);
});
