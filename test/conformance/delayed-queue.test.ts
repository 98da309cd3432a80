import { beforeEach, expect } from "vitest";
import type { DelayedQueue, Delayline } from "../../src/index.ts";
import { newLine } from "../helpers/delayline.ts";
import { collect } from "../helpers/collect.ts";
import { eventually } from "../helpers/eventually.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";
import { conformanceWith } from "./conformance.ts";
import { serverTime } from "../helpers/server-time.ts";

/*
 * Redisson's tests of its own RDelayedQueue, applied to ours: RedissonDelayedQueueTest as of Redisson 4.3.1 (later
 * versions have no such suite). The cases are written anew; only names and meaning are Redisson's.
 *
 * Where a case checks deliveries, nothing moves until the case says so, and the message with the last deadline shows
 * that all others must have arrived.
 */

const MINUTE = 60_000;

/** A client that moves nothing fills `queue`; `consume` starts one that moves. */
interface Stage {
  readonly name: string;
  readonly queue: DelayedQueue;
  readonly line: Delayline;
  /** A client that moves. */
  readonly newMover: () => Delayline;
  /** Takes until `last` has come. Returns all messages, in order. */
  readonly consumeUntil: (last: unknown) => Promise<unknown[]>;
}

const conformance = conformanceWith("RedissonDelayedQueueTest", 15);
let stages: Stage[];

beforeEach(() => {
  stages = (["none", "redisson"] as const).map((interop) => {
    const name = uniqueName(`conformance-${interop}`);
    const line = newLine({ transfer: false, interop });
    const newMover = () => newLine({ interop });
    return {
      name,
      line,
      newMover,
      queue: line.getDelayedQueue(name),
      consumeUntil: async (last) => {
        const ready = newMover().getBlockingQueue(name);
        const taken: unknown[] = [];
        do taken.push(await ready.take());
        while (taken.at(-1) !== last);
        return taken;
      },
    };
  });
});

/** Every case runs with both forms of the insertion order. */
function onBoth(run: (stage: Stage) => Promise<void>): () => Promise<void> {
  return async () => {
    for (const stage of stages) await run(stage);
  };
}

/** Two messages of one case have the same payload. */
function payloadOf(n: number): number {
  return n === 5 ? 2 : n;
}

/** Three messages whose insertion order is the reverse of their deadlines. */
async function offerThree({ queue }: Stage): Promise<void> {
  for (const n of [3, 2, 1]) await queue.offer(n, n * MINUTE);
}

conformance(
  "testDestroy",
  "better",
  "A client that is closed moves nothing any more, as one that was destroyed; but a consumer needs no delayed queue: whoever takes also moves. In Redisson the message waits until somebody calls `getDelayedQueue`.",
  onBoth(async ({ name, newMover }) => {
    const redis = newRedis();
    const line = newMover();
    const queue = line.getDelayedQueue(name);
    await queue.offer("first", 0);
    await eventually(async () => (await redis.llen(name)) === 1);
    // Its transfer task runs. It must not move messages that fall due after it was closed.
    const { deadline } = await queue.offer("second", 300);
    await line.close();
    await eventually(async () => (await serverTime(redis)) > deadline + 200);
    expect(await redis.llen(name)).toBe(1);

    const ready = newMover().getBlockingQueue(name);
    expect([await ready.take(), await ready.take()]).toEqual(["first", "second"]);
  }),
);

conformance(
  "testRemove",
  "same",
  "A payload that was removed is not delivered.",
  onBoth(async ({ queue, consumeUntil }) => {
    await queue.offer("a", 1);
    await queue.offer("b", 2);
    expect(await queue.insertionOrder.contains("a")).toBe(true);
    expect(await queue.insertionOrder.remove("a")).toBe(true);
    expect(await queue.insertionOrder.contains("a")).toBe(false);
    expect(await consumeUntil("b")).toEqual(["b"]);
  }),
);

conformance(
  "testRemoveAll",
  "same",
  "Payloads that were removed are not delivered. Returns how many.",
  onBoth(async ({ queue, consumeUntil }) => {
    await queue.offer("a", 1);
    await queue.offer("b", 2);
    expect(await queue.insertionOrder.removeAll(["a", "b"])).toBe(2);
    expect([
      await queue.insertionOrder.contains("a"),
      await queue.insertionOrder.contains("b"),
    ]).toEqual([false, false]);
    await queue.offer("last", 10);
    expect(await consumeUntil("last")).toEqual(["last"]);
  }),
);

conformance(
  "testDealyedQueueRetainAll",
  "better",
  "What is not retained is not delivered. Returns how many were removed. Redisson takes it out of the insertion order only, and delivers it all the same.",
  onBoth(async ({ queue, consumeUntil }) => {
    for (const n of [3, 1, 2]) await queue.offerAt(n, new Date(1000 * n));
    expect(await queue.insertionOrder.retainAll([1, 2, 3])).toBe(0);
    expect(await queue.insertionOrder.retainAll([3, 1, 2, 8])).toBe(0);
    expect(await queue.insertionOrder.readAll()).toEqual([3, 1, 2]);
    expect(await queue.insertionOrder.retainAll([1, 3])).toBe(1);
    expect(await queue.insertionOrder.readAll()).toEqual([3, 1]);
    expect(await queue.size()).toBe(2);
    expect(await consumeUntil(3)).toEqual([1, 3]);
  }),
);

conformance(
  "testDealyedQueueReadAll",
  "same",
  "Reads in the order of insertion, not of the deadlines.",
  onBoth(async (stage) => {
    await offerThree(stage);
    expect(await stage.queue.insertionOrder.readAll()).toEqual([3, 2, 1]);
  }),
);

conformance(
  "testDealyedQueueRemoveAll",
  "same",
  "Removes those that are there; the others do not matter. Returns how many.",
  onBoth(async (stage) => {
    const { queue } = stage;
    await offerThree(stage);
    expect(await queue.insertionOrder.removeAll([1, 2])).toBe(2);
    expect(await queue.insertionOrder.readAll()).toEqual([3]);
    expect(await queue.insertionOrder.removeAll([3, 4])).toBe(1);
    expect(await queue.isEmpty()).toBe(true);
  }),
);

conformance(
  "testDealyedQueueContainsAll",
  "other means",
  "`contains` for each, or one `readAll`. By key: `has`, in O(log N).",
  onBoth(async (stage) => {
    await offerThree(stage);
    const contains = (payloads: number[]) =>
      Promise.all(payloads.map((payload) => stage.queue.insertionOrder.contains(payload)));
    expect(await contains([1, 2, 1])).toEqual([true, true, true]);
    expect(await contains([1, 2, 4])).toEqual([true, true, false]);
  }),
);

conformance(
  "testDealyedQueueContains",
  "same",
  "Compares encoded bytes.",
  onBoth(async (stage) => {
    await offerThree(stage);
    expect(await stage.queue.insertionOrder.contains(1)).toBe(true);
    expect(await stage.queue.insertionOrder.contains(4)).toBe(false);
  }),
);

conformance(
  "testDealyedQueueRemove",
  "same",
  "Removes one; the others keep their order.",
  onBoth(async (stage) => {
    const { queue } = stage;
    await offerThree(stage);
    expect(await queue.insertionOrder.remove(4)).toBe(false);
    expect(await queue.insertionOrder.remove(3)).toBe(true);
    expect(await queue.insertionOrder.readAll()).toEqual([2, 1]);
  }),
);

conformance(
  "testDealyedQueuePeek",
  "same",
  "Shows what was inserted first, which need not be due first.",
  onBoth(async (stage) => {
    await offerThree(stage);
    expect(await stage.queue.insertionOrder.peek()).toBe(3);
    expect(await stage.queue.size()).toBe(3);
  }),
);

conformance(
  "testDealyedQueuePollLastAndOfferFirstTo",
  "same",
  "What was inserted last goes to the head of another queue's ready messages.",
  onBoth(async (stage) => {
    await offerThree(stage);
    const other = stage.line.getBlockingQueue(uniqueName("other"));
    await other.putMany([6, 5, 4]);
    expect(await stage.queue.insertionOrder.pollLastAndOfferFirstTo(other.name)).toBe(1);
    expect(await other.readAll()).toEqual([1, 6, 5, 4]);
    expect(await stage.queue.insertionOrder.readAll()).toEqual([3, 2]);
  }),
);

conformance(
  "testDelayedQueueOrder",
  "same",
  "`poll` takes out in the order of insertion, and nothing of that is delivered.",
  onBoth(async ({ name, queue, line }) => {
    for (const n of [1, 4, 3, 2]) await queue.offer(n, n * MINUTE);
    expect((await collect(queue.insertionOrder)).map(({ payload }) => payload)).toEqual([
      1, 4, 3, 2,
    ]);
    for (const n of [1, 4, 3, 2]) expect(await queue.insertionOrder.poll()).toBe(n);
    expect(await queue.insertionOrder.poll()).toBeUndefined();
    expect(await line.getBlockingQueue(name).poll()).toBeUndefined();
  }),
);

conformance(
  "testPollLimited",
  "same",
  "`poll(limit)` returns as many as there are, at most `limit`; none of these is delivered.",
  onBoth(async ({ queue, consumeUntil }) => {
    for (const n of [1, 2, 3, 4]) await queue.offer(n, n);
    expect(await queue.insertionOrder.poll(3)).toEqual([1, 2, 3]);
    expect(await queue.insertionOrder.poll(2)).toEqual([4]);
    expect(await queue.insertionOrder.poll(2)).toEqual([]);
    await queue.offer("last", 10);
    expect(await consumeUntil("last")).toEqual(["last"]);
  }),
);

conformance(
  "testPoll",
  "same",
  "What `poll` took out, due or not, is not delivered.",
  onBoth(async ({ queue, consumeUntil }) => {
    for (const n of [1, 2, 3, 4]) await queue.offer(n, n);
    for (const n of [1, 2, 3, 4]) expect(await queue.insertionOrder.poll()).toBe(n);
    await queue.offer("last", 10);
    expect(await consumeUntil("last")).toEqual(["last"]);
  }),
);

conformance(
  "testDealyedQueue",
  "same",
  "Delivered in the order of the deadlines, never early; equal payloads are messages of their own; the insertion order of the rest stays.",
  onBoth(async ({ name, queue, newMover }) => {
    const redis = newRedis();
    const offered = [1, 5, 4, 2, 3];
    const deadlines = new Map<number, number>();
    for (const n of offered) {
      deadlines.set(n, (await queue.offer(payloadOf(n), 100 * n)).deadline);
    }
    expect(await queue.insertionOrder.readAll()).toEqual(offered.map(payloadOf));

    const ready = newMover().getBlockingQueue(name);
    let rest = offered;
    for (const n of [1, 2, 3, 4, 5]) {
      expect(await ready.take()).toBe(payloadOf(n));
      expect(await serverTime(redis)).toBeGreaterThanOrEqual(deadlines.get(n) ?? Infinity);
      rest = rest.filter((other) => other !== n);
      // On a slow machine more messages may be due by then, in the order of their deadlines.
      const left = await queue.insertionOrder.readAll();
      expect(left).toEqual(rest.filter((other) => other > 5 - left.length).map(payloadOf));
    }
    expect(await queue.isEmpty()).toBe(true);
  }),
);
