import { describe, expect, test } from "vitest";
import { OfferError, RedisError, type Delayline, type DelaylineOptions } from "../../src/index.ts";
import { queueKeys } from "../../src/queue/keys.ts";
import { newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { Roles } from "../helpers/roles.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";

/** Milliseconds that a call may take. A busy machine may stall for hundreds of milliseconds. */
const TIMEOUT = 1500;
const ID = `1760000000000-${"00".repeat(16)}`;

/** Every call that a user awaits, except those that wait for messages. */
const calls: Record<string, (line: Delayline, name: string) => Promise<unknown>> = {
  serverTime: (line) => line.serverTime(),
  ...delayed("cancel by id", (queue) => queue.cancel(ID)),
  ...delayed("cancel by key", (queue) => queue.cancel("order:42")),
  ...delayed("cancelMany", (queue) => queue.cancelMany(["order:42"])),
  ...delayed("cancelWhere", (queue) => queue.cancelWhere({ prefix: "order" })),
  ...delayed("reschedule", (queue) => queue.reschedule("order:42", 5)),
  ...delayed("get", (queue) => queue.get(ID)),
  ...delayed("has", (queue) => queue.has("order:42")),
  ...delayed("size", (queue) => queue.size()),
  ...delayed("isEmpty", (queue) => queue.isEmpty()),
  ...delayed("nextDeadline", (queue) => queue.nextDeadline()),
  ...delayed("peek", (queue) => queue.insertionOrder.peek()),
  ...delayed("poll", (queue) => queue.insertionOrder.poll()),
  ...delayed("readAll", (queue) => queue.insertionOrder.readAll()),
  ...delayed("contains", (queue) => queue.insertionOrder.contains("a")),
  ...delayed("remove", (queue) => queue.insertionOrder.remove("a")),
  ...delayed("clear", (queue) => queue.clear()),
  ...ready("poll of the ready side", (queue) => queue.poll()),
  ...ready("put", (queue) => queue.put("a")),
  ...ready("peek of the ready side", (queue) => queue.peek()),
  ...ready("size of the ready side", (queue) => queue.size()),
  ...ready("readAll of the ready side", (queue) => queue.readAll()),
  ...ready("drain", (queue) => queue.drain()),
  ...ready("clear of the ready side", (queue) => queue.clear()),
};

describe("while Redis is away", () => {
  test("every call rejects in time, is never sent, and its error says why", async () => {
    const rejectsInTime = async (call: string) => {
      const { proxy, line, name } = await clientBehindProxy();
      proxy.refuse();
      const startedAt = performance.now();
      const error = await failure((calls[call] as (typeof calls)[string])(line, name), call);
      const duration = performance.now() - startedAt;
      expect(error, call).toBeInstanceOf(RedisError);
      expect(error, call).toMatchObject({ effect: "none", reply: undefined });
      expect(error.message, call).toContain(`ECONNREFUSED 127.0.0.1:${proxy.port}`);
      expect(duration, call).toBeGreaterThan(TIMEOUT - 5);
      // ioredis's own limit would be more than a minute.
      expect(duration, call).toBeLessThan(TIMEOUT + 20_000);
    };
    await Promise.all(Object.keys(calls).map(rejectsInTime));
  });

  test("an offer that timed out is never stored", async () => {
    const { proxy, line, name } = await clientBehindProxy();
    const queue = line.getDelayedQueue<string>(name);
    proxy.refuse();
    const error = await failure(queue.offer("a", 60_000));
    expect(error).toBeInstanceOf(OfferError);
    expect(error).toMatchObject({ effect: "none" });
    expect(error.message).toContain(`ECONNREFUSED 127.0.0.1:${proxy.port}`);

    await proxy.accept();
    // The client is connected again.
    await eventually(async () => void (await queue.size()));
    await queue.offer("b", 60_000);
    expect(await queue.insertionOrder.readAll()).toEqual(["b"]);
  });

  test("waiting offers keep their order when Redis is back", async () => {
    const { proxy, line, name } = await clientBehindProxy({ callTimeout: 40_000 });
    const queue = line.getDelayedQueue<number>(name);
    proxy.refuse();
    const offers: Promise<unknown>[] = [];
    for (let n = 0; n < 50; n++) {
      offers.push(queue.offer(n, 60_000, n % 3 === 0 ? { key: `key:${n}` } : {}));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await proxy.accept();
    await Promise.all(offers);
    expect(await queue.insertionOrder.readAll()).toEqual(Array.from({ length: 50 }, (_, n) => n));
  });

  test("a lent client is left unchanged", async () => {
    const proxy = await startProxy(redisUrl());
    const lent = newRedis(proxy.url);
    lent.on("error", () => {});
    await lent.ping();
    proxy.refuse();
    proxy.cut();
    await eventually(() => lent.status !== "ready");
    const listeners = () => lent.eventNames().map((event) => lent.listenerCount(event));
    const before = listeners();
    const line = newLineThatMayFail({ redis: lent, transfer: false, callTimeout: TIMEOUT });
    const queue = line.getDelayedQueue<string>(uniqueName());
    expect(await failure(queue.offer("a", 0))).toMatchObject({ effect: "none" });
    await proxy.accept();
    await eventually(() => lent.status === "ready");
    await queue.offer("b", 60_000);
    expect(await queue.insertionOrder.readAll()).toEqual(["b"]);
    expect(listeners()).toEqual(before);
  });
});

describe("while Redis does not reply", () => {
  test("a call that was sent may have been carried out", async () => {
    const { roles, line, name } = await connectedClient();
    const queue = line.getDelayedQueue<string>(name);
    roles.only("commands").swallow("reply");
    const error = await failure(queue.size());
    expect(error).toMatchObject({ code: "REDIS", effect: "unknown", reply: undefined });
    expect(error.message).toContain(`Redis did not reply within ${TIMEOUT} ms`);
  });

  test("an offer may be stored, and here it was", async () => {
    const { roles, line, name } = await connectedClient();
    roles.only("commands").swallow("reply");
    const error = await failure(line.getDelayedQueue<string>(name).offer("a", 60_000));
    expect(error).toMatchObject({ code: "OFFER", effect: "unknown" });
    expect(await newRedis().zcard(queueKeys(name).timeouts)).toBe(1);
  });
});

describe("close()", () => {
  test("does not wait for an offer that timed out before it was sent", async () => {
    const { proxy, line, name } = await clientBehindProxy({ unreachableTimeout: 60_000 });
    proxy.refuse();
    await failure(line.getDelayedQueue<string>(name).offer("a", 60_000));
    await line.close();
  });

  test("does not wait for the replies to calls that timed out", async () => {
    const { roles, line, name } = await connectedClient({ unreachableTimeout: 60_000 });
    const queue = line.getDelayedQueue<string>(name);
    roles.only("commands").swallow("reply");
    const abort = new AbortController();
    const offer = failure(queue.offer("a", 60_000, { signal: abort.signal }));
    await eventually(async () => (await newRedis().zcard(queueKeys(name).timeouts)) === 1);
    abort.abort();
    await offer;
    await line.close();
  });
});

describe("a reply that comes too late", () => {
  test.each(["its time was over", "it was aborted"])(
    "carries a ready message for a poll, after %s: the message goes back to the head",
    async (how) => {
      const { proxy, line, name } = await connectedClient({ codec: "string" });
      const queue = line.getBlockingQueue<string>(name);
      const redis = newRedis();
      await queue.putMany(["warm", "a", "b"]);
      await queue.poll();
      proxy.delay.reply = 2 * TIMEOUT;
      const abort = new AbortController();
      const rejected = failure(queue.poll(0, { signal: abort.signal }));
      await eventually(async () => (await redis.llen(name)) === 1);
      if (how === "it was aborted") abort.abort(new Error("no more"));
      await rejected;
      expect(await redis.lrange(name, "0", "-1")).toEqual(["b"]);
      await eventually(async () => (await redis.llen(name)) === 2);
      expect(await redis.lrange(name, "0", "-1")).toEqual(["a", "b"]);
    },
  );

  test("carries a delayed message for a poll: the message goes to the quarantine and is reported", async () => {
    const { proxy, line, name } = await connectedClient();
    const queue = line.getDelayedQueue<string>(name);
    const redis = newRedis();
    await queue.offer("a", 60_000);
    await queue.cancel("nothing");
    proxy.delay.reply = 2 * TIMEOUT;
    expect(await failure(queue.insertionOrder.poll())).toMatchObject({ effect: "unknown" });
    await eventually(async () => (await redis.llen(queueKeys(name).quarantine)) === 1);
    proxy.delay.reply = 0;
    await eventually(() => line.errors.some(({ message }) => message.includes("1 message(s)")));
    await eventually(async () => (await queue.quarantine.requeue()) === 1);
    expect(await line.getBlockingQueue<string>(name).poll(20_000)).toBe("a");
  });
});

test("a signal ends a call, and the error of an offer says whether it was sent", async () => {
  const { proxy, line, name } = await clientBehindProxy({ callTimeout: 60_000 });
  const queue = line.getDelayedQueue<string>(name);
  const reason = new Error("the customer has left");
  proxy.refuse();
  const abort = new AbortController();
  const { signal } = abort;
  const rejections = [
    queue.size({ signal }),
    queue.cancel("order:42", { signal }),
    queue.get("order:42", { signal }),
    line.serverTime({ signal }),
    line.getBlockingQueue(name).poll(0, { signal }),
  ].map((call) => failure(call));
  const offer = failure(queue.offer("a", 60_000, { signal }));
  const others = failure(queue.offerMany([{ payload: "b", delay: 60_000 }], { signal }));
  abort.abort(reason);
  for (const rejection of rejections) expect(await rejection).toBe(reason);
  expect(await offer).toMatchObject({ code: "OFFER", effect: "none", cause: reason });
  expect(await others).toMatchObject({ code: "OFFER_MANY" });
  // Also at once if it was aborted beforehand.
  expect(await failure(queue.size({ signal }))).toBe(reason);
  expect(await failure(queue.offer("c", 0, { signal }))).toMatchObject({ effect: "none" });

  await proxy.accept();
  await queue.offer("d", 60_000);
  expect(await queue.insertionOrder.readAll()).toEqual(["d"]);
});

async function failure(call: Promise<unknown>, what = "it"): Promise<Error> {
  return await call.then(
    () => expect.unreachable(`${what} was to fail`),
    (error: unknown) => error as Error,
  );
}

/** A client that has not connected yet. */
async function clientBehindProxy(options: DelaylineOptions = {}) {
  const proxy = await startProxy(redisUrl());
  const roles = new Roles(proxy);
  const redis = { url: proxy.url };
  const line = newLineThatMayFail({ redis, transfer: false, callTimeout: TIMEOUT, ...options });
  return { proxy, roles, line, name: uniqueName() };
}

async function connectedClient(options?: DelaylineOptions) {
  const client = await clientBehindProxy(options);
  await client.line.getDelayedQueue(client.name).offer("warm", 0);
  await client.line.getDelayedQueue(client.name).clear();
  return client;
}

function delayed(
  call: string,
  send: (queue: ReturnType<Delayline["getDelayedQueue"]>) => Promise<unknown>,
): typeof calls {
  return { [call]: (line, name) => send(line.getDelayedQueue(name)) };
}

function ready(
  call: string,
  send: (queue: ReturnType<Delayline["getBlockingQueue"]>) => Promise<unknown>,
): typeof calls {
  return { [call]: (line, name) => send(line.getBlockingQueue(name)) };
}
