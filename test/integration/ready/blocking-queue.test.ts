import { getEventListeners } from "node:events";
import type { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import { ClosedError, type BlockingQueue } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import type { TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";
import { upTo } from "../../helpers/numbers.ts";
import { blockedConnections, someoneWaits } from "../../helpers/blocked.ts";

const MINUTE = 60_000;

let redis: Redis;
let name: string;
let line: TestLine;
let queue: BlockingQueue;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("ready");
  line = newLine();
  queue = line.getBlockingQueue(name);
});

test("has the queue's name", () => {
  expect(queue.name).toBe(name);
});

describe("take", () => {
  test("takes the oldest ready message", async () => {
    await queue.putMany(["a", "b", "c"]);
    expect(await queue.take()).toBe("a");
    expect(await queue.take()).toBe("b");
    expect(await queue.size()).toBe(1);
  });

  test("waits for a message", async () => {
    const taking = queue.take();
    await someoneWaits(redis, name);
    await queue.put("a");
    expect(await taking).toBe("a");
  });

  test("serves waiters in the order of their calls", async () => {
    const takes = upTo(4).map(() => queue.take());
    await someoneWaits(redis, name);
    takes.push(...upTo(4).map(() => queue.take()));
    await queue.putMany(upTo(8));
    expect(await Promise.all(takes)).toEqual(upTo(8));
  });

  test("serves the first caller first, although later waiters want more or have a timeout", async () => {
    const first = queue.take();
    await someoneWaits(redis, name);
    const second = queue.takeMany({ limit: 10 });
    const third = queue.poll(MINUTE);
    await queue.put("a");
    expect(await first).toBe("a");
    await queue.put("b");
    expect(await second).toEqual(["b"]);
    await queue.put("c");
    expect(await third).toBe("c");
  });

  test("by many, in sequence and at once, loses and duplicates no message", async () => {
    const taken: unknown[] = [];
    const takers = upTo(20).map(async () => {
      for (let i = 0; i < 25; i++) taken.push(await queue.take());
    });
    for (let i = 0; i < 500; i += 10) await queue.putMany(upTo(10).map((k) => i + k));
    await Promise.all(takers);
    expect(taken.toSorted((a, b) => Number(a) - Number(b))).toEqual(upTo(500));
    expect(await queue.size()).toBe(0);
  });

  test("fetches no more than the waiters want", async () => {
    await queue.putMany(upTo(10));
    await Promise.all([queue.take(), queue.take(), queue.take()]);
    expect(await queue.readAll()).toEqual([3, 4, 5, 6, 7, 8, 9]);
  });

  test("by all handles of a queue shares one connection", async () => {
    const other = line.getBlockingQueue(name);
    const takes = [queue.take(), other.take(), queue.poll(MINUTE), other.takeMany({ limit: 2 })];
    await someoneWaits(redis, name);
    const named = String(await redis.client("LIST"))
      .split("\n")
      .filter((client) => client.includes(` name=delayline:blocking:${name} `));
    expect(named).toHaveLength(1);
    // One by one, since takeMany would take two of them.
    for (let i = 0; i < 4; i++) {
      await queue.put(i);
      await eventually(async () => (await queue.size()) === 0);
    }
    expect(await Promise.all(takes)).toEqual([0, 1, 2, [3]]);
  });

  test("with an aborted signal rejects with its reason, and takes nothing", async () => {
    await queue.put("a");
    const reason = new Error("no longer needed");
    await expect(queue.take({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await expect(queue.takeMany({ limit: 1, signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    );
    await expect(
      queue.takeMany({ limit: 1, timeout: 0, signal: AbortSignal.abort(reason) }),
    ).rejects.toBe(reason);
    expect(await queue.size()).toBe(1);
  });

  test.each([
    ["an Error", new Error("enough")],
    ["a text", "enough"],
    ["undefined", undefined],
  ])("rejects with the signal's reason when it is aborted: %s", async (_, reason) => {
    const aborting = new AbortController();
    const taking = queue.take({ signal: aborting.signal });
    await someoneWaits(redis, name);
    aborting.abort(reason);
    await expect(taking).rejects.toBe(aborting.signal.reason);
    // The wait in Redis is over as well: a message that arrives now stays.
    await eventually(async () => (await blockedConnections(redis, name)).length === 0);
    await queue.put("a");
    expect(await queue.readAll()).toEqual(["a"]);
  });

  test("leaves the other waiters waiting when it is aborted", async () => {
    const aborting = new AbortController();
    const aborted = queue.take({ signal: aborting.signal });
    const waiting = queue.take();
    await someoneWaits(redis, name);
    aborting.abort();
    await expect(aborted).rejects.toThrow("aborted");
    await queue.put("a");
    expect(await waiting).toBe("a");
  });

  test("leaves no listener on a signal that is used many times", async () => {
    const aborting = new AbortController();
    const { signal } = aborting;
    await queue.putMany(upTo(50));
    for (const i of upTo(50)) expect(await queue.take({ signal })).toBe(i);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    // While a call waits, there is one listener.
    const waiting = queue.take({ signal });
    await someoneWaits(redis, name);
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    aborting.abort();
    await expect(waiting).rejects.toThrow("aborted");
  });
});

describe("poll", () => {
  test.each([[undefined], [0], [-0]])("with a timeout of %s does not wait", async (timeout) => {
    expect(await queue.poll(timeout)).toBeUndefined();
    await queue.putMany(["a", "b"]);
    expect(await queue.poll(timeout)).toBe("a");
    expect(await queue.size()).toBe(1);
  });

  test("without a timeout opens no blocking connection", async () => {
    await queue.put("a");
    await queue.poll();
    await queue.poll(0);
    expect(String(await redis.client("LIST"))).not.toContain(`name=delayline:blocking:${name} `);
  });

  test.each([0.25, 1, 20.5, 60])("waits at least %d ms, and returns undefined", async (timeout) => {
    const startedAt = performance.now();
    expect(await queue.poll(timeout)).toBeUndefined();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(timeout);
  });

  test("returns a message that arrives in time", async () => {
    const polling = queue.poll(MINUTE);
    await someoneWaits(redis, name);
    await queue.put("a");
    expect(await polling).toBe("a");
  });

  test.each([0.01, 1])(
    "returns a ready message, however short the timeout: %d ms",
    async (timeout) => {
      // The blocking connection is not open yet, and opening it may take longer than that.
      const others = [uniqueName("other"), uniqueName("other")] as const;
      for (const of of [name, ...others]) await redis.rpush(of, Buffer.from("a161", "hex"));
      expect(await queue.poll(timeout)).toBe("a");
      expect(await line.getBlockingQueue(others[0]).takeMany({ limit: 1, timeout })).toEqual(["a"]);
      expect(await queue.pollFromAny(others.slice(1), timeout)).toMatchObject({ payload: "a" });
    },
  );

  test("returns a ready message although the reply comes after the timeout", async () => {
    const proxy = await startProxy(redisUrl());
    const far = newLine({ redis: proxy.url }).getBlockingQueue(name);
    // Opens the blocking connection.
    await queue.put("to begin with");
    expect(await far.take()).toBe("to begin with");

    proxy.delay.reply = 200;
    await queue.put("a");
    expect(await far.poll(20)).toBe("a");
    expect(await queue.size()).toBe(0);
  });

  test("queues behind the calls that already wait", async () => {
    const waiting = queue.take();
    await someoneWaits(redis, name);
    const polling = queue.poll(MINUTE);
    await queue.putMany(["for the other", "a"]);
    expect(await waiting).toBe("for the other");
    expect(await polling).toBe("a");
  });

  test("takes nothing after its timeout", async () => {
    expect(await queue.poll(5)).toBeUndefined();
    await eventually(async () => (await blockedConnections(redis, name)).length === 0);
    await queue.put("a");
    expect(await queue.readAll()).toEqual(["a"]);
  });

  test.each([-1, NaN, Infinity])("refuses %d, and takes nothing", async (timeout) => {
    await queue.put("a");
    await expect(queue.poll(timeout)).rejects.toThrow(
      `timeout must be between 0 and 946728000000 ms (30 years), got ${timeout}`,
    );
    await expect(queue.pollFromAny([], timeout)).rejects.toThrow(RangeError);
    await expect(queue.takeMany({ limit: 1, timeout })).rejects.toThrow(RangeError);
    expect(await queue.size()).toBe(1);
  });

  test("refuses a timeout that is not a number", async () => {
    await expect(queue.poll("5" as never)).rejects.toThrow(
      new TypeError(
        "timeout must be a number of milliseconds, got string; convert it with Number; call poll(timeout, options)",
      ),
    );
    await expect(queue.poll(null as never)).rejects.toThrow(TypeError);
  });
});

describe("takeMany", () => {
  test("takes the ready messages at once, up to max", async () => {
    await queue.putMany(upTo(7));
    expect(await queue.takeMany({ limit: 5 })).toEqual([0, 1, 2, 3, 4]);
    expect(await queue.takeMany({ limit: 5 })).toEqual([5, 6]);
  });

  test("takes thousands at once", async () => {
    await queue.putMany(upTo(3000));
    expect(await queue.takeMany({ limit: 10_000 })).toEqual(upTo(3000));
  });

  test("returns as soon as there is a message", async () => {
    const taking = queue.takeMany({ limit: 100 });
    await someoneWaits(redis, name);
    await queue.put("a");
    expect(await taking).toEqual(["a"]);
  });

  test("loses none of the messages that arrive together while it waits", async () => {
    const taking = queue.takeMany({ limit: 3 });
    await someoneWaits(redis, name);
    await queue.putMany(upTo(5));
    const taken = await taking;
    expect(taken.length).toBeGreaterThanOrEqual(1);
    expect([...taken, ...(await queue.readAll())]).toEqual(upTo(5));
  });

  test("with a timeout of 0 does not wait", async () => {
    expect(await queue.takeMany({ limit: 5, timeout: 0 })).toEqual([]);
    await queue.putMany(["a", "b", "c"]);
    expect(await queue.takeMany({ limit: 2, timeout: 0 })).toEqual(["a", "b"]);
  });

  test("returns an empty array when no message came in time", async () => {
    const startedAt = performance.now();
    expect(await queue.takeMany({ limit: 5, timeout: 12.5 })).toEqual([]);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(12.5);
  });

  test("rejects when it is aborted", async () => {
    const aborting = new AbortController();
    const taking = queue.takeMany({ limit: 5, timeout: MINUTE, signal: aborting.signal });
    await someoneWaits(redis, name);
    aborting.abort(new Error("enough"));
    await expect(taking).rejects.toThrow("enough");
  });

  test.each([0, -1, 1.5, NaN, 10_001, Infinity])("refuses a limit of %d", async (limit) => {
    await expect(queue.takeMany({ limit })).rejects.toThrow(
      new RangeError(`limit must be a whole number between 1 and 10000, got ${limit}`),
    );
  });

  test("refuses to be called without a max", async () => {
    await expect(queue.takeMany({} as never)).rejects.toThrow(
      new TypeError("limit must be a whole number, got undefined"),
    );
  });
});

describe("options", () => {
  const noSignals: [unknown, string][] = [
    [null, "signal must be an AbortSignal, got null"],
    [new AbortController(), "signal must be an AbortSignal, got a controller; pass its signal"],
    ["abort", "signal must be an AbortSignal, got string"],
  ];

  test.each<[unknown, string]>([
    [
      { singal: AbortSignal.timeout(1) },
      'take option must be one of signal, got "singal"; did you mean signal?',
    ],
    [
      { timeout: 1 },
      'take option must be one of signal, got "timeout"; timeout is an option of takeMany',
    ],
    [5000, "take options must be an object, got 5000"],
    [null, "take options must be an object, got null"],
    ["5000", "take options must be an object, got a string"],
    ...noSignals.map(([signal, message]) => [{ signal }, message] as [unknown, string]),
  ])("of take are checked, and nothing is taken: %j", async (options, message) => {
    await redis.rpush(name, "a");
    await expect(queue.take(options as never)).rejects.toThrow(message);
    expect(await queue.size()).toBe(1);
  });

  test.each<[unknown, string]>([
    [
      { limit: 1, timeOut: 5 },
      'takeMany option must be one of limit, timeout, wait, signal, got "timeOut"; did you mean timeout?',
    ],
    [undefined, "takeMany options must be an object, got undefined"],
    [10, "takeMany options must be an object, got 10"],
    ...noSignals.map(([signal, message]) => [{ limit: 1, signal }, message] as [unknown, string]),
  ])("of takeMany are checked, and nothing is taken: %j", async (options, message) => {
    await redis.rpush(name, "a");
    await expect(queue.takeMany(options as never)).rejects.toThrow(message);
    expect(await queue.size()).toBe(1);
  });

  test.each<[unknown, string]>([
    [
      { concurency: 10 },
      'subscribe option must be one of concurrency, onError, got "concurency"; did you mean concurrency?',
    ],
    [10, "subscribe options must be an object, got 10; such as { concurrency }"],
    [null, "subscribe options must be an object, got null; such as { concurrency }"],
  ])("of subscribe are checked, and nothing is taken: %j", async (options, message) => {
    await redis.rpush(name, "a");
    expect(() => queue.subscribe(() => {}, options as never)).toThrow(new TypeError(message));
    expect(await queue.size()).toBe(1);
  });

  test("may all be undefined", async () => {
    await queue.putMany(["a", "b", "c"]);
    expect(await queue.take(undefined)).toBe("a");
    expect(await queue.take({ signal: undefined })).toBe("b");
    const rest = { limit: 5, timeout: undefined, signal: undefined } as never;
    expect(await queue.takeMany(rest)).toEqual(["c"]);
    await queue.subscribe(() => {}, { onError: undefined } as never).close();
  });

  test("the names of pollFromAny must be a list", async () => {
    for (const names of ["other", null, { length: 1 }]) {
      await expect(queue.pollFromAny(names as never)).rejects.toThrow("queues must be an array");
    }
  });
});

describe("put", () => {
  test("puts a message behind the ready ones", async () => {
    await queue.put("a");
    await queue.put({ order: 2 });
    await queue.putMany(new Set(["c", "d"]));
    expect(await queue.readAll()).toEqual(["a", { order: 2 }, "c", "d"]);
  });

  test("puts many in order, or none at all", async () => {
    await queue.putMany([]);
    await queue.putMany(upTo(350));
    expect(await queue.readAll()).toEqual(upTo(350));
  });

  test("puts none if one of many is bad", async () => {
    await expect(queue.putMany([...upTo(200), () => 1])).rejects.toMatchObject({ code: "ENCODE" });
    await expect(queue.putMany(["a", "x".repeat(2 ** 20)])).rejects.toMatchObject({
      code: "PAYLOAD_TOO_LARGE",
    });
    await expect(queue.put(() => 1)).rejects.toMatchObject({ code: "ENCODE" });
    expect(await queue.size()).toBe(0);
  });

  test("rejects with Redis's reply and the queue's name", async () => {
    await redis.set(name, "no LIST");
    await expect(queue.put("a")).rejects.toMatchObject({ code: "REDIS", reply: "WRONGTYPE" });
    await expect(queue.put("a")).rejects.toThrow(`cannot put into queue "${name}": WRONGTYPE`);
  });
});

describe("reading ready messages", () => {
  test("peek returns the oldest, which stays", async () => {
    expect(await queue.peek()).toBeUndefined();
    await queue.putMany(["a", "b"]);
    expect(await queue.peek()).toBe("a");
    expect(await queue.size()).toBe(2);
  });

  test("size counts ready messages, not delayed ones", async () => {
    expect(await queue.size()).toBe(0);
    await line.getDelayedQueue(name).offer("later", MINUTE);
    await queue.put("a");
    expect(await queue.size()).toBe(1);
  });

  test("readAll returns all, oldest first, and they stay", async () => {
    expect(await queue.readAll()).toEqual([]);
    await queue.putMany(upTo(1500));
    expect(await queue.readAll()).toEqual(upTo(1500));
    expect(await queue.size()).toBe(1500);
  });
});

describe("drain", () => {
  test("takes all, however many", async () => {
    expect(await queue.drain()).toEqual([]);
    await queue.putMany(upTo(2500));
    expect(await queue.drain()).toEqual(upTo(2500));
    expect(await queue.size()).toBe(0);
  });

  test("takes all if they exactly fill a batch", async () => {
    await queue.putMany(upTo(1000));
    expect(await queue.drain()).toEqual(upTo(1000));
  });

  test("takes at most as many as asked for", async () => {
    await queue.putMany(upTo(2500));
    expect(await queue.drain(0)).toEqual([]);
    expect(await queue.drain(3)).toEqual([0, 1, 2]);
    expect(await queue.drain(1500)).toEqual(upTo(1503).slice(3));
    expect(await queue.size()).toBe(997);
  });

  test.each([-1, 1.5, NaN, Infinity])("refuses %d, and takes nothing", async (max) => {
    await queue.put("a");
    await expect(queue.drain(max)).rejects.toThrow(RangeError);
    expect(await queue.size()).toBe(1);
  });
});

test("clear removes and counts ready messages; delayed ones stay", async () => {
  await line.getDelayedQueue(name).offer("later", MINUTE);
  await queue.putMany(upTo(30));
  expect(await queue.clear()).toBe(30);
  expect(await queue.clear()).toBe(0);
  expect(await queue.size()).toBe(0);
  expect(await line.getDelayedQueue(name).size()).toBe(1);
});

describe("pollFromAny", () => {
  let other: BlockingQueue;
  let third: BlockingQueue;

  beforeEach(() => {
    other = line.getBlockingQueue(uniqueName("other"));
    third = line.getBlockingQueue(uniqueName("third"));
  });

  const names = () => [other.name, third.name];

  test.each([
    ["without waiting", [] as number[]],
    ["without waiting, said so", [0]],
    ["waiting", [MINUTE]],
  ])("takes from the first queue that has a message: %s", async (_, timeout) => {
    await third.putMany(["t1", "t2"]);
    await other.put("o1");
    await queue.put("q1");
    const poll = () => queue.pollFromAny(names(), ...timeout);
    expect(await poll()).toEqual({ queue: name, payload: "q1" });
    expect(await poll()).toEqual({ queue: other.name, payload: "o1" });
    expect(await poll()).toEqual({ queue: third.name, payload: "t1" });
    expect(await third.size()).toBe(1);
  });

  test("returns undefined if no queue has one", async () => {
    expect(await queue.pollFromAny(names())).toBeUndefined();
    expect(await queue.pollFromAny(names(), 0)).toBeUndefined();
    const startedAt = performance.now();
    expect(await queue.pollFromAny(names(), 10.5)).toBeUndefined();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(10.5);
  });

  test("waits for the first message of any queue", async () => {
    const polling = queue.pollFromAny(names(), MINUTE);
    await someoneWaits(redis, name);
    await third.put("t");
    expect(await polling).toEqual({ queue: third.name, payload: "t" });
  });

  test("moves due messages of the other queues, too", async () => {
    const newcomer = uniqueName("newcomer");
    const producer = newLine({ transfer: false });
    await producer.getDelayedQueue(newcomer).offer("n", 10);
    expect(await queue.pollFromAny([newcomer], MINUTE)).toEqual({ queue: newcomer, payload: "n" });
  });

  test("without others is like poll, and returns the name", async () => {
    await queue.putMany(["a", "b"]);
    expect(await queue.pollFromAny([])).toEqual({ queue: name, payload: "a" });
    expect(await queue.pollFromAny([], MINUTE)).toEqual({ queue: name, payload: "b" });
  });

  test("serves many waiters, each with one message", async () => {
    const polling = upTo(6).map(() => queue.pollFromAny(names(), MINUTE));
    await someoneWaits(redis, name);
    await other.putMany([0, 1, 2]);
    await third.putMany([3, 4, 5]);
    const payloads = (await Promise.all(polling)).map((from) => from?.payload);
    expect(payloads.toSorted((a, b) => Number(a) - Number(b))).toEqual(upTo(6));
  });

  test.each([0, MINUTE])(
    "names queues without the client's key prefix (%d ms)",
    async (timeout) => {
      const lent = newRedis(redisUrl(), { keyPrefix: `shop-${uniqueName()}:` });
      const prefixed = newLine({ redis: lent });
      await prefixed.getBlockingQueue(other.name).put("o");
      const from = await prefixed.getBlockingQueue(name).pollFromAny([other.name], timeout);
      expect(from).toEqual({ queue: other.name, payload: "o" });
    },
  );

  test("refuses names that no queue can have", async () => {
    await expect(queue.pollFromAny(["a}b"])).rejects.toThrow(TypeError);
    await expect(queue.pollFromAny([""], 5)).rejects.toThrow("queue name must not be empty");
    await expect(queue.pollFromAny([queueKeys(name).order])).rejects.toThrow(TypeError);
    await expect(queue.pollFromAny([other.name, queueKeys(name).quarantine], 5)).rejects.toThrow(
      "queue name must not begin as the keys of queues do (delayline_quarantine:)",
    );
  });

  test("distinguishes sets of names, whatever the names contain", async () => {
    const joint = `${other.name}\0${third.name}`;
    expect(await queue.pollFromAny([other.name, third.name], 10)).toBeUndefined();
    const polling = queue.pollFromAny([joint], MINUTE);
    await third.put("t");
    await line.getBlockingQueue(joint).put("j");
    expect(await polling).toEqual({ queue: joint, payload: "j" });
    expect(await third.take()).toBe("t");
  });
});

describe("iterating", () => {
  test("takes one message at a time", async () => {
    await queue.putMany(upTo(5));
    const seen: unknown[] = [];
    for await (const payload of queue) {
      seen.push(payload);
      // A message that was not asked for is still there for others.
      expect(await queue.size()).toBe(5 - seen.length);
      if (seen.length === 3) break;
    }
    expect(seen).toEqual([0, 1, 2]);
    expect(await queue.readAll()).toEqual([3, 4]);
  });

  test("waits for more messages", async () => {
    await queue.put("a");
    const seen: unknown[] = [];
    const iterating = (async () => {
      for await (const payload of queue) if (seen.push(payload) === 2) return;
    })();
    await someoneWaits(redis, name);
    await queue.put("b");
    await iterating;
    expect(seen).toEqual(["a", "b"]);
  });

  test("ends when the client is closed, and loses nothing", async () => {
    await queue.put("a");
    const seen: unknown[] = [];
    const iterating = (async () => {
      for await (const payload of queue) seen.push(payload);
    })();
    await eventually(() => seen.length === 1);
    await line.close();
    await iterating;
    await redis.rpush(name, "after");
    expect(seen).toEqual(["a"]);
    expect(await redis.llen(name)).toBe(1);
  });

  test("of a closed client ends at once", async () => {
    await line.close();
    for await (const payload of queue) throw new Error(`got ${String(payload)}`);
  });

  test("that fails in its body ends without taking another message", async () => {
    await queue.putMany(["a", "b"]);
    const iterating = (async () => {
      for await (const payload of queue) throw new Error(`cannot handle ${String(payload)}`);
    })();
    await expect(iterating).rejects.toThrow("cannot handle a");
    expect(await queue.readAll()).toEqual(["b"]);
  });
});

test("close ends every wait with a ClosedError, and messages stay in Redis", async () => {
  const waits = [
    queue.take(),
    queue.takeMany({ limit: 2 }),
    queue.poll(MINUTE),
    queue.pollFromAny([uniqueName("other")], MINUTE),
  ];
  const ends = Promise.allSettled(waits);
  // Calls on this queue alone share a connection; the call on two queues has its own.
  await eventually(async () => (await blockedConnections(redis, name)).length === 2);
  await line.close();
  for (const end of await ends) {
    expect(end).toMatchObject({ status: "rejected", reason: expect.any(ClosedError) });
  }
  await redis.rpush(name, "after");
  expect(await redis.llen(name)).toBe(1);
  expect(await blockedConnections(redis, name)).toEqual([]);
});
