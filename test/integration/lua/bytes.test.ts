import { beforeEach, describe, expect, test } from "vitest";
import type { Redis } from "ioredis";
import { queueKeys } from "../../../src/queue/keys.ts";
import { unpackMember as unpackMemberInLua } from "../../../src/lua/fragments/member.ts";
import { asArray, asBuffer } from "../../../src/lua/reply.ts";
import { defineScript, run } from "../../../src/lua/script.ts";
import { packMember, unpackMember } from "../../../src/queue/message/message.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

// The bytes in Redis, one by one: other programs read and write them too.

const MINUTE = 60_000;

let redis: Redis;
let name: string;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("bytes");
});

/** The server's clock in microseconds. */
async function serverMicros(): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1e6 + Number(micros);
}

/** All keys that contain the queue's name, and their types. */
async function keysInRedis(): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const keys of redis.scanStream({ match: `*${name}*`, count: 1000 })) {
    for (const key of keys as string[]) found[key] = await redis.type(key);
  }
  return found;
}

/** Listens to the queue's channel. Returns what was heard so far. */
async function listen(): Promise<() => Promise<string[]>> {
  const { channel } = queueKeys(name);
  const subscriber = newRedis();
  await subscriber.subscribe(channel);
  const heard: string[] = [];
  subscriber.on("message", (_channel, message) => heard.push(message));
  return async () => {
    // Published after everything else, so heard after everything else.
    await redis.publish(channel, "end");
    await eventually(() => heard.at(-1) === "end");
    return heard.filter((message) => message !== "end");
  };
}

describe("keys", () => {
  test("a delayed message is in Redisson's two keys and nowhere else", async () => {
    await newLine({ transfer: false }).getDelayedQueue(name).offer("x", MINUTE);
    expect(await keysInRedis()).toEqual({
      [`redisson_delay_queue_timeout:{${name}}`]: "zset",
      [`redisson_delay_queue:{${name}}`]: "list",
    });
  });

  test("a ready message is in the LIST of the queue's own name", async () => {
    const line = newLine();
    await line.getDelayedQueue(name).offer("x", 0);
    await eventually(async () => (await redis.llen(name)) === 1);
    // What the message has left in the insertion order goes with the next sweep, which may have come already.
    const { [`redisson_delay_queue:{${name}}`]: order = "list", ...others } = await keysInRedis();
    expect(order).toBe("list");
    expect(others).toEqual({
      [name]: "list",
      [`delayline_mover:{${name}}`]: "string",
      [`delayline_listed:{${name}}`]: "string",
    });
    expect(await redis.ttl(`delayline_mover:{${name}}`)).toBeGreaterThan(0);
    expect(await redis.ttl(`delayline_listed:{${name}}`)).toBeGreaterThan(0);
  });

  test("a name with a hash tag gets no new braces", async () => {
    const tagged = `{${name}}:orders`;
    await newLine({ transfer: false }).getDelayedQueue(tagged).offer("x", MINUTE);
    expect(await keysInRedis()).toEqual({
      [`redisson_delay_queue_timeout:${tagged}`]: "zset",
      [`redisson_delay_queue:${tagged}`]: "list",
    });
  });

  test("a key prefix stands before the keys", async () => {
    const prefix = `shop-${name}:`;
    const line = newLine({ redis: newRedis(redisUrl(), { keyPrefix: prefix }) });
    await line.getDelayedQueue(name, { transfer: false }).offer("x", MINUTE);
    await line.getBlockingQueue(name, { transfer: false }).put("y");
    expect(await keysInRedis()).toEqual({
      [`${prefix}redisson_delay_queue_timeout:{${name}}`]: "zset",
      [`${prefix}redisson_delay_queue:{${name}}`]: "list",
      [`${prefix}${name}`]: "list",
    });
  });

  test("nothing is left behind when all messages have gone, but for a while that somebody cleared the queue", async () => {
    const line = newLine();
    const delayed = line.getDelayedQueue(name);
    await delayed.offerMany([0, 1, 5, MINUTE].map((delay) => ({ payload: delay, delay })));
    const ready = line.getBlockingQueue(name);
    for (let i = 0; i < 3; i++) await ready.take();
    await delayed.clear();
    const log = `delayline_activity:{${name}}`;
    // A sweep would remove the second one.
    const keys = [`delayline_mover:{${name}}`, `delayline_listed:{${name}}`, log];
    expect(keys).toEqual(expect.arrayContaining(Object.keys(await keysInRedis())));
    await line.close();
    expect(await keysInRedis()).toEqual({ [log]: "list" });
    expect(await redis.ttl(log)).toBeGreaterThan(0);
  });
});

describe("the timeouts ZSET", () => {
  test.each([0, 1, 3, 127, 255, 256, 70_000])(
    "has the same member that the server's own struct.pack makes for a payload of %d bytes",
    async (length) => {
      const payload = Buffer.alloc(length, "payload");
      const line = newLine({ transfer: false, codec: "bytes" });
      const { id } = await line.getDelayedQueue<Buffer>(name).offer(payload, MINUTE);

      const idBytes = Buffer.from(id.split("-")[1] as string, "hex");
      const packed = await redis.callBuffer(
        "EVAL",
        'return struct.pack("Bc0Lc0", string.len(ARGV[1]), ARGV[1], string.len(ARGV[2]), ARGV[2])',
        0,
        idBytes,
        payload,
      );
      expect(await redis.zrangeBuffer(queueKeys(name).timeouts, 0, "-1")).toEqual([packed]);
    },
  );

  test("has an id of 16 bytes: the server's time in microseconds, then random bytes", async () => {
    const queue = newLine({ transfer: false }).getDelayedQueue(name);
    const before = await serverMicros();
    const offered = [await queue.offer(1, MINUTE), await queue.offer(2, MINUTE)];
    const after = await serverMicros();
    const ids = offered.map(({ id }) => Buffer.from(id.split("-")[1] as string, "hex"));
    expect(ids.map(({ length }) => length)).toEqual([16, 16]);

    const [first, second] = ids.map((id) => Number(id.readBigUInt64BE(0))) as [number, number];
    // The estimate is wrong by half a round trip at most, and both happened in between.
    const tolerance = after - before + 1000;
    expect(first).toBeGreaterThan(before - tolerance);
    expect(second).toBeGreaterThan(first);
    expect(second).toBeLessThan(after + tolerance);
    expect(ids[0]?.subarray(8)).not.toEqual(ids[1]?.subarray(8));
  });

  test.each([0, 0.001, 0.5, 1, 1234.567, MINUTE, 86_400_000 * 365])(
    "has the deadline as an integer score, for a delay of %d ms",
    async (delay) => {
      const queue = newLine({ transfer: false }).getDelayedQueue(name);
      const { deadline } = await queue.offer("x", delay);
      const [, score] = await redis.zrange(queueKeys(name).timeouts, 0, "-1", "WITHSCORES");
      expect(score).toMatch(/^\d{13}$/);
      expect(score).toBe(String(deadline));
    },
  );

  test("has the farthest deadline as an integer below 9e15", async () => {
    const queue = newLine({ transfer: false, anyTime: true }).getDelayedQueue(name);
    const { deadline } = await queue.offer("x", 8.99e15);
    const [, score] = await redis.zrange(queueKeys(name).timeouts, 0, "-1", "WITHSCORES");
    expect(Number(score)).toBe(deadline);
    expect(Number.isSafeInteger(deadline)).toBe(true);
    expect(deadline).toBeLessThan(9e15);
    expect(await queue.nextDeadline()).toBe(deadline);
    expect((await queue.insertionOrder[Symbol.asyncIterator]().next()).value).toMatchObject({
      deadline,
    });
  });
});

describe("the insertion order LIST", () => {
  test("has an address of 24 bytes: the deadline in eight bytes, big-endian, and the id", async () => {
    const queue = newLine({ transfer: false }).getDelayedQueue(name);
    const { id, deadline } = await queue.offer("some payload", MINUTE);

    const address = Buffer.alloc(24);
    address.writeBigUInt64BE(BigInt(deadline));
    address.write(id.split("-")[1] as string, 8, "hex");
    expect(await redis.lrangeBuffer(queueKeys(name).order, 0, -1)).toEqual([address]);
    expect(id).toBe(`${deadline}-${address.toString("hex", 8)}`);
  });

  test("with interop has the whole member", async () => {
    const queue = newLine({ transfer: false, interop: "redisson" }).getDelayedQueue(name);
    await queue.offerMany([
      { payload: "later", delay: 2 * MINUTE },
      { payload: "sooner", delay: MINUTE },
    ]);
    const [sooner, later] = await redis.zrangeBuffer(queueKeys(name).timeouts, 0, "-1");
    expect(await redis.lrangeBuffer(queueKeys(name).order, 0, -1)).toEqual([later, sooner]);
  });
});

describe("the ready LIST", () => {
  test("has the bare payloads, in the order of their deadlines", async () => {
    const line = newLine({ codec: "bytes" });
    const payloads = [Buffer.from([0, 255]), Buffer.alloc(0), Buffer.from("abc")];
    await line
      .getDelayedQueue<Buffer>(name)
      .offerMany(payloads.map((payload, i) => ({ payload, delay: 20 - 10 * i })));
    await eventually(async () => (await redis.llen(name)) === 3);
    expect(await redis.lrangeBuffer(name, 0, -1)).toEqual(payloads.toReversed());
  });

  test("is popped and filled by any program", async () => {
    const line = newLine({ codec: "string" });
    await line.getDelayedQueue<string>(name).offer("from us", 1);
    expect(await redis.blpop(name, 20)).toEqual([name, "from us"]);

    await redis.rpush(name, "from them");
    expect(await line.getBlockingQueue<string>(name).take()).toBe("from them");
  });
});

describe("the channel", () => {
  test("gets the deadline in ASCII decimal", async () => {
    const heard = await listen();
    const queue = newLine({ transfer: false }).getDelayedQueue(name);
    const { deadline } = await queue.offer("x", 1234.5);
    expect(await heard()).toEqual([String(deadline)]);
    expect((await heard())[0]).toMatch(/^\d{13}$/);
  });

  test("has no prefix when keys have one", async () => {
    const heard = await listen();
    const lent = newRedis(redisUrl(), { keyPrefix: `shop-${name}:` });
    const queue = newLine({ redis: lent, transfer: false }).getDelayedQueue(name);
    const { deadline } = await queue.offer("x", MINUTE);
    expect(await heard()).toEqual([String(deadline)]);
  });

  test.each(["none", "redisson"] as const)(
    "hears of a new head only, never of a message that is due later (interop %s)",
    async (interop) => {
      const heard = await listen();
      const queue = newLine({ transfer: false, interop }).getDelayedQueue(name);
      const first = await queue.offer("first", 3 * MINUTE);
      await queue.offer("later", 4 * MINUTE);
      await queue.offerAt("as early, but behind it", new Date(first.deadline));
      const sooner = await queue.offer("sooner", 2 * MINUTE);
      await queue.offer("between", 2.5 * MINUTE);
      const now = await queue.offer("now", 0);
      expect(await heard()).toEqual([first, sooner, now].map(({ deadline }) => `${deadline}`));
    },
  );

  test("hears once of many messages offered together", async () => {
    const heard = await listen();
    const queue = newLine({ transfer: false }).getDelayedQueue(name);
    const offered = await queue.offerMany(
      [5, 4, 3, 6].map((minutes) => ({ payload: minutes, delay: minutes * MINUTE })),
    );
    expect(await heard()).toEqual([String(offered[2]?.deadline)]);

    await queue.offerMany([7, 8].map((minutes) => ({ payload: minutes, delay: minutes * MINUTE })));
    expect(await heard()).toHaveLength(1);
  });

  test("hears nothing when messages are moved, removed or cleared", async () => {
    const line = newLine();
    const queue = line.getDelayedQueue(name);
    await queue.offerMany([1, 2, 3].map((delay) => ({ payload: delay, delay: delay * MINUTE })));
    const heard = await listen();
    await queue.insertionOrder.poll();
    await queue.insertionOrder.remove(2);
    await queue.clear();
    expect(await heard()).toEqual([]);
  });
});

test("Lua and TypeScript unpack the same members in the same way", async () => {
  const unpackAll = defineScript({
    name: "test-unpack",
    keys: [],
    args: [],
    each: ["member"],
    needs: [unpackMemberInLua],
    lua: `
local all = {}
for each row do
  local id, payload, key = unpackMember(member)
  all[#all + 1] = id and { id, payload, key or "" } or false
end
return all`,
    reply: (raw) =>
      asArray(raw).map((pair) => {
        if (pair === null) return undefined;
        const [id, payload, key] = asArray(pair).map(asBuffer);
        return { id, payload, key: key?.toString() || undefined };
      }),
  });
  let state = 7;
  const random = (below: number) => (state = (state * 48_271) % 2_147_483_647) % below;
  const randomBytes = (length: number) =>
    Buffer.from(Array.from({ length }, () => random(random(2) ? 256 : 20)));
  const old = (payload: Buffer) => {
    const head = randomBytes(16);
    head.writeBigUInt64LE(BigInt(payload.length), 8);
    return Buffer.concat([head, payload]);
  };
  const trailer = (): [key?: string, more?: { headers: { name: string }; attempts: number }] =>
    random(2) ? [] : ["key", { headers: { name: "value" }, attempts: random(9) }];
  const members = Array.from({ length: 4000 }, (_, i) => {
    const member =
      i % 2
        ? old(randomBytes(random(40)))
        : packMember(randomBytes(random(20)), randomBytes(random(30)), ...trailer());
    switch (i % 5) {
      case 0: // With something behind it.
        return Buffer.concat([member, randomBytes(random(20))]);
      case 1: // Cut off.
        return member.subarray(0, random(member.length + 1));
      case 2: // With a wrong byte.
        member[random(member.length)] = random(256);
        return member;
      case 3:
        return i % 3 ? member : randomBytes(random(60));
      default:
        return member;
    }
  });

  const inTypeScript = members.map((member) => {
    const message = unpackMember(member);
    return message && { id: message.id, payload: message.payload, key: message.key };
  });
  const rows = members.map((member) => ({ member }));
  expect(await run(redis, unpackAll, {}, {}, rows)).toEqual(inTypeScript);
  // Both results occur often.
  const known = inTypeScript.filter((message) => message !== undefined).length;
  expect(known).toBeGreaterThan(1000);
  expect(known).toBeLessThan(3500);
});
