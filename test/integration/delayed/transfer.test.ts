import type { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { packMember } from "../../../src/queue/message/message.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { watchCommands } from "../../helpers/monitor.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { upTo } from "../../helpers/numbers.ts";

const MINUTE = 60_000;

let redis: Redis;
let name: string;
let keys: QueueKeys;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("transfer");
  keys = queueKeys(name);
});

/** How many connections are subscribed to the queue's channel. */
async function subscriptions(): Promise<number> {
  const [, count] = (await redis.pubsub("NUMSUB", keys.channel)) as [string, number];
  return count;
}

/** Writes a message without a wake-up. */
async function writeInSilence(text: string, deadline: number): Promise<void> {
  const member = packMember(Buffer.from("0102030405060708"), Buffer.from(text));
  await redis.zadd(keys.timeouts, deadline, member);
}

describe("due messages are moved", () => {
  test("by a consumer alone: getBlockingQueue is enough", async () => {
    const producer = newLine({ transfer: false }).getDelayedQueue(name);
    const consumer = newLine().getBlockingQueue(name);
    await producer.offer("a", 10);
    expect(await consumer.take()).toBe("a");
  });

  test("by a producer alone, for consumers of any kind", async () => {
    await newLine({ codec: "string" }).getDelayedQueue<string>(name).offer("a", 10);
    expect(await redis.blpop(name, 20)).toEqual([name, "a"]);
  });

  test("even if they were written before any process ran", async () => {
    await newLine({ transfer: false }).getDelayedQueue(name).offerAt("a", new Date(1000));
    expect(await newLine().getBlockingQueue(name).take()).toBe("a");
  });

  test("however many fall due at once", async () => {
    const producer = newLine({ transfer: false }).getDelayedQueue<number>(name);
    await Promise.all(upTo(1050).map((i) => producer.offerAt(i, new Date(1000))));
    const consumer = newLine().getBlockingQueue<number>(name);
    await eventually(async () => (await consumer.size()) === 1050);
    expect(await consumer.readAll()).toEqual(upTo(1050));
    expect(await redis.exists(keys.timeouts)).toBe(0);
    // A step of tidying follows.
    await eventually(async () => (await redis.exists(keys.order, keys.compacted)) === 0);
  });

  test("by a task that waits for a later one when a sooner one comes", async () => {
    const line = newLine();
    const [delayed, ready] = [line.getDelayedQueue(name), line.getBlockingQueue(name)];
    await delayed.offer("in an hour", 60 * MINUTE);
    await delayed.offer("in a minute", MINUTE);
    await delayed.offer("soon", 200);
    await delayed.offer("sooner", 5);
    expect([await ready.take(), await ready.take()]).toEqual(["sooner", "soon"]);
    expect(await delayed.size()).toBe(2);
  });

  test("once, although many clients move them", async () => {
    const lines = upTo(4).map(() => newLine());
    await Promise.all(
      lines.map((line, k) =>
        line
          .getDelayedQueue<number>(name)
          .offerMany(upTo(100).map((i) => ({ payload: k * 100 + i, delay: (i * 7) % 60 }))),
      ),
    );
    const ready = lines[0]?.getBlockingQueue<number>(name);
    await eventually(async () => (await ready?.size()) === 400);
    const delayed = lines[0]?.getDelayedQueue<number>(name);
    expect(await delayed?.size()).toBe(0);
    expect((await ready?.readAll())?.toSorted((a, b) => a - b)).toEqual(upTo(400));
  });
});

describe("one client has one task per queue, however many handles there are", () => {
  test("with one subscription, and one task that runs scripts", async () => {
    const watched = await watchCommands(keys.mover);
    const line = newLine();
    const handles = upTo(5).map(
      (i) => [line.getDelayedQueue(name), line.getBlockingQueue(name), i] as const,
    );
    await eventually(async () => (await subscriptions()) === 1);
    for (const [delayed, , i] of handles) await delayed.offer(i, i * 5);
    for (const [, ready] of handles) await ready.take();
    expect(await subscriptions()).toBe(1);

    // The task's own name is the last argument of its scripts.
    const scripts = (await watched()).filter(([command]) => /^eval/i.test(command ?? ""));
    expect(scripts.length).toBeGreaterThan(0);
    expect(new Set(scripts.map((words) => words.at(-1))).size).toBe(1);
  });

  test("which ends with the client", async () => {
    const line = newLine();
    line.getDelayedQueue(name);
    const other = newLine();
    other.getBlockingQueue(name);
    await eventually(async () => (await subscriptions()) === 2);
    await line.close();
    await eventually(async () => (await subscriptions()) === 1);
    await other.close();
    await eventually(async () => (await subscriptions()) === 0);
  });
});

describe("transfer: false", () => {
  test("moves nothing", async () => {
    const line = newLine();
    const still = line.getDelayedQueue(name, { transfer: false });
    line.getBlockingQueue(name, { transfer: false });
    await still.offer("stays", 0);

    // Another queue of the same client: offered later, and moved.
    const moving = uniqueName("moving");
    await line.getDelayedQueue(moving).offer("goes", 0);
    expect(await line.getBlockingQueue(moving).take()).toBe("goes");
    expect(await still.insertionOrder.readAll()).toEqual(["stays"]);
    expect(await redis.llen(name)).toBe(0);
    expect(await subscriptions()).toBe(0);

    // Until a client that moves appears.
    line.getBlockingQueue(name);
    await eventually(async () => (await redis.llen(name)) === 1);
  });

  test("opens no connection but the one for calls", async () => {
    const server = await startOwnServer();
    const line = newLine({ redis: server.url, transfer: false });
    const delayed = line.getDelayedQueue(name);
    await delayed.offer("a", MINUTE);
    await delayed.insertionOrder.readAll();
    await line.getBlockingQueue(name).put("b");
    await line.getBlockingQueue(name).peek();
    const clients = String(await newRedis(server.url).client("LIST"));
    expect(clients.match(/name=delayline:\S+/g)).toEqual(["name=delayline:commands"]);
  });

  test("of the client can be overridden for a queue", async () => {
    const line = newLine({ transfer: false });
    const delayed = line.getDelayedQueue(name, { transfer: true });
    await delayed.offer("a", 0);
    await eventually(async () => (await redis.llen(name)) === 1);
  });
});

describe("a wake-up", () => {
  test("of 0 means: look now", async () => {
    const line = newLine({ codec: "string" });
    const ready = line.getBlockingQueue<string>(name);
    await line.getDelayedQueue<string>(name).offer("first", 0);
    await ready.take();
    await writeInSilence("in silence", 1000);
    await redis.publish(keys.channel, "0");
    expect(await ready.take()).toBe("in silence");
  });

  test("that makes no sense does no harm", async () => {
    const line = newLine();
    const ready = line.getBlockingQueue(name);
    await line.getDelayedQueue(name).offer("first", 0);
    await ready.take();
    const later = Date.now() + MINUTE;
    for (const text of [
      "",
      "soon",
      "NaN",
      "-1",
      "1e999",
      "-Infinity",
      "0x10",
      `${later}.5`,
      "🎉",
    ]) {
      await redis.publish(keys.channel, text);
    }
    await line.getDelayedQueue(name).offer("second", 20);
    expect(await ready.take()).toBe("second");
  });

  test("for a later message does not postpone an earlier one", async () => {
    const line = newLine();
    const ready = line.getBlockingQueue(name);
    await line.getDelayedQueue(name).offer("first", 0);
    await ready.take();
    const { deadline } = await line.getDelayedQueue(name).offer("second", 50);
    await redis.publish(keys.channel, String(deadline + 60 * MINUTE));
    expect(await ready.take()).toBe("second");
  });
});

test("the task that moved last wakes the others when it is closed, and only then", async () => {
  const heard: string[] = [];
  const listener = newRedis();
  listener.on("message", (_, message) => heard.push(message));
  await listener.subscribe(keys.channel);

  const idle = newLine();
  idle.getDelayedQueue(name);
  await idle.close();
  const active = newLine();
  await active.getDelayedQueue(name).offer("a", 0);
  await eventually(async () => (await redis.llen(name)) === 1);
  expect(await redis.exists(keys.mover)).toBe(1);
  expect(heard.filter((message) => message === "0")).toEqual([]);

  await active.close();
  await eventually(() => heard.includes("0"));
  expect(await redis.exists(keys.mover)).toBe(0);
});
