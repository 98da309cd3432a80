import { once } from "node:events";
import { Cluster, Redis } from "ioredis";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import {
  ClosedError,
  Delayline,
  type DelaylineOptions,
  type BlockingQueue,
  type DelayedQueue,
} from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { startChild } from "../../helpers/child.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";
import { serverTime } from "../../helpers/server-time.ts";

const MINUTE = 60_000;

let name: string;

beforeEach(() => {
  name = uniqueName("client");
});

/** The life of a message: offered, moved when due, taken. */
async function expectToWork(options: DelaylineOptions): Promise<void> {
  const line = newLine(options);
  const ready = line.getBlockingQueue(name);
  await line.getDelayedQueue(name).offer("a", 10);
  expect(await ready.take()).toBe("a");
  expect(await line.getDelayedQueue(name).size()).toBe(0);
}

/** The connections to a server by name, except the one that asks. */
async function connectionNames(asking: Redis): Promise<string[]> {
  const clients = String(await asking.client("LIST"));
  return [...clients.matchAll(/ name=(delayline:\S*) /g)]
    .map(([, found]) => found ?? "")
    .toSorted();
}

/** Makes background work fail, which no caller awaits. */
async function failOnce(line: Delayline, reason: Error): Promise<void> {
  line.getBlockingQueue(name).subscribe(() => {
    throw reason;
  });
  await line.getBlockingQueue(name).put("a");
}

describe("the address of Redis", () => {
  test("may be a URL", async () => {
    await expectToWork({ redis: redisUrl() });
  });

  test("may be ioredis options", async () => {
    const { hostname, port } = new URL(redisUrl());
    await expectToWork({ redis: { host: hostname, port: Number(port) } });
  });

  test("may be a client", async () => {
    await expectToWork({ redis: newRedis() });
  });

  test("may be a client that has not connected yet", async () => {
    await expectToWork({ redis: newRedis(redisUrl(), { lazyConnect: true }) });
  });

  test("includes the database, in all of these forms", async () => {
    const server = await startOwnServer();
    const forms: [number, DelaylineOptions["redis"]][] = [
      [1, `${server.url}/1`],
      [2, { port: server.port, db: 2 }],
      [3, newRedis(server.url, { db: 3 })],
    ];
    for (const [db, redis] of forms) {
      const line = newLine({ redis: redis as string });
      await line.getDelayedQueue(name).offer(`moved in ${db}`, 5);
      await line.getDelayedQueue(name).offer("delayed", MINUTE);
      const ready = line.getBlockingQueue(name);
      expect(await ready.take()).toBe(`moved in ${db}`);
      expect(await newRedis(server.url, { db }).zcard(queueKeys(name).timeouts)).toBe(1);
    }
    expect(await newRedis(server.url).dbsize()).toBe(0);
  });

  test("includes a key prefix: clients with different prefixes share no queues", async () => {
    const { hostname, port } = new URL(redisUrl());
    const prefix = `{${uniqueName("shop")}}:`;
    const prefixed = newLine({
      redis: { host: hostname, port: Number(port), keyPrefix: prefix },
    });
    const plain = newLine();
    const prefixedReady = prefixed.getBlockingQueue(name);
    const plainReady = plain.getBlockingQueue(name);
    await prefixed.getDelayedQueue(name).offer("prefixed", 20);
    await plain.getDelayedQueue(name).offer("plain", 10);
    expect(await prefixedReady.take()).toBe("prefixed");
    expect(await plainReady.take()).toBe("plain");

    await prefixed.getDelayedQueue(name).offerMany([
      { payload: "a", delay: MINUTE },
      { payload: "b", delay: MINUTE },
    ]);
    expect(await prefixed.getDelayedQueue(name).insertionOrder.readAll()).toEqual(["a", "b"]);
    expect(await prefixed.getDelayedQueue(name).insertionOrder.remove("a")).toBe(true);
    const other = uniqueName("other");
    expect(await prefixed.getDelayedQueue(name).insertionOrder.pollLastAndOfferFirstTo(other)).toBe(
      "b",
    );
    expect(await newRedis().llen(`${prefix}${other}`)).toBe(1);
    expect(await plain.getDelayedQueue(name).size()).toBe(0);
  });
});

describe("a lent client", () => {
  test("stays open and unchanged: no command is added, no option changed, no listener left", async () => {
    const lent = newRedis();
    await lent.ping();
    const look = () => ({
      functions: Object.keys(lent).filter((key) => typeof lent[key as never] === "function"),
      commands: Object.keys(Object.getPrototypeOf(lent) as object).length,
      scripts: Object.keys(lent.scriptsSet),
      options: { ...lent.options },
    });
    const listeners = () => lent.eventNames().map((event) => [event, lent.listenerCount(event)]);
    const before = look();
    const listenersBefore = listeners();

    const line = newLine({ redis: lent });
    await line.getDelayedQueue(name).offer("a", 5);
    expect(await line.getBlockingQueue(name).take()).toBe("a");
    line.getBlockingQueue(name).subscribe(() => {});
    await line.getDelayedQueue(name).insertionOrder.readAll();
    expect(look()).toEqual(before);
    await line.close();
    expect(look()).toEqual(before);
    expect(listeners()).toEqual(listenersBefore);
    expect(lent.status).toBe("ready");
    expect(await lent.ping()).toBe("PONG");
  });

  test("can be lent to many clients, one after another and at the same time", async () => {
    const lent = newRedis();
    const lines = [newLine({ redis: lent }), newLine({ redis: lent })] as const;
    await lines[0].getDelayedQueue(name).offer("a", 5);
    expect(await lines[1].getBlockingQueue(name).take()).toBe("a");
    await lines[0].close();
    await lines[1].getDelayedQueue(name).offer("b", 5);
    expect(await lines[1].getBlockingQueue(name).take()).toBe("b");
    await lines[1].close();
    expect(await lent.ping()).toBe("PONG");
  });

  test("can be lent to more clients than Node expects listeners", async () => {
    const lent = newRedis();
    const warnings: Error[] = [];
    const collectWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", collectWarning);
    onTestFinished(() => void process.off("warning", collectWarning));
    const lines = Array.from({ length: 20 }, () => newLine({ redis: lent, transfer: false }));
    await Promise.all(lines.map((line) => line.getDelayedQueue(name).offer("a", MINUTE)));
    expect(warnings.map((warning) => warning.name)).not.toContain("MaxListenersExceededWarning");
  });

  test("keeps its own connections free: it neither subscribes nor blocks", async () => {
    const lent = newRedis(redisUrl(), { connectionName: uniqueName("lent") });
    const line = newLine({ redis: lent });
    const taking = line.getBlockingQueue(name).take();
    await eventually(
      async () => (await newRedis().client("LIST"))?.toString().includes(name) ?? false,
    );
    // It replies while a take waits.
    expect(await lent.ping()).toBe("PONG");
    expect(lent.mode).toBe("normal");
    await line.getBlockingQueue(name).put("a");
    expect(await taking).toBe("a");
  });
});

describe("connections", () => {
  test("are opened on demand, have names, and are ended", async () => {
    const server = await startOwnServer();
    const redis = newRedis(server.url);
    const line = newLine({ redis: server.url });
    await redis.ping();
    expect(await connectionNames(redis)).toEqual([]);

    await line.getDelayedQueue(name, { transfer: false }).size();
    expect(await connectionNames(redis)).toEqual(["delayline:commands"]);

    const delayed = line.getDelayedQueue(name);
    await delayed.offer("a", 0);
    const ready = line.getBlockingQueue(name);
    await ready.take();
    const others = ["über uns", "b"].map((other) => line.getBlockingQueue(other));
    const waits = Promise.allSettled(others.map((other) => other.take()));
    const all = [
      "delayline:background",
      "delayline:blocking:%C3%BCber%20uns",
      "delayline:blocking:b",
      `delayline:blocking:${name}`,
      "delayline:commands",
      "delayline:subscriber",
    ];
    await eventually(async () => {
      expect(await connectionNames(redis)).toEqual(all);
    });

    await line.close();
    await waits;
    await eventually(async () => {
      expect(await connectionNames(redis)).toEqual([]);
    });
  });

  test("are not opened by an unused client", async () => {
    const server = await startOwnServer();
    const redis = newRedis(server.url);
    const [, before] = /total_connections_received:(\d+)/.exec(await redis.info("stats")) ?? [];
    const line = new Delayline({ redis: server.url });
    line.getDelayedQueue(name, { transfer: false });
    await line.close();
    const [, after] = /total_connections_received:(\d+)/.exec(await redis.info("stats")) ?? [];
    expect(after).toBe(before);
  });

  test("of a closed client do not keep the process alive", async () => {
    const program = new URL("../../helpers/programs/whole-life.ts", import.meta.url);
    const child = startChild<string[]>(program, { args: [redisUrl(), name] });
    expect(await child.next(() => true, 25_000)).toEqual(["a", "b"]);
    expect(await child.exit).toEqual({ code: 0, signal: null });
    expect(child.stderr).toBe("");
  });
});

describe("close", () => {
  test("may be called twice, also at the same time", async () => {
    const line = newLine();
    await line.getDelayedQueue(name).offer("a", MINUTE);
    await Promise.all([line.close(), line.close()]);
    await line.close();
  });

  test("may be called before anything has connected, and reports nothing", async () => {
    for (let turns = 0; turns < 8; turns++) {
      const line = newLine();
      line.getDelayedQueue(name);
      line.getBlockingQueue(name);
      for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
      await line.close();
      // It would report in the next turn.
      await newRedis().ping();
      expect(line.errors).toEqual([]);
    }
  });

  test("settles outstanding offers", async () => {
    const line = newLine();
    const queue = line.getDelayedQueue(name);
    const offers = Array.from({ length: 250 }, (_, i) => queue.offer(i, MINUTE));
    await line.close();
    expect(await Promise.all(offers)).toHaveLength(250);
    expect(await newRedis().zcard(queueKeys(name).timeouts)).toBe(250);
  });

  test("leaves delayed and ready messages where they are", async () => {
    const line = newLine();
    await line.getDelayedQueue(name).offer("delayed", MINUTE);
    await line.getBlockingQueue(name).put("ready");
    await line.close();
    const next = newLine();
    expect(await next.getDelayedQueue(name).insertionOrder.readAll()).toEqual(["delayed"]);
    expect(await next.getBlockingQueue(name).readAll()).toEqual(["ready"]);
  });

  test("is called at the end of a block by await using", async () => {
    let kept: Delayline;
    {
      await using line = new Delayline({ redis: redisUrl() });
      kept = line;
      await line.getDelayedQueue(name).offer("a", MINUTE);
    }
    expect(() => kept.getDelayedQueue(name)).toThrow(ClosedError);
  });

  describe("afterwards every call is refused with a ClosedError:", () => {
    const calls: [string, (delayed: DelayedQueue, ready: BlockingQueue) => Promise<unknown>][] = [
      ["offer", (delayed) => delayed.offer(1, 1)],
      ["offerAt", (delayed) => delayed.offerAt(1, new Date())],
      ["offerMany", (delayed) => delayed.offerMany([{ payload: 1, delay: 1 }])],
      ["size", (delayed) => delayed.size()],
      ["isEmpty", (delayed) => delayed.isEmpty()],
      ["nextDeadline", (delayed) => delayed.nextDeadline()],
      ["peek", (delayed) => delayed.insertionOrder.peek()],
      ["poll", (delayed) => delayed.insertionOrder.poll()],
      ["poll with a limit", (delayed) => delayed.insertionOrder.poll(1)],
      ["readAll", (delayed) => delayed.insertionOrder.readAll()],
      ["iteration", (delayed) => collect(delayed.insertionOrder)],
      ["contains", (delayed) => delayed.insertionOrder.contains(1)],
      ["remove", (delayed) => delayed.insertionOrder.remove(1)],
      ["removeAll", (delayed) => delayed.insertionOrder.removeAll([1])],
      ["retainAll", (delayed) => delayed.insertionOrder.retainAll([1])],
      ["clear", (delayed) => delayed.clear()],
      [
        "pollLastAndOfferFirstTo",
        (delayed) => delayed.insertionOrder.pollLastAndOfferFirstTo(name),
      ],
      ["take", (_, ready) => ready.take()],
      ["poll of the ready side", (_, ready) => ready.poll()],
      ["poll with a time-out", (_, ready) => ready.poll(10)],
      ["takeMany", (_, ready) => ready.takeMany({ limit: 1 })],
      ["takeMany without waiting", (_, ready) => ready.takeMany({ limit: 1, timeout: 0 })],
      ["pollFromAny", (_, ready) => ready.pollFromAny([name], 10)],
      ["put", (_, ready) => ready.put(1)],
      ["putMany", (_, ready) => ready.putMany([1])],
      ["peek of the ready side", (_, ready) => ready.peek()],
      ["size of the ready side", (_, ready) => ready.size()],
      ["readAll of the ready side", (_, ready) => ready.readAll()],
      ["drain", (_, ready) => ready.drain()],
      ["clear of the ready side", (_, ready) => ready.clear()],
    ];
    test.each(calls)("%s", async (_, call) => {
      const line = newLine({ transfer: false });
      const [delayed, ready] = [line.getDelayedQueue(name), line.getBlockingQueue(name)];
      await line.close();
      await expect(call(delayed, ready)).rejects.toBeInstanceOf(ClosedError);
      await expect(call(delayed, ready)).rejects.toMatchObject({
        code: "CLOSED",
        // A call that opens other queues says that the client is.
        message: expect.stringMatching(/^(queue ".*"|the client) is closed$/),
      });
    });

    test("afterwards new queues and the server's time are refused, too", async () => {
      const line = newLine();
      await line.close();
      expect(() => line.getDelayedQueue(name)).toThrow(ClosedError);
      expect(() => line.getBlockingQueue(name)).toThrow(ClosedError);
      await expect(line.serverTime()).rejects.toBeInstanceOf(ClosedError);
    });
  });
});

describe("a queue", () => {
  test.each([
    "a}b",
    "a{b",
    "{}q",
    "a{}b",
    "",
    undefined,
    5,
    "redisson_delay_queue:{orders}",
    "delayline_keys:{orders}",
  ])("cannot have the name %j", (bad) => {
    const line = newLine();
    expect(() => line.getDelayedQueue(bad as string)).toThrow(TypeError);
    expect(() => line.getBlockingQueue(bad as string)).toThrow(/^queue name must/);
  });

  test("must not be that of a partition of another queue, or differ from an open one in braces alone", async () => {
    const line = newLine({ transfer: false });
    // Its keys are those of the partition, except the LIST of ready messages.
    expect(() => line.getDelayedQueue("orders/0/18")).toThrow(
      'queue name must not be that of a partition, got "orders/0/18"',
    );
    expect(() => line.getDelayedQueue("{orders/0/18}")).toThrow(
      'queue name must not be that of a partition, got "{orders/0/18}", which is partition 0 of queue "orders": open that queue',
    );
    // Another number is not the name of a partition.
    line.getDelayedQueue("{orders/0/19}");
    const braced = `{${name}}`;
    line.getDelayedQueue(braced);
    expect(() => line.getReliableQueue(name)).toThrow(
      `queue name must not differ from that of an open queue in braces alone, got "${name}" beside "${braced}"`,
    );
    await line.getDelayedQueue(braced).offer("x", MINUTE);
    expect((await line.stats(name)).delayed).toBe(1);
  });

  test("must have the same interop as the queues polled together with it", async () => {
    const line = newLine({ transfer: false });
    const other = uniqueName();
    line.getDelayedQueue(other, { interop: "redisson" });
    await expect(line.getBlockingQueue(name).pollFromAny([other])).rejects.toThrow(TypeError);
  });

  test.each<[object, string]>([
    [{ tranfser: false }, 'got "tranfser"'],
    [{ unreachableTimeout: 1 }, 'got "unreachableTimeout"'],
    [{ codec: "xml" }, 'got "xml"'],
    [{ interop: "java" }, 'got "java"'],
    [{ transfer: 1 }, "got 1"],
    [{ maxPayloadBytes: "1" }, "got string"],
  ])("refuses a bad option and is not opened: %j", async (options, message) => {
    const line = newLine();
    expect(() => line.getDelayedQueue(name, options as never)).toThrow(TypeError);
    expect(() => line.getBlockingQueue(name, options as never)).toThrow(message);
    await line.serverTime();
    const redis = newRedis();
    expect(await redis.pubsub("NUMSUB", queueKeys(name).channel)).toEqual([expect.any(String), 0]);
  });

  test("inherits no illegal option, as the client's constructor refuses it", () => {
    for (const options of [
      { codec: "xml" },
      { interop: "java" },
      { transfer: "no" },
      { maxPayloadBytes: 0 },
      { unreachableTimeout: -1 },
      { redis: "localhost" },
      { url: redisUrl() },
    ]) {
      expect(() => new Delayline(options as never)).toThrow(/ must be /);
    }
  });
});

describe("a failure in the background", () => {
  test("is an error event", async () => {
    const line = new Delayline({ redis: redisUrl() });
    onTestFinished(() => line.close());
    const reason = new Error("no such order");
    const heard = once(line, "error", {}).catch((error: unknown) => [error]);
    line.on("error", () => {});
    await failOnce(line, reason);
    expect(await heard).toMatchObject([{ code: "HANDLER", queue: name, cause: reason }]);
  });

  test("is a process warning if nobody listens", async () => {
    const line = new Delayline({ redis: redisUrl() });
    onTestFinished(() => line.close());
    const warnings: Error[] = [];
    const collectWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", collectWarning);
    onTestFinished(() => void process.off("warning", collectWarning));

    await failOnce(line, new Error("4111-1111"));
    const ours = () => warnings.filter(({ message }) => message.includes(name));
    await eventually(() => ours().length === 1);
    expect(ours()[0]).toMatchObject({
      name: "HandlerError",
      code: "HANDLER",
      message: `the handler of queue "${name}" failed`,
    });
  });
});

describe("an unreachable Redis", () => {
  test("is reported as an error event, once and immediately, even for a client that only offers", async () => {
    const proxy = await startProxy(redisUrl());
    proxy.refuse();
    const { port } = proxy;
    const redis = { host: "127.0.0.1", port };
    const line = newLineThatMayFail({ redis, transfer: false, callTimeout: 1000 });
    const offer = line.getDelayedQueue(name).offer("a", 0);
    const reason = `connect ECONNREFUSED 127.0.0.1:${port}`;
    await eventually(() => line.errors.length > 0);
    expect(line.errors[0]).toMatchObject({
      code: "REDIS",
      message: `cannot reach Redis: ${reason}; start the server, or correct host and port`,
    });
    await expect(offer).rejects.toMatchObject({
      effect: "none",
      message: `cannot offer to queue "${name}": Redis could not be reached within 1000 ms: ${reason}; start the server, or correct host and port`,
    });
    await expect(line.serverTime()).rejects.toThrow(reason);
    expect(line.errors).toHaveLength(1);

    // Once Redis is back, the next outage is reported again.
    await proxy.accept();
    await line.getDelayedQueue(name).offer("b", 0);
    proxy.refuse();
    proxy.cut();
    await eventually(() => line.errors.length === 2);
  });
});

describe("a lent client", () => {
  test.each([
    { lacks: "reconnectOnError", lent: () => new Redis({ lazyConnect: true }) },
    {
      lacks: "failoverDetector",
      lent: () => new Redis({ sentinels: [{ port: 1 }], name: "a", lazyConnect: true }),
    },
    {
      lacks: "slotsRefreshInterval",
      lent: () => new Cluster([{ port: 1 }], { lazyConnect: true }),
    },
  ])("that lacks $lacks causes one warning", async ({ lacks, lent }) => {
    const warnings: Error[] = [];
    const collectWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", collectWarning);
    onTestFinished(() => void process.off("warning", collectWarning));
    const redis = lent();
    await new Delayline({ redis }).close();
    await new Delayline({ redis }).close();
    redis.disconnect();
    await eventually(() => warnings.length > 0);
    expect(warnings).toEqual([
      expect.objectContaining({
        name: "DelaylineWarning",
        code: "DELAYLINE_LENT_CLIENT",
        message: expect.stringContaining(`has no ${lacks}: `),
      }),
    ]);
  });

  test("with all required options causes no warning", async () => {
    const warnings: Error[] = [];
    const collectWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", collectWarning);
    onTestFinished(() => void process.off("warning", collectWarning));
    await new Delayline({ redis: newRedis() }).close();
    await new Delayline({ redis: redisUrl() }).close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(warnings).toEqual([]);
  });

  test("that never replies does not delay close()", async () => {
    const server = await startOwnServer();
    const redis = newRedis(server.url, { maxRetriesPerRequest: null });
    const line = newLine({ redis, transfer: false, unreachableTimeout: 500 });
    await line.getDelayedQueue(name).offer("a", 0);
    server.pause();
    void line
      .getDelayedQueue(name)
      .offer("b", 0)
      .catch(() => {});
    await line.close();
  });
});

describe("serverTime", () => {
  test("is the server's clock, within a round trip", async () => {
    const redis = newRedis();
    const line = newLine();
    // The second call returns an estimate.
    for (let i = 0; i < 2; i++) {
      const before = await serverTime(redis);
      const time = await line.serverTime();
      const after = await serverTime(redis);
      expect(time).toBeGreaterThan(before - (after - before) - 1000);
      expect(time).toBeLessThan(after + (after - before) + 1000);
    }
  });

  test("is estimated after the first question", async () => {
    const server = await startOwnServer();
    const redis = newRedis(server.url);
    const timesAsked = async () =>
      Number(/cmdstat_time:calls=(\d+),/.exec(await redis.info("commandstats"))?.[1] ?? 0);
    const line = newLine({ redis: server.url });
    const first = await line.serverTime();
    const asked = await timesAsked();
    expect(asked).toBeGreaterThan(0);
    expect(await line.serverTime()).toBeGreaterThanOrEqual(first);
    expect(await timesAsked()).toBe(asked);
  });

  test("agrees with the deadlines of offers", async () => {
    const line = newLine({ transfer: false });
    const startedAt = performance.now();
    const before = await line.serverTime();
    const { deadline } = await line.getDelayedQueue(name).offer("a", 1000);
    const after = await line.serverTime();
    // The estimate may be wrong by a round trip. Here every round trip lies between the two.
    const tolerance = performance.now() - startedAt + 1;
    expect(deadline).toBeGreaterThan(before + 1000 - tolerance);
    expect(deadline).toBeLessThan(after + 1000 + tolerance);
  });

  test("rejects if Redis is not there", async () => {
    const line = newLineThatMayFail({
      redis: { port: 1, maxRetriesPerRequest: 0, retryStrategy: () => null },
      callTimeout: 1000,
    });
    await expect(line.serverTime()).rejects.toMatchObject({ code: "REDIS", reply: undefined });
    await expect(line.serverTime()).rejects.toThrow("cannot ask for the server's time: ");
  });
});
