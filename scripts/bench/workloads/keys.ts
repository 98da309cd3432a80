import { Delayline } from "delayline";
import { BenchServer } from "../bench-server.ts";
import type { Figure } from "../figure.ts";
import { makeOrder } from "../order.ts";
import { percentile } from "../percentile.ts";
import type { Workload } from "../workload.ts";

/** The cost to Redis of finding a message by its key, among many others, some with the same deadline. */
export const keys: Workload = {
  name: "keys",
  title:
    "script time of get, reschedule and cancel by key and of pages, 1 M delayed, 100 k of one deadline",
  quickTitle:
    "script time of get, reschedule and cancel by key and of pages, 50 k delayed, 5 k of one deadline",
  async round({ isQuick, progress }) {
    const [size, count] = isQuick ? [50_000, 300] : [1_000_000, 2000];
    await using server = await BenchServer.start();
    await using line = new Delayline({ redis: server.url, transfer: false });
    const queue = line.getDelayedQueue(QUEUE);
    const instant = new Date((await line.serverTime()) + HOUR);
    await inSteps(size, async (number) => {
      // Every tenth has the same deadline.
      const later = instant.getTime() + Math.random() * HOUR;
      const date = number % 10 === 0 ? instant : new Date(later);
      if (number % 100_000 === 0) progress(`${number} of ${size} offered`);
      await queue.offerAt(makeOrder(number), date, { key: keyOf(number) });
    });

    // Both kinds in turn.
    const chosen = Array.from({ length: count }, (_, i) => {
      const tenth = Math.floor((Math.random() * size) / 10);
      return keyOf(10 * tenth + (i % 2));
    });
    const calls: Record<string, (key: string) => Promise<unknown>> = {
      get: (key) => queue.get(key),
      reschedule: (key) => queue.reschedule(key, HOUR),
      cancel: (key) => queue.cancel(key),
    };
    const figures: Figure[] = [];
    await server.logEverything();
    for (const [name, call] of Object.entries(calls)) {
      progress(name);
      await call(keyOf(0));
      await server.resetStats();
      for (const key of chosen) await call(key);
      const times = (await server.scriptTimes()).toSorted((a, b) => a - b);
      figures.push(
        { name: `${name}, p50`, value: percentile(times, 50), unit: "us", goal: { atMost: 100 } },
        { name: `${name}, p99`, value: percentile(times, 99), unit: "us", goal: { atMost: 1000 } },
      );
    }
    // The pages of calls that read many messages.
    const pages: Record<string, () => Promise<unknown>> = {
      "contains, each page": () => queue.insertionOrder.contains("no such payload"),
      "soonest, each page": () => readAll(queue.soonest(Math.min(size, 100_000))),
      "find, each page": () => readAll(queue.find({ prefix: "order:77" })),
    };
    for (const [name, call] of Object.entries(pages)) {
      progress(name);
      await server.resetStats();
      await call();
      const times = (await server.scriptTimes()).toSorted((a, b) => a - b);
      const value = percentile(times, 99);
      figures.push({ name: `${name}, p99`, value, unit: "us", goal: { atMost: 1000 } });
    }
    return figures;
  },
};

async function readAll(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages);
}

/** Does the index of keys, or anything else, keep entries of messages that have gone? */
export const keyMemory: Workload = {
  name: "key-memory",
  title: "memory of 10 k delayed messages with keys, before and after 1 M others came and went",
  quickTitle:
    "memory of 1 k delayed messages with keys, before and after 20 k others came and went",
  async round({ isQuick, progress }) {
    const [live, others] = isQuick ? [1000, 20_000] : [10_000, 1_000_000];
    await using server = await BenchServer.start();
    await using line = new Delayline({ redis: server.url });
    const queue = line.getDelayedQueue(QUEUE);
    const ready = line.getBlockingQueue(QUEUE);
    const offer = (number: number, delay: number) =>
      queue.offer(makeOrder(number), delay, { key: keyOf(number) });
    const passThrough = async (first: number, count: number) => {
      const step = 1000;
      for (let offered = 0; offered < count; offered += step) {
        await inSteps(step, (i) => offer(first + offered + i, i % 50));
        // Half are cancelled, or moved before that.
        await queue.cancelMany(
          Array.from({ length: step / 2 }, (_, i) => keyOf(first + offered + 2 * i)),
        );
        if (offered % 100_000 === 0) progress(`${offered} came`);
        while ((await queue.size()) > live) await ready.takeMany({ limit: step, timeout: 10 });
      }
      await ready.clear();
    };

    // Everything exists now that does not depend on the number of messages.
    await inSteps(live, (number) => offer(number, DAY));
    await passThrough(live, 10_000);
    const before = await server.usedMemory();
    await passThrough(live + 10_000, others);
    const after = await server.usedMemory();
    const left = await server.redis.hlen(`delayline_keys:{${QUEUE}}`);
    const goal = { atMost: 1.1, inEveryRound: true };
    return [
      { name: "after vs before", value: after / before, unit: "x", goal },
      { name: "keys in the index per message", value: left / live, unit: "x", goal },
    ];
  },
};

const QUEUE = "orders";
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const keyOf = (number: number) => `order:${number}`;

/** Runs something for each number below `count`, a thousand at once. */
async function inSteps(count: number, work: (number: number) => Promise<unknown>): Promise<void> {
  for (let first = 0; first < count; first += 1000) {
    const length = Math.min(1000, count - first);
    await Promise.all(Array.from({ length }, (_, i) => work(first + i)));
  }
}
