import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { Delayline } from "delayline";
import { Cluster } from "ioredis";
import { makeOrder, type Order } from "../order.ts";
import type { Address } from "../site.ts";
import { serve } from "./serve.ts";

/** A queue, and how a process uses it. */
export interface MemberPlan {
  readonly address: Address;
  readonly kind: "plain" | "reliable";
  /** Undefined for an ordinary queue. */
  readonly partitions?: number | undefined;
  /** Whether each partition has one consumer at a time. Defaults to false. */
  readonly isExclusive?: boolean;
  /** The file of another build of the library. Defaults to this build. */
  readonly library?: string | undefined;
}

/** The messages taken since the last question. */
export interface Handled {
  readonly count: number;
  /** Lateness of each message, in milliseconds. */
  readonly lateness: readonly number[];
}

interface Message extends Order {
  readonly dueAt: number;
}

/** A process that offers to a queue, or takes from it as several clients with their own connections. */
let lines: Delayline[] = [];
let clusters: Cluster[] = [];
let plan: MemberPlan;
let lateness: number[] = [];

async function openLine(): Promise<Delayline> {
  const { address, library } = plan;
  const from = (await import(library ?? "delayline")) as typeof import("delayline");
  const nodes = address.ports.map((port) => ({ host: "127.0.0.1", port }));
  let redis: Cluster | string = `redis://127.0.0.1:${address.ports[0]}`;
  if (address.isCluster) clusters.push((redis = new Cluster(nodes)));
  const line = new from.Delayline({ redis });
  lines.push(line);
  return line;
}

function offersOf(line: Delayline) {
  const { kind, partitions } = plan;
  const options = { ...(partitions !== undefined && { partitions }), transfer: false };
  return kind === "plain"
    ? line.getDelayedQueue<Message>("orders", options)
    : line.getReliableQueue<Message>("orders", options);
}

const messageOf = (number: number, delay: number): Message => ({
  ...makeOrder(number),
  dueAt: Date.now() + delay,
});

const methods = {
  open(itsPlan: MemberPlan): void {
    plan = itsPlan;
  },

  /**
   * Takes and moves messages as `clients` clients with `concurrency` handlers each; an exclusive one has one per
   * partition.
   */
  async consume(clients: number, concurrency: number): Promise<void> {
    const { kind, partitions, isExclusive = false } = plan;
    const options = { ...(partitions !== undefined && { partitions }) };
    const handlers = isExclusive ? {} : { concurrency };
    for (let i = 0; i < clients; i++) {
      const line = await openLine();
      const handle = ({ dueAt }: Message) => void lateness.push(Date.now() - dueAt);
      if (kind === "reliable") {
        const queue = { ...options, exclusive: isExclusive };
        line.getReliableQueue<Message>("orders", queue).subscribe(handle, handlers);
      } else {
        line.getDelayedQueue("orders", partitions === undefined ? {} : { partitions });
        line.getBlockingQueue<Message>("orders", options).subscribe(handle, handlers);
      }
    }
  },

  /** Offers at a steady pace, each message alone, with delays from `minDelay` to `maxDelay` milliseconds. */
  async offerSteadily(
    count: number,
    perSecond: number,
    minDelay: number,
    maxDelay: number,
  ): Promise<void> {
    const queue = offersOf(lines[0] ?? (await openLine()));
    const startedAt = performance.now();
    const offers: Promise<unknown>[] = [];
    for (let number = 0; number < count; number++) {
      const wait = startedAt + (number / perSecond) * 1000 - performance.now();
      if (wait > 1) await sleep(wait);
      const delay = minDelay + Math.floor(Math.random() * (maxDelay - minDelay + 1));
      offers.push(queue.offer(messageOf(number, delay), delay));
      // Offers of one turn would share a script, and more of them on a slower machine.
      await setImmediate();
    }
    await Promise.all(offers);
  },

  /** Offers 1,000 messages at a time, one call after the other, all with delays from `minDelay` to `maxDelay`. */
  async offerInBulk(count: number, minDelay: number, maxDelay: number): Promise<void> {
    const queue = offersOf(lines[0] ?? (await openLine()));
    for (let first = 0; first < count; first += 1000) {
      await queue.offerMany(
        Array.from({ length: Math.min(1000, count - first) }, (_, i) => {
          const delay = minDelay + Math.floor(Math.random() * (maxDelay - minDelay + 1));
          return { payload: messageOf(first + i, delay), delay };
        }),
      );
    }
  },

  /** Changes the number of partitions. Returns how many messages moved, and the duration in milliseconds. */
  async setPartitions(count: number): Promise<{ moved: number; duration: number }> {
    const line = lines[0] ?? (await openLine());
    let moved = 0;
    const startedAt = performance.now();
    await line.setPartitions("orders", count, {
      onProgress: (progress) => (moved = progress.moved),
    });
    return { moved, duration: performance.now() - startedAt };
  },

  handledCount: (): number => lateness.length,

  handled(): Handled {
    const handled = { count: lateness.length, lateness };
    lateness = [];
    return handled;
  },

  async close(): Promise<void> {
    await Promise.all(lines.map((line) => line.close()));
    for (const cluster of clusters) cluster.disconnect();
    lines = [];
    clusters = [];
  },
};

/** The methods of the program. */
export type MemberMethods = typeof methods;

serve(methods);
