import { Delayline } from "delayline";
import type { Redis } from "ioredis";
import { setTimeout as sleep } from "node:timers/promises";
import { BenchServer } from "../bench-server.ts";
import { makeOrder } from "../order.ts";
import type { Workload } from "../workload.ts";

/** Each message leaves an element behind in the insertion order: does the order stay short? */
export const insertionOrder: Workload = {
  name: "order",
  title: "1 M messages with random delays pass a queue in which 10,000 others stay",
  quickTitle: "50,000 messages with random delays pass a queue in which 2,000 others stay",
  async round({ isQuick, progress }) {
    const [count, standing] = isQuick ? [50_000, 2000] : [1_000_000, 10_000];
    await using server = await BenchServer.start();
    await using line = new Delayline({ redis: server.url });
    const queue = line.getDelayedQueue(QUEUE);
    await queue.offerMany(messages(standing, () => HOUR * (1 + Math.random())));

    const watching = new AbortController();
    const watched = watch(server.redis, watching.signal);
    const ready = line.getBlockingQueue(QUEUE);
    let [offered, taken] = [0, 0];
    const waiting = () => offered - taken;
    const take = async () => {
      while (taken < count) taken += (await ready.takeMany({ limit: 1000 })).length;
    };
    const offer = async () => {
      for (; offered < count; offered += 1000) {
        progress(`${taken} of ${count} taken`);
        // Offering is faster than taking, and would leave most of the taking for the end.
        while (waiting() > 10 * standing) await sleep(5);
        await queue.offerMany(messages(1000, () => Math.random() * 1000));
      }
    };
    await Promise.all([take(), offer()]);
    await sleep(500);
    watching.abort();
    const seen = await watched;
    const { elements, live } = await look(server.redis);
    if (live !== standing || elements < live) throw new Error(`${elements} elements, ${live} live`);
    return [
      {
        name: `elements at the end, for ${live.toLocaleString("en")} messages`,
        value: elements,
        unit: "",
        goal: { atMost: limit(live), inEveryRound: true },
      },
      { name: "meanwhile: most elements per live one", value: seen.ratio, unit: "x" },
      { name: "meanwhile: longest time beyond the goal", value: seen.beyond, unit: "ms" },
    ];
  },
};

const QUEUE = "orders";
const HOUR = 3_600_000;

function messages(count: number, delay: () => number) {
  return Array.from({ length: count }, (_, i) => ({ payload: makeOrder(i), delay: delay() }));
}

/** The highest allowed number of elements. */
const limit = (live: number) => 2 * live + 3000;

/**
 * Looks until it is stopped. Returns the highest number of elements per live one, and the longest uninterrupted time
 * with more than the allowed number.
 */
async function watch(
  redis: Redis,
  signal: AbortSignal,
): Promise<{ ratio: number; beyond: number }> {
  const seen = { ratio: 0, beyond: 0 };
  let fineAt = performance.now();
  while (!signal.aborted) {
    const { elements, live } = await look(redis);
    seen.ratio = Math.max(seen.ratio, elements / live);
    if (elements <= limit(live)) fineAt = performance.now();
    seen.beyond = Math.max(seen.beyond, performance.now() - fineAt);
    await sleep(20);
  }
  return seen;
}

async function look(redis: Redis): Promise<{ elements: number; live: number }> {
  const replies = await redis
    .multi()
    .llen(`redisson_delay_queue:{${QUEUE}}`)
    .llen(`delayline_compacted:{${QUEUE}}`)
    .zcard(`redisson_delay_queue_timeout:{${QUEUE}}`)
    .exec();
  const [order, compacted, live] = (replies ?? []).map(([, reply]) => Number(reply));
  return { elements: (order ?? NaN) + (compacted ?? NaN), live: live ?? NaN };
}
