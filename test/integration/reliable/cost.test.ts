import { expect, test } from "vitest";
import type { ReliableQueue } from "../../../src/index.ts";
import { callsOf } from "../../helpers/calls.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

type Calls = Readonly<Record<string, number>>;

/** What a message needs that is offered, moved and taken alone. */
const PLAIN: Calls = {
  evalsha: 2,
  // Offer: the deadline, the insertion order, the message, and whether it is the first that is due.
  time: 2,
  zadd: 1,
  zrank: 1,
  // Move: what is due, and whether the queue is reliable; into the LIST.
  zrange: 1,
  exists: 1,
  rpush: 2,
  zremrangebyrank: 1,
  blpop: 1,
};

/** The same with its acknowledgement. */
const RELIABLE: Calls = {
  evalsha: 3,
  time: 2,
  rpush: 1,
  zadd: 1,
  zrank: 1,
  // Move: what is due, of messages and of retries; into the stream.
  zrange: 2,
  xadd: 1,
  zremrangebyrank: 1,
  xreadgroup: 1,
  // Acknowledge: whether it is in flight, and whether another group needs it.
  xpending: 1,
  "xinfo|groups": 1,
  xack: 1,
  xdel: 1,
};

const KINDS = [
  { kind: "plain", needed: PLAIN, total: 12 },
  { kind: "reliable", needed: RELIABLE, total: 17 },
] as const;

/** A queue on a server of its own, and what happens to its messages. */
async function newQueue(kind: "plain" | "reliable") {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const line = newLine({ redis: server.url });
  const name = uniqueName("cost");
  let handledCount = 0;
  const consumer =
    kind === "plain" ? line.getBlockingQueue<number>(name) : line.getReliableQueue<number>(name);
  consumer.subscribe(() => void handledCount++, { concurrency: 1 });
  const orders =
    kind === "plain" ? line.getDelayedQueue<number>(name) : line.getReliableQueue<number>(name);
  const handled = async (count: number) => {
    await eventually(() => handledCount === count);
    if (kind === "plain") return;
    await eventually(async () => (await callsOf(redis))["xdel"] === count);
  };
  await orders.offer(0, 0);
  await handled(1);
  await redis.config("RESETSTAT");
  handledCount = 0;
  return { orders, handled, redis };
}

/** The commands of so many messages, for each. */
async function perMessage(redis: ReturnType<typeof newRedis>, count: number) {
  const { info: _info, "config|resetstat": _reset, ...calls } = await callsOf(redis);
  const each = Object.entries(calls).map(([name, number]) => [name, number / count] as const);
  return { each, sum: each.reduce((sum, [, number]) => sum + number, 0) };
}

test.each(KINDS)(
  "a message of a $kind queue that comes alone costs $total commands from its offer to its end",
  async ({ kind, needed, total }) => {
    const { orders, handled, redis } = await newQueue(kind);
    const count = 40;
    for (let i = 0; i < count; i++) await orders.offer(i, 300 + i * 20);
    await handled(count);
    const { each, sum } = await perMessage(redis, count);
    // The rest is for claims and heartbeats. On a busy machine several messages may share a script.
    expect(sum).toBeLessThan(total + 1.5);
    expect(sum).toBeGreaterThan(4);
    for (const [name, number] of each) {
      expect.soft(number, name).toBeLessThan((needed[name] ?? 0) + 0.3);
    }
  },
);

test.each(KINDS)(
  "the only message of a $kind queue costs one command more: it wakes the task that moves it",
  async ({ kind, needed, total }) => {
    const { orders, handled, redis } = await newQueue(kind);
    const count = 30;
    for (let i = 1; i <= count; i++) {
      await orders.offer(i, 20);
      await handled(i);
    }
    const { each, sum } = await perMessage(redis, count);
    expect(sum).toBeLessThan(total + 1.9);
    for (const [name, number] of each) {
      const most = name === "publish" ? 1 : (needed[name] ?? 0);
      expect.soft(number, name).toBeLessThan(most + 0.4);
    }
  },
);

test("a message that is offered with once, and comes alone, costs nine commands more than one with a key", async () => {
  const count = 40;
  const sums = [];
  for (const once of [undefined, "handled"] as const) {
    const { orders, handled, redis } = await newQueue("reliable");
    for (let i = 0; i < count; i++) {
      const options = once === undefined ? { key: `k:${i}` } : { key: `k:${i}`, once };
      await (orders as ReliableQueue<number>).offer(i, 300 + i * 20, options);
    }
    await handled(count);
    sums.push((await perMessage(redis, count)).sum);
  }
  const [keyed = 0, withOnce = 0] = sums;
  expect(withOnce - keyed).toBeGreaterThan(7);
  expect(withOnce - keyed).toBeLessThan(10.5);
});
