import { setTimeout as sleep } from "node:timers/promises";
import { BenchServer } from "../bench-server.ts";
import { Crew } from "../crew.ts";
import { joinDeliveries, type Offered } from "../deliveries.ts";
import type { Figure } from "../figure.ts";
import { LateStartError } from "../late-start.ts";
import { percentile } from "../percentile.ts";
import { loadPeer } from "../peers/load.ts";
import { waitsBetween } from "../pings.ts";
import { Program } from "../program.ts";
import type { ProberMethods } from "../programs/prober.ts";
import type { ProducerMethods } from "../programs/producer.ts";
import type { Contest, ContestRound } from "../workload.ts";
import { LATER } from "./later.ts";

/** Does a message cost more when many others are delayed? */
export const delayed: Contest = {
  name: "delayed",
  title: "messages falling due within 5 s, 1 worker, by the number of others delayed",
  async round(round) {
    const figures: Figure[] = [];
    for (const size of round.isQuick ? [2000, 20_000] : [10_000, 100_000, 1_000_000]) {
      figures.push(...(await withDelayed(size, round)));
    }
    return figures;
  },
};

async function withDelayed(size: number, round: ContestRound): Promise<Figure[]> {
  const { peer, isQuick, patience } = round;
  const progress = (doing: string) => round.progress(`${size} delayed: ${doing}`);
  // Otherwise work that grows with the number of messages in the queue would take minutes.
  const isSlow = peer.startsWith("redisson") && size > 500_000;
  const [count, window] = isQuick ? [1000, 1000] : [isSlow ? 1000 : 10_000, 5000];
  const notes = isSlow ? { note: `${count.toLocaleString("en")} falling due` } : {};

  await using server = await BenchServer.start();
  await using producer = await Program.start<ProducerMethods>("producer");
  await producer.call("open", peer, server.url);
  const half = size / 2;
  const filling = await fill(producer, count, half, (offered, took) => {
    progress(`${offered} offered`);
    return (took / offered) * size < LONGEST_FILLING;
  });
  if (filling === undefined) {
    return figuresOf(size, {}, { note: "filling would take over a minute" });
  }

  const programs = await Promise.all([
    Crew.start({ workerProcesses: 1, concurrency: 50 }),
    Program.start<ProberMethods>("prober"),
  ]);
  await using crew = programs[0];
  await using prober = programs[1];
  // The messages that fall due are offered in the middle, as if the deadlines had come in random order.
  const { delayedKey } = await loadPeer(peer);
  const { serverTime } = await server.look(delayedKey);
  const from = Math.ceil(serverTime + (filling * 1.3 + (isQuick ? 1500 : 3500)) * patience);
  const due = { from, to: from + window };
  const offered = await producer.call("offerInBulk", { first: 0, count, due }, 1000);
  await fill(producer, count + half, half);
  progress("waiting for the first deadline");
  await crew.open(peer, server.url);
  await prober.call("start", server.url);

  // Half a second at rest shows the baseline of the PINGs.
  const atRest = await processorTimeOf(server, () => sleep(500));
  const left = from - (await server.look(delayedKey)).serverTime;
  if (left < 50) throw new LateStartError(50 - left);
  await sleep(left - 50);
  await server.resetStats();
  progress(`${count} falling due`);
  const startedAt = performance.now();
  const { total: before } = await server.processorTime();
  const taken = await crew.taken(count, window);
  const processorTime = (await server.processorTime()).total - before;
  const restTime = ((performance.now() - startedAt) / 500) * atRest;
  const stats = await server.stats();
  const pings = await prober.call("stop");
  await Promise.all([crew.close(), producer.call("close")]);
  const { lateness, lost } = joinDeliveries(offered, 0, taken);
  const lastAt = taken.reduce((last, { takenAt }) => Math.max(last, takenAt.at(-1) ?? 0), from);
  const measured = {
    lost,
    scriptTime: stats.scriptTime / count,
    processorTime: (processorTime - restTime) / count,
    p50: percentile(lateness, 50),
    p99: percentile(lateness, 99),
    stall: waitsBetween(pings, from, lastAt).at(-1) ?? NaN,
  };
  return figuresOf(size, measured, notes);
}

interface Measured {
  readonly lost?: number;
  readonly scriptTime?: number;
  readonly processorTime?: number;
  readonly p50?: number;
  readonly p99?: number;
  readonly stall?: number;
}

function figuresOf(size: number, measured: Measured, notes: { readonly note?: string }): Figure[] {
  const { lost, scriptTime, processorTime, p50, p99, stall } = measured;
  const of = `${size.toLocaleString("en")} delayed`;
  const on = (curve: "script time" | "lateness" | "stall") => ({ plot: { curve, x: size } });
  const all: Figure[] = [
    { name: `lost, ${of}`, value: lost ?? NaN, unit: "" },
    {
      name: `script time per message, ${of}`,
      value: scriptTime ?? NaN,
      unit: "us",
      ...on("script time"),
    },
    { name: `Redis processor time per message, ${of}`, value: processorTime ?? NaN, unit: "us" },
    { name: `lateness p50, ${of}`, value: p50 ?? NaN, unit: "ms" },
    { name: `lateness p99, ${of}`, value: p99 ?? NaN, unit: "ms", ...on("lateness") },
    { name: `longest PING, ${of}`, value: stall ?? NaN, unit: "ms", ...on("stall") },
  ];
  return all.map((figure) => Object.assign(figure, notes));
}

/** Milliseconds. */
const LONGEST_FILLING = 60_000;

/** Offers messages that stay delayed. Returns the duration in milliseconds, or undefined if `goOn` stopped it. */
async function fill(
  producer: Program<ProducerMethods>,
  first: number,
  count: number,
  goOn: (offered: number, took: number) => boolean = () => true,
): Promise<number | undefined> {
  const step = 20_000;
  let took = 0;
  for (let offered = 0; offered < count; offered += step) {
    const plan = { first: first + offered, count: Math.min(step, count - offered), due: LATER };
    const part: Offered = await producer.call("offerInBulk", plan, 1000);
    took += part.duration;
    if (!goOn(offered + plan.count, took)) return undefined;
  }
  return took;
}

async function processorTimeOf(server: BenchServer, work: () => Promise<unknown>): Promise<number> {
  const { total: before } = await server.processorTime();
  await work();
  return (await server.processorTime()).total - before;
}
