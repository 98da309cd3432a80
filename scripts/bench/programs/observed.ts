import { metrics, trace } from "@opentelemetry/api";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { setTimeout as sleep } from "node:timers/promises";
import type { Delayline } from "delayline";
import { instrument } from "delayline/opentelemetry";
import { makeOrder, type Order } from "../order.ts";
import { serve } from "./serve.ts";

/** One process that works with or without an observer. */
let line: Delayline;
let name: string;

/** The cost of some messages to the process. */
export interface Effort {
  /** Milliseconds. */
  readonly duration: number;
  /** Milliseconds of processor time, all threads together. */
  readonly cpu: number;
}

async function effortOf(work: () => Promise<unknown>): Promise<Effort> {
  const before = process.cpuUsage();
  const startedAt = performance.now();
  await work();
  const duration = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(before);
  return { duration, cpu: (user + system) / 1000 };
}

/** Drops the exported data. */
const exporter = {
  export: (_: unknown, done: (result: { code: number }) => void) => done({ code: 0 }),
  shutdown: () => Promise.resolve(),
  forceFlush: () => Promise.resolve(),
};

/** The SDK, set up as in production. */
function startSdk(): void {
  const processor = new BatchSpanProcessor(exporter);
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [processor] }));
  const reader = new PeriodicExportingMetricReader({ exporter });
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
}

/** Runs `work` for each number below `count` in `loops` concurrent loops. */
async function inLoops(count: number, loops: number, work: (i: number) => Promise<unknown>) {
  let next = 0;
  const workOn = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: loops }, workOn));
}

const methods = {
  /** `library` is the library of an older build; `isObserved` switches OpenTelemetry on. */
  async open(
    url: string,
    queue: string,
    library: string | undefined,
    isObserved: boolean,
  ): Promise<void> {
    const { Delayline: Client } = (await import(
      library ?? "delayline"
    )) as typeof import("delayline");
    line = new Client({ redis: url });
    name = queue;
    if (!isObserved) return;
    startSdk();
    instrument();
  },

  async offer(kind: "plain" | "reliable", count: number, inFlight: number): Promise<Effort> {
    const queue =
      kind === "plain"
        ? line.getDelayedQueue<Order>(name)
        : line.getReliableQueue<Order>(`reliable ${name}`);
    const effort = await effortOf(() =>
      inLoops(count, inFlight, (i) => queue.offer(makeOrder(i), 3_600_000 + i)),
    );
    await queue.clear();
    return effort;
  },

  async take(count: number, loops: number): Promise<Effort> {
    const queue = line.getBlockingQueue<Order>(name);
    await queue.putMany(Array.from({ length: count }, (_, i) => makeOrder(i)));
    return await effortOf(() => inLoops(count, loops, () => queue.take()));
  },

  /** Handles messages of a reliable queue. */
  async handle(count: number, concurrency: number): Promise<Effort> {
    const queue = line.getReliableQueue<Order>(`handled ${name}`);
    await queue.offerMany(
      Array.from({ length: count }, (_, i) => ({ payload: makeOrder(i), delay: 0 })),
    );
    while ((await queue.size()) > 0) await sleep(20);
    return await effortOf(async () => {
      let left = count;
      await new Promise<void>((resolve) => {
        const subscription = queue.subscribe(
          () => {
            left--;
            if (left === 0) void subscription.close().then(resolve);
          },
          { concurrency },
        );
      });
    });
  },

  async close(): Promise<void> {
    // Let the reply to the measured call go out first.
    await sleep(0);
    await line.close();
  },
};

/** The methods of the program. */
export type ObservedMethods = typeof methods;

serve(methods);
