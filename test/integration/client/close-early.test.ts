import { expect, test } from "vitest";
import { ClosedError, OfferError } from "../../../src/index.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

/** A client is closed while its first calls wait for what a queue needs: its partitions, or its stream. */

const LONG = 3_600_000;

async function slowLine() {
  const proxy = await startProxy(redisUrl());
  proxy.delay.reply = 40;
  const options = { redis: proxy.url, transfer: false, codec: "json" } as const;
  return { line: newLine(options), name: uniqueName() };
}

test.each([1, 2, 5])("offers to %i partitions that are not known yet are stored", async (n) => {
  const { line, name } = await slowLine();
  const queue = line.getDelayedQueue<number>(name, { partitions: n });
  const offers = [
    queue.offer(1, LONG),
    queue.offer(2, LONG, { key: "order:2" }),
    queue.offer(3, LONG, { signal: new AbortController().signal }),
    queue.offerMany([{ payload: 4, delay: LONG }]),
  ];
  await line.close();
  const settled = await Promise.allSettled(offers);
  expect(settled.map(({ status }) => status)).toEqual(offers.map(() => "fulfilled"));
  const other = newLine({ transfer: false, codec: "json" });
  const there = other.getDelayedQueue<number>(name, { partitions: n });
  expect(await there.size()).toBe(4);
  await expect(queue.offer(5, LONG)).rejects.toThrow(ClosedError);
});

test.each([{}, { partitions: 2 }])(
  "offers to a reliable queue whose stream is not there yet are stored: %o",
  async (options) => {
    const { line, name } = await slowLine();
    const queue = line.getReliableQueue<number>(name, options);
    const { signal } = new AbortController();
    const offers = [
      queue.offer(1, LONG),
      queue.offer(2, LONG, { signal }),
      queue.offerMany([{ payload: 3, delay: LONG }]),
      queue.offer(4, LONG),
    ];
    await line.close();
    const settled = await Promise.allSettled(offers);
    expect(settled.map(({ status }) => status)).toEqual(offers.map(() => "fulfilled"));
    const other = newLine({ transfer: false, codec: "json" }).getReliableQueue<number>(
      name,
      options,
    );
    expect(await other.size()).toBe(4);
    await expect(queue.offer(5, LONG)).rejects.toThrow(ClosedError);
    await expect(queue.offerMany([{ payload: 5, delay: LONG }])).rejects.toThrow(ClosedError);
  },
);

test("takes that wait for the partitions are refused as closed, and reads are answered or refused", async () => {
  const { line, name } = await slowLine();
  const delayed = line.getDelayedQueue<number>(name, { partitions: 2 });
  const ready = line.getBlockingQueue<number>(name, { partitions: 2 });
  const reliable = line.getReliableQueue<number>(uniqueName(), { partitions: 2 });
  const takes = [ready.take(), reliable.take()];
  const reads = [delayed.size(), ready.takeMany({ limit: 1, timeout: 0 })];
  const refused = Promise.allSettled(takes);
  const answered = Promise.allSettled(reads);
  await line.close();
  for (const one of await refused) {
    expect(one).toMatchObject({ status: "rejected", reason: expect.any(ClosedError) as unknown });
  }
  for (const one of await answered) {
    if (one.status === "rejected") expect(one.reason).toBeInstanceOf(ClosedError);
  }
});

test("a read that is under way is answered", async () => {
  const { line, name } = await slowLine();
  const queue = line.getDelayedQueue<number>(name);
  await queue.offer(1, LONG);
  const reading = queue.size();
  await line.close();
  expect(await reading).toBe(1);
});

test("the server cannot be reached: the offers say that nothing is stored, and close() ends", async () => {
  const proxy = await startProxy(redisUrl());
  proxy.refuse();
  const line = newLineThatMayFail({ redis: proxy.url, transfer: false, unreachableTimeout: 200 });
  const offers = [
    line.getDelayedQueue<number>(uniqueName(), { partitions: 2 }).offer(1, LONG),
    line.getReliableQueue<number>(uniqueName()).offer(1, LONG),
  ].map((offer) => offer.catch((reason: unknown) => reason));
  await line.close();
  for (const error of await Promise.all(offers)) {
    expect(error).toBeInstanceOf(OfferError);
    expect(error).toMatchObject({ effect: "none" });
  }
});
