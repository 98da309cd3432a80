import { expect, test } from "vitest";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

// A blocking consumer of a reliable queue gets nothing: due messages go into the stream. It is told so.

/** Waits for the report of a blocking consumer that its queue is reliable, and expects no other. */
async function expectTold(line: TestLine, queue: string, count = 1): Promise<void> {
  await eventually(() => line.errors.length >= count);
  expect(line.errors).toHaveLength(count);
  for (const error of line.errors) {
    expect(error).toMatchObject({ code: "WRONG_HANDLE", queue });
    expect(error.message).toMatch(/is reliable.*use getReliableQueue, or make the queue plain/);
  }
}

/** Makes all clients look at the queue, and waits until their looks are done. */
async function lookAgain(name: string, line: TestLine): Promise<void> {
  const queue = line.getDelayedQueue(name);
  await queue.pause();
  await queue.resume();
  await queue.stats();
}

test.each([true, false])("a wait for a reliable queue is told of (transfer: %s)", async (moves) => {
  const name = uniqueName();
  await newLine().getReliableQueue<string>(name).offer("in the stream", 0);
  const line = newLineThatMayFail({ transfer: moves });
  const ready = line.getBlockingQueue<string>(name);
  const taking = ready.take().catch(() => {});
  await expectTold(line, name);
  // Once, however many wait and however often Redis says so.
  const polling = ready.poll(50);
  await lookAgain(name, line);
  await polling;
  expect(await ready.poll()).toBeUndefined();
  await expectTold(line, name);
  await line.close();
  await taking;
});

test.each([true, false])(
  "a queue that becomes reliable while a subscription waits is told of, and again after it was plain (transfer: %s)",
  async (moves) => {
    const name = uniqueName();
    const redis = newRedis();
    const line = newLineThatMayFail({ transfer: moves });
    const handled: string[] = [];
    const blocking = line.getBlockingQueue<string>(name);
    blocking.subscribe((payload) => void handled.push(payload));
    await blocking.put("plain");
    await eventually(() => handled.length === 1);
    expect(line.errors).toEqual([]);

    const reliable = newLine();
    await reliable.getReliableQueue<string>(name).offer("in the stream", 60_000);
    await expectTold(line, name);
    await reliable.close();

    const operator = newLine({ transfer: false }).getDelayedQueue<string>(name);
    await eventually(async () => (await operator.makePlain()).isPlain);
    expect(await redis.exists(`delayline_stream:{${name}}`)).toBe(0);
    await blocking.put("plain again");
    await eventually(() => handled.length === 2);
    await lookAgain(name, newLine({ transfer: false }));
    await expectTold(line, name);

    await newLine().getReliableQueue<string>(name).offer("in the stream", 60_000);
    await expectTold(line, name, 2);
  },
);

test("a client that polls without waiting is told", async () => {
  const name = uniqueName();
  await newLine().getReliableQueue<string>(name).offer("in the stream", 60_000);
  const line = newLineThatMayFail({ transfer: false });
  const ready = line.getBlockingQueue<string>(name);
  await eventually(async () => {
    expect(await ready.poll()).toBeUndefined();
    return line.errors.length > 0;
  });
  await expectTold(line, name);
});

test("a client that takes from two reliable queues at once is told of both", async () => {
  const names = [uniqueName(), uniqueName()] as const;
  for (const name of names) await newLine().getReliableQueue(name).offer("in the stream", 60_000);
  const line = newLineThatMayFail();
  const ready = line.getBlockingQueue(names[0]);
  const polling = ready.pollFromAny([names[1]], 60_000).catch(() => {});
  await eventually(() => line.errors.length === 2);
  const told = line.errors.map(({ message }) => /^queue "(.*?)" is reliable/.exec(message)?.[1]);
  expect(new Set(told)).toEqual(new Set(names));
  await line.close();
  await polling;
});

test("a reliable queue in partitions is told of once", async () => {
  const name = uniqueName();
  const partitions = 4;
  const queue = newLine().getReliableQueue<string>(name, { partitions });
  await queue.offerMany(Array.from({ length: 20 }, () => ({ payload: "in a stream", delay: 0 })));
  const line = newLineThatMayFail();
  const ready = line.getBlockingQueue<string>(name, { partitions });
  const taking = ready.take().catch(() => {});
  await expectTold(line, name);
  await lookAgain(name, line);
  await expectTold(line, name);
  await line.close();
  await taking;
});

test("a client that only offers, moves, looks or takes reliably is told nothing", async () => {
  const name = uniqueName();
  const line = newLine();
  const reliable = line.getReliableQueue<string>(name);
  const delayed = newLine().getDelayedQueue<string>(name);
  const other = newLine({ transfer: false });
  await delayed.offer("taken", 0);
  expect((await reliable.take()).payload).toBe("taken");
  await other.getBlockingQueue<string>(name).put("ready");
  expect(await other.getBlockingQueue<string>(name).peek()).not.toBe("taken");
  await lookAgain(name, line);
});

test("a process that makes a queue plain, and takes from it then, is told nothing", async () => {
  const name = uniqueName();
  const reliable = newLine();
  await reliable.getReliableQueue<string>(name).offer("ready", 0);
  await reliable.close();
  const line = newLine();
  await eventually(async () => (await line.getDelayedQueue<string>(name).makePlain()).isPlain);
  expect(await line.getBlockingQueue<string>(name).take()).toBe("ready");
});
