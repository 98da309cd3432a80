import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { offer } from "../../../src/lua/delayed/offer.ts";
import { offerKeyed } from "../../../src/lua/delayed/offer-keyed.ts";
import { run } from "../../../src/lua/script.ts";
import { createId, packMember } from "../../../src/queue/message/message.ts";
import { newLine } from "../../helpers/delayline.ts";
import { collect } from "../../helpers/collect.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

// A score is any double, and other programs may write one that no deadline can be: Java adds delays in 64 bits, and an
// operator may park a message at +inf. A Lua number in a reply is an integer, which wraps.

const FOREVER = ["+inf", "1e300", "1e19", "9223372036854775807", "9007199254740994", "9.1e15"];
const DUE = ["-inf", "-1e300", "-1", "0.5", "1000.25"];
const LATER = ["4102444800000.5"];

/** The number that JavaScript reads from a score's text. */
const asNumber = (score: string) => Number(score.replace("inf", "Infinity"));

/** How many scripts the server has run. */
async function scriptRuns(redis: Redis): Promise<number> {
  const stats = await redis.info("commandstats");
  const calls = stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g);
  return [...calls].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** A member as Java writes it, with an id of eight bytes. */
const javaMember = (text: string) => packMember(Buffer.from("javas id"), Buffer.from(text));

test.for([...FOREVER, ...LATER])(
  "a worker beside a message with the score %s rests",
  async (score) => {
    const server = await startOwnServer();
    const redis = newRedis(server.url);
    const line = newLine({ redis: server.url, codec: "string" });
    const open = (name: string) => ({
      keys: queueKeys(name),
      delayed: line.getDelayedQueue<string>(name),
      ready: line.getBlockingQueue<string>(name),
    });
    const { keys, delayed, ready } = open(uniqueName("parked"));
    await redis.zadd(keys.timeouts, score, javaMember("parked"));
    await redis.publish(keys.channel, score);
    await delayed.offer("first", 10);
    expect(await ready.take()).toBe("first");
    // Meanwhile another queue of the same client is busy.
    const busy = open(uniqueName("busy"));
    for (let i = 0; i < 20; i++) {
      await busy.delayed.offer(`message ${i}`, 10);
      expect(await busy.ready.take()).toBe(`message ${i}`);
    }
    // Each needs an offer and a transfer or two. A spinning task would run thousands meanwhile.
    expect(await scriptRuns(redis)).toBeLessThan(150);
    expect(await delayed.size()).toBe(1);
  },
);

test.for(DUE)("a message with the score %s is due", async (score) => {
  const name = uniqueName();
  await newRedis().zadd(queueKeys(name).timeouts, score, javaMember("old"));
  const line = newLine({ codec: "string" });
  expect(await line.getBlockingQueue<string>(name).take()).toBe("old");
});

test.for([...FOREVER, ...DUE, ...LATER])(
  "a message with the score %s is found, listed, rescheduled and cancelled",
  async (score) => {
    const name = uniqueName();
    const keys = queueKeys(name);
    const redis = newRedis();
    const line = newLine({ codec: "string", transfer: false });
    const delayed = line.getDelayedQueue<string>(name);
    for (const [i, length] of [8, 16].entries()) {
      const member = packMember(Buffer.alloc(length, 7), Buffer.from(`m${i}`));
      await redis.zadd(keys.timeouts, score, member);
      await redis.rpush(keys.order, member);
    }
    const number = asNumber(score);
    expect(await delayed.nextDeadline()).toBe(FOREVER.includes(score) ? Infinity : number);
    expect(await delayed.insertionOrder.readAll()).toEqual(["m0", "m1"]);
    const messages = await collect(delayed.insertionOrder);
    expect(messages.map(({ deadline }) => deadline)).toEqual([number, number]);

    for (const message of messages) expect(await delayed.get(message.id)).toEqual(message);
    const [first, second] = messages.map(({ id }) => id) as [never, never];
    const moved = await delayed.reschedule(first, 3_600_000);
    expect((await delayed.get(moved?.id as never))?.payload).toBe("m0");
    expect(await delayed.get(first)).toBeUndefined();
    expect(await delayed.cancelMany([first, second, second])).toEqual([false, true, false]);
    expect(await delayed.insertionOrder.readAll()).toEqual(["m0"]);
  },
);

test("many messages with ids of 16 bytes are removed, whatever their scores", async () => {
  const name = uniqueName();
  const keys = queueKeys(name);
  const redis = newRedis();
  const delayed = newLine({ codec: "string", transfer: false }).getDelayedQueue<string>(name);
  const scores = [...FOREVER, ...DUE, ...LATER];
  for (const [i, score] of scores.entries()) {
    const member = packMember(Buffer.alloc(16, i), Buffer.from(score));
    await redis.zadd(keys.timeouts, score, member);
    await redis.rpush(keys.order, member);
  }
  // Too many payloads to compare in Redis, so they are compared here.
  const others = Array.from({ length: 300 }, (_, i) => `other ${i}`);
  expect(await delayed.insertionOrder.removeAll([...others, ...scores])).toBe(scores.length);
});

test.for([...FOREVER, ...DUE])(
  "an offer that is sent twice returns the current score %s of its message",
  async (score) => {
    const redis = newRedis();
    for (const elementsAre of ["addresses", "members"] as const) {
      const keys = queueKeys(uniqueName());
      const member = packMember(createId(1_760_000_000_000_000), Buffer.from("a"));
      const row = { member, delay: 60_000, deadline: "" };
      const send = () => run(redis, offer, keys, { channel: keys.channel, elementsAre }, [row]);
      await send();
      await redis.zadd(keys.timeouts, score, member);
      expect((await send()).deadlines).toEqual([asNumber(score)]);
    }
    const keys = queueKeys(uniqueName());
    const member = packMember(createId(1_760_000_000_000_000), Buffer.from("a"), "k");
    const row = { member, delay: 60_000, deadline: "", key: "k", rule: "ignore", maxWait: "" };
    const send = () => run(redis, offerKeyed, keys, { channel: keys.channel }, [row]);
    await send();
    await redis.zadd(keys.timeouts, score, member);
    expect((await send()).results[0]?.deadline).toBe(asNumber(score));
  },
);
