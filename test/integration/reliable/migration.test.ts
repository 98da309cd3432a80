import type { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { transferAsRedisson } from "../../helpers/redisson.ts";

// The migration from a plain queue to a reliable one and back, as in the guide, while other processes run on.

/** Offers until it is stopped, from a client that opened only the plain queue. */
class Producer {
  readonly offered: string[] = [];
  #isStopped = false;
  readonly #done: Promise<void>;

  constructor(name: string, line: TestLine) {
    this.#done = this.#run(name, line);
  }

  async #run(name: string, line: TestLine): Promise<void> {
    const queue = line.getDelayedQueue<string>(name);
    while (!this.#isStopped) {
      const payload = `message ${this.offered.length}`;
      await queue.offer(payload, Math.random() * 20);
      this.offered.push(payload);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#done;
  }
}

/** A mover that does not know streams, and pushes to the LIST, like an older release or Java. */
function startOldMover(redis: Redis, name: string): void {
  const stopping = new AbortController();
  const moving = (async () => {
    while (!stopping.signal.aborted) await transferAsRedisson(redis, name);
  })();
  onTestFinished(async () => {
    stopping.abort();
    await moving;
  });
}

test("from plain to reliable and back, while others offer and move: every message is handled", async () => {
  const [redis, name] = [newRedis(), uniqueName()];
  const { stream, retries, retrying, ready } = queueKeys(name);
  const handled = new Set<string>();
  const startPlain = (): TestLine => {
    const line = newLineThatMayFail({ codec: "string" });
    line.getBlockingQueue<string>(name).subscribe((payload) => handled.add(payload));
    return line;
  };
  /** A consumer whose handler fails once for every third message. */
  const startReliable = (): TestLine => {
    const line = newLine({ codec: "string" });
    line.getReliableQueue<string>(name, { retry: [300_000] }).subscribe(
      (payload, { attempt }) => {
        if (attempt === 1 && payload.endsWith("3")) throw new Error("not yet");
        handled.add(payload);
      },
      { concurrency: 5, onError: () => {} },
    );
    return line;
  };
  const producer = new Producer(name, newLine({ codec: "string" }));
  startOldMover(newRedis(), name);
  const hasHandled = async (more: number): Promise<void> => {
    const before = handled.size;
    await eventually(() => handled.size >= before + more);
  };

  // Plain.
  const plain = [startPlain(), startPlain()];
  await hasHandled(100);
  expect(await redis.exists(stream)).toBe(0);

  // They are replaced one by one.
  const reliable: TestLine[] = [];
  for (const line of plain) {
    reliable.push(startReliable());
    await hasHandled(50);
    await line.close();
    // If it had the time, it was told that the queue has become reliable.
    expect(line.errors.slice(1)).toEqual([]);
    for (const { code } of line.errors) expect(code).toBe("WRONG_HANDLE");
    await hasHandled(50);
  }
  expect(await redis.exists(stream)).toBe(1);
  await eventually(async () => (await redis.zcard(retries)) > 10);

  // And back: first all clients of the reliable queue are closed, then it is made plain.
  for (const line of reliable) await line.close();
  const operator = newLine({ codec: "string", transfer: false }).getDelayedQueue<string>(name);
  await eventually(async () => (await redis.xlen(stream)) > 10);
  await eventually(async () => (await operator.makePlain()).isPlain);
  expect(await redis.exists(stream, retries, retrying)).toBe(0);
  const again = startPlain();
  await hasHandled(100);
  await producer.stop();

  // Messages that had failed once are delayed messages now.
  const waiting = new Set(await operator.insertionOrder.readAll());
  expect(waiting.size).toBeGreaterThan(10);
  for await (const { id } of operator.soonest()) await operator.promote(id);
  const { offered } = producer;
  await eventually(() => handled.size === offered.length, { within: 10_000 });
  expect(await redis.exists(stream, retries, retrying, ready)).toBe(0);
  expect(again.errors).toEqual([]);
});

test("ready messages are taken over, with a new id, and without key and headers", async () => {
  const name = uniqueName();
  const plain = newLine({ codec: "string" });
  const { id } = await plain.getDelayedQueue<string>(name).offer("before", 0, { key: "k" });
  await eventually(async () => (await newRedis().llen(name)) === 1);
  const queue = newLine({ codec: "string" }).getReliableQueue<string>(name);
  const delivery = await queue.take();
  expect(delivery).toMatchObject({ payload: "before", key: undefined, headers: {}, attempt: 1 });
  expect(delivery.id).not.toBe(id);
  await delivery.ack();
});

test("a message that is delayed while the queue becomes reliable keeps its id and its key", async () => {
  const name = uniqueName();
  const plain = newLine({ codec: "string" });
  const { id } = await plain.getDelayedQueue<string>(name).offer("later", 300, { key: "k" });
  const queue = newLine({ codec: "string" }).getReliableQueue<string>(name);
  expect(await queue.take()).toMatchObject({ id, payload: "later", key: "k", attempt: 1 });
});

test("a queue is not made plain while a consumer lives, nor by a client that has it open", async () => {
  const name = uniqueName();
  const line = newLine({ codec: "string" });
  const reliable = line.getReliableQueue<string>(name);
  await reliable.offer("x", 0);
  const delivery = await reliable.take();
  const plain = newLine({ codec: "string" }).getDelayedQueue<string>(name);
  expect(await plain.makePlain()).toMatchObject({ isPlain: false, consumers: 1, ready: 1 });
  await expect(line.getDelayedQueue<string>(name).makePlain()).rejects.toThrow(TypeError);
  await delivery.ack();
  await line.close();
  expect(await plain.makePlain()).toMatchObject({ isPlain: true, moved: 0 });
});

test("plain processes that filled the stream return to the LIST, and take again", async () => {
  const [redis, name] = [newRedis(), uniqueName()];
  const { stream } = queueKeys(name);
  const follower = newLine({ codec: "string" });
  const queue = follower.getDelayedQueue<string>(name);
  const line = newLine({ codec: "string", transfer: false });
  await line.getReliableQueue<string>(name).offer("reliable", 0);
  await eventually(async () => (await redis.xlen(stream)) === 1);
  await line.close();
  expect(await queue.makePlain()).toMatchObject({ isPlain: true, moved: 1 });
  const ready = newLine({ codec: "string", transfer: false }).getBlockingQueue<string>(name);
  expect(await ready.take()).toBe("reliable");
  for (const payload of ["one", "two", "three"]) {
    await queue.offer(payload, 10);
    expect(await ready.take()).toBe(payload);
  }
  await redis.rpush(name, "pushed");
  expect(await ready.take()).toBe("pushed");
  expect(await redis.exists(stream)).toBe(0);
});
