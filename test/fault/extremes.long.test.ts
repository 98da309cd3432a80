import { expect, test } from "vitest";
import { newLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";
import { upTo } from "../helpers/numbers.ts";

/** The largest, the smallest, the farthest, and the most at once. */

test("payloads of 1 MiB and of 0 bytes arrive unchanged", async () => {
  const line = newLine({ codec: "bytes" });
  const name = uniqueName();
  const delayed = line.getDelayedQueue<Uint8Array>(name);
  const ready = line.getBlockingQueue<Uint8Array>(name);
  const large = Buffer.alloc(1_048_576, "0123456789abcdef");
  const empty = Buffer.alloc(0);

  for (const payload of [large, empty]) {
    await delayed.offer(payload, 20);
    expect(Buffer.compare(Buffer.from(await ready.take()), payload)).toBe(0);
  }
  await delayed.offer(empty, 60_000);
  expect(await delayed.insertionOrder.peek()).toEqual(empty);
  expect(await delayed.insertionOrder.contains(empty)).toBe(true);
  expect(await delayed.insertionOrder.poll()).toEqual(empty);
  await ready.put(empty);
  expect(await ready.poll()).toEqual(empty);
  expect(line.errors).toEqual([]);
});

test("120 payloads of 1 MiB that fall due together all arrive", async () => {
  const line = newLine({ codec: "bytes" });
  const name = uniqueName();
  const delayed = line.getDelayedQueue<Uint8Array>(name);
  const date = new Date(Date.now() + 100);
  for (const i of upTo(120)) await delayed.offerAt(Buffer.alloc(1_048_576, i), date);

  const ready = line.getBlockingQueue<Uint8Array>(name);
  for (const i of upTo(120)) {
    const payload = await ready.take({ signal: AbortSignal.timeout(20_000) });
    expect([payload.length, payload[0], payload.at(-1)]).toEqual([1_048_576, i, i]);
  }
  expect(line.errors).toEqual([]);
});

test("a delay of 60 days: nothing comes early, nothing spins, and a sooner message passes it", async () => {
  const server = await startOwnServer();
  const line = newLine({ redis: server.url });
  const name = uniqueName();
  const delayed = line.getDelayedQueue<string>(name);
  const ready = line.getBlockingQueue<string>(name);
  const delay = 60 * 86_400_000;

  const before = await line.serverTime();
  const { deadline } = await delayed.offer("in 60 days", delay);
  const after = await line.serverTime();
  expect(deadline).toBeGreaterThanOrEqual(before + delay - 1);
  expect(deadline).toBeLessThanOrEqual(after + delay + 1);
  expect(await delayed.nextDeadline()).toBe(deadline);

  // Node fires a timer of more than 24.8 days at once, which would mean a transfer every few milliseconds.
  const redis = newRedis(server.url);
  await redis.config("RESETSTAT");
  expect(await ready.poll(1_500)).toBeUndefined();
  const stats = await redis.info("commandstats");
  const runs = Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  expect(runs).toBeLessThan(5);

  await delayed.offer("soon", 50);
  expect(await ready.take()).toBe("soon");
  expect(await delayed.size()).toBe(1);

  // The server's clock cannot be moved, so the message is.
  const timeouts = `redisson_delay_queue_timeout:{${name}}`;
  const [member = ""] = await redis.zrangeBuffer(timeouts, "0", "0");
  await redis.zadd(timeouts, "XX", String(deadline - delay), member);
  await redis.publish(`redisson_delay_queue_channel:{${name}}`, "0");
  expect(await ready.take()).toBe("in 60 days");
});

/** The order in which 1,000 messages with one deadline come out. */
async function takeThousand(name: string): Promise<number[]> {
  const ready = newLine({ codec: "json" }).getBlockingQueue<number>(name);
  const received: number[] = [];
  while (received.length < 1000) received.push(...(await ready.takeMany({ limit: 300 })));
  return received;
}

test("1,000 equal deadlines come in the order of their offers: offerAt", async () => {
  const name = uniqueName();
  const delayed = newLine({ codec: "json", transfer: false }).getDelayedQueue<number>(name);
  const date = new Date(Date.now() + 300);
  await Promise.all(upTo(1000).map((n) => delayed.offerAt(n, date)));
  expect(await takeThousand(name)).toEqual(upTo(1000));
});

test("1,000 equal deadlines come in the order of their offers: one after the other", async () => {
  const name = uniqueName();
  const delayed = newLine({ codec: "json", transfer: false }).getDelayedQueue<number>(name);
  const date = new Date(Date.now() + 3_000);
  for (const n of upTo(1000)) await delayed.offerAt(n, date);
  expect(await takeThousand(name)).toEqual(upTo(1000));
});

test("1,000 equal delays come in the order of their offers: offer", async () => {
  const name = uniqueName();
  const delayed = newLine({ codec: "json", transfer: false }).getDelayedQueue<number>(name);
  const results = await Promise.all(upTo(1000).map((n) => delayed.offer(n, 300)));
  // Ten scripts: nearly all deadlines are equal.
  expect(new Set(results.map(({ deadline }) => deadline)).size).toBeLessThan(200);
  expect(await takeThousand(name)).toEqual(upTo(1000));
});

test("1,000 equal delays come in the order of their offers: offerMany", async () => {
  const name = uniqueName();
  const delayed = newLine({ codec: "json", transfer: false }).getDelayedQueue<number>(name);
  await delayed.offerMany(upTo(1000).map((payload) => ({ payload, delay: 300 })));
  expect(await takeThousand(name)).toEqual(upTo(1000));
});

test("two producers with one deadline: each producer's messages come in the order of its offers", async () => {
  const name = uniqueName();
  const producers = [
    newLine({ codec: "json", transfer: false }),
    newLine({ codec: "json", transfer: false }),
  ];
  const queues = producers.map((line) => line.getDelayedQueue<number>(name));
  const date = new Date(Date.now() + 2_000);
  for (const n of upTo(1000)) await queues[n % 2]?.offerAt(n, date);
  const received = await takeThousand(name);
  expect(received.toSorted((a, b) => a - b)).toEqual(upTo(1000));
  for (const half of [0, 1]) {
    const own = received.filter((n) => n % 2 === half);
    expect(own).toEqual(own.toSorted((a, b) => a - b));
  }
});

test("messages that fall due together keep coming while more are offered", async () => {
  const name = uniqueName();
  const line = newLine({ codec: "json" });
  const delayed = line.getDelayedQueue<number>(name);
  const received: number[] = [];
  line.getBlockingQueue<number>(name).subscribe((n) => received.push(n), { concurrency: 4 });
  const date = new Date(Date.now() + 200);
  for (let i = 0; i < 5000; i += 500) {
    await Promise.all(upTo(500).map((n) => delayed.offerAt(i + n, date)));
  }
  await eventually(() => received.length === 5000, { within: 15_000 });
  expect(received.toSorted((a, b) => a - b)).toEqual(upTo(5000));
});
