import type { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import type { DelayedQueue } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { collect } from "../../helpers/collect.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { upTo } from "../../helpers/numbers.ts";

const MINUTE = 60_000;

let redis: Redis;
let name: string;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("delayed");
});

/** Numbers from 0 up to, but excluding, `end`. */
/** A payload that no codec can encode. */
const odd = () => 1;

const isStaying = (i: number) => i % 4 === 0 || i >= 600;

describe.each(["none", "redisson"] as const)("with interop %s", (interop) => {
  /** A queue whose messages nobody moves. */
  let queue: DelayedQueue;

  beforeEach(() => {
    queue = newLine({ transfer: false, interop }).getDelayedQueue(name);
  });

  /** Offers payloads in this order. Each is due before the previous one. */
  async function offer(...payloads: unknown[]) {
    return await queue.offerMany(
      payloads.map((payload, i) => ({ payload, delay: MINUTE + (payloads.length - i) * 1000 })),
    );
  }

  test("has the queue's name", () => {
    expect(queue.name).toBe(name);
  });

  test("an empty queue returns nothing", async () => {
    expect(await queue.size()).toBe(0);
    expect(await queue.isEmpty()).toBe(true);
    expect(await queue.nextDeadline()).toBeUndefined();
    expect(await queue.insertionOrder.peek()).toBeUndefined();
    expect(await queue.insertionOrder.poll()).toBeUndefined();
    expect(await queue.insertionOrder.poll(5)).toEqual([]);
    expect(await queue.insertionOrder.readAll()).toEqual([]);
    expect(await collect(queue.insertionOrder)).toEqual([]);
    expect(await queue.insertionOrder.contains("a")).toBe(false);
    expect(await queue.insertionOrder.remove("a")).toBe(false);
    expect(await queue.insertionOrder.removeAll(["a"])).toBe(0);
    expect(await queue.insertionOrder.retainAll([])).toBe(0);
    expect(await queue.clear()).toBe(0);
    expect(await queue.insertionOrder.pollLastAndOfferFirstTo(uniqueName())).toBeUndefined();
  });

  test("size counts the messages, and isEmpty says whether there are any", async () => {
    await offer("a", "b", "c");
    expect(await queue.size()).toBe(3);
    expect(await queue.isEmpty()).toBe(false);
    await queue.insertionOrder.poll();
    expect(await queue.size()).toBe(2);
  });

  test("nextDeadline is the earliest, not that of the first inserted", async () => {
    const [, , last] = await offer("a", "b", "c");
    expect(await queue.nextDeadline()).toBe(last?.deadline);
    await queue.insertionOrder.remove("c");
    expect(await queue.nextDeadline()).toBeLessThan((last?.deadline as number) + 1001);
    expect(await queue.nextDeadline()).toBeGreaterThan(last?.deadline as number);
  });

  test("peek returns the first inserted, which stays", async () => {
    await offer({ order: 1 }, "b");
    expect(await queue.insertionOrder.peek()).toEqual({ order: 1 });
    expect(await queue.insertionOrder.peek()).toEqual({ order: 1 });
    expect(await queue.size()).toBe(2);
  });

  describe("poll", () => {
    test("takes the first inserted, although it is due last", async () => {
      await offer("a", "b", "c");
      expect(await queue.insertionOrder.poll()).toBe("a");
      expect(await queue.insertionOrder.poll()).toBe("b");
      expect(await queue.insertionOrder.readAll()).toEqual(["c"]);
    });

    test("with a limit returns an array of that many, or of fewer if there are fewer", async () => {
      await offer("a", "b", "c", "d");
      expect(await queue.insertionOrder.poll(1)).toEqual(["a"]);
      expect(await queue.insertionOrder.poll(0)).toEqual([]);
      expect(await queue.insertionOrder.poll(2)).toEqual(["b", "c"]);
      expect(await queue.insertionOrder.poll(100)).toEqual(["d"]);
      expect(await queue.insertionOrder.poll(100)).toEqual([]);
    });

    test("with a limit takes more than one script can", async () => {
      await offer(...upTo(650));
      expect(await queue.insertionOrder.poll(450)).toEqual(upTo(450));
      expect(await queue.insertionOrder.readAll()).toEqual(upTo(650).slice(450));
    });

    test("with a limit takes more bytes than a page holds", async () => {
      const large = upTo(6).map((i) => `${i}`.repeat(400_000));
      await offer(...large);
      expect(await queue.insertionOrder.poll(5)).toEqual(large.slice(0, 5));
      expect(await queue.insertionOrder.poll(5)).toEqual(large.slice(5));
    });

    test.each([-1, 1.5, NaN, Infinity])(
      "refuses a limit of %d, and takes nothing",
      async (limit) => {
        await offer("a");
        await expect(queue.insertionOrder.poll(limit)).rejects.toThrow(RangeError);
        await expect(queue.insertionOrder.poll(limit)).rejects.toThrow(
          `limit must be a whole number between 0 and ${Number.MAX_SAFE_INTEGER}, got ${limit}`,
        );
        await expect(queue.insertionOrder.poll("1" as never)).rejects.toThrow(
          new TypeError("limit must be a whole number, got string; convert it with Number"),
        );
        expect(await queue.size()).toBe(1);
      },
    );

    test("skips messages that have gone", async () => {
      await offer("a", "b", "c", "d");
      await queue.insertionOrder.removeAll(["a", "c"]);
      expect(await queue.insertionOrder.poll()).toBe("b");
      expect(await queue.insertionOrder.poll(9)).toEqual(["d"]);
    });

    test("by many at once returns each message to one", async () => {
      await offer(...upTo(60));
      const polled = await Promise.all([
        ...upTo(20).map(() => queue.insertionOrder.poll()),
        ...upTo(5).map(() => queue.insertionOrder.poll(10)),
      ]);
      expect(
        polled
          .flat()
          .filter((payload) => payload !== undefined)
          .toSorted((a, b) => Number(a) - Number(b)),
      ).toEqual(upTo(60));
    });
  });

  describe("reading all", () => {
    test("returns payloads in insertion order, not in the order of deadlines", async () => {
      await offer("a", "b", "c");
      expect(await queue.insertionOrder.readAll()).toEqual(["a", "b", "c"]);
      expect(await queue.size()).toBe(3);
    });

    test("returns equal payloads as often as they are stored", async () => {
      await offer("a", "a", "b", "a");
      expect(await queue.insertionOrder.readAll()).toEqual(["a", "a", "b", "a"]);
    });

    test("covers many pages", async () => {
      await offer(...upTo(1050));
      expect(await queue.insertionOrder.readAll()).toEqual(upTo(1050));
      const large = upTo(6).map((i) => `${i}`.repeat(400_000));
      await queue.clear();
      await offer(...large);
      expect(await queue.insertionOrder.readAll()).toEqual(large);
    });
  });

  describe("iterating", () => {
    test("yields each message's id, deadline and payload", async () => {
      const offered = await offer("a", "b");
      expect(await collect(queue.insertionOrder)).toEqual([
        { id: offered[0]?.id, deadline: offered[0]?.deadline, payload: "a" },
        { id: offered[1]?.id, deadline: offered[1]?.deadline, payload: "b" },
      ]);
    });

    test("can be left early, and started again", async () => {
      await offer(...upTo(500));
      for (let i = 0; i < 2; i++) {
        const seen: unknown[] = [];
        for await (const { payload } of queue.insertionOrder) {
          seen.push(payload);
          if (seen.length === 3) break;
        }
        expect(seen).toEqual([0, 1, 2]);
      }
    });

    test.each([
      ["from the front", (i: number) => i < 400],
      ["from the back", (i: number) => i >= 600],
      ["every second", (i: number) => i % 2 === 0],
      ["all but one", (i: number) => i !== 700],
    ])("misses no message that stays while others are removed %s", async (_, isRemoved) => {
      await offer(...upTo(1000));
      const seen: unknown[] = [];
      for await (const { payload } of queue.insertionOrder) {
        if (seen.push(payload) === 250)
          await queue.insertionOrder.removeAll(upTo(1000).filter(isRemoved));
      }
      const staying = upTo(1000).filter((i) => !isRemoved(i));
      expect(seen).toEqual(expect.arrayContaining(staying));
      // A removed message may have been read before, but comes only once.
      expect(new Set(seen).size).toBe(seen.length);
    });

    test("misses no message that stays while others are polled", async () => {
      await offer(...upTo(1000));
      const seen = new Set<unknown>();
      const polled: unknown[] = [];
      for await (const { payload } of queue.insertionOrder) {
        seen.add(payload);
        if (seen.size % 100 === 0) polled.push(...(await queue.insertionOrder.poll(150)));
      }
      expect([...seen]).toEqual(expect.arrayContaining(await queue.insertionOrder.readAll()));
      expect(polled).toEqual(upTo(polled.length));
    });

    test("ends when everything is removed meanwhile", async () => {
      await offer(...upTo(500));
      const seen: unknown[] = [];
      for await (const { payload } of queue.insertionOrder) {
        if (seen.push(payload) === 1) await queue.clear();
      }
      expect(seen.length).toBeLessThanOrEqual(200);
    });
  });

  describe("contains", () => {
    test("compares payloads by value, over many pages", async () => {
      await offer(...upTo(450), { order: 7, lines: [1, 2] });
      expect(await queue.insertionOrder.contains({ order: 7, lines: [1, 2] })).toBe(true);
      expect(await queue.insertionOrder.contains({ order: 7, lines: [2, 1] })).toBe(false);
      expect(await queue.insertionOrder.contains(449)).toBe(true);
      expect(await queue.insertionOrder.contains("449")).toBe(false);
    });

    test("no longer finds removed messages", async () => {
      await offer("a", "b");
      await queue.insertionOrder.poll();
      expect(await queue.insertionOrder.contains("a")).toBe(false);
      expect(await queue.insertionOrder.contains("b")).toBe(true);
    });
  });

  describe("remove", () => {
    test("removes the first inserted of equal payloads, once per call", async () => {
      const [, first, , second] = await offer("x", "a", "b", "a", "c");
      expect(await queue.insertionOrder.remove("a")).toBe(true);
      expect((await collect(queue.insertionOrder)).map(({ id }) => id)).not.toContain(first?.id);
      expect((await collect(queue.insertionOrder)).map(({ id }) => id)).toContain(second?.id);
      expect(await queue.insertionOrder.contains("a")).toBe(true);
      expect(await queue.insertionOrder.remove("a")).toBe(true);
      expect(await queue.insertionOrder.contains("a")).toBe(false);
      expect(await queue.insertionOrder.remove("a")).toBe(false);
      expect(await queue.insertionOrder.readAll()).toEqual(["x", "b", "c"]);
    });

    test("many calls at once remove as many as there are", async () => {
      await offer("a", "b", "a", "a");
      const removed = await Promise.all(upTo(5).map(() => queue.insertionOrder.remove("a")));
      expect(removed.filter(Boolean)).toHaveLength(3);
      expect(await queue.insertionOrder.readAll()).toEqual(["b"]);
    });

    test("finds a message far behind, and one that was offered again", async () => {
      await offer(...upTo(450));
      expect(await queue.insertionOrder.remove(449)).toBe(true);
      await queue.offer(449, MINUTE);
      expect(await queue.insertionOrder.remove(449)).toBe(true);
      expect(await queue.size()).toBe(449);
    });
  });

  test("removeAll removes every message with one of the payloads, and counts them", async () => {
    await offer("a", "b", "a", "c", "d", "b");
    expect(await queue.insertionOrder.removeAll(new Set(["a", "b", "x"]))).toBe(4);
    expect(await queue.insertionOrder.readAll()).toEqual(["c", "d"]);
    expect(await queue.insertionOrder.removeAll([])).toBe(0);
    expect(await queue.insertionOrder.removeAll(["a"])).toBe(0);
    expect(await queue.size()).toBe(2);
  });

  test("removeAll removes more than one script can", async () => {
    await offer(...upTo(1000));
    expect(await queue.insertionOrder.removeAll(upTo(1000).filter((i) => i % 3 !== 0))).toBe(666);
    expect(await queue.insertionOrder.readAll()).toEqual(upTo(1000).filter((i) => i % 3 === 0));
  });

  test("retainAll removes all others, and counts them", async () => {
    await offer("a", "b", "a", "c");
    expect(await queue.insertionOrder.retainAll(["a", "c", "x"])).toBe(1);
    expect(await queue.insertionOrder.readAll()).toEqual(["a", "a", "c"]);
    expect(await queue.insertionOrder.retainAll([])).toBe(3);
    expect(await queue.size()).toBe(0);
  });

  test("removeAll and retainAll take more payloads than one call to Redis could", async () => {
    await offer("a", ...upTo(500), "b");
    expect(await queue.insertionOrder.retainAll(["b", ...upTo(200_000)])).toBe(1);
    expect(await queue.insertionOrder.removeAll(upTo(200_000))).toBe(500);
    expect(await queue.insertionOrder.readAll()).toEqual(["b"]);
  });

  test("clear removes and counts all delayed messages; ready messages stay", async () => {
    await redis.rpush(name, "ready");
    await offer(...upTo(120));
    expect(await queue.clear()).toBe(120);
    expect(await queue.isEmpty()).toBe(true);
    expect(await queue.clear()).toBe(0);
    expect(await redis.llen(name)).toBe(1);
    await offer("after");
    expect(await queue.insertionOrder.readAll()).toEqual(["after"]);
  });

  test("a payload that cannot be encoded is refused by searches, and nothing is removed", async () => {
    await offer("a");
    for (const search of [
      queue.insertionOrder.contains(odd),
      queue.insertionOrder.remove(odd),
      queue.insertionOrder.removeAll(["a", odd]),
      queue.insertionOrder.retainAll([odd]),
    ]) {
      await expect(search).rejects.toMatchObject({ code: "ENCODE" });
    }
    expect(await queue.size()).toBe(1);
  });

  describe("pollLastAndOfferFirstTo", () => {
    test("moves the last inserted, although it is not due, to the head of another queue", async () => {
      const line = newLine({ transfer: false });
      const other = line.getBlockingQueue(uniqueName("other"));
      await other.put("was there before");
      await offer("a", "b", { order: 3 });
      expect(await queue.insertionOrder.pollLastAndOfferFirstTo(other.name)).toEqual({ order: 3 });
      expect(await queue.insertionOrder.pollLastAndOfferFirstTo(other.name)).toBe("b");
      expect(await other.readAll()).toEqual(["b", { order: 3 }, "was there before"]);
      expect(await queue.insertionOrder.readAll()).toEqual(["a"]);
    });

    test("moves to the queue's own ready messages just as well", async () => {
      await offer("a", "b");
      expect(await queue.insertionOrder.pollLastAndOfferFirstTo(name)).toBe("b");
      expect(await newLine().getBlockingQueue(name).take()).toBe("b");
    });

    test("refuses names that no queue can have, and moves nothing", async () => {
      await offer("a");
      const { ready, ...keys } = queueKeys(name);
      for (const bad of ["", "a}b", ...Object.values(keys)]) {
        await expect(queue.insertionOrder.pollLastAndOfferFirstTo(bad)).rejects.toThrow(
          /^queue name must/,
        );
      }
      expect(await queue.insertionOrder.readAll()).toEqual(["a"]);
      expect(await queue.insertionOrder.pollLastAndOfferFirstTo(ready)).toBe("a");
    });

    test("skips messages that have gone", async () => {
      await offer(...upTo(300));
      await queue.insertionOrder.removeAll(upTo(300).slice(1));
      expect(await queue.insertionOrder.pollLastAndOfferFirstTo(name)).toBe(0);
      expect(await queue.insertionOrder.pollLastAndOfferFirstTo(name)).toBeUndefined();
      expect(await redis.llen(name)).toBe(1);
    });

    test("refuses a name that no queue can have, and moves nothing", async () => {
      await offer("a");
      await expect(queue.insertionOrder.pollLastAndOfferFirstTo("a}b")).rejects.toThrow(TypeError);
      await expect(queue.insertionOrder.pollLastAndOfferFirstTo("")).rejects.toThrow(
        "must not be empty",
      );
      expect(await queue.size()).toBe(1);
    });

    test("moves nothing if the other key is of another type", async () => {
      const other = uniqueName("other");
      await redis.set(other, "no LIST");
      await offer("a");
      await expect(queue.insertionOrder.pollLastAndOfferFirstTo(other)).rejects.toMatchObject({
        code: "REDIS",
        reply: "WRONGTYPE",
      });
      expect(await queue.insertionOrder.readAll()).toEqual(["a"]);
      expect(await queue.insertionOrder.poll()).toBe("a");
    });
  });

  describe("a removed message is never delivered:", () => {
    const ways: [string, (delayed: DelayedQueue<string>) => Promise<unknown>][] = [
      ["poll", (delayed) => delayed.insertionOrder.poll()],
      ["poll with a limit", (delayed) => delayed.insertionOrder.poll(1)],
      ["remove", (delayed) => delayed.insertionOrder.remove("dropped")],
      ["removeAll", (delayed) => delayed.insertionOrder.removeAll(["dropped"])],
      ["retainAll", (delayed) => delayed.insertionOrder.retainAll(["kept"])],
    ];
    /** Overdue, but nobody has moved it yet. */
    const due = new Date(1000);

    test.each(ways)("%s", async (_, dropDelayed) => {
      const delayed = queue as DelayedQueue<string>;
      await delayed.offerAt("dropped", due);
      await delayed.offerAt("kept", due);
      expect(await dropDelayed(delayed)).toBeTruthy();

      // Due at the same time, but offered later: the removed one would come first.
      const ready = newLine({ interop }).getBlockingQueue<string>(name);
      expect(await ready.take()).toBe("kept");
      expect(await ready.size()).toBe(0);
      expect(await delayed.size()).toBe(0);
    });

    test("clear", async () => {
      await Promise.all(upTo(150).map((i) => queue.offerAt(`dropped ${i}`, due)));
      expect(await queue.clear()).toBe(150);
      await queue.offerAt("kept", due);
      const ready = newLine({ interop }).getBlockingQueue<string>(name);
      expect(await ready.take()).toBe("kept");
      expect(await ready.size()).toBe(0);
    });
  });

  test("iterating misses no message that stays while others are moved", async () => {
    await Promise.all(
      upTo(1000).map((i) =>
        isStaying(i) ? queue.offer(i, MINUTE) : queue.offerAt(i, new Date(1000 + i)),
      ),
    );
    const staying = upTo(1000).filter(isStaying);
    const seen: unknown[] = [];
    for await (const { payload } of queue.insertionOrder) {
      if (seen.push(payload) === 1) {
        newLine({ interop }).getBlockingQueue(name);
        await eventually(async () => (await queue.size()) === staying.length);
      }
    }
    expect(seen).toEqual(expect.arrayContaining(staying));
    // The first page was read before, and may come twice. The other pages skipped messages that had gone.
    expect(seen.length).toBeLessThanOrEqual(staying.length + 200);
  });

  test("a message is either polled or delivered, never both, never neither", async () => {
    const line = newLine({ interop });
    const delayed = line.getDelayedQueue<number>(name);
    await delayed.offerMany(upTo(500).map((i) => ({ payload: i, delay: (i * 7) % 100 })));
    const polled: number[] = [];
    while (!(await delayed.isEmpty())) polled.push(...(await delayed.insertionOrder.poll(3)));
    const delivered = await line.getBlockingQueue<number>(name).drain();
    expect([...polled, ...delivered].toSorted((a, b) => a - b)).toEqual(upTo(500));
  });
});

test("two handles see one queue", async () => {
  const line = newLine({ transfer: false });
  const [one, two] = [line.getDelayedQueue(name), line.getDelayedQueue(name)];
  await one.offer("a", MINUTE);
  expect(await two.insertionOrder.readAll()).toEqual(["a"]);
  expect(await two.insertionOrder.remove("a")).toBe(true);
  expect(await one.isEmpty()).toBe(true);
});

test("queues with similar names are left alone", async () => {
  const line = newLine({ transfer: false });
  const others = [`${name}s`, `x${name}`, `{${name}}:x`].map((other) =>
    line.getDelayedQueue(other),
  );
  for (const other of others) await other.offer("x", MINUTE);
  const queue = line.getDelayedQueue(name);
  await queue.offer("a", MINUTE);
  expect(await queue.clear()).toBe(1);
  for (const other of others) expect(await other.size()).toBe(1);
  // The same keys for delayed messages; only the ready messages would be separate.
  expect(() => line.getDelayedQueue(`{${name}}`)).toThrow("braces alone");
});
