import { BenchServer } from "../bench-server.ts";
import type { Figure } from "../figure.ts";
import { Program } from "../program.ts";
import type { ProducerMethods } from "../programs/producer.ts";
import type { Contest } from "../workload.ts";
import { LATER } from "./later.ts";

/** How much of Redis's memory a delayed message takes. */
export const memory: Contest = {
  name: "memory",
  title: "Redis's memory per delayed message",
  async round({ peer, isQuick, progress }) {
    const count = isQuick ? 10_000 : 100_000;
    const figures: Figure[] = [];
    for (const payloadBytes of [100, 1024]) {
      progress(`${count} payloads of ${payloadBytes} bytes`);
      await using server = await BenchServer.start();
      await using producer = await Program.start<ProducerMethods>("producer");
      await producer.call("open", peer, server.url);
      // First a few messages, so that everything exists that does not depend on their number.
      const plan = { first: 0, count: 500, due: LATER, payloadBytes };
      await producer.call("offerInBulk", plan, 500);
      const before = await server.usedMemory();
      await producer.call("offerInBulk", { ...plan, first: plan.count, count }, 1000);
      const value = ((await server.usedMemory()) - before) / count;
      figures.push({ name: `payload of ${payloadBytes.toLocaleString("en")} B`, value, unit: "B" });
      await producer.call("close");
    }
    return figures;
  },
};
