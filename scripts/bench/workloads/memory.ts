import { Delayline } from "delayline";
import { setTimeout as sleep } from "node:timers/promises";
import { BenchServer } from "../bench-server.ts";
import type { Figure, Goal } from "../figure.ts";
import type { Workload } from "../workload.ts";

type Place = "delayed" | "delayed, with a key" | "ready" | "retrying";

/** How much of Redis's memory a message takes in each place; one that is in flight takes as much as one that is ready. */
export const memory: Workload = {
  name: "memory",
  title: "memory of 100,000 messages",
  quickTitle: "memory of 20,000 messages",
  async round({ isQuick, progress }) {
    const count = isQuick ? 20_000 : 100_000;
    const figures: Figure[] = [];
    for (const [bytes, goal] of [
      [100, { atMost: 270 }],
      [1024, { atMost: 1430 }],
    ] as const) {
      for (const place of ["delayed", "delayed, with a key", "ready", "retrying"] as const) {
        progress(`${place}, payloads of ${bytes} bytes`);
        const value = await measure(place, count, bytes);
        const goals: { goal?: Goal } = place === "delayed" ? { goal } : {};
        figures.push({ name: `${place}, payload ${bytes} B`, value, unit: "B", ...goals });
      }
    }
    return figures;
  },
};

/** Bytes per message. */
async function measure(place: Place, count: number, bytes: number): Promise<number> {
  await using server = await BenchServer.start();
  // The scripts are loaded now, and everything else exists that does not depend on the number.
  await fill(server.url, place, 100, bytes);
  await server.redis.flushall();
  const before = await server.usedMemory();
  await fill(server.url, place, count, bytes);
  return ((await server.usedMemory()) - before) / count;
}

async function fill(url: string, place: Place, count: number, bytes: number): Promise<void> {
  const isDelayed = place === "delayed" || place === "delayed, with a key";
  await using line = new Delayline({ redis: url, codec: "bytes", transfer: !isDelayed });
  const options = { retry: [HOUR] };
  const reliable = isDelayed ? undefined : line.getReliableQueue<Uint8Array>("orders", options);
  const queue = reliable ?? line.getDelayedQueue<Uint8Array>("orders");
  const payload = new Uint8Array(bytes);
  for (let first = 0; first < count; first += 1000) {
    await queue.offerMany(
      Array.from({ length: Math.min(1000, count - first) }, (_, i) => ({
        payload,
        delay: isDelayed ? HOUR * (1 + Math.random()) : 0,
        ...(place === "delayed, with a key" && { key: `order:${first + i}` }),
      })),
    );
  }
  if (reliable === undefined) return;
  const until = async (number: "ready" | "retries") => {
    while ((await reliable.stats())[number] < count) await sleep(20);
  };
  await until("ready");
  if (place === "ready") return;
  const work = reliable.subscribe((_, delivery) => delivery.nack(), { concurrency: 200 });
  await until("retries");
  await work.close();
}

const HOUR = 3_600_000;
