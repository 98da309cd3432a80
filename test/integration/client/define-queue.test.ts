import { describe, expect, test } from "vitest";
import { BlockingQueue } from "../../../src/handles/blocking-queue.ts";
import { PlainQueue } from "../../../src/handles/plain-queue.ts";
import { ReliableQueue } from "../../../src/handles/reliable-queue.ts";
import { defineQueue } from "../../../src/index.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

interface Order {
  readonly id: number;
}

const MINUTE = 60_000;

test("a plain queue is offered to and taken from through one handle", async () => {
  const orders = defineQueue<Order>(uniqueName(), { codec: "json" });
  const queue = newLine().open(orders);
  expect(queue).toBeInstanceOf(PlainQueue);
  expect(queue.ready).toBeInstanceOf(BlockingQueue);
  await queue.offer({ id: 1 }, 0);
  await queue.offer({ id: 9 }, MINUTE, { key: "order:9" });
  expect(await queue.take()).toEqual({ id: 1 });
  await queue.offerMany([2, 3, 4, 5].map((id) => ({ payload: { id }, delay: 0 })));
  expect(await queue.poll(5000)).toEqual({ id: 2 });
  expect(await queue.takeMany({ limit: 1 })).toEqual([{ id: 3 }]);
  for await (const order of queue) {
    expect(order).toEqual({ id: 4 });
    break;
  }
  const handled = await new Promise<Order>((resolve) => {
    queue.subscribe((order) => resolve(order), { concurrency: 2 });
  });
  expect(handled).toEqual({ id: 5 });
  expect(await queue.size()).toBe(1);
  expect(await queue.ready.size()).toBe(0);
  expect(await queue.insertionOrder.readAll()).toEqual([{ id: 9 }]);
  expect(await queue.cancel("order:9")).toBe(true);
});

test("what an API offers, a worker takes, and both agree on codec and group", async () => {
  const notices = defineQueue<Order>(uniqueName(), {
    codec: "json",
    reliable: { group: "mail", maxAttempts: 2, retry: [0] },
  });
  const api = newLine().open(notices, { transfer: false });
  const worker = newLine().open(notices);
  expect(worker).toBeInstanceOf(ReliableQueue);
  expect(worker.group).toBe("mail");
  await api.offer({ id: 42 }, 0);
  const first = await worker.take();
  expect(first.payload).toEqual({ id: 42 });
  await first.nack();
  await (await worker.take()).nack();
  const [letter] = await collect(api.deadLetters);
  expect(letter).toMatchObject({ payload: { id: 42 }, attempt: 2, group: "mail" });
});

test("another group of the same definition", async () => {
  const notices = defineQueue<number>(uniqueName(), { reliable: true });
  const line = newLine();
  const mail = line.open(notices);
  const audit = line.open(notices, { group: "audit" });
  expect([mail.group, audit.group]).toEqual(["default", "audit"]);
  expect(line.open(notices, { group: undefined as never }).group).toBe("default");
  await mail.offer(7, 0);
  // Not acknowledged before both groups have it: a group that begins later would not see it.
  const deliveries = await Promise.all([mail.take(), audit.take()]);
  expect(deliveries.map(({ payload }) => payload)).toEqual([7, 7]);
  for (const delivery of deliveries) await delivery.ack();
});

test("a handle by name shares what the definition says", async () => {
  const orders = defineQueue<Order>(uniqueName(), { codec: "json" });
  const line = newLine();
  const queue = line.open(orders);
  await line.getDelayedQueue<Order>(orders.name).offer({ id: 1 }, 0);
  expect(await queue.take()).toEqual({ id: 1 });
  expect(() => line.getDelayedQueue(orders.name, { codec: "msgpack" })).toThrow("codec of queue");
});

test("partitions are created as the definition says", async () => {
  const orders = defineQueue<number>(uniqueName(), { partitions: 3 });
  const line = newLine();
  await line.open(orders).offer(1, MINUTE);
  expect(await line.partitions(orders)).toHaveLength(3);
});

describe("two definitions of one name in a client", () => {
  test("may be equal", () => {
    const line = newLine();
    const name = uniqueName();
    const define = () => defineQueue(name, { codec: "json", reliable: { retry: [1, 2] } });
    line.open(define());
    expect(() => line.open(define())).not.toThrow();
  });

  test.each([
    ["retry", { reliable: { retry: [1] } }, { reliable: { retry: [2] } }],
    ["codec", { codec: "json" }, { codec: "msgpack" }],
    ["maxPayloadBytes", { maxPayloadBytes: 10 }, {}],
    ["reliable", {}, { reliable: true }],
  ] as const)(
    "with another %s are refused, and nothing is opened by it",
    async (what, one, other) => {
      const line = newLine();
      const name = uniqueName();
      line.open(defineQueue(name, one));
      const open = () => line.open(defineQueue(name, other));
      expect(open).toThrow(
        `definition of queue "${name}" must be the same for all its handles in a client: the one that is open has another ${what}; export one definition, and share it`,
      );
      await line.closeQueue(name);
      expect(open).not.toThrow();
    },
  );
});

test("only what defineQueue returns is opened, with known options", () => {
  const line = newLine();
  const open = line.open.bind(line) as (...args: unknown[]) => unknown;
  expect(() => open("orders")).toThrow(
    new TypeError(
      "definition must be what defineQueue returns, got string; for a name, use getDelayedQueue",
    ),
  );
  for (const value of [undefined, null, 5, {}, { name: "q", kind: "plain" }]) {
    expect(() => open(value)).toThrow("definition must be what defineQueue returns");
  }
  expect(() => open(defineQueue("q"), { group: "g" })).toThrow(
    'open option must be one of transfer, got "group"',
  );
  expect(() => open(defineQueue("q"), { codec: "json" })).toThrow("open option must be one of");
  expect([...line.counters.keys()]).toEqual([]);
});

test("a definition and a handle stand for the name", async () => {
  const first = defineQueue<number>(`{${uniqueName()}}a`);
  const second = defineQueue<number>(first.name.replace("}a", "}b"));
  const line = newLine();
  const [one, other] = [line.open(first), line.open(second)];
  await other.offer(2, 0);
  expect(await one.ready.pollFromAny([second], 5000)).toEqual({ queue: second.name, payload: 2 });
  await one.offer(1, MINUTE);
  expect((await line.stats(first)).delayed).toBe(1);
  expect(await one.insertionOrder.pollLastAndOfferFirstTo(other)).toBe(1);
  expect(await newRedis(redisUrl()).llen(second.name)).toBe(1);
  await line.closeQueue(one);
  await expect(one.size()).rejects.toThrow("closed");
  await expect(line.stats(undefined as never)).rejects.toThrow("queue name must be a string");
});
