import { describe, expect, test } from "vitest";
import { bucketOfKey } from "../../../src/queue/message/bucket.ts";
import { partitionName, tableOf } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { upTo } from "../../helpers/numbers.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const MINUTE = 60_000;

describe("to another queue", () => {
  test.each([
    { kind: "a plain queue", partitions: undefined, isReliable: false },
    { kind: "a reliable queue", partitions: undefined, isReliable: true },
    { kind: "a plain queue with partitions", partitions: 4, isReliable: false },
    { kind: "a reliable queue with partitions", partitions: 4, isReliable: true },
  ])("$kind, by ack and by cancel", async ({ partitions, isReliable }) => {
    const line = newLine();
    const own = line.getReliableQueue<number>(uniqueName("own"));
    const options = partitions === undefined ? {} : { partitions };
    const to = isReliable
      ? line.getReliableQueue<string>(uniqueName("to"), options)
      : line.getDelayedQueue<string>(uniqueName("to"), options);
    await own.offer(1, 0);
    const delivery = await own.take();
    const [first, second] = await Promise.all([
      delivery.ack({ to, offer: upTo(3).map((i) => ({ payload: `${i}`, delay: MINUTE + i })) }),
      own
        .offer(2, MINUTE, { key: "k" })
        .then(() => own.cancel("k", { to, offer: { payload: "x", delay: 2 * MINUTE, key: "k" } })),
    ]);
    expect(first).toMatchObject(upTo(3).map(() => ({ outcome: "added" })));
    expect(second).toMatchObject({ cancelled: true, offered: { outcome: "added" } });
    const found = await collect(to.soonest());
    expect(found.map(({ payload }) => payload)).toEqual(["0", "1", "2", "x"]);
    expect(await to.get("k")).toMatchObject({ id: second.offered?.id });
    expect(own.counters).toMatchObject({ acknowledged: 1, cancelled: 1, offered: 2 });
    expect(to.counters.offered).toBe(4);
    expect(await own.stats()).toMatchObject({ delayed: 0, inFlight: 0 });
  });

  test("what it has learned of the target's partitions may be old", async () => {
    const [from, to] = [uniqueName("own"), uniqueName("to")];
    const line = newLine();
    const own = line.getDelayedQueue<number>(from);
    const target = line.getDelayedQueue<number>(to, { partitions: 2 });
    await target.size();
    await own.offerMany(upTo(20).map((i) => ({ payload: i, delay: MINUTE, key: `key ${i}` })));
    await newLine().setPartitions(to, 5);
    const results = await Promise.all(
      upTo(20).map((i) => {
        const offer = { payload: i, delay: MINUTE, key: `key ${i}` };
        return own.cancel(`key ${i}`, { to: target, offer });
      }),
    );
    expect(results.every(({ cancelled }) => cancelled)).toBe(true);
    const redis = newRedis();
    for (const partition of upTo(5)) {
      const { businessKeys } = queueKeys(partitionName(to, partition));
      for (const key of await redis.hkeys(businessKeys)) {
        expect(tableOf(5)[bucketOfKey(key)]).toBe(partition);
      }
    }
    expect(await target.size()).toBe(20);
  });

  test("of another client: nothing is done, and the error says why", async () => {
    const own = newLine().getReliableQueue<number>(uniqueName());
    const to = newLine().getDelayedQueue<number>(uniqueName());
    const { id } = await own.offer(1, MINUTE);
    const offer = { payload: 1, delay: 0 };
    const why = /must be opened by the same client.*one script writes to both/;
    await expect(own.cancel(id, { to, offer })).rejects.toThrow(why);
    await own.offer(2, 0);
    const delivery = await own.take();
    await expect(delivery.ack({ to, offer: [offer] })).rejects.toThrow(why);
    // It is not asked for any more, so the delivery can be settled otherwise.
    expect(await delivery.nack({ delay: MINUTE })).toBe(true);
    expect(await own.stats()).toMatchObject({ delayed: 1, retries: 1 });
    expect(await to.size()).toBe(0);
  });
});

describe("partitions", () => {
  test("a message without a key inherits the partition; one of another partition is refused", async () => {
    const queue = newLine().getReliableQueue<string>(uniqueName(), { partitions: 4 });
    const { id } = await queue.offer("old", MINUTE, { key: "saga" });
    const foreign = upTo(100)
      .map((i) => `key ${i}`)
      .find((key) => tableOf(4)[bucketOfKey(key)] !== tableOf(4)[bucketOfKey("saga")]) as string;
    const wrong = { payload: "new", delay: MINUTE, key: foreign };
    const why = /give both the same partitionKey/;
    await expect(queue.cancel(id, { offer: wrong })).rejects.toThrow(why);
    await expect(queue.cancel("saga", { offer: wrong })).rejects.toThrow(why);
    const right = { ...wrong, partitionKey: "saga" };
    const { offered } = await queue.cancel("saga", { offer: right });
    expect(offered).toMatchObject({ outcome: "added" });

    await queue.promote(offered?.id ?? "");
    const delivery = await queue.take();
    await expect(delivery.ack({ offer: [wrong] })).rejects.toThrow(why);
    const results = await delivery.ack({ offer: [{ payload: "next", delay: MINUTE }] });
    const [next] = results || [];

    expect(Number.parseInt(next?.id.slice(-4) ?? "", 16) % 1024).toBe(bucketOfKey("saga"));
  });

  test("while their number changes, and after it, the next step is stored beside its predecessor", async () => {
    const name = uniqueName();
    const line = newLine();
    const queue = line.getReliableQueue<number>(name, { partitions: 2 });
    const keys = upTo(12).map((i) => `saga ${i}`);
    await queue.offerMany(keys.map((key, i) => ({ payload: i, delay: 0, key })));
    const taken: Awaited<ReturnType<typeof queue.takeMany>> = [];
    while (taken.length < 12) taken.push(...(await queue.takeMany({ limit: 12 - taken.length })));
    const next = (i: number) => {
      const key = taken[i]?.key as string;
      return { payload: 100 + i, delay: MINUTE, key };
    };
    const changing = newLine().setPartitions(name, 5);
    const during = await Promise.all(
      taken.slice(0, 6).map((delivery, i) => delivery.ack({ offer: [next(i)] })),
    );
    await changing;
    const after = await Promise.all(
      taken.slice(6).map((delivery, i) => delivery.ack({ offer: [next(i + 6)] })),
    );
    expect([...during, ...after]).toMatchObject(upTo(12).map(() => [{ outcome: "added" }]));
    // Each is found, wherever it is, and exchanged once more.
    for (const [i, { key }] of taken.entries()) {
      expect(await queue.get(key as string)).toMatchObject({ payload: 100 + i });
      const offer = { payload: 200 + i, delay: 0, key: key as string };
      expect(await queue.cancel(key as string, { offer })).toMatchObject({ cancelled: true });
    }
    await eventually(async () => (await queue.stats()).ready === 12);
    expect(await queue.stats()).toMatchObject({ delayed: 0, inFlight: 0 });
  });

  test("under exclusive consumers: each step comes once, in its partition", async () => {
    const line = newLine();
    const queue = line.getReliableQueue<number>(uniqueName(), {
      partitions: 3,
      exclusive: true,
    });
    const seen: [string, number][] = [];
    queue.subscribe(async (step, delivery) => {
      const key = delivery.key as string;
      seen.push([key, step]);
      if (step < 3) await delivery.ack({ offer: [{ payload: step + 1, delay: 0, key }] });
    });
    const keys = upTo(6).map((i) => `saga ${i}`);
    await queue.offerMany(keys.map((key) => ({ payload: 1, delay: 0, key })));
    await eventually(() => seen.length === 18, { within: 20_000 });
    for (const key of keys) {
      expect(seen.filter(([one]) => one === key).map(([, step]) => step)).toEqual([1, 2, 3]);
    }
  });
});

test("what is not legal is refused by its name, and nothing is done", async () => {
  const line = newLine();
  const queue = line.getReliableQueue<number>(uniqueName());
  const { id } = await queue.offer(1, MINUTE);
  const good = { payload: 1, delay: 0 };
  const refused: [options: unknown, why: string][] = [
    [{ offer: null }, "offer must be an object, got null"],
    [{ offer: { payload: 1 } }, "offer must have either delay or at, got neither"],
    [{ offer: { ...good, key: "k", onDuplicate: "replace" } }, "offer.onDuplicate cannot be used"],
    [{ offer: { ...good, maxWait: 1 } }, "maxWait needs a key"],
    [{ offer: { ...good, nonsense: 1 } }, "nonsense"],
    [{ offer: good, to: {} }, "to must be a handle of a queue that takes offers"],
    [{ offer: good, nonsense: 1 }, "nonsense"],
  ];
  for (const [options, why] of refused) {
    await expect(queue.cancel(id, options as never), why).rejects.toThrow(why);
  }
  expect(await queue.size()).toBe(1);
  await queue.promote(id);
  const delivery = await queue.take();
  await expect(delivery.ack({ offer: good } as never)).rejects.toThrow("offer must be an array");
  for (const [options, why] of refused.slice(1)) {
    const { offer, ...more } = options as { offer: object };
    const inList = { ...more, offer: [offer] };
    const named = why.replace(/^offer/, "offer[0]");
    await expect(delivery.ack(inList as never), why).rejects.toThrow(named);
  }
  expect(await delivery.ack({ offer: [] })).toEqual([]);
  expect(await queue.stats()).toMatchObject({ delayed: 0, inFlight: 0 });
});
