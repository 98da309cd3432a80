import { setTimeout as sleep } from "node:timers/promises";
import { BenchServer } from "../bench-server.ts";
import type { Figure, Goal } from "../figure.ts";
import { percentile } from "../percentile.ts";
import { delayline } from "../peers/delayline.ts";
import { waitsBetween } from "../pings.ts";
import { Program } from "../program.ts";
import type { Pings, ProberMethods } from "../programs/prober.ts";
import type { SingleMethods } from "../programs/single.ts";
import type { Workload } from "../workload.ts";

/** A crowd falls due at once: how fast is it moved, and can other clients still use Redis? */
export const drain: Workload = {
  name: "drain",
  title: "100,000 messages due at one instant, moved by one process; PINGs from another",
  quickTitle: "20,000 messages due at one instant, moved by one process; PINGs from another",
  async round({ isQuick, progress }) {
    const [count, inMilliseconds] = isQuick ? [20_000, 2500] : [100_000, 6000];
    await using server = await BenchServer.start();
    await using single = await Program.start<SingleMethods>("single");
    await using prober = await Program.start<ProberMethods>("prober");
    await single.call("open", server.url);
    progress(`offering ${count} messages`);
    const instant = await single.call("offerForOneInstant", count, inMilliseconds);
    const isFull = (await server.look(DELAYED)).delayed === count;
    if (!isFull) throw new Error("some messages were moved before their deadline");

    await prober.call("start", server.url);
    const startedAt = (await server.look(DELAYED)).serverTime;
    await sleep(instant - startedAt - 20);
    progress("moving them");
    const emptyAt = await server.waitUntilLeft(DELAYED, 0);
    const pings = await prober.call("stop");
    return [
      {
        name: "moved",
        value: (count / (emptyAt - instant)) * 1000,
        unit: "/s",
        goal: { atLeast: 110_000 },
      },
      ...pingFigures("meanwhile", pings, instant, emptyAt, { atMost: 5, inEveryRound: true }),
      ...pingFigures("before, at rest", pings, startedAt, instant - 50),
    ];
  },
};

const DELAYED = delayline.delayedKey;

function pingFigures(when: string, pings: Pings, from: number, to: number, goal?: Goal): Figure[] {
  const sorted = waitsBetween(pings, from, to);
  return [
    { name: `PING ${when}, p99`, value: percentile(sorted, 99), unit: "ms" },
    { name: `PING ${when}, max`, value: sorted.at(-1) ?? NaN, unit: "ms", ...(goal && { goal }) },
  ];
}
