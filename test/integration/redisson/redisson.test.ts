import type { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { collect } from "../../helpers/collect.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { offerAsRedisson, transferAsRedisson, type Layout } from "../../helpers/redisson.ts";

// A Java service with Redisson and a Node service share a queue. Java uses StringCodec here.

const MINUTE = 60_000;
const layouts: Layout[] = ["8-byte ids", "16-byte ids", "old"];

let redis: Redis;
let name: string;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("redisson");
});

describe.each(layouts)("messages that Redisson wrote (%s)", (layout) => {
  const offer = (payload: string, delay: number) =>
    offerAsRedisson(redis, name, payload, delay, layout);

  test("that are already due are moved by any client, and taken", async () => {
    await offer("second", -1000);
    await offer("first", -2000);
    const ready = newLine({ codec: "string" }).getBlockingQueue<string>(name);
    expect([await ready.take(), await ready.take()]).toEqual(["first", "second"]);
    expect(await redis.exists(...Object.values(queueKeys(name)).slice(0, 3))).toBe(0);
  });

  test("wake a task that waits for later ones", async () => {
    const line = newLine({ codec: "string" });
    const ready = line.getBlockingQueue<string>(name);
    await line.getDelayedQueue<string>(name).offer("later", MINUTE);
    // The task is running now: it has moved a message.
    await line.getDelayedQueue<string>(name).offer("at once", 0);
    expect(await ready.take()).toBe("at once");

    await offer("from Java", 50);
    expect(await ready.take()).toBe("from Java");
    expect(await line.getDelayedQueue(name).size()).toBe(1);
  });

  test("are read in insertion order, with ours among them", async () => {
    const queue = newLine({ codec: "string", transfer: false }).getDelayedQueue<string>(name);
    const deadlines = [
      await offer("a", 3 * MINUTE),
      (await queue.offer("b", MINUTE)).deadline,
      await offer("c", 2 * MINUTE),
    ];
    expect(await queue.size()).toBe(3);
    expect(await queue.nextDeadline()).toBe(deadlines[1]);
    expect(await queue.insertionOrder.peek()).toBe("a");
    expect(await queue.insertionOrder.readAll()).toEqual(["a", "b", "c"]);
    const messages = await collect(queue.insertionOrder);
    expect(messages.map(({ payload }) => payload)).toEqual(["a", "b", "c"]);
    expect(messages.map(({ deadline }) => deadline)).toEqual(deadlines);
    expect(messages.map(({ id }) => id)).toEqual([
      // An old random number that begins with 7 reads as an id of seven bytes; the payload is the same.
      expect.stringMatching(
        new RegExp(`^${deadlines[0]}-[0-9a-f]{${layout === "16-byte ids" ? "32" : "14,16"}}$`),
      ),
      expect.stringMatching(/^\d{13}-[0-9a-f]{32}$/),
      expect.any(String),
    ]);
    expect(new Set(messages.map(({ id }) => id)).size).toBe(3);
  });

  test.each(["none", "redisson"] as const)(
    "are found and removed (interop %s)",
    async (interop) => {
      const line = newLine({ codec: "string", transfer: false, interop });
      const queue = line.getDelayedQueue<string>(name);
      for (const payload of ["a", "b", "c", "d", "e", "f"]) await offer(payload, MINUTE);

      expect(await queue.insertionOrder.contains("c")).toBe(true);
      expect(await queue.insertionOrder.contains("x")).toBe(false);
      expect(await queue.insertionOrder.remove("c")).toBe(true);
      expect(await queue.insertionOrder.remove("c")).toBe(false);
      expect(await queue.insertionOrder.poll()).toBe("a");
      expect(await queue.insertionOrder.removeAll(["e", "x"])).toBe(1);
      expect(await queue.insertionOrder.pollLastAndOfferFirstTo(name)).toBe("f");
      expect(await queue.insertionOrder.retainAll(["d"])).toBe(1);
      expect(await queue.insertionOrder.readAll()).toEqual(["d"]);
      expect(await queue.size()).toBe(1);
      if (interop === "redisson") expect(await redis.llen(queueKeys(name).order)).toBe(1);
      expect(await queue.clear()).toBe(1);
      expect(await redis.exists(queueKeys(name).order, queueKeys(name).timeouts)).toBe(0);
    },
  );

  test("are cancelled by their ids, but those from before 3.21.1 by payload only", async () => {
    const queue = newLine({ codec: "string", transfer: false }).getDelayedQueue<string>(name);
    await offer("a", MINUTE);
    const [message] = await collect(queue.insertionOrder);
    expect(await queue.cancel(message!.id)).toBe(layout !== "old");
    expect(await queue.insertionOrder.remove("a")).toBe(layout === "old");
    expect(await queue.size()).toBe(0);
  });

  test("are moved in batches, none lost and none duplicated, however many are due", async () => {
    const payloads = Array.from({ length: 250 }, (_, i) => `message ${i}`);
    for (const payload of payloads) await offer(payload, -1000);
    const ready = newLine({ codec: "string" }).getBlockingQueue<string>(name);
    const taken: string[] = [];
    while (taken.length < 250) taken.push(...(await ready.takeMany({ limit: 100 })));
    expect(taken.toSorted()).toEqual(payloads.toSorted());
    expect(await ready.size()).toBe(0);
  });
});

test("all layouts share one queue", async () => {
  for (const layout of layouts) await offerAsRedisson(redis, name, layout, MINUTE, layout);
  const queue = newLine({ codec: "string", transfer: false }).getDelayedQueue<string>(name);
  expect(await queue.insertionOrder.readAll()).toEqual(layouts);
  expect(await queue.insertionOrder.poll(2)).toEqual(layouts.slice(0, 2));
});

describe("Redisson's transfer script", () => {
  test.each(["none", "redisson"] as const)("moves our messages (interop %s)", async (interop) => {
    const line = newLine({ codec: "string", transfer: false, interop });
    const queue = line.getDelayedQueue<string>(name);
    const later = await queue.offer("later", MINUTE);
    await queue.offerAt("second", new Date(2000));
    await queue.offerAt("first", new Date(1000));
    await queue.offer("", 0);
    await eventually(async () => {
      expect(await transferAsRedisson(redis, name)).toBe(String(later.deadline));
    });
    expect(await redis.lrange(name, 0, -1)).toEqual(["first", "second", ""]);
    expect(await queue.size()).toBe(1);
    expect(await queue.insertionOrder.readAll()).toEqual(["later"]);
    expect(await queue.insertionOrder.peek()).toBe("later");
  });

  test("and our task move side by side, none lost and none duplicated", async () => {
    const line = newLine({ codec: "string" });
    const queue = line.getDelayedQueue<string>(name);
    const payloads = Array.from({ length: 400 }, (_, i) => `message ${i}`);
    const offered = queue.offerMany(payloads.map((payload, i) => ({ payload, delay: i / 4 })));
    while ((await redis.llen(name)) < 400) await transferAsRedisson(redis, name);
    await offered;
    expect(await queue.size()).toBe(0);
    expect((await redis.lrange(name, 0, -1)).toSorted()).toEqual(payloads.toSorted());
  });
});

test("interop redisson can be switched off at any time", async () => {
  const exact = newLine({ codec: "string", transfer: false, interop: "redisson" });
  await exact.getDelayedQueue<string>(name).offer("a", 0);
  await offerAsRedisson(redis, name, "b", MINUTE);
  await exact.getDelayedQueue<string>(name).offer("c", MINUTE);
  await exact.close();

  const line = newLine({ codec: "string" });
  expect(await line.getBlockingQueue<string>(name).take()).toBe("a");
  const queue = line.getDelayedQueue<string>(name);
  await queue.offer("d", MINUTE);
  expect(await queue.insertionOrder.readAll()).toEqual(["b", "c", "d"]);
  expect(await queue.insertionOrder.contains("c")).toBe(true);
  expect(await queue.insertionOrder.poll(3)).toEqual(["b", "c", "d"]);
});

test.each(["none", "redisson"] as const)(
  "without the insertion order, messages are delivered and found by id and key (interop %s)",
  async (interop) => {
    const line = newLine({ codec: "string", transfer: false, interop });
    const queue = line.getDelayedQueue<string>(name);
    const { id } = await queue.offer("a", MINUTE);
    await queue.offer("b", MINUTE, { key: "b" });
    await queue.offer("c", MINUTE, { key: "c" });
    await redis.del(queueKeys(name).order);

    expect(await queue.insertionOrder.readAll()).toEqual([]);
    expect(await queue.size()).toBe(3);
    expect((await queue.get("b"))?.payload).toBe("b");
    expect(await queue.cancel(id)).toBe(true);
    expect(await queue.reschedule("c", 0)).toBeDefined();
    const mover = newLine({ codec: "string", interop });
    expect(await mover.getBlockingQueue<string>(name).take()).toBe("c");
    expect(await queue.size()).toBe(1);
  },
);
