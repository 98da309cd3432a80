import { expect, test } from "vitest";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";
import type { TcpProxy } from "../../helpers/tcp-proxy.ts";

/** A client behind the proxy that is connected and has sent a command. */
async function connectThrough(proxy: TcpProxy, options: Parameters<typeof newRedis>[1] = {}) {
  const redis = newRedis(proxy.url, {
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    retryStrategy: () => 10,
    ...options,
  });
  const errors: string[] = [];
  redis.on("error", (error) => errors.push(error.message));
  await redis.ping();
  return Object.assign(redis, { errors });
}

test("forwards data, and counts connections", async () => {
  const proxy = await startProxy(redisUrl());
  const redis = await connectThrough(proxy);
  const key = uniqueName("key");
  // More than one chunk each way.
  const large = "x".repeat(1_000_000);
  await redis.set(key, large);
  expect(await redis.get(key)).toBe(large);

  await connectThrough(proxy);
  expect(proxy.connections.map(({ id }) => id)).toEqual([1, 2]);
  redis.disconnect();
  await eventually(() => proxy.connections.length === 1);
  expect(proxy.acceptedCount).toBe(2);
});

test("delays each direction separately, and keeps the order", async () => {
  const proxy = await startProxy(redisUrl());
  const redis = await connectThrough(proxy);
  const key = uniqueName("list");
  const direct = newRedis();

  proxy.delay.request = 100;
  let startedAt = performance.now();
  await redis.rpush(key, "a");
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(99);

  proxy.delay.request = 0;
  proxy.delay.reply = 1000;
  startedAt = performance.now();
  let took: number | undefined;
  const reply = redis.rpush(key, "b").then(() => (took = performance.now() - startedAt));
  await eventually(async () => (await direct.llen(key)) === 2);
  expect(took).toBeUndefined();
  expect(await reply).toBeGreaterThanOrEqual(999);

  // The later ones have less time to wait, but do not overtake.
  proxy.delay.reply = 0;
  const pushes: Promise<number>[] = [];
  let seen = 0;
  proxy.onRequest = () => void seen++;
  for (const delay of [50, 20, 0]) {
    proxy.delay.request = delay;
    pushes.push(redis.rpush(key, `after ${delay}`));
    // The command has reached the proxy, which has looked up the delay.
    await eventually(() => seen === pushes.length);
  }
  expect(await Promise.all(pushes)).toEqual([3, 4, 5]);
  expect(await direct.lrange(key, 0, -1)).toEqual(["a", "b", "after 50", "after 20", "after 0"]);
});

test("holds data from a client until it is released, in order", async () => {
  const proxy = await startProxy(redisUrl());
  const redis = await connectThrough(proxy);
  const key = uniqueName("list");
  const direct = newRedis();
  proxy.connections[0]?.hold();
  const pushes = ["b", "c"].map((text) => redis.rpush(key, text));
  await direct.rpush(key, "a");
  proxy.connections[0]?.letGo();
  expect(await Promise.all(pushes)).toEqual([2, 3]);
  expect(await direct.lrange(key, 0, -1)).toEqual(["a", "b", "c"]);
});

test("cuts all connections, or one", async () => {
  const proxy = await startProxy(redisUrl());
  const one = await connectThrough(proxy);
  const two = await connectThrough(proxy);

  proxy.connections[0]?.cut();
  await eventually(() => proxy.acceptedCount === 3);
  expect(await one.ping()).toBe("PONG");
  expect(proxy.connections.map(({ id }) => id)).toEqual([2, 3]);

  proxy.cut();
  await eventually(() => proxy.acceptedCount === 5);
  expect(await Promise.all([one.ping(), two.ping()])).toEqual(["PONG", "PONG"]);
});

test("resets connections", async () => {
  const proxy = await startProxy(redisUrl());
  const redis = await connectThrough(proxy);
  proxy.reset();
  await eventually(() => redis.errors.some((message) => message.includes("ECONNRESET")));
  await eventually(() => proxy.acceptedCount === 2);
});

test("refuses new connections, and leaves the others alone", async () => {
  const proxy = await startProxy(redisUrl());
  const redis = await connectThrough(proxy);
  proxy.refuse();
  expect(await redis.ping()).toBe("PONG");

  const late = newRedis(proxy.url, { lazyConnect: true, retryStrategy: () => null });
  await expect(late.connect()).rejects.toThrow();

  await proxy.accept();
  await late.connect();
  expect(await late.ping()).toBe("PONG");
});

test("swallows replies: Redis acts, the client hears nothing", async () => {
  const proxy = await startProxy(redisUrl());
  const redis = await connectThrough(proxy, { commandTimeout: 200 });
  const key = uniqueName("key");

  proxy.swallow("reply");
  await expect(redis.set(key, "done")).rejects.toThrow("timed out");
  expect(await newRedis().get(key)).toBe("done");
  expect(redis.status).toBe("ready");
});

test("swallows requests: Redis hears nothing, not even that the client is gone", async () => {
  const proxy = await startProxy(redisUrl());
  const name = uniqueName("client");
  const redis = await connectThrough(proxy, { commandTimeout: 200, connectionName: name });
  const direct = newRedis();
  const isConnected = async () => String(await direct.client("LIST")).includes(`name=${name}`);
  const key = uniqueName("key");
  await eventually(isConnected);

  proxy.swallow();
  await expect(redis.set(key, "done")).rejects.toThrow("timed out");
  expect(await direct.exists(key)).toBe(0);

  redis.disconnect();
  // The proxy has seen the end of the client when it accepts the next one.
  proxy.forward();
  proxy.connections[0]?.swallow();
  await connectThrough(proxy);
  expect(await isConnected()).toBe(true);

  proxy.cut();
  await eventually(async () => !(await isConnected()));
});

test("drops or cuts as the hooks decide", async () => {
  const proxy = await startProxy(redisUrl());
  const redis = await connectThrough(proxy, { commandTimeout: 1000 });
  const direct = newRedis();
  const [dropped, cut, kept] = [uniqueName("dropped"), uniqueName("cut"), uniqueName("kept")];
  const seen: number[] = [];
  proxy.onRequest = (chunk, connection) => {
    seen.push(connection.id);
    if (chunk.includes(dropped)) return "drop";
    if (chunk.includes(cut)) return "cut";
    return "forward";
  };

  await redis.set(kept, "yes");
  await expect(redis.set(dropped, "no")).rejects.toThrow("timed out");
  expect(await direct.exists(dropped)).toBe(0);

  await expect(redis.set(cut, "no")).rejects.toThrow("max retries");
  expect(await direct.exists(cut)).toBe(0);
  expect(await direct.get(kept)).toBe("yes");
  expect(seen.slice(0, 3)).toEqual([1, 1, 1]);

  proxy.onRequest = undefined;
  proxy.onReply = (chunk) => (chunk.includes("secret") ? "cut" : "forward");
  await direct.set(kept, "a secret");
  await expect(redis.get(kept)).rejects.toThrow("max retries");
});

test.for(["cut", "swallow"] as const)("loses the reply to one request (%s)", async (how) => {
  const proxy = await startProxy(redisUrl());
  const redis = await connectThrough(proxy, { commandTimeout: 1000 });
  const [other, marked] = [uniqueName("other"), uniqueName("marked")];

  const lost = proxy.loseReplyTo(marked, how);
  expect(await redis.incr(other)).toBe(1);
  await expect(redis.incr(marked)).rejects.toThrow(how === "cut" ? "max retries" : "timed out");
  expect((await lost).id).toBe(1);
  expect(await newRedis().get(marked)).toBe("1");

  // This happens once.
  if (how === "swallow") (await lost).cut();
  await eventually(() => proxy.acceptedCount === 2);
  expect(await redis.incr(marked)).toBe(2);
});
