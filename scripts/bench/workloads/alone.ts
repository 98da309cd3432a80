import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { BenchServer } from "../bench-server.ts";
import type { Figure } from "../figure.ts";
import { makeOrder } from "../order.ts";
import type { Workload } from "../workload.ts";

/**
 * The commands of a message that is alone in its queue: the next one is offered when it was handled. One process does all.
 * Commands include those that scripts run, and what the process sends by itself.
 */
export const alone: Workload = {
  name: "alone",
  title: "Redis commands of a message that is alone in its queue",
  async round({ isQuick, progress }) {
    const figures: Figure[] = [];
    for (const kind of ["plain", "reliable"] as const) {
      for (const [pace, pause, count] of [
        ["at once", 0, isQuick ? 30 : 200],
        ["after 1 s", 1000, isQuick ? 5 : 30],
      ] as const) {
        progress(`${kind}, ${pace}`);
        const stats = await deliver(kind, pause, count);
        figures.push({
          name: `${kind}: commands of a message, the next one ${pace}`,
          value: stats.total / count,
          unit: "",
          parts: stats.perMessage(count),
        });
      }
    }
    return figures;
  },
};

async function deliver(kind: "plain" | "reliable", pause: number, count: number) {
  await using server = await BenchServer.start();
  await using line = new Delayline({ redis: server.url });
  const isPlain = kind === "plain";
  const queue = isPlain ? line.getDelayedQueue("orders") : line.getReliableQueue("orders");
  const consumer = isPlain ? line.getBlockingQueue("orders") : line.getReliableQueue("orders");
  let onHandled: () => void;
  consumer.subscribe(() => onHandled());
  const deliverOne = async (number: number) => {
    const handled = new Promise<void>((resolve) => {
      onHandled = resolve;
    });
    await queue.offer(makeOrder(number), DELAY);
    await handled;
  };
  for (let number = 0; number < 5; number++) await deliverOne(number);
  await sleep(500);
  await server.resetStats();
  for (let number = 0; number < count; number++) {
    await deliverOne(number);
    await sleep(pause);
  }
  // The last acknowledgement.
  await sleep(100);
  return await server.stats();
}

/** Milliseconds. */
const DELAY = 60;
