import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Redis } from "ioredis";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { asArray, asNumber } from "../../../src/lua/reply.ts";
import { defineScript, run } from "../../../src/lua/script.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

/** Puts two values into two keys, in the order of their names, and lists the rows. */
const store = defineScript({
  name: "test-store",
  keys: ["first", "second"],
  args: ["one", "two"],
  each: ["left", "right"],
  lua: `
redis.call("SET", first, one)
redis.call("SET", second, two)
local rows = {}
for each row do rows[#rows + 1] = left .. right end
return rows`,
  reply: (raw) => asArray(raw).map(String),
});

/** Stores a number in its turn. */
async function inTurn(redis: Redis, one: number): Promise<void> {
  await run(redis, store, { first: "a", second: "b" }, { one, two: one }, [], mustBeKnown, true);
}

function hexOf(value: string | number | Buffer): string {
  return Buffer.from(Buffer.isBuffer(value) ? value : String(value)).toString("hex");
}

function mustBeKnown(): void {
  expect.unreachable("Redis should know the script");
}

/** How often Redis ran EVAL, that is, was sent a whole text. */
async function textsSent(redis: Redis): Promise<number> {
  const stats = await redis.info("commandstats");
  return Number(/cmdstat_eval:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

describe("running a script", () => {
  let keys: { first: string; second: string };

  beforeEach(() => {
    keys = { first: uniqueName("first"), second: uniqueName("second") };
  });

  test("passes keys, arguments and rows to where the Lua expects them", async () => {
    const redis = newRedis();
    // Given in another order than declared.
    const { first, second } = keys;
    const args = { two: Buffer.from([0, 255]), one: 1.5 };
    const rows = [
      { left: "x", right: 2 },
      { right: "z", left: Buffer.from("y") },
    ];
    expect(await run(redis, store, { second, first }, args, rows)).toEqual(["x2", "yz"]);
    expect(await redis.get(first)).toBe("1.5");
    expect(await redis.getBuffer(second)).toEqual(Buffer.from([0, 255]));
    expect(await run(redis, store, { first, second }, args)).toEqual([]);
  });

  test("passes any bytes in rows, and as many as it likes", async () => {
    const hex = defineScript({
      name: "test-hex",
      keys: [],
      args: [],
      each: ["left", "right"],
      lua: `
local rows = {}
local function hex(byte) return string.format("%02x", byte:byte()) end
for each row do rows[#rows + 1] = left:gsub(".", hex) .. "|" .. right:gsub(".", hex) end
return rows`,
      reply: (raw) => asArray(raw).map(String),
    });
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const rows = [
      { left: all, right: "" },
      { left: Buffer.alloc(0), right: "\u{1f600}é\0" },
      { left: 1e21, right: -0.1 },
      ...Array.from({ length: 20_000 }, (_, i) => ({ left: "", right: i })),
    ];
    expect(await run(newRedis(), hex, {}, {}, rows)).toEqual(
      rows.map(({ left, right }) => `${hexOf(left)}|${hexOf(right)}`),
    );
  });

  test("passes rows that are keys as keys, in front of the arguments", async () => {
    const many = defineScript({
      name: "test-many-keys",
      keys: ["first"],
      args: ["one"],
      each: ["other"],
      rowsAs: "keys",
      lua: `
local all = { first, one, #ARGV }
for each row do all[#all + 1] = other end
return all`,
      reply: (raw) => asArray(raw).map(String),
    });
    const redis = newRedis(redisUrl(), { keyPrefix: "p:" });
    const rows = [{ other: "b" }, { other: "c" }];
    const all = await run(redis, many, { first: "a" }, { one: "1" }, rows);
    expect(all).toEqual(["p:a", "1", "1", "p:b", "p:c"]);
  });

  test("passes a column as one argument, a list in JSON, behind the others", async () => {
    const columns = defineScript({
      name: "test-columns",
      keys: [],
      args: ["one"],
      each: ["entry", "own"],
      rowsAs: "columns",
      lua: `
local all = { #ARGV, one }
local flags = cjson.decode(own)
for i, id in ipairs(cjson.decode(entry)) do all[#all + 1] = id .. "=" .. flags[i] end
return all`,
      reply: (raw) => asArray(raw).map(String),
    });
    const redis = newRedis();
    const rows = [
      { entry: "1-0", own: 0 },
      { own: 1, entry: "2-0" },
    ];
    expect(await run(redis, columns, {}, { one: "x" }, rows)).toEqual(["3", "x", "1-0=0", "2-0=1"]);
    expect(await run(redis, columns, {}, { one: "x" })).toEqual(["3", "x"]);
  });

  test("puts the client's key prefix before the keys, and only there", async () => {
    const prefix = uniqueName("prefix:");
    const redis = newRedis(redisUrl(), { keyPrefix: prefix });
    await run(redis, store, keys, { one: "1", two: "2" });
    expect(await newRedis().get(`${prefix}${keys.first}`)).toBe("1");
  });

  test("that fails is not retried, and rejects with Redis's reply", async () => {
    const server = await startOwnServer();
    const redis = newRedis(server.url);
    const failing = defineScript({
      name: "test-failing",
      keys: ["counter"],
      args: [],
      lua: `redis.call("INCR", counter) return redis.call("LPUSH", counter, "x")`,
      reply: asNumber,
    });
    for (const count of ["1", "2"]) {
      await expect(run(redis, failing, { counter: "c" }, {})).rejects.toThrow("WRONGTYPE");
      expect(await redis.get("c")).toBe(count);
    }
  });
});

describe("a server that does not know a script", () => {
  test("is sent its text once, and again after SCRIPT FLUSH", async () => {
    const server = await startOwnServer();
    const redis = newRedis(server.url);
    const keys = { first: "a", second: "b" };
    for (let i = 0; i < 3; i++) await run(redis, store, keys, { one: i, two: i });
    expect(await textsSent(redis)).toBe(1);

    await redis.script("FLUSH");
    for (let i = 3; i < 6; i++) await run(redis, store, keys, { one: i, two: i });
    expect(await textsSent(redis)).toBe(2);
    expect(await redis.get("a")).toBe("5");
  });

  test("is never asked for it where the order of the runs counts: each connection begins with the text", async () => {
    const server = await startOwnServer();
    const redis = newRedis(server.url);
    await Promise.all([inTurn(redis, 1), inTurn(redis, 2), inTurn(redis, 3)]);
    expect(await textsSent(redis)).toBe(1);
    expect(await redis.get("a")).toBe("3");

    await server.kill();
    await server.restart();
    await redis.ping();
    await Promise.all([inTurn(redis, 4), inTurn(redis, 5)]);
    expect(await textsSent(redis)).toBe(1);
    expect(await redis.info("errorstats")).not.toContain("NOSCRIPT");
  });

  test("does everything as before after SCRIPT FLUSH", async () => {
    const server = await startOwnServer();
    const redis = newRedis(server.url);
    const line = newLine({ redis: server.url });
    const delayed = line.getDelayedQueue<string>("orders");
    const ready = line.getBlockingQueue<string>("orders");
    for (let i = 0; i < 3; i++) {
      await delayed.offer("a", 10);
      expect(await ready.take()).toBe("a");
      await delayed.offerMany(["b", "c", "d", "e"].map((payload) => ({ payload, delay: 60_000 })));
      await redis.script("FLUSH");
      expect(await delayed.insertionOrder.readAll()).toEqual(["b", "c", "d", "e"]);
      await redis.script("FLUSH");
      expect(await delayed.insertionOrder.remove("c")).toBe(true);
      await redis.script("FLUSH");
      expect(await delayed.insertionOrder.poll()).toBe("b");
      await redis.script("FLUSH");
      expect(await delayed.nextDeadline()).toBeTypeOf("number");
      expect(await delayed.insertionOrder.pollLastAndOfferFirstTo("orders")).toBe("e");
      expect(await ready.take()).toBe("e");
      expect(await delayed.clear()).toBe(1);
      await redis.script("FLUSH");
    }
  });

  test("gets offers in order all the same, although its refusals come one by one", async () => {
    const server = await startOwnServer();
    const proxy = await startProxy(server.url);
    const queue = newLine({ redis: proxy.url, transfer: false }).getDelayedQueue("orders");
    await queue.offer("to begin with", 60_000);
    await newRedis(server.url).script("FLUSH");

    const offers: Promise<unknown>[] = [];
    const offer = (payload: string) => offers.push(queue.offer(payload, 60_000));
    proxy.onRequest = (chunk) => {
      const sent = chunk.toString("latin1").toLowerCase();
      if (offers.length === 1 && sent.includes("\r\nevalsha\r\n")) {
        // "b" follows when "a" has been sent, and stays outstanding for a while.
        setImmediate(() => {
          proxy.delay.request = 100;
          offer("b");
        });
      } else if (offers.length === 2 && sent.includes("\r\neval\r\n")) {
        // "c" follows when "a" has been refused and is being sent as a whole text.
        offer("c");
      }
    };
    offer("a");
    await eventually(() => offers.length === 3);
    await Promise.all(offers);
    expect(await queue.insertionOrder.readAll()).toEqual(["to begin with", "a", "b", "c"]);
  });

  test("gets many offers in order all the same, and each once", async () => {
    const server = await startOwnServer();
    const queue = newLine({ redis: server.url, transfer: false }).getDelayedQueue("orders");
    const payloads = Array.from({ length: 1000 }, (_, i) => i);
    await queue.offerMany(payloads.map((payload) => ({ payload, delay: 60_000 })));
    expect(await queue.insertionOrder.readAll()).toEqual(payloads);
  });
});

test("publishes each run on the diagnostics channel, without a payload", async () => {
  const runs: unknown[] = [];
  const hear = (ran: unknown) => void runs.push(ran);
  subscribe("delayline:script", hear);
  onTestFinished(() => void unsubscribe("delayline:script", hear));
  const name = uniqueName();
  await newLine({ transfer: false }).getDelayedQueue<string>(name).offer("secret", 60_000);
  expect(runs).toEqual([
    {
      script: "offer",
      key: `redisson_delay_queue_timeout:{${name}}`,
      rows: 1,
      duration: expect.any(Number),
      isDone: true,
    },
  ]);
});
