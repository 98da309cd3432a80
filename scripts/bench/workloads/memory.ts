import { Delayline } from "delayline";
import { BenchServer } from "../bench-server.ts";
import type { Figure } from "../figure.ts";
import type { Workload } from "../workload.ts";

/** How much of Redis's memory a delayed message takes. */
export const memory: Workload = {
  name: "memory",
  title: "memory of 100,000 delayed messages",
  quickTitle: "memory of 20,000 delayed messages",
  async round({ isQuick, progress }) {
    const count = isQuick ? 20_000 : 100_000;
    const figures: Figure[] = [];
    for (const [bytes, atMost] of [
      [100, 270],
      [1024, 1430],
    ] as const) {
      progress(`payloads of ${bytes} bytes`);
      await using server = await BenchServer.start();
      // The scripts are loaded now, and everything else exists that does not depend on the number.
      await fill(server.url, 100, bytes);
      await server.redis.flushall();
      const before = await server.usedMemory();
      await fill(server.url, count, bytes);
      const value = ((await server.usedMemory()) - before) / count;
      figures.push({ name: `per message, payload ${bytes} B`, value, unit: "B", goal: { atMost } });
    }
    return figures;
  },
};

async function fill(url: string, count: number, bytes: number): Promise<void> {
  await using line = new Delayline({ redis: url, codec: "bytes", transfer: false });
  const queue = line.getDelayedQueue<Uint8Array>("orders");
  const payload = new Uint8Array(bytes);
  for (let first = 0; first < count; first += 1000) {
    await queue.offerMany(
      Array.from({ length: Math.min(1000, count - first) }, () => ({
        payload,
        delay: 3_600_000 * (1 + Math.random()),
      })),
    );
  }
}
