import { Delayline } from "delayline";
import { BenchServer } from "../bench-server.ts";
import type { Figure } from "../figure.ts";
import { makePayload } from "../payload.ts";
import { QUEUE, type PeerWorker } from "../peers/peer.ts";
import { redisson } from "../peers/redisson.ts";
import type { Workload } from "../workload.ts";

/**
 * With `interop: "redisson"` each message that leaves is removed from the insertion-order LIST at once. How fast do
 * many due messages drain, compared with Redisson's algorithm, which searches the LIST for each?
 */
export const exactOrder: Workload = {
  name: "exact",
  title: '100,000 due messages drain, insertion order kept exactly (interop: "redisson")',
  quickTitle: '10,000 due messages drain, insertion order kept exactly (interop: "redisson")',
  async round({ isQuick, progress }) {
    const count = isQuick ? 10_000 : 100_000;
    const figures: Figure[] = [];
    for (const [name, deadlines, goal] of CROWDS) {
      progress(`${name}, by Delayline`);
      const ours = await drain(count, deadlines, offerOurs, moveOurs);
      progress(`${name}, by Redisson's algorithm`);
      const theirs = await drain(count, deadlines, offerTheirs, moveTheirs);
      figures.push(
        { name: `${name}: moved`, value: ours.rate, unit: "/s" },
        { name: `${name}: moved by Redisson's algorithm`, value: theirs.rate, unit: "/s" },
        {
          name: `${name}: ours vs Redisson's`,
          value: ours.rate / theirs.rate,
          unit: "x",
          ...(goal && { goal }),
        },
        { name: `${name}: longest script`, value: ours.longest, unit: "ms" },
        {
          name: `${name}: longest script of Redisson's`,
          value: theirs.longest,
          unit: "ms",
        },
      );
    }
    return figures;
  },
};

/** How long ago message `i` became due, in milliseconds. */
type Age = (i: number) => number;

const CROWDS: readonly (readonly [name: string, age: Age, goal?: Figure["goal"]])[] = [
  ["equal deadlines", () => 0, { atLeast: 10 }],
  ["reverse order", (i) => i, { atLeast: 10 }],
  ["random order", () => Math.floor(Math.random() * 3_600_000)],
];

/** An instant so far in the past that all of them are due. */
const MINUTE = 60_000;

/** Offers messages with these deadlines, in this order. */
type Offer = (url: string, deadlines: readonly number[]) => Promise<void>;

/** Begins to move due messages. */
type Move = (url: string) => Promise<{ close(): Promise<unknown> }>;

async function drain(count: number, age: Age, offer: Offer, move: Move) {
  await using server = await BenchServer.start();
  const { serverTime } = await server.look(redisson.delayedKey);
  const due = Math.floor(serverTime) - MINUTE;
  const deadlines = Array.from({ length: count }, (_, i) => due - age(i));
  await offer(server.url, deadlines);
  const { delayed, serverTime: startedAt } = await server.look(redisson.delayedKey);
  if (delayed !== count) throw new Error(`${delayed} are delayed of ${count}`);
  await server.resetStats();
  const mover = await move(server.url);
  const emptyAt = await server.waitUntilLeft(redisson.delayedKey, 0);
  await mover.close();
  if ((await server.redis.llen(QUEUE)) !== count) throw new Error("not all became ready");
  return {
    rate: (count / (emptyAt - startedAt)) * 1000,
    longest: await server.longestScript(),
  };
}

async function offerOurs(url: string, deadlines: readonly number[]): Promise<void> {
  await using line = new Delayline({ redis: url, transfer: false, interop: "redisson" });
  const queue = line.getDelayedQueue(QUEUE);
  for (let first = 0; first < deadlines.length; first += 1000) {
    const some = deadlines.slice(first, first + 1000);
    await Promise.all(
      some.map((deadline, i) => queue.offerAt(makePayload(first + i), new Date(deadline))),
    );
  }
}

async function moveOurs(url: string): Promise<Delayline> {
  const line = new Delayline({ redis: url, interop: "redisson" });
  line.getDelayedQueue(QUEUE);
  return line;
}

async function offerTheirs(url: string, deadlines: readonly number[]): Promise<void> {
  const producer = await redisson.openProducer(url);
  for (let first = 0; first < deadlines.length; first += 1000) {
    const some = deadlines.slice(first, first + 1000);
    await producer.offerMany(
      some.map((deadline, i) => ({ payload: makePayload(first + i), due: { deadline } })),
    );
  }
  await producer.close();
}

async function moveTheirs(url: string): Promise<PeerWorker> {
  return await redisson.openWorker(url, 0, () => {});
}
