import { expect, test } from "vitest";
import { RejectError } from "../../../src/index.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { queueKeys } from "../../../src/queue/keys.ts";

test("offer, take, ack", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<number>(name);
  const { id } = await queue.offer(1, 0, { key: "k:1", headers: { a: "b" } });
  const delivery = await queue.take();
  expect(delivery).toMatchObject({ id, payload: 1, key: "k:1", headers: { a: "b" }, attempt: 1 });
  expect(await delivery.ack()).toBe(true);
  expect(await delivery.ack()).toBe(false);
  expect(await newRedis().xlen(queueKeys(name).stream)).toBe(0);
});

test("a handler that throws", async () => {
  const name = uniqueName();
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<number>(name, { retry: [50, 100], maxDeliveries: 3 });
  const seen: number[] = [];
  queue.subscribe((n, delivery) => {
    seen.push(delivery.attempt);
    throw new Error(`no ${n}`);
  });
  const { id } = await queue.offer(7, 0);
  await eventually(async () => expect(await queue.deadLetters.size()).toBe(1));
  expect(seen).toEqual([1, 2, 3]);
  for await (const letter of queue.deadLetters)
    expect(letter).toMatchObject({ id, payload: 7, attempt: 3, reason: "no 7" });
});

test("reject", async () => {
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<number>(uniqueName());
  queue.subscribe(() => {
    throw new RejectError("bad");
  });
  await queue.offer(7, 0);
  await eventually(async () => expect(await queue.deadLetters.size()).toBe(1));
  expect(line.errors).toEqual([]);
});

test("1000 messages, concurrency 50", async () => {
  const queue = newLine().getReliableQueue<number>(uniqueName());
  const seen = new Set<number>();
  queue.subscribe((n) => seen.add(n), { concurrency: 50 });
  await queue.offerMany(Array.from({ length: 1000 }, (_, i) => ({ payload: i, delay: 10 })));
  await eventually(() => expect(seen.size).toBe(1000));
});
