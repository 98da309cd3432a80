import { expect, test } from "vitest";
import { queueKeys } from "../../src/queue/keys.ts";
import { newLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { describeRedisson } from "./describe-redisson.ts";
import { java } from "./java-value.ts";

// One side offers, the other moves due messages.

const MINUTE = 60_000;

describeRedisson("moving", (redisson) => {
  test("Node moves Java's messages in the order of their deadlines", async () => {
    const name = uniqueName();
    // A client that has gone moves nothing any more.
    const client = await redisson().process.connect(redisUrl());
    const delays = Array.from({ length: 200 }, () => 1500 + Math.floor(Math.random() * 500));
    await client
      .queue(name, "TypedJsonJacksonCodec")
      .delayed.offerMany(delays.map(java.int), delays);
    const line = newLine({ codec: "json" });
    const delayed = line.getDelayedQueue<number>(name);
    const deadlines = new Map<number, number[]>();
    for await (const { deadline, payload } of delayed.insertionOrder) {
      deadlines.set(deadline, [...(deadlines.get(deadline) ?? []), payload]);
    }
    await client.shutdown();

    const expected = [...deadlines].toSorted(([a], [b]) => a - b).map(([, payloads]) => payloads);
    const ready = line.getBlockingQueue<number>(name);
    for (const payloads of expected) {
      const taken: number[] = [];
      while (taken.length < payloads.length) taken.push(await ready.take());
      expect(taken.toSorted((a, b) => a - b)).toEqual(payloads.toSorted((a, b) => a - b));
    }
    expect(await delayed.size()).toBe(0);
    expect(await newRedis().exists(queueKeys(name).mover)).toBe(1);
  });

  test("Java moves Node's messages, with equal deadlines in the order of the offers", async () => {
    const name = uniqueName();
    const line = newLine({ codec: "json", transfer: false });
    const delayed = line.getDelayedQueue<number>(name);
    const inJava = redisson().client.queue(name, "TypedJsonJacksonCodec");
    await inJava.delayed.construct();
    const date = new Date(Date.now() + 1000);
    const numbers = Array.from({ length: 350 }, (_, i) => i);
    await Promise.all(numbers.map((number) => delayed.offerAt(number, date)));
    await eventually(async () => (await inJava.ready.size()) === numbers.length);
    expect(await inJava.ready.readAll()).toEqual(numbers.map(java.int));
    expect(await line.getBlockingQueue(name).drain()).toEqual(numbers);
    expect(await delayed.size()).toBe(0);
    expect(await newRedis().exists(queueKeys(name).mover)).toBe(0);
    await inJava.delayed.destroy();
  });

  test("Node's wake-ups do not stall Java's timers", async () => {
    const line = newLine({ codec: "json", transfer: false });
    /** A queue that only Java moves. */
    const javasQueue = async () => {
      const name = uniqueName();
      await redisson().client.queue(name, "TypedJsonJacksonCodec").delayed.construct();
      const { channel } = queueKeys(name);
      await eventually(async () => (await newRedis().pubsub("NUMSUB", channel))[1] === 1);
      return { delayed: line.getDelayedQueue(name), ready: line.getBlockingQueue(name) };
    };
    const queues = [await javasQueue(), await javasQueue(), await javasQueue()] as const;
    const [nearLast, nearFirst, rescheduled] = queues;

    await nearLast.delayed.offer("far", MINUTE);
    await nearLast.delayed.offer("farther", 2 * MINUTE);
    await nearLast.delayed.offer("near", 1000);

    await nearFirst.delayed.offer("near", 1000);
    await nearFirst.delayed.offer("far", MINUTE);
    await nearFirst.delayed.offerMany([
      { payload: "farther", delay: 2 * MINUTE },
      { payload: "far with a key", delay: MINUTE, key: "k" },
    ]);
    await nearFirst.delayed.reschedule("k", 3 * MINUTE);

    await rescheduled.delayed.offer("first", 1500, { key: "first" });
    await rescheduled.delayed.offer("near", 2000);
    await rescheduled.delayed.offer("cancelled", 1200, { key: "cancelled" });
    await rescheduled.delayed.reschedule("first", MINUTE);
    await rescheduled.delayed.cancel("cancelled");

    for (const { ready } of queues) expect(await ready.poll(10_000)).toBe("near");
  });

  test("Java's wake-ups do not stall Node's timer", async () => {
    const name = uniqueName();
    const line = newLine({ codec: "json" });
    const ready = line.getBlockingQueue(name);
    const near = ready.poll(10_000);
    const client = await redisson().process.connect(redisUrl());
    const { delayed } = client.queue(name, "TypedJsonJacksonCodec");
    await delayed.offer(java.string("far"), MINUTE);
    await delayed.offer(java.string("farther"), 2 * MINUTE);
    await delayed.offer(java.string("near"), 1000);
    await delayed.offer(java.string("farthest"), 3 * MINUTE);
    await client.shutdown();
    expect(await near).toBe("near");
  });

  test("a reliable queue takes over the messages that Java pushes or moves to the LIST", async () => {
    const name = uniqueName();
    const inJava = redisson().client.queue(name, "TypedJsonJacksonCodec");
    await inJava.ready.put(java.string("there before"));
    const queue = newLine({ codec: "json" }).getReliableQueue<string>(name);
    // From here on Java moves due messages as well, always to the LIST.
    await inJava.delayed.construct();
    await inJava.ready.put(java.string("put"));
    const numbers = Array.from({ length: 100 }, (_, i) => i);
    await inJava.delayed.offerMany(
      numbers.map((i) => java.string(`delayed ${i}`)),
      numbers.map((i) => 10 * i),
    );
    const handled: string[] = [];
    queue.subscribe(
      (payload, { attempt }) => {
        if (attempt === 1 && payload.endsWith("7")) throw new Error("once more");
        handled.push(payload);
      },
      { concurrency: 10, onError: () => {} },
    );
    const all = ["there before", "put", ...numbers.map((i) => `delayed ${i}`)];
    await eventually(() => handled.length >= all.length, { within: 15_000 });
    expect(handled.toSorted()).toEqual(all.toSorted());
    const { ready, stream } = queueKeys(name);
    await eventually(async () => (await newRedis().xlen(stream)) === 0);
    expect(await newRedis().exists(ready)).toBe(0);
    await inJava.delayed.destroy();
  });
});
