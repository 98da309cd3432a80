import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { ClosedError, Delayline, type BlockingQueue, type DelayedQueue } from "../../src/index.ts";
import { startChild } from "../helpers/child.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";
import { expectEachOnce } from "../helpers/ledger.ts";
import { upTo } from "../helpers/numbers.ts";

/** Milliseconds that something takes. */
async function timeOf(doing: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await doing();
  return performance.now() - startedAt;
}

/** The connections named by the library, on a server that nobody else uses. */
async function connectionCount(url: string): Promise<number> {
  const list = String(await newRedis(url).client("LIST"));
  return list.split("\n").filter((one) => one.includes(" name=delayline:")).length;
}

test("closes before anything has connected, and a second time", async () => {
  const line = new Delayline({ redis: redisUrl() });
  await Promise.all([line.close(), line.close()]);
  await line.close();
  await line.close();
});

test("closes while it connects", async () => {
  const server = await startOwnServer();
  for (const delay of [0, 0, 1, 2, 3, 5, 8]) {
    const line = newLine({ redis: server.url });
    line.getDelayedQueue(uniqueName());
    const take = line.getBlockingQueue(uniqueName()).take();
    const rejection = expect(take).rejects.toBeInstanceOf(ClosedError);
    if (delay > 0) await sleep(delay);
    await line.close();
    await rejection;
    expect(line.errors).toEqual([]);
  }
  await eventually(async () => (await connectionCount(server.url)) === 0);
});

test("leaves no connection behind", async () => {
  const server = await startOwnServer();
  const lines = upTo(3).map(() => newLine({ redis: server.url }));
  for (const line of lines) {
    const queue = line.getDelayedQueue(uniqueName());
    await queue.offer("message", 60_000);
    await line.getBlockingQueue(queue.name).poll(10);
  }
  await eventually(async () => expect(await connectionCount(server.url)).toBe(12));
  await Promise.all(lines.map((line) => line.close()));
  await eventually(async () => (await connectionCount(server.url)) === 0);
});

test("leaves nothing behind that keeps the process alive", async () => {
  const worker = new URL("workers/left-behind.ts", import.meta.url);
  const child = startChild<string[]>(worker, {
    env: { REDIS: redisUrl(), QUEUE: uniqueName() },
  });
  expect(await child.next()).toEqual([]);
  expect(await child.exit).toEqual({ code: 0, signal: null });
});

test("outstanding waits reject, and no message that arrives is lost", async () => {
  const line = newLine({ unreachableTimeout: 30_000 });
  const name = uniqueName();
  const queue = line.getBlockingQueue<string>(name, { codec: "string" });
  const waits = [
    queue.take(),
    queue.take({ signal: new AbortController().signal }),
    queue.poll(60_000),
    queue.takeMany({ limit: 5 }),
    queue.pollFromAny([uniqueName()], 60_000),
  ];
  const rejections = waits.map((wait) => expect(wait).rejects.toBeInstanceOf(ClosedError));
  const iterating = (async () => {
    for await (const message of queue) throw new Error(`nobody sent ${message}`);
  })();
  const redis = newRedis();
  const isBlocked = async () => String(await redis.client("LIST")).includes(`:blocking:${name} `);
  await eventually(isBlocked);

  // At once, and not when `unreachableTimeout` has passed.
  expect(await timeOf(() => line.close())).toBeLessThan(15_000);
  await Promise.all(rejections);
  await iterating;
  await redis.rpush(name, "late");
  expect(await redis.lrange(name, 0, -1)).toEqual(["late"]);
});

test("waits for running handlers, which may still offer, put and read", async () => {
  const line = newLine({ codec: "string" });
  const name = uniqueName();
  const delayed = line.getDelayedQueue<string>(name);
  const ready = line.getBlockingQueue<string>(name);
  const redis = newRedis();
  const steps: string[] = [];
  const allowed = new AbortController();
  ready.subscribe(async (message) => {
    steps.push(`begins ${message}`);
    await once(allowed.signal, "abort");
    await delayed.offer("again", 60_000);
    await ready.put("put");
    steps.push(`has ${await delayed.size()} delayed`);
  });
  await delayed.offerMany([1, 2, 3].map((n) => ({ payload: `message ${n}`, delay: 0 })));
  await eventually(() => steps.length === 1);

  const closing = line.close().then(() => steps.push("closed"));
  // It still waits long after `unreachableTimeout` (2 s here).
  await sleep(2_500);
  expect(steps).toEqual(["begins message 1"]);
  allowed.abort();
  await closing;
  expect(steps).toEqual(["begins message 1", "has 1 delayed", "closed"]);
  // The other messages were not taken.
  expect(await redis.lrange(name, 0, -1)).toEqual(["message 2", "message 3", "put"]);
});

/** What a handler does with queues that its client opens for the first time. Returns what it found there. */
async function followUp(line: Delayline, name: string, settings: { partitions?: number }) {
  const delayed = line.getDelayedQueue<string>(`${name}-delayed`, settings);
  const { id } = await delayed.offer("next", 60_000, { key: "key" });
  await delayed.offer("last", 60_000, { key: "other" });
  const isCancelled = await delayed.cancel("other");
  const found = await delayed.get(id);
  const reliable = line.getReliableQueue<string>(`${name}-reliable`, settings);
  await reliable.offerMany([{ payload: "next", delay: 60_000, headers: { from: name } }]);
  const ready = line.getBlockingQueue<string>(`${name}-ready`, settings);
  await ready.put("next");
  // Nothing new is taken.
  const refusals = await Promise.allSettled([
    ready.take(),
    ready.takeMany({ limit: 2 }),
    reliable.take(),
    (async () => await ready.subscribe(() => {}).ended)(),
    (async () => await reliable.subscribe(() => {}).ended)(),
  ]);
  for await (const message of ready) throw new Error(`took ${message}`);
  for await (const { payload } of reliable) throw new Error(`took ${payload}`);
  return {
    isCancelled,
    found: found?.payload,
    sizes: [await delayed.size(), await reliable.size(), await ready.size()],
    refused: refusals.filter(
      (one) => one.status === "rejected" && one.reason instanceof ClosedError,
    ).length,
  };
}

test.each([
  ["ordinary", {}],
  ["partitioned", { partitions: 3 }],
])(
  "running handlers and bodies of loops may open %s queues while it waits",
  async (_, settings) => {
    const { url } = await startOwnServer();
    const line = newLine({ redis: url, codec: "string" });
    const name = uniqueName();
    const allowed = new AbortController();
    let running = 0;
    const done: Record<string, unknown> = {};
    const work = async (who: string) => {
      running++;
      if (!allowed.signal.aborted) await once(allowed.signal, "abort");
      done[who] = await followUp(line, `${name}-${who}`, settings);
    };
    const plain = ["handler", "loop"].map((how) => line.getBlockingQueue(`${name}-plain-${how}`));
    const reliable = ["handler", "loop"].map((how) =>
      line.getReliableQueue(`${name}-reliable-${how}`),
    );
    plain[0]?.subscribe(() => work("plain-handler"));
    reliable[0]?.subscribe(() => work("reliable-handler"));
    const loops = [
      (async () => {
        for await (const message of plain[1]!) {
          expect(message).toBe("first");
          await work("plain-loop");
        }
      })(),
      (async () => {
        for await (const delivery of reliable[1]!) {
          await work("reliable-loop");
          await delivery.ack();
        }
      })(),
    ];
    for (const queue of plain) await queue.put("first");
    for (const queue of reliable) await queue.offer("first", 0);
    await eventually(() => running === 4);

    const closing = line.close();
    await eventually(async () => {
      // It has stopped taking by then.
      const take = plain[0]?.take({ signal: AbortSignal.timeout(10) });
      await expect(take).rejects.toBeInstanceOf(ClosedError);
    });
    allowed.abort();
    await Promise.all([closing, ...loops]);
    const all = ["plain-handler", "reliable-handler", "plain-loop", "reliable-loop"];
    const expected = { isCancelled: true, found: "next", sizes: [1, 1, 1], refused: 5 };
    expect(done).toEqual(Object.fromEntries(all.map((who) => [who, expected])));

    // Every offer is in Redis, and every message of the reliable queues is acknowledged.
    const other = newLine({ redis: url, codec: "string", transfer: false });
    for (const who of all) {
      const base = `${name}-${who}`;
      expect(
        await other.getDelayedQueue(`${base}-delayed`, settings).insertionOrder.readAll(),
      ).toEqual(["next"]);
      expect(
        await other.getDelayedQueue(`${base}-reliable`, settings).insertionOrder.readAll(),
      ).toEqual(["next"]);
      expect(await other.getBlockingQueue(`${base}-ready`, settings).readAll()).toEqual(["next"]);
    }
    for (const { name: queue } of reliable) {
      expect(await other.stats(queue)).toMatchObject({ ready: 0, inFlight: 0, delayed: 0 });
    }
    expect(() => line.getDelayedQueue(`${name}-delayed`, settings)).toThrow(ClosedError);
    await other.close();
    await eventually(async () => (await connectionCount(url)) === 0);
  },
);

test("a queue that a handler opens during close does not move or take anything", async () => {
  const line = newLine({ codec: "string" });
  const name = uniqueName();
  const allowed = new AbortController();
  const ready = line.getBlockingQueue<string>(name);
  let hasBegun = false;
  let isDone = false;
  ready.subscribe(async () => {
    hasBegun = true;
    await once(allowed.signal, "abort");
    await line.getDelayedQueue<string>(`${name}-next`).offer("due", 0);
    const next = line.getBlockingQueue<string>(`${name}-next`);
    // A transfer task would move it meanwhile.
    for (const _ of upTo(100)) expect(await next.poll()).toBeUndefined();
    isDone = true;
  });
  await ready.put("first");
  // Until its handler has begun, a message that was taken would be given back.
  await eventually(() => hasBegun);
  const closing = line.close();
  allowed.abort();
  await closing;
  expect(isDone).toBe(true);
  const next = newLine({ codec: "string" }).getBlockingQueue<string>(`${name}-next`);
  expect(await next.take()).toBe("due");
});

test("no queue is opened during close once no handler runs, or after its timeout", async () => {
  const idle = newLine();
  idle.getBlockingQueue(uniqueName()).subscribe(() => {});
  const closing = idle.close();
  expect(() => idle.getDelayedQueue(uniqueName())).toThrow(ClosedError);
  await closing;

  const line = newLineThatMayFail();
  const ready = line.getBlockingQueue<string>(uniqueName());
  const left = new AbortController();
  let hasBegun = false;
  let outcome: unknown;
  ready.subscribe(async () => {
    hasBegun = true;
    await once(left.signal, "abort");
    try {
      line.getDelayedQueue(uniqueName());
    } catch (error) {
      outcome = error;
    }
  });
  await ready.put("first");
  // Not when it has left Redis: what reaches a closing client goes back.
  await eventually(() => hasBegun);
  await line.close({ handlerTimeout: 50 });
  left.abort();
  await eventually(() => outcome instanceof ClosedError);
});

test("offers in progress are settled", async () => {
  const line = newLine({ codec: "json" });
  const delayed = line.getDelayedQueue<number>(uniqueName());
  const offers = upTo(1000).map((n) => delayed.offer(n, 60_000));
  await line.close();
  await Promise.all(offers);
  expectEachOnce(
    upTo(1000),
    await newLine({ codec: "json" }).getDelayedQueue<number>(delayed.name).insertionOrder.readAll(),
  );
});

/** A client with every kind of work in progress. */
async function busyLine(url: string, unreachableTimeout: number) {
  const line = newLineThatMayFail({ redis: url, unreachableTimeout });
  const name = uniqueName();
  const delayed = line.getDelayedQueue<string>(name);
  const ready = line.getBlockingQueue<string>(name);
  const received: string[] = [];
  await delayed.offer("first", 0);
  ready.subscribe((message) => received.push(message), { concurrency: 3 });
  await eventually(() => received.length === 1);
  return { line, delayed, ready };
}

test.for(["gone", "frozen", "silent"] as const)(
  "gives up after unreachableTimeout while Redis is %s",
  async (how) => {
    const server = await startOwnServer();
    const proxy = await startProxy(server.url);
    const unreachableTimeout = 1_500;
    // Some have just lost Redis, others have tried to reach it for a while, and one never could.
    const busy = await Promise.all(upTo(3).map(() => busyLine(proxy.url, unreachableTimeout)));
    if (how === "gone") {
      proxy.refuse();
      proxy.cut();
    }
    if (how === "frozen") server.pause();
    if (how === "silent") proxy.swallow();
    const never = newLineThatMayFail({ redis: proxy.url, unreachableTimeout });
    busy.push({
      line: never,
      delayed: never.getDelayedQueue(uniqueName()),
      ready: never.getBlockingQueue(uniqueName()),
    });

    await Promise.all(
      busy.map(async ({ line, delayed, ready }, i) => {
        // None of these gets a reply.
        const calls: Promise<unknown>[] = [
          delayed.offer("offered", 10),
          ready.put("put"),
          delayed.insertionOrder.poll(),
          ready.poll(),
          ready.take(),
          line.serverTime().then(() => Promise.reject(new Error("knew it"))),
        ];
        const outcomes = Promise.allSettled(calls);
        await sleep(i * 400);
        // A busy machine takes longer. Without the limit it would not end at all while Redis is away.
        expect(await timeOf(() => line.close())).toBeLessThan(unreachableTimeout + 10_000);
        const left = sleep(10_000, "some calls are not settled");
        const settled = await Promise.race([outcomes, left]);
        expect(settled).toEqual(calls.map(() => expect.objectContaining({ status: "rejected" })));
      }),
    );
  },
);

test("a message held by the process is given back when Redis comes back in time", async () => {
  const name = uniqueName();
  const proxy = await startProxy(redisUrl());
  const line = newLineThatMayFail({ redis: proxy.url, unreachableTimeout: 10_000 });
  const queue = line.getBlockingQueue<string>(name, { codec: "string", transfer: false });
  const redis = newRedis();
  const controller = new AbortController();
  const take = queue.take({ signal: controller.signal });
  const rejection = expect(take).rejects.toThrow("aborted");
  await eventually(async () => String(await redis.client("LIST")).includes(`:blocking:${name} `));

  // The message is on its way when the taker leaves, and the connection that gives messages back breaks.
  proxy.onReply = (chunk) => {
    if (!chunk.includes("in hand")) return "forward";
    proxy.onReply = undefined;
    controller.abort();
    proxy.refuse();
    for (const connection of proxy.connections.slice(0, -1)) connection.cut();
    return "forward";
  };
  await redis.rpush(name, "in hand");
  await rejection;
  const closing = line.close();
  await sleep(300);
  expect(await redis.llen(name)).toBe(0);
  await proxy.accept();
  await closing;
  expect(await redis.lrange(name, 0, -1)).toEqual(["in hand"]);
});

test("a unreachableTimeout may be longer than Node's longest timer", async () => {
  const warnings: Error[] = [];
  const listen = (warning: Error) => warnings.push(warning);
  process.on("warning", listen);
  const line = newLine({ unreachableTimeout: 2 ** 31 });
  await line.getDelayedQueue<number>(uniqueName()).offer(1, 0);
  await line.close();
  process.off("warning", listen);
  // Node warns when it fires such a timer at once.
  expect(warnings.filter(({ name }) => name === "TimeoutOverflowWarning")).toEqual([]);
});

test("lent clients stay usable, even if Redis was down", async () => {
  const proxy = await startProxy(redisUrl());
  const lent = newRedis(proxy.url, { retryStrategy: () => 20 });
  const line = newLineThatMayFail({ redis: lent, unreachableTimeout: 200 });
  const name = uniqueName();
  await line.getDelayedQueue(name).offer("message", 60_000);
  proxy.refuse();
  proxy.cut();
  const take = expect(line.getBlockingQueue(name).take()).rejects.toBeInstanceOf(ClosedError);
  await line.close();
  await take;
  await proxy.accept();
  expect(await lent.ping()).toBe("PONG");
  // The library's own connections to the proxy are gone.
  await eventually(() => proxy.connections.length === 1);
});

test("after close every method rejects", async () => {
  const line = newLine();
  const name = uniqueName();
  const delayed: DelayedQueue<string> = line.getDelayedQueue<string>(name);
  const ready: BlockingQueue<string> = line.getBlockingQueue<string>(name);
  await delayed.offer("message", 60_000);
  await line.close();

  const calls: Record<string, () => unknown> = {
    offer: () => delayed.offer("x", 1),
    offerAt: () => delayed.offerAt("x", new Date()),
    offerMany: () => delayed.offerMany([{ payload: "x", delay: 1 }]),
    "offerMany of none": () => delayed.offerMany([]),
    "delayed size": () => delayed.size(),
    isEmpty: () => delayed.isEmpty(),
    nextDeadline: () => delayed.nextDeadline(),
    "delayed peek": () => delayed.insertionOrder.peek(),
    "delayed poll": () => delayed.insertionOrder.poll(),
    "delayed poll of many": () => delayed.insertionOrder.poll(5),
    "delayed readAll": () => delayed.insertionOrder.readAll(),
    "delayed iteration": () => delayed.insertionOrder[Symbol.asyncIterator]().next(),
    contains: () => delayed.insertionOrder.contains("x"),
    remove: () => delayed.insertionOrder.remove("x"),
    removeAll: () => delayed.insertionOrder.removeAll(["x"]),
    retainAll: () => delayed.insertionOrder.retainAll(["x"]),
    "delayed clear": () => delayed.clear(),
    pollLastAndOfferFirstTo: () => delayed.insertionOrder.pollLastAndOfferFirstTo("other"),
    take: () => ready.take(),
    poll: () => ready.poll(),
    "poll with a timeout": () => ready.poll(10),
    takeMany: () => ready.takeMany({ limit: 2 }),
    "takeMany without waiting": () => ready.takeMany({ limit: 2, timeout: 0 }),
    pollFromAny: () => ready.pollFromAny(["other"]),
    "pollFromAny with a timeout": () => ready.pollFromAny(["other"], 10),
    "pollFromAny of no other": () => ready.pollFromAny([]),
    subscribe: () => ready.subscribe(() => {}),
    put: () => ready.put("x"),
    putMany: () => ready.putMany(["x"]),
    peek: () => ready.peek(),
    size: () => ready.size(),
    readAll: () => ready.readAll(),
    drain: () => ready.drain(),
    clear: () => ready.clear(),
    serverTime: () => line.serverTime(),
    getDelayedQueue: () => line.getDelayedQueue(name),
    getBlockingQueue: () => line.getBlockingQueue(name),
  };
  const outcomes: Record<string, unknown> = {};
  for (const [call, doing] of Object.entries(calls)) {
    try {
      const result = await doing();
      outcomes[call] = `answered ${String(result)}`;
    } catch (error) {
      if (!(error instanceof ClosedError)) outcomes[call] = error;
    }
  }
  expect(outcomes).toEqual({});
  // A loop over messages simply ends.
  for await (const message of ready) throw new Error(`nobody sent ${message}`);
});

test("without an error listener the process lives and is warned", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const worker = new URL("workers/unheard.ts", import.meta.url);
  const child = startChild<{ message: string } | "ready">(worker, {
    env: { REDIS: redisUrl(), QUEUE: name },
  });
  await child.next();

  // A handler that throws, bytes that are not JSON, poison, a refused transfer, lost connections.
  const timeouts = `redisson_delay_queue_timeout:{${name}}`;
  await redis.rpush(name, '"one"', "{ no json");
  await redis.zadd(timeouts, 1, "poison");
  await redis.publish(`redisson_delay_queue_channel:{${name}}`, "0");
  await eventually(() => child.stderr.includes("HandlerError"));
  await eventually(() => child.stderr.includes("DecodeError"));
  await eventually(() => child.stderr.includes("QuarantineError"));
  await redis.set(timeouts, "somebody else's");
  await redis.publish(`redisson_delay_queue_channel:{${name}}`, "0");
  await eventually(() => child.stderr.includes("WRONGTYPE"));
  await redis.del(timeouts);

  await redis.rpush(name, '"last"');
  await child.next((sent) => sent !== "ready" && sent.message === "last");
  await child.send("close");
  expect(await child.exit).toEqual({ code: 0, signal: null });
  expect(child.stderr).not.toContain("Unhandled");
  expect(child.stderr).toContain("[HANDLER] HandlerError");
  // Includes what the handler threw: where, and why.
  expect(child.stderr).toMatch(/Error: the handler does not like one\n +at .*unheard\.ts/);
});

test("a listener that throws does not end the work", async () => {
  const line = newLineThatMayFail({ codec: "json" });
  const thrown: unknown[] = [];
  const onUncaught = (error: unknown) => void thrown.push(error);
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", onUncaught);
  try {
    line.on("error", () => {
      throw new Error("from the listener");
    });
    const name = uniqueName();
    const received: string[] = [];
    line.getBlockingQueue<string>(name).subscribe((message) => received.push(message));
    await newRedis().rpush(name, "{ no json", '"after"');
    await eventually(() => received.length === 1);
    // The listener's own error surfaces unchanged.
    await eventually(() => thrown.length === 1);
  } finally {
    process.off("uncaughtException", onUncaught);
    for (const other of others) process.on("uncaughtException", other);
  }
});
