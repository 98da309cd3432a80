import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { BenchServer } from "../bench-server.ts";
import type { Figure, Goal } from "../figure.ts";
import { makeOrder, type Order } from "../order.ts";
import { percentile } from "../percentile.ts";
import type { Round, Workload } from "../workload.ts";

type Kind = "reliable" | "plain";

/**
 * The cost of acknowledgement: the same work on a reliable queue and on a plain one, in one round. One process offers,
 * moves and consumes.
 */
export const reliable: Workload = {
  name: "reliable",
  title: "a reliable queue beside a plain one, 1 process, 100 B payloads",
  async round(round) {
    const figures: Figure[] = [];
    for (const kind of ["reliable", "plain"] as const) {
      figures.push(...(await backlog(kind, round)));
      figures.push(...(await steadily(kind, round, BUSY)));
      figures.push(...(await steadily(kind, round, RARE)));
      figures.push(...(await idle(kind, round)));
    }
    return figures;
  },
};

/** All due at once, made ready, and then consumed. */
async function backlog(kind: Kind, { isQuick, progress }: Round): Promise<Figure[]> {
  const count = isQuick ? 5000 : 50_000;
  await using server = await BenchServer.start();
  await using line = new Delayline({ redis: server.url });
  const queue = offeringTo(line, kind);
  progress(`${kind}: ${count} become ready`);
  await server.resetStats();
  for (let first = 0; first < count; first += 1000) {
    await queue.offerMany(
      Array.from({ length: Math.min(1000, count - first) }, (_, i) => ({
        payload: makeOrder(first + i),
        delay: 0,
      })),
    );
  }
  const key = kind === "reliable" ? "delayline_stream:{orders}" : "orders";
  const length = () => (kind === "reliable" ? server.redis.xlen(key) : server.redis.llen(key));
  while ((await length()) < count) await sleep(5);
  progress(`${kind}: consuming them`);
  let handled = 0;
  let startedAt = NaN;
  let endedAt = NaN;
  const warmUp = count / 10;
  await consume(line, kind, count, 200, () => {
    handled++;
    if (handled === warmUp) startedAt = performance.now();
    if (handled === count) endedAt = performance.now();
  });
  const rate = ((count - warmUp) / (endedAt - startedAt)) * 1000;
  const stats = await server.stats();
  return [
    {
      name: `${kind}: consumed, concurrency 200`,
      value: rate,
      unit: "/s",
      ...goalOf(kind, { atLeast: 30_000 }),
    },
    {
      name: `${kind}: Redis commands per message, in bulk`,
      value: stats.total / count,
      unit: "",
      parts: stats.perMessage(count),
      ...goalOf(kind, { atMost: 3 }),
    },
  ];
}

interface Pace {
  readonly name: string;
  readonly perSecond: number;
  readonly seconds: number;
  readonly concurrency: number;
  readonly goal: Goal;
}

const BUSY: Pace = {
  name: "2,000/s",
  perSecond: 2000,
  seconds: 8,
  concurrency: 50,
  goal: { atMost: 8 },
};
const RARE: Pace = {
  name: "nearly idle",
  perSecond: 20,
  seconds: 10,
  concurrency: 1,
  goal: { atMost: 16 },
};

/** Offers at a steady pace with delays of 100 to 500 ms: how late is each, from the call? */
async function steadily(kind: Kind, { isQuick, progress }: Round, pace: Pace): Promise<Figure[]> {
  const { name, perSecond, concurrency, goal } = pace;
  const count = Math.round(perSecond * (isQuick ? 1 : pace.seconds));
  await using server = await BenchServer.start();
  await using line = new Delayline({ redis: server.url });
  const queue = offeringTo(line, kind);
  progress(`${kind}: ${name}`);
  // Opens connections, and lets functions be compiled.
  const warmUp = consume(line, kind, 20, concurrency);
  for (let i = 0; i < 20; i++) await queue.offer(makeOrder(i), 0);
  await warmUp;
  await server.resetStats();
  const dueAt: number[] = [];
  const lateness: number[] = [];
  const consumed = consume(line, kind, count, concurrency, (number) => {
    lateness.push(performance.now() - (dueAt[number] ?? NaN));
  });
  const startedAt = performance.now();
  for (let number = 0; number < count; number++) {
    const wait = startedAt + (number / perSecond) * 1000 - performance.now();
    if (wait > 1) await sleep(wait);
    const delay = 100 + Math.floor(Math.random() * 400);
    dueAt[number] = performance.now() + delay;
    void queue.offer(makeOrder(number), delay);
  }
  await consumed;
  const stats = await server.stats();
  lateness.sort((a, b) => a - b);
  const of = `${kind}: ${name}`;
  return [
    {
      name: `${of}, Redis commands per message`,
      value: stats.total / count,
      unit: "",
      parts: stats.perMessage(count),
      ...goalOf(kind, goal),
    },
    { name: `${of}, script time per message`, value: stats.scriptTime / count, unit: "us" },
    { name: `${of}, lateness p50 from the call`, value: percentile(lateness, 50), unit: "ms" },
    { name: `${of}, lateness p99 from the call`, value: percentile(lateness, 99), unit: "ms" },
  ];
}

/** A consumer that waits. */
async function idle(kind: Kind, { isQuick, progress }: Round): Promise<Figure[]> {
  await using server = await BenchServer.start();
  await using line = new Delayline({ redis: server.url });
  const queue = offeringTo(line, kind);
  const consumed = consume(line, kind, 2, 1);
  await queue.offer(makeOrder(0), 0);
  const seconds = isQuick ? 2 : 10;
  progress(`${kind}: idle for ${seconds} s`);
  await sleep(1000);
  await server.resetStats();
  await sleep(seconds * 1000);
  const stats = await server.stats();
  await queue.offer(makeOrder(1), 0);
  await consumed;
  return [
    {
      name: `${kind}: idle, Redis commands per second`,
      value: stats.total / seconds,
      unit: "",
      parts: stats.perMessage(seconds),
    },
  ];
}

function offeringTo(line: Delayline, kind: Kind) {
  return kind === "reliable" ? line.getReliableQueue("orders") : line.getDelayedQueue("orders");
}

/** Consumes so many messages, and calls `onMessage` with the number of each. */
async function consume(
  line: Delayline,
  kind: Kind,
  count: number,
  concurrency: number,
  onMessage: (number: number) => void = () => {},
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    let left = count;
    const handler = ({ number }: Order): void => {
      onMessage(number);
      left--;
      // The last messages are acknowledged by then.
      if (left === 0) subscription.close().then(resolve, reject);
    };
    const subscription =
      kind === "reliable"
        ? line.getReliableQueue<Order>("orders").subscribe(handler, { concurrency })
        : line.getBlockingQueue<Order>("orders").subscribe(handler, { concurrency });
  });
}

/** The goals are those of the reliable queue. */
function goalOf(kind: Kind, goal: Goal): { readonly goal: Goal } | undefined {
  return kind === "reliable" ? { goal } : undefined;
}
