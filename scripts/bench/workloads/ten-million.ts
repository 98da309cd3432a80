import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { Redis } from "ioredis";
import { BenchServer } from "../bench-server.ts";
import { Crew } from "../crew.ts";
import { joinDeliveries, latenessFigures, promises } from "../deliveries.ts";
import { eachOf } from "../each-of.ts";
import type { Figure } from "../figure.ts";
import { LastingServer } from "../lasting-server.ts";
import { LateStartError } from "../late-start.ts";
import type { DueBetween } from "../offer-plan.ts";
import { keyOf } from "../payload.ts";
import { QUEUE } from "../peers/peer.ts";
import { delayline } from "../peers/delayline.ts";
import { percentile } from "../percentile.ts";
import { Program } from "../program.ts";
import type { ProberMethods } from "../programs/prober.ts";
import type { ProducerMethods } from "../programs/producer.ts";
import type { Round, Workload } from "../workload.ts";

/**
 * A queue in which ten million messages are delayed: what each call costs Redis and the others who use it, a trickle
 * that falls due, a tenth that falls due at one instant, and Redis's restart.
 *
 * One queue goes through all of it. What is measured by a call is measured with PINGs from another process beside it.
 */
export const tenMillion: Workload = {
  name: "ten-million",
  title: "10,000,000 messages of 100 B delayed in one ordinary queue",
  quickTitle: "100,000 messages of 100 B delayed in one ordinary queue",
  async round({ isQuick, progress }) {
    const count = isQuick ? 100_000 : 10_000_000;
    const some = isQuick ? 5000 : 100_000;
    await using lasting = await LastingServer.start();
    const { url } = lasting;
    const server = await BenchServer.of(lasting);
    await using producer = await Program.start<ProducerMethods>("producer");
    await producer.call("open", "delayline", url);
    let next = 0;
    const plan = (size: number, due: DueBetween, more = {}) => {
      const first = next;
      next += size;
      return { first, count: size, due, ...more };
    };
    const figures: Figure[] = [];

    const empty = await server.usedMemory();
    const filling = await watched(server, async () => {
      for (let offered = 0; offered < count; offered += PAGE) {
        progress(`${offered.toLocaleString("en")} of ${count.toLocaleString("en")} offered`);
        await producer.call("offerInBulk", plan(Math.min(PAGE, count - offered), MONTHS), 250, 4);
      }
    });
    figures.push(...filling.figures("filling, in bulk", count));
    progress("measuring the memory");
    const perMessage = ((await server.usedMemory()) - empty) / count;
    figures.push({ name: "memory per message", value: perMessage, unit: "B" });

    progress("offering more, one by one");
    const offering = await watched(server, () =>
      producer.call("offerBusily", plan(some, MONTHS), 100),
    );
    figures.push(...offering.figures("offer, 100 in flight", some));

    progress("offering more with keys");
    const keyed = plan(some, MONTHS, { isKeyed: true });
    const keying = await watched(server, () => producer.call("offerBusily", keyed, 100));
    figures.push(...keying.figures("offer with a key, 100 in flight", some));

    progress("rescheduling them");
    const numbers = Array.from({ length: some }, (_, i) => keyed.first + i);
    const rescheduling = await watched(server, async () => {
      await using line = new Delayline({ redis: url });
      const queue = line.getDelayedQueue(QUEUE, { transfer: false });
      await eachOf(some, 100, async (i) => {
        await queue.reschedule(keyOf(numbers[i] as number), MONTHS.maxDelay);
      });
    });
    figures.push(...rescheduling.figures("reschedule by key, 100 in flight", some));

    progress("cancelling them");
    const cancelling = await watched(server, () => producer.call("cancelBusily", numbers, 100));
    figures.push(...cancelling.figures("cancel by key, 100 in flight", some));

    {
      await using crew = await Crew.start({ workerProcesses: 1, concurrency: 50 });
      await crew.open("delayline", url);
      progress("a trickle that falls due");
      const size = isQuick ? 2000 : 20_000;
      const trickle = plan(size, { minDelay: 200, maxDelay: 1000 });
      const moving = await watched(server, async () => {
        const offered = await producer.call("offerSteadily", trickle, 1000);
        return joinDeliveries(offered, trickle.first, await crew.taken(size));
      });
      figures.push(...promises(moving.result));
      figures.push(...moving.costs("1,000/s offered and taken", size));
      figures.push(...latenessFigures(moving.result));

      const herdSize = count / 10;
      progress(`offering ${herdSize.toLocaleString("en")} for one instant`);
      await crew.reset();
      const sample = plan(PAGE / 10, MONTHS);
      const { duration } = await producer.call("offerInBulk", sample, 250, 4);
      const { serverTime } = await server.look(delayline.delayedKey);
      const instant = Math.ceil(
        serverTime + (duration / sample.count) * herdSize * 2 + 2 * STARTING,
      );
      const due = { from: instant, to: instant };
      for (let offered = 0; offered < herdSize; offered += PAGE) {
        await producer.call("offerInBulk", plan(Math.min(PAGE, herdSize - offered), due), 250, 4);
      }
      const left = instant - (await server.look(delayline.delayedKey)).serverTime;
      if (left < STARTING) throw new LateStartError(STARTING - left);
      progress("waiting for the instant, and taking them");
      const herd = await watched(server, async () => await crew.taken(herdSize, left));
      const takenAt = herd.result.flatMap((each) => [...each.takenAt]);
      const lastAt = takenAt.reduce((last, at) => Math.max(last, at), instant);
      const rate = (takenAt.length / (lastAt - instant)) * 1000;
      figures.push(
        { name: "herd: lost", value: herdSize - takenAt.length, unit: "", goal: { atMost: 0 } },
        { name: "herd: taken", value: rate, unit: "/s" },
        ...herd.costs("herd", herdSize),
      );
      await crew.close();
    }
    await producer.call("close");

    server.redis.disconnect();
    figures.push(...(await restarts(lasting, progress)));
    return figures;
  },
};

/** Redis goes down with a message that falls due meanwhile: how long until it is taken? */
async function restarts(server: LastingServer, progress: Round["progress"]): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [name, save, args] of RESTARTS) {
    await using line = new Delayline({ redis: server.url });
    line.on("error", () => {});
    await line.getDelayedQueue<string>(QUEUE).offer("soon", SOON);
    progress(`saving: ${name}`);
    const redis = new Redis(server.url);
    await save(redis);
    redis.disconnect();
    await server.stop();
    progress(`restarting: ${name}`);
    const taken = line.getBlockingQueue<string>(QUEUE).take();
    const startedAt = performance.now();
    await server.restart(...args);
    const readyAt = performance.now();
    await taken;
    const takenAt = performance.now();
    figures.push(
      { name: `${name}: Redis answers after`, value: readyAt - startedAt, unit: "ms" },
      { name: `${name}: first message taken after`, value: takenAt - startedAt, unit: "ms" },
    );
  }
  return figures;
}

interface Watched<Result> {
  readonly result: Result;
  /** What it cost, for so many messages. */
  costs(name: string, count: number): Figure[];
  /** How fast it was, and what it cost. */
  figures(name: string, count: number): Figure[];
}

/** Runs something, with PINGs beside it. */
async function watched<Result>(
  server: BenchServer,
  work: () => Promise<Result>,
): Promise<Watched<Result>> {
  await using prober = await Program.start<ProberMethods>("prober");
  await prober.call("start", server.url);
  await server.resetStats();
  const startedAt = performance.now();
  const result = await work();
  const duration = performance.now() - startedAt;
  const waits = (await prober.call("stop")).waits.toSorted();
  const { scriptTime } = await server.stats();
  const p99 = (await server.scriptPercentile(99)) / 1000;
  const longest = await server.longestScript();
  const costs = (name: string, count: number): Figure[] => [
    { name: `${name}: script time per message`, value: scriptTime / count, unit: "us" },
    { name: `${name}: scripts, p99`, value: p99, unit: "ms" },
    { name: `${name}: longest script`, value: longest, unit: "ms" },
    { name: `${name}: PING, p99`, value: percentile([...waits], 99), unit: "ms" },
    { name: `${name}: longest PING`, value: waits.at(-1) ?? NaN, unit: "ms" },
  ];
  return {
    result,
    costs,
    figures: (name, count) => [
      { name: `${name}: rate`, value: (count / duration) * 1000, unit: "/s" },
      ...costs(name, count),
    ],
  };
}

/** How Redis keeps its data, and with what arguments it finds them again. */
const RESTARTS: readonly (readonly [
  name: string,
  save: (redis: Redis) => Promise<unknown>,
  args: readonly string[],
])[] = [
  ["restart with RDB", (redis) => redis.save(), []],
  ["restart with AOF", startAof, ["--appendonly", "yes"]],
];

/** Writes an AOF, and waits until it is whole. */
async function startAof(redis: Redis): Promise<void> {
  await redis.config("SET", "appendonly", "yes");
  for (;;) {
    const info = await redis.info("persistence");
    if (/aof_rewrite_in_progress:0\r?\naof_rewrite_scheduled:0/.test(info)) return;
    await sleep(200);
  }
}

/** Messages offered by one question to the producer, which notes each of them. */
const PAGE = 250_000;

/** Deadlines that no round sees. */
const MONTHS = { minDelay: 30 * 86_400_000, maxDelay: 90 * 86_400_000 };

/** Milliseconds in which the process that sends PINGs is surely there. */
const STARTING = 2000;

/** Falls due while Redis is down. */
const SOON = 500;
