import { expect, test } from "vitest";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

// Calls that concern all open queues of a client.

test("stats of a queue that is not open work for every kind, and leave it closed", async () => {
  const [plain, parted, reliable] = [uniqueName(), uniqueName(), uniqueName()];
  const producer = newLine({ transfer: false });
  await producer.getDelayedQueue(plain).offer(1, 60_000);
  await producer.getDelayedQueue(parted, { partitions: 3 }).offer(1, 60_000);
  await producer.getReliableQueue(reliable).offer(1, 60_000);
  const line = newLine();

  expect(await line.stats(plain)).toMatchObject({ kind: "plain", delayed: 1, perPartition: [] });
  const { delayed, perPartition } = await line.stats(parted);
  expect([delayed, perPartition.length]).toEqual([1, 3]);
  expect(await line.stats(reliable)).toMatchObject({ kind: "reliable", delayed: 1 });
  expect(await line.stats(uniqueName())).toMatchObject({ kind: "plain", delayed: 0 });

  expect([...line.counters.keys()]).toEqual([]);
  expect(await line.getDelayedQueue(parted, { partitions: 3 }).size()).toBe(1);
  expect((await line.stats(parted)).perPartition).toHaveLength(3);
  line.getDelayedQueue(plain, { interop: "redisson", transfer: false });
  expect((await line.stats(plain)).delayed).toBe(1);
  expect([...line.counters.keys()].toSorted()).toEqual([plain, parted].toSorted());
});

test("stats behind a key prefix without partitions, with an illegal name, aborted, and after close", async () => {
  const [line, other, name] = [prefixed(), prefixed(), uniqueName()];
  await line.getDelayedQueue(name).offer(1, 60_000);

  expect(await other.stats(name)).toMatchObject({ delayed: 1 });
  await expect(other.stats("a}b")).rejects.toThrow(TypeError);
  const signal = AbortSignal.abort(new Error("enough"));
  await expect(other.stats(name, { signal })).rejects.toThrow("enough");
  await other.close();
  await expect(other.stats(name)).rejects.toThrow("closed");
  await line.getDelayedQueue(name).clear();
});

test("closeSubscriptions waits for the handlers, while the client still offers and moves messages", async () => {
  const line = newLine();
  const queues = [uniqueName(), uniqueName()].map((name) => line.getReliableQueue<number>(name));
  const [plain, taken, gate] = [
    line.getBlockingQueue<number>(uniqueName()),
    [] as number[],
    new Gate(),
  ];
  for (const queue of queues) {
    queue.subscribe(async (payload) => {
      taken.push(payload);
      await gate.opened;
    });
  }
  for (const queue of queues) await queue.offer(1, 0);
  await eventually(() => taken.length === 2);

  let hasStopped = false;
  const stopping = line.closeSubscriptions().then(() => (hasStopped = true));
  await Promise.all(queues.map((queue) => queue.offer(2, 0)));
  const waiting = plain.take();
  await plain.put(2);
  await eventually(async () => (await queues[0]?.stats())?.ready === 1);
  expect(hasStopped).toBe(false);
  gate.open();
  await stopping;

  expect(taken).toEqual([1, 1]);
  expect(await waiting).toBe(2);
  // The handlers have finished, and their messages are acknowledged.
  await eventually(async () => (await queues[0]?.stats())?.inFlight === 0);
});

test("closeSubscriptions with a timeout reports the handlers that still run", async () => {
  const line = newLineThatMayFail();
  const queue = line.getBlockingQueue<number>(uniqueName());
  const gate = new Gate();
  const subscription = queue.subscribe(() => gate.opened);
  await queue.put(1);
  await eventually(() => subscription.running === 1);

  await line.closeSubscriptions({ handlerTimeout: 10 });
  await eventually(() => expect(line.errors).toMatchObject([{ code: "LEFT_RUNNING" }]));
  await expect(line.closeSubscriptions({ handlerTimeout: -1 })).rejects.toThrow(
    "handlerTimeout must be",
  );
  gate.open();
});

/** A client whose keys are all in one Cluster slot. */
function prefixed() {
  return newLineThatMayFail({ redis: newRedis(redisUrl(), { keyPrefix: "{shop}" }) });
}
