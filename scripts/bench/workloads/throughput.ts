import { BenchServer } from "../bench-server.ts";
import { Program } from "../program.ts";
import type { SingleMethods } from "../programs/single.ts";
import type { Workload } from "../workload.ts";

/** How fast one process offers messages that stay. */
export const offers: Workload = {
  name: "offers",
  title: "offers of one process, 100 B payloads, random deadlines",
  async round({ isQuick, progress }) {
    const count = isQuick ? 20_000 : 200_000;
    progress(`${count} by 100 in flight`);
    const inFlight = await alone(async (single) => {
      await single.call("offerInFlight", WARM_UP, 100);
      return await single.call("offerInFlight", count, 100);
    });
    progress(`${count} by offerMany`);
    const many = await alone(async (single) => {
      await single.call("offerMany", WARM_UP, 1000);
      return await single.call("offerMany", count, 1000);
    });
    return [
      { name: "offer, 100 in flight", value: inFlight, unit: "/s", goal: { atLeast: 80_000 } },
      { name: "offerMany, 1,000 per call", value: many, unit: "/s", goal: { atLeast: 130_000 } },
    ];
  },
};

/** How fast one process takes ready messages. */
export const takes: Workload = {
  name: "takes",
  title: "takes of one process, 100 B payloads, all ready",
  async round({ isQuick, progress }) {
    const count = isQuick ? 20_000 : 200_000;
    await using server = await BenchServer.start();
    await using single = await Program.start<SingleMethods>("single");
    await single.call("open", server.url);
    progress(`${count} by takeMany`);
    await single.call("put", WARM_UP + count);
    await single.call("takeMany", WARM_UP, 1000);
    const many = await single.call("takeMany", count, 1000);
    progress(`${count} by 50 concurrent takes`);
    await single.call("put", WARM_UP + count);
    await single.call("takeConcurrently", WARM_UP, 50);
    const concurrent = await single.call("takeConcurrently", count, 50);
    return [
      {
        name: "takeMany, up to 1,000 per call",
        value: many,
        unit: "/s",
        goal: { atLeast: 200_000 },
      },
      { name: "take, 50 loops", value: concurrent, unit: "/s", goal: { atLeast: 40_000 } },
    ];
  },
};

/** Unmeasured messages that come first, so that the program's functions are compiled. */
const WARM_UP = 20_000;

/** Runs a program on a server of its own. */
async function alone(work: (single: Program<SingleMethods>) => Promise<number>): Promise<number> {
  await using server = await BenchServer.start();
  await using single = await Program.start<SingleMethods>("single");
  await single.call("open", server.url);
  return await work(single);
}
