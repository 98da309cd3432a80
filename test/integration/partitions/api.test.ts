import { beforeEach, describe, expect, test } from "vitest";
import {
  ClosedError,
  DecodeError,
  HandlerError,
  type BlockingQueue,
  type Codec,
  type DelayedQueue,
  type DelaylineOptions,
  type QueueOptions,
  type ReliableQueueOptions,
} from "../../../src/index.ts";
import { bucketOfKey } from "../../../src/queue/message/bucket.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { bucketOf, parseMessageId } from "../../../src/queue/message/message.ts";
import { PartitionNames, tableOf } from "../../../src/partitions/ring/ring.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";
import { upTo, ascending } from "../../helpers/numbers.ts";

const LONG = 3_600_000;
let name: string;

beforeEach(() => {
  name = uniqueName("partitions");
});

/** A partition key whose messages are in this one of four partitions. */
function keyIn(partition: number): string {
  return upTo(1000)
    .map((i) => `tenant-${i}`)
    .find((key) => tableOf(4)[bucketOfKey(key)] === partition) as string;
}

/** Partition keys, each of which points to another one of four partitions. */
const keys = upTo(4).map(keyIn);

/** Offers payloads one after another, across all partitions. Each is due before the previous one. */
async function spread(queue: DelayedQueue, count: number): Promise<void> {
  for (const i of upTo(count)) {
    await queue.offer(`m${i}`, LONG - i * 1000, { partitionKey: keys[i % 4] as string });
  }
}

describe.each([1, 4])("a queue in %i partition(s)", (partitions) => {
  /** Handles of the queue, whose messages nobody moves. */
  function open<T = string>(options: QueueOptions<T> = {}, line = newLine({ transfer: false })) {
    const queue = line.getDelayedQueue<T>(name, { partitions, ...options });
    return { line, queue, ready: line.getBlockingQueue<T>(name, { partitions, ...options }) };
  }

  function openReliable<T = string>(options: ReliableQueueOptions<T> = {}, line = newLine()) {
    return line.getReliableQueue<T>(name, { partitions, ...options });
  }

  test("returns nothing while it is empty", async () => {
    const { queue, ready } = open();
    expect([queue.name, ready.name]).toEqual([name, name]);
    expect(await queue.size()).toBe(0);
    expect(await queue.isEmpty()).toBe(true);
    expect(await queue.nextDeadline()).toBeUndefined();
    expect(await queue.insertionOrder.peek()).toBeUndefined();
    expect(await queue.insertionOrder.poll()).toBeUndefined();
    expect(await queue.insertionOrder.poll(5)).toEqual([]);
    expect(await queue.insertionOrder.readAll()).toEqual([]);
    expect(await collect(queue.insertionOrder)).toEqual([]);
    expect(await collect(queue.soonest())).toEqual([]);
    expect(await collect(queue.find({ prefix: "k" }))).toEqual([]);
    expect(await queue.cancelMany([])).toEqual([]);
    expect(await queue.cancel("k")).toBe(false);
    expect(await queue.get("k")).toBeUndefined();
    expect(await queue.reschedule("k", 1)).toBeUndefined();
    expect(await queue.insertionOrder.contains("a")).toBe(false);
    expect(await queue.insertionOrder.remove("a")).toBe(false);
    expect(await queue.clear()).toBe(0);
    expect(await ready.poll()).toBeUndefined();
    expect(await ready.poll(20)).toBeUndefined();
    expect(await ready.takeMany({ limit: 3, timeout: 20 })).toEqual([]);
    expect(await ready.drain()).toEqual([]);
    expect(await ready.peek()).toBeUndefined();
    expect(await ready.size()).toBe(0);
    expect(await ready.clear()).toBe(0);
    expect(await queue.quarantine.size()).toBe(0);
  });

  test("offers return results in order with unique ids, and keys work as in an ordinary queue", async () => {
    const { queue } = open<number>();
    const many = upTo(250).map((payload) => ({
      payload,
      delay: LONG + payload,
      ...(payload % 2 === 0 ? { key: `k${payload}` } : {}),
    }));
    const results = await queue.offerMany(many);
    expect(new Set(results.map(({ id }) => id)).size).toBe(250);
    expect(results.every(({ outcome }) => outcome === "added")).toBe(true);
    for (const i of [0, 1, 99, 100, 249]) {
      expect((await queue.get(results[i]?.id ?? ""))?.payload).toBe(i);
    }
    const [first] = results;
    const again = await queue.offer(1000, 5, { key: "k0" });
    expect(again).toEqual({ ...first, outcome: "existing" });
    const kept = await queue.offer(1001, 5, { key: "k0", onDuplicate: "update" });
    expect(kept).toMatchObject({ deadline: first?.deadline, outcome: "updated" });
    const options = { key: "k0", onDuplicate: "replace", maxWait: 1000 } as const;
    const replaced = await queue.offer(1002, LONG * 2, options);
    expect(replaced.outcome).toBe("replaced");
    expect(replaced.deadline).toBeLessThan(Date.now() + 5000);
    expect((await queue.get("k0"))?.payload).toBe(1002);
    const at = new Date(Date.now() + LONG);
    const { id, deadline } = await queue.offerAt(1003, at, { partitionKey: "p" });
    expect(deadline).toBe(at.getTime());
    expect((await queue.get(id))?.payload).toBe(1003);
    expect(await queue.size()).toBe(251);
    await expect(queue.offerMany([{ payload: 1, delay: -1 }])).rejects.toThrow(/messages\[0\]/);
  });

  test("finds, reschedules and cancels by id and by key, with and without a hint", async () => {
    const { queue } = open();
    const partitionKey = keys[3] as string;
    const a = await queue.offer("a", LONG, { key: "order:1", partitionKey });
    const b = await queue.offer("b", LONG, { key: "order:2" });
    const c = await queue.offer("c", LONG);
    for (const hint of [{}, { partitionKey }]) {
      expect(await queue.get("order:1", hint)).toMatchObject({ id: a.id, payload: "a" });
      expect(await queue.has("order:1", hint)).toBe(true);
      expect(await queue.get(a.id, hint)).toMatchObject({ key: "order:1" });
    }
    expect(await queue.has("order:3")).toBe(false);
    const later = await queue.reschedule("order:1", LONG * 2, { partitionKey });
    expect(await queue.get("order:1")).toMatchObject(later ?? {});
    const at = Date.now() + LONG * 3;
    expect(await queue.rescheduleAt(c.id, at)).toMatchObject({ deadline: at });
    expect((await queue.promote("order:2"))?.deadline).toBeLessThanOrEqual(Date.now() + 1000);
    expect(await queue.nextDeadline()).toBe((await queue.get("order:2"))?.deadline);
    // An id finds its message under every deadline.
    expect(await queue.cancel(a.id)).toBe(false);
    expect(await queue.cancelMany([later?.id ?? "", "order:1", "order:2", b.id])).toEqual([
      true,
      false,
      true,
      false,
    ]);
    expect(await queue.size()).toBe(1);
    expect(await queue.clear()).toBe(1);
  });

  test("cancelWhere and find cover every key with a prefix, wherever it is", async () => {
    const { queue } = open();
    for (const i of upTo(12)) {
      const partitionKey = keys[i % 4] as string;
      await queue.offer(`m${i}`, LONG, { key: `${i < 8 ? "a" : "b"}:${i}`, partitionKey });
    }
    const found = await collect(queue.find({ prefix: "a:" }));
    expect(found.map(({ payload }) => payload).toSorted()).toEqual(upTo(8).map((i) => `m${i}`));
    const wanted = upTo(8).map((i) => `a:${i}`);
    const dry = await queue.cancelWhere({ prefix: "a:" }, { dryRun: true });
    expect([dry.count, dry.keys.toSorted()]).toEqual([8, wanted]);
    expect(await queue.size()).toBe(12);
    const real = await queue.cancelWhere({ prefix: "a:" });
    expect([real.count, real.keys.toSorted()]).toEqual([8, wanted]);
    expect(await queue.size()).toBe(4);
  });

  test("reads in the order of deadlines, and in that of the offers", async () => {
    const { queue } = open();
    await spread(queue, 10);
    const inOrder = upTo(10).map((i) => `m${i}`);
    const soonest = await collect(queue.soonest());
    expect(soonest.map(({ payload }) => payload)).toEqual(inOrder.toReversed());
    expect((await collect(queue.soonest(3))).map(({ payload }) => payload)).toEqual([
      "m9",
      "m8",
      "m7",
    ]);
    expect(await queue.nextDeadline()).toBe(soonest[0]?.deadline);
    expect(await queue.insertionOrder.readAll()).toEqual(inOrder);
    expect((await collect(queue.insertionOrder)).map(({ payload }) => payload)).toEqual(inOrder);
    expect(await queue.insertionOrder.peek()).toBe("m0");
    expect(await queue.insertionOrder.contains("m5")).toBe(true);
    expect(await queue.insertionOrder.remove("m5")).toBe(true);
    expect(await queue.insertionOrder.remove("m5")).toBe(false);
    expect(await queue.insertionOrder.removeAll(["m1", "m2", "none"])).toBe(2);
    expect(await queue.insertionOrder.retainAll(["m0", "m3", "m4", "m6", "m7"])).toBe(2);
    expect(await queue.insertionOrder.poll()).toBe("m0");
    expect(await queue.insertionOrder.poll(3)).toEqual(["m3", "m4", "m6"]);
    expect(await queue.insertionOrder.readAll()).toEqual(["m7"]);
  });

  test("offers of one turn are read and polled in their order", async () => {
    const { queue } = open<number>();
    await queue.offer(0, LONG);
    await queue.offerMany(upTo(400).map((i) => ({ payload: i + 1, delay: LONG })));
    expect(await queue.insertionOrder.readAll()).toEqual(upTo(401));
    expect(await queue.insertionOrder.poll(250)).toEqual(upTo(250));
    expect(await queue.insertionOrder.poll()).toBe(250);
    expect(await queue.insertionOrder.poll(1000)).toEqual(upTo(150).map((i) => i + 251));
  });

  test("offers made before the partitions are known keep their order, with and without a signal", async () => {
    const { queue } = open<number>();
    const { signal } = new AbortController();
    const at = Date.now() + LONG;
    await Promise.all(upTo(20).map((i) => queue.offerAt(i, at, i % 2 === 0 ? { signal } : {})));
    expect((await collect(queue.soonest())).map(({ payload }) => payload)).toEqual(upTo(20));
  });

  test("due messages can be taken in every way", async () => {
    const { queue, ready } = open<number>({}, newLine());
    const put = (...payloads: number[]) =>
      queue.offerMany(payloads.map((payload) => ({ payload, delay: 0 })));
    await put(1);
    expect(await ready.take()).toBe(1);
    await put(2);
    expect(await ready.poll(5000)).toBe(2);
    await put(3, 4, 5);
    const many: number[] = [];
    while (many.length < 3) many.push(...(await ready.takeMany({ limit: 5, timeout: 5000 })));
    expect(ascending(many)).toEqual([3, 4, 5]);
    const seen: number[] = [];
    const subscription = ready.subscribe((payload) => void seen.push(payload), { concurrency: 3 });
    await queue.offerMany(
      upTo(20).map((payload) => ({ payload, delay: 10, partitionKey: `p${payload}` })),
    );
    await eventually(() => seen.length === 20);
    expect(ascending(seen)).toEqual(upTo(20));
    await subscription.close();
    await put(6);
    for await (const payload of ready) {
      expect(payload).toBe(6);
      break;
    }
  });

  test("ready messages: put, peek, drain and clear", async () => {
    const { ready } = open();
    await ready.put("a");
    await ready.putMany(["b", "c"]);
    await ready.put("d");
    expect(await ready.size()).toBe(4);
    expect((await ready.readAll()).toSorted()).toEqual(["a", "b", "c", "d"]);
    expect(["a", "b", "d"]).toContain(await ready.peek());
    expect(await ready.drain(1)).toHaveLength(1);
    const taken = [await ready.poll(), ...(await ready.takeMany({ limit: 1, timeout: 0 }))];
    expect(taken).toHaveLength(2);
    expect(await ready.clear()).toBe(1);
    await ready.putMany(upTo(30).map(String));
    expect(await ready.drain()).toHaveLength(30);
  });

  test("while it is paused nothing becomes ready and nobody takes, until it is resumed", async () => {
    const { queue, ready } = open({}, newLine());
    await queue.pause();
    expect(await ready.isPaused()).toBe(true);
    const taking = ready.take();
    await queue.offer("a", 0);
    await ready.put("b");
    expect(await ready.poll(30)).toBeUndefined();
    expect(await ready.poll()).toBeUndefined();
    expect([await queue.size(), await ready.size()]).toEqual([1, 1]);
    await ready.resume();
    expect([await taking, await ready.take()].toSorted()).toEqual(["a", "b"]);
    expect(await queue.isPaused()).toBe(false);
  });

  test("payloads that a codec cannot read go to the quarantine, and back", async () => {
    let isBroken = true;
    const codec: Codec<string> = {
      name: "breaking",
      encode: (text) => Buffer.from(text),
      decode: (bytes) => {
        if (isBroken) throw new Error("broken");
        return bytes.toString();
      },
    };
    const line = newLine();
    const { queue, ready } = open({ codec }, line);
    await queue.offer("a", LONG);
    await expect(queue.insertionOrder.poll()).rejects.toThrow(DecodeError);
    await queue.offer("b", 0, { partitionKey: keys[2] as string });
    await expect(ready.take()).rejects.toThrow(DecodeError);
    const last = queueKeys(new PartitionNames(name).at(partitions - 1));
    await newRedis().rpush(last.quarantine, "c");
    await eventually(async () => (await queue.quarantine.size()) === 3);
    expect((await collect(ready.quarantine)).map(String).toSorted()).toEqual(["a", "b", "c"]);
    isBroken = false;
    expect(await queue.quarantine.requeue(1)).toBe(1);
    expect(await ready.take()).toMatch(/[abc]/);
    expect(await queue.quarantine.requeue()).toBe(2);
    await Promise.all([ready.take(), ready.take()]);
    expect(await queue.quarantine.clear()).toBe(0);
  });

  test("refuses operations that would span two slots", async () => {
    const { line, queue, ready } = open();
    await queue.offer("a", LONG);
    await expect(queue.insertionOrder.pollLastAndOfferFirstTo("other")).rejects.toThrow(TypeError);
    const other = uniqueName();
    await expect(ready.pollFromAny([other])).rejects.toThrow(TypeError);
    await expect(ready.pollFromAny([other], 10)).rejects.toThrow(TypeError);
    await expect(line.getBlockingQueue(other).pollFromAny([name])).rejects.toThrow(TypeError);
    expect(await queue.size()).toBe(1);
  });

  test("a client that neither moves nor takes works beside one that does", async () => {
    const { queue } = open();
    const { ready } = open({}, newLine());
    const taking = ready.take();
    await queue.offer("a", 10);
    expect(await taking).toBe("a");
  });

  test("closes early, twice, and with a running handler; then every call is refused", async () => {
    await open({}, newLine()).line.close();
    const { line, queue, ready } = open({}, newLine());
    let isDone = false;
    const started = new Promise<void>((resolve) => {
      ready.subscribe(async (_, { signal }) => {
        resolve();
        await new Promise((done) => signal.addEventListener("abort", done));
        await queue.offer("last", LONG);
        isDone = true;
      });
    });
    const taking = open({}, line).ready.take();
    taking.catch(() => {});
    await queue.offer("a", 0);
    await queue.offer("b", 0);
    await Promise.race([started, taking]);
    await started;
    await Promise.all([line.close(), line.close()]);
    expect(isDone).toBe(true);
    await expect(queue.offer("x", 1)).rejects.toThrow(ClosedError);
    await expect(queue.size()).rejects.toThrow(ClosedError);
    await expect(queue.cancel("k")).rejects.toThrow(ClosedError);
    await expect(ready.take()).rejects.toThrow(ClosedError);
    await expect(line.setPartitions(name, 2)).rejects.toThrow(ClosedError);
    await expect(line.partitions(name)).rejects.toThrow(ClosedError);
    expect(() => line.getDelayedQueue(name, { partitions })).toThrow(ClosedError);
    expect(await open().queue.insertionOrder.readAll()).toEqual(["last"]);
  });

  describe("reliable", () => {
    test("takes, with headers, and settles in every way", async () => {
      const queue = openReliable({ retry: [LONG] });
      const headers = { trace: "t1" };
      await queue.offer("a", 0, { key: "k", partitionKey: keys[1] as string, headers });
      const first = await queue.take();
      expect(first).toMatchObject({ payload: "a", key: "k", headers, attempt: 1 });
      expect(await first.extend(60_000)).toBe(true);
      expect(first.leaseEndsAt).toBeGreaterThan(Date.now() + 10_000);
      expect(await first.nack({ delay: 0 })).toBe(true);
      const second = await queue.poll(5000);
      expect(second).toMatchObject({ id: first.id, attempt: 2 });
      expect(await second?.ack()).toBe(true);
      expect(await second?.ack()).toBe(false);
      await queue.offerMany([
        { payload: "b", delay: 0 },
        { payload: "c", delay: 0 },
      ]);
      const many = [];
      while (many.length < 2) many.push(...(await queue.takeMany({ limit: 5, timeout: 5000 })));
      expect(await Promise.all(many.map((one) => one.reject("bad")))).toEqual([true, true]);
      expect(await queue.deadLetters.size()).toBe(2);
      await queue.offer("d", 0);
      for await (const delivery of queue) {
        expect(delivery.payload).toBe("d");
        await delivery.ack();
        break;
      }
    });

    test("retrying messages are found, rescheduled and cancelled by their ids", async () => {
      const queue = openReliable({ retry: [LONG] });
      const { id } = await queue.offer("a", 0);
      await (await queue.take()).nack();
      expect(await queue.has(id)).toBe(true);
      expect(await queue.get(id)).toMatchObject({ payload: "a" });
      expect([await queue.size(), await queue.isEmpty()]).toEqual([1, false]);
      expect(await queue.reschedule(id, LONG * 2)).toMatchObject({ id });
      expect(await queue.promote(id)).toMatchObject({ id });
      const again = await queue.take();
      expect(again).toMatchObject({ id, attempt: 2 });
      await again.nack();
      expect(await queue.cancel(id)).toBe(true);
      expect(await queue.cancel(id)).toBe(false);
      expect(await queue.size()).toBe(0);
    });

    test("subscribe, subscribeBatch and route work, with groups of their own", async () => {
      const line = newLine();
      const queue = openReliable<number>({}, line);
      const others = openReliable<number>({ group: "others" }, line);
      const [single, batch, routed]: number[][] = [[], [], []];
      queue.subscribe((n) => void single?.push(n), { concurrency: 4 });
      others.subscribeBatch((some) => void batch?.push(...some.map(({ payload }) => payload)), {
        limit: 5,
      });
      openReliable<number>({ group: "routed" }, line).route(
        { k: (n) => void routed?.push(n) },
        { unknown: "ack" },
      );
      await queue.offerMany(
        upTo(20).map((n) => ({ payload: n, delay: 5, key: n < 10 ? `k:${n}` : `x:${n}` })),
      );
      await eventually(() => single?.length === 20 && batch?.length === 20);
      expect([ascending(single ?? []), ascending(batch ?? [])]).toEqual([upTo(20), upTo(20)]);
      await eventually(() => routed?.length === 10);
      expect(ascending(routed ?? [])).toEqual(upTo(10));
    });

    test("dead letters are those of all partitions", async () => {
      const line = newLineThatMayFail();
      const queue = openReliable<number>({ maxAttempts: 1 }, line);
      const failing = queue.subscribe(() => {
        throw new Error("no");
      });
      const results = await queue.offerMany(
        upTo(6).map((n) => ({ payload: n, delay: 0, partitionKey: keys[n % 4] as string })),
      );
      await eventually(async () => (await queue.deadLetters.size()) === 6);
      await failing.close();
      expect(line.errors.every((error) => error instanceof HandlerError)).toBe(true);
      const letters = await collect(queue.deadLetters);
      expect(ascending(letters.map(({ payload }) => payload as number))).toEqual(upTo(6));
      const id = results[3]?.id ?? "";
      expect(await queue.deadLetters.remove(id)).toBe(true);
      expect(await queue.deadLetters.remove(id)).toBe(false);
      expect(await queue.deadLetters.redrive(results[2]?.id ?? "")).toBe(1);
      await expect(queue.deadLetters.redrive("no id")).rejects.toThrow(TypeError);
      expect((await queue.take()).payload).toBe(2);
      expect(await queue.deadLetters.redrive("all")).toBe(4);
      const again = await Promise.all(upTo(4).map(() => queue.take()));
      expect(ascending(again.map(({ payload }) => payload))).toEqual([0, 1, 4, 5]);
      await Promise.all(again.map((one) => one.reject()));
      expect(await queue.deadLetters.clear()).toBe(4);
    });

    test("one group has one setting, and held messages go back at the end", async () => {
      const line = newLine();
      const queue = openReliable({}, line);
      expect(() => openReliable({ maxAttempts: 3 }, line)).toThrow(TypeError);
      await queue.offer("a", 0);
      await queue.take();
      await line.close();
      const again = await openReliable().take();
      expect([again.payload, again.attempt]).toEqual(["a", 2]);
      await again.ack();
    });

    test("makePlain counts a live process once, whatever the number of its partitions", async () => {
      const queue = openReliable();
      const work = queue.subscribe(() => {});
      for (const partitionKey of keys) await queue.offer("x", 0, { partitionKey });
      const { queue: plain } = open();
      const stats = async () => (await plain.stats()).perPartition;
      await eventually(async () => (await stats()).every(({ consumers }) => consumers === 1));
      expect(await plain.makePlain()).toMatchObject({ isPlain: false, consumers: 1 });
      await work.close();
    });

    test("makePlain covers all partitions, once no process has the queue open as a reliable one", async () => {
      const line = newLine();
      const queue = openReliable({ retry: [LONG] }, line);
      await queue.offer("retrying", 0, { partitionKey: keys[1] as string });
      await (await queue.take()).nack();
      await expect(line.getDelayedQueue(name, { partitions }).makePlain()).rejects.toThrow(
        TypeError,
      );
      await line.close();
      const { queue: plain } = open();
      expect(await plain.makePlain()).toMatchObject({ isPlain: true, consumers: 0 });
      expect(await plain.insertionOrder.readAll()).toEqual(["retrying"]);
    });
  });
});

test("a partition key, or a key alone, decides the partition, and ids lead there", async () => {
  const queue = newLine({ transfer: false }).getDelayedQueue(name, { partitions: 4 });
  const redis = newRedis();
  const names = new PartitionNames(name);
  const sizes = () =>
    Promise.all(upTo(4).map((p) => redis.zcard(`redisson_delay_queue_timeout:${names.at(p)}`)));
  const [first, second] = [keys[1] as string, keys[2] as string];
  await queue.offer("by partition key", LONG, { key: "k", partitionKey: first });
  await queue.offer("by partition key", LONG, { partitionKey: first });
  await queue.offer("by key", LONG, { key: first });
  expect(await sizes()).toEqual([0, 3, 0, 0]);
  // The same key under two partition keys, in two partitions, names two messages.
  const other = await queue.offer("other", LONG, { key: "k", partitionKey: second });
  expect(other.outcome).toBe("added");
  expect(bucketOf(parseMessageId(other.id).subarray(8))).toBe(bucketOfKey(second));
  expect(await queue.get("k", { partitionKey: second })).toMatchObject({ payload: "other" });
  expect(await queue.cancel("k", { partitionKey: keys[3] as string })).toBe(false);
  expect(await queue.cancel("k", { partitionKey: second })).toBe(true);
  expect(await queue.cancel("k", { partitionKey: second })).toBe(false);
  expect(await queue.get("k")).toMatchObject({ payload: "by partition key" });
  expect(await queue.cancelWhere({ prefix: "k" })).toEqual({ count: 1, keys: ["k"] });
});

test("when the number changes, ids, keys and all messages stay", async () => {
  const line = newLine();
  const queue = line.getDelayedQueue<number>(name, { partitions: 2 });
  const results = await queue.offerMany(
    upTo(500).map((payload) => ({ payload, delay: LONG, key: `k${payload}` })),
  );
  const ready = line.getBlockingQueue<number>(name);
  await ready.putMany(upTo(300).map((i) => 1000 + i));
  for (const [i, count] of [8, 3].entries()) {
    await line.setPartitions(name, count);
    expect((await line.partitions(name)).map(({ partition }) => partition)).toEqual(upTo(count));
    expect(await queue.size()).toBe(500 - 2 * i);
    expect(await queue.cancelMany([`k${i}`, results[100 + i]?.id ?? "", `k${i}`])).toEqual([
      true,
      true,
      false,
    ]);
  }
  expect(await queue.insertionOrder.readAll()).toHaveLength(496);
  expect(ascending(await ready.drain())).toEqual(upTo(300).map((i) => 1000 + i));
});

test("the number given by the first process holds", async () => {
  const [a, b] = [newLine(), newLine({ transfer: false })];
  const queue = a.getDelayedQueue(name, { partitions: 3 });
  await queue.offer("a", LONG, { key: "k" });
  const other = b.getDelayedQueue(name, { partitions: 8 });
  expect(await other.cancel("k")).toBe(true);
  expect(await b.partitions(name)).toHaveLength(3);
  // Handles of one client share the number; later handles need not name it.
  expect(await b.getDelayedQueue(name).size()).toBe(0);
});

test("partitions() counts what each partition holds, and an ordinary queue has none and stays ordinary", async () => {
  const line = newLine({ transfer: false });
  expect(await line.partitions(name)).toEqual([]);
  const ordinary = line.getDelayedQueue(name);
  await ordinary.offer("a", LONG);
  expect(await line.partitions(name)).toEqual([]);
  expect(await ordinary.size()).toBe(1);
  const other = uniqueName();
  const queue = line.getDelayedQueue(other, { partitions: 4 });
  await queue.offer("a", LONG, { partitionKey: keys[2] as string });
  await line.getBlockingQueue(other).put("b");
  const infos = await newLine().partitions(other);
  expect(infos.map(({ partition }) => partition)).toEqual([0, 1, 2, 3]);
  expect(infos.map(({ delayed }) => delayed)).toEqual([0, 0, 1, 0]);
  expect(infos.map(({ ready }) => ready).reduce((sum, one) => sum + one)).toBe(1);
  expect(infos.every(({ name: part, node }) => part.startsWith(`{${other}/`) && node)).toBe(true);
});

describe("illegal options", () => {
  test.each([0, 257, 1.5, -1, "8", null, NaN])("partitions: %s", (partitions) => {
    const options = { partitions } as QueueOptions;
    expect(() => newLine().getDelayedQueue(name, options)).toThrow(/partitions must be/);
    expect(() => newLine().getBlockingQueue(name, options)).toThrow(/partitions must be/);
    expect(() => newLine().getReliableQueue(name, options)).toThrow(/partitions must be/);
  });

  test("with Redisson, and on the client are refused", () => {
    const line = newLine();
    expect(() => line.getDelayedQueue(name, { partitions: 2, interop: "redisson" })).toThrow(
      /interop must be "none"/,
    );
    expect(() => newLine({ partitions: 4 } as DelaylineOptions)).toThrow(/partitions/);
    const redisson = newLine({ interop: "redisson" });
    expect(() => redisson.getDelayedQueue(name, { partitions: 2 })).toThrow(/interop must be/);
  });

  test("of setPartitions, and of calls that look for a message, are refused", async () => {
    const line = newLine({ transfer: false });
    for (const count of [0, 257, 1.5, "8", undefined]) {
      await expect(line.setPartitions(name, count as number)).rejects.toThrow(/count must be/);
    }
    const bad = [{ onProgress: 1 }, { keepOrdinary: "yes" }, { other: 1 }, { signal: {} }];
    for (const options of bad) {
      await expect(line.setPartitions(name, 2, options as object)).rejects.toThrow(TypeError);
    }
    await expect(line.setPartitions("a}b", 2)).rejects.toThrow(/queue name/);
    const queue = line.getDelayedQueue(name, { partitions: 2 });
    for (const partitionKey of ["", "x".repeat(201), 1]) {
      const options = { partitionKey } as { partitionKey: string };
      await expect(queue.offer("a", 1, options)).rejects.toThrow(/partitionKey must/);
      await expect(queue.cancel("k", options)).rejects.toThrow(/partitionKey must/);
      await expect(queue.get("k", options)).rejects.toThrow(/partitionKey must/);
      await expect(queue.reschedule("k", 1, options)).rejects.toThrow(/partitionKey must/);
    }
  });
});

test("await using and an aborted signal end calls", async () => {
  let kept: BlockingQueue<string> | undefined;
  {
    await using line = newLine();
    const queue = (kept = line.getBlockingQueue<string>(name, { partitions: 4 }));
    await queue.put("a");
    expect(await queue.take()).toBe("a");
    const reason = new Error("enough");
    await expect(queue.take({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const stopping = new AbortController();
    const taking = queue.take({ signal: stopping.signal });
    stopping.abort(reason);
    await expect(taking).rejects.toBe(reason);
    await expect(queue.size({ signal: stopping.signal })).rejects.toBe(reason);
  }
  await expect(kept.take()).rejects.toThrow(ClosedError);
});

test("a cancel that has to ask a second time is finished, even if the client is closed meanwhile", async () => {
  const proxy = await startProxy(redisUrl());
  const line = newLine({ redis: proxy.url, transfer: false });
  const queue = line.getDelayedQueue<string>(name, { partitions: 4 });
  // Not in the partition of the key alone.
  const partition = tableOf(4)[bucketOfKey("order:42")] as number;
  const partitionKey = keys[(partition + 1) % 4] as string;
  await queue.offer("message", LONG, { key: "order:42", partitionKey });
  expect(await queue.cancel("nobody")).toBe(false);

  proxy.delay.reply = 50;
  const cancelled = queue.cancel("order:42");
  await line.close();
  expect(await cancelled).toBe(true);
  await expect(queue.cancel("order:42")).rejects.toBeInstanceOf(ClosedError);
});
