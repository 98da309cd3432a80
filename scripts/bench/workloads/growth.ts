import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { BenchServer } from "../bench-server.ts";
import type { Figure } from "../figure.ts";
import { makeOrder } from "../order.ts";
import type { Workload } from "../workload.ts";

/**
 * The cost to Redis of moving a message, by the number of delayed messages.
 *
 * N messages are offered in random order of their deadlines. Three quarters of them are due when all are offered, and
 * are moved at full speed; the others stay. This leaves enough dead elements in the insertion order for one compaction,
 * which is measured too. Small queues are measured repeatedly, for as many messages in all.
 */
export const growth: Workload = {
  name: "growth",
  title: "script time of moving messages, with 10 k, 100 k and 1 M delayed at random deadlines",
  quickTitle:
    "script time of moving messages, with 2 k, 20 k and 100 k delayed at random deadlines",
  async round({ isQuick, progress }) {
    const sizes = isQuick ? [2000, 20_000, 100_000] : [10_000, 100_000, 1_000_000];
    const atLeast = isQuick ? 20_000 : 100_000;
    const figures: Figure[] = [];
    const costs: number[] = [];
    let longestOffer = 0;
    let longestMove = 0;
    for (const size of sizes) {
      await using server = await BenchServer.start();
      let scriptTime = 0;
      let moved = 0;
      while (moved < atLeast) {
        progress(`${size} delayed: ${moved} moved`);
        await server.redis.flushall();
        await server.resetStats();
        const due = await fill(server.url, size);
        longestOffer = Math.max(longestOffer, await server.longestScript());

        await server.resetStats();
        await move(server, due);
        longestMove = Math.max(longestMove, await server.longestScript());
        scriptTime += (await server.stats()).scriptTime;
        moved += due;
      }
      costs.push(scriptTime / moved);
      const name = `per message, ${size.toLocaleString("en")} delayed`;
      figures.push({ name, value: scriptTime / moved, unit: "us" });
    }
    const goal = { atMost: 5, inEveryRound: true };
    return [
      ...figures,
      {
        name: "highest vs lowest",
        value: Math.max(...costs) / Math.min(...costs),
        unit: "x",
        goal: { atMost: 2 },
      },
      { name: "longest script that moves or tidies", value: longestMove, unit: "ms", goal },
      { name: "longest script that offers", value: longestOffer, unit: "ms", goal },
    ];
  },
};

/** Offers `size` messages, and returns how many of them are due. */
async function fill(url: string, size: number): Promise<number> {
  await using line = new Delayline({ redis: url, transfer: false });
  const queue = line.getDelayedQueue(QUEUE);
  let due = 0;
  const perCall = 1000;
  // The deadlines of due messages lie in the past of the server's clock, which no delay can express.
  const now = await line.serverTime();
  for (let first = 0; first < size; first += perCall) {
    const numbers = Array.from({ length: Math.min(perCall, size - first) }, (_, i) => first + i);
    await Promise.all(
      numbers.map((number) => {
        const isDue = Math.random() < 0.75;
        if (isDue) due++;
        const deadline = isDue ? now - Math.random() * HOUR : now + (1 + Math.random()) * HOUR;
        return queue.offerAt(makeOrder(number), new Date(deadline));
      }),
    );
  }
  return due;
}

/** Starts a client that moves the due messages and tidies up after them. */
async function move({ redis, url }: BenchServer, due: number): Promise<void> {
  await using line = new Delayline({ redis: url });
  const queue = line.getBlockingQueue(QUEUE);
  while ((await redis.llen(queue.name)) < due) await sleep(20);
  // Tidying may take a little longer.
  await sleep(200);
}

const QUEUE = "orders";
const HOUR = 3_600_000;
