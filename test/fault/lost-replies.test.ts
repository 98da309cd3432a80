import { expect, test } from "vitest";
import type { OfferError } from "../../src/index.ts";
import { queueKeys } from "../../src/queue/keys.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { Roles } from "../helpers/roles.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";
import { upTo } from "../helpers/numbers.ts";
import { serverTime } from "../helpers/server-time.ts";

/** ioredis sends offers again when their replies are lost. They are stored once. */

/** The contents of a queue's keys. */
async function stored(name: string, url = redisUrl()) {
  const redis = newRedis(url);
  const scores = await redis.zrange(
    `redisson_delay_queue_timeout:{${name}}`,
    "0",
    "-1",
    "WITHSCORES",
  );
  return {
    deadlines: scores.filter((_, i) => i % 2 === 1).map(Number),
    order: await redis.llen(`redisson_delay_queue:{${name}}`),
  };
}

/** A producer behind a proxy. It moves nothing. */
async function producerBehindProxy(url = redisUrl(), maxRetriesPerRequest?: number) {
  const name = uniqueName();
  const proxy = await startProxy(url);
  const { port } = proxy;
  const redis = maxRetriesPerRequest === undefined ? {} : { maxRetriesPerRequest };
  const line = newLine({ redis: { port, ...redis }, transfer: false, codec: "string" });
  return { name, proxy, queue: line.getDelayedQueue<string>(name) };
}

test("the reply to an offer is lost: the offer is stored once, and returns the first deadline", async () => {
  const { name, proxy, queue } = await producerBehindProxy();
  // So that Redis knows the script.
  await queue.offer("warm", 0);
  await queue.clear();

  const lost = proxy.loseReplyTo("payload-42").then(() => stored(name));
  const { deadline } = await queue.offer("payload-42", 60_000);
  const { deadlines: atFirst } = await lost;

  expect(atFirst).toEqual([deadline]);
  expect(await stored(name)).toEqual({ deadlines: [deadline], order: 1 });
  expect(proxy.acceptedCount).toBeGreaterThanOrEqual(2);
});

test("the reply to a whole script (EVAL) is lost: the offer is stored once", async () => {
  // A server that has never seen the script.
  const server = await startOwnServer();
  const { name, proxy, queue } = await producerBehindProxy(server.url);
  const lost = proxy.loseReplyTo("redis.call(");
  const { deadline } = await queue.offer("payload", 60_000);
  await lost;
  expect(await stored(name, server.url)).toEqual({ deadlines: [deadline], order: 1 });
});

test("the replies to 20 offers in a row are lost: each is stored once, in order", async () => {
  const { name, proxy, queue } = await producerBehindProxy();
  const deadlines: number[] = [];
  for (const i of upTo(20)) {
    const lost = proxy.loseReplyTo(`<${i}>`);
    const offer = queue.offer(`<${i}>`, 60_000);
    await lost;
    deadlines.push((await offer).deadline);
  }
  // Equal deadlines or not, they stand in the order of their offers.
  expect(await stored(name)).toEqual({ deadlines, order: 20 });
  expect(await queue.insertionOrder.readAll()).toEqual(upTo(20).map((i) => `<${i}>`));
});

test("the reply to a batch is lost: each message is stored once, in order", async () => {
  const { name, proxy, queue } = await producerBehindProxy();
  const lost = proxy.loseReplyTo("batch-7");
  const messages = upTo(100).map((i) => ({ payload: `batch-${i}`, delay: 60_000 }));
  const results = await queue.offerMany(messages);
  await lost;
  expect(await stored(name)).toEqual({ deadlines: results.map((one) => one.deadline), order: 100 });
  expect(await queue.insertionOrder.readAll()).toEqual(messages.map(({ payload }) => payload));
});

test("the request itself is lost: the offer is stored once", async () => {
  const { name, proxy, queue } = await producerBehindProxy();
  let cuts = 0;
  proxy.onRequest = (chunk) => (chunk.includes("payload") && cuts++ === 0 ? "cut" : "forward");
  const { deadline } = await queue.offer("payload", 60_000);
  expect(cuts).toBeGreaterThan(1);
  expect(await stored(name)).toEqual({ deadlines: [deadline], order: 1 });
});

test("without resending, the error says that the offer may be stored", async () => {
  const { name, proxy, queue } = await producerBehindProxy(redisUrl(), 0);
  await queue.offer("warm", 0);
  await queue.clear();
  const lost = proxy.loseReplyTo("payload");
  const error = await queue.offer("payload", 60_000).catch((reason: OfferError) => reason);
  await lost;
  expect(error).toMatchObject({ code: "OFFER", effect: "unknown", reply: undefined });
  expect((await stored(name)).order).toBe(1);
});

test("the reply to a give-back is lost: the message is back once", async () => {
  const name = uniqueName();
  const proxy = await startProxy(redisUrl());
  const roles = new Roles(proxy);
  const redis = newRedis();
  const line = newLineThatMayFail({ redis: proxy.url, transfer: false, codec: "string" });
  const queue = line.getBlockingQueue<string>(name);
  /** A message arrives before Redis hears that nobody waits for it any more, and so goes back. */
  const arriveForNobody = async (message: string) => {
    const controller = new AbortController();
    const take = queue.take({ signal: controller.signal });
    await eventually(async () => {
      const list = String(await redis.client("LIST")).split("\n");
      return list.some((one) => one.includes(`:blocking:${name} `) && / flags=\S*b/.test(one));
    });
    await eventually(() => roles.all("background").length === 1);
    const background = roles.only("background");
    // The command that ends the blocking call reaches Redis after the message.
    background.hold();
    controller.abort();
    await expect(take).rejects.toThrow("aborted");
    await redis.rpush(name, message);
    background.letGo();
  };
  // So that Redis knows the script.
  await arriveForNobody("one");
  expect(await queue.take()).toBe("one");
  expect(line.errors).toEqual([]);

  // Nothing else gets the reply 1 meanwhile.
  await eventually(async () => (await redis.exists(queueKeys(name).receipts)) === 0);
  // The give-back replies with the number of messages that went back.
  let losses = 0;
  proxy.onReply = (chunk, connection) =>
    connection === roles.all("background")[0] && chunk.includes(":1\r\n") && losses++ === 0
      ? "cut"
      : "forward";
  await arriveForNobody("two");
  await eventually(() => losses === 1);
  await eventually(() => line.errors.length > 0);
  expect(await queue.take({ signal: AbortSignal.timeout(30_000) })).toBe("two");
  expect(await queue.poll(100)).toBeUndefined();
  // Sending it again leaves no receipt either.
  await line.close();
  expect(await redis.keys(`delayline_receipt*${name}*`)).toEqual([]);
});

test("a wake-up that overtakes a transfer's reply is never missed in 20 rounds", async () => {
  const name = uniqueName();
  const proxy = await startProxy(redisUrl());
  const roles = new Roles(proxy);
  const worker = newLine({ redis: proxy.url, codec: "string" });
  const queue = newLine({ transfer: false, codec: "string" }).getDelayedQueue<string>(name);
  worker.getBlockingQueue(name);
  const redis = newRedis();
  await eventually(async () => {
    const [, count] = await redis.pubsub("NUMSUB", `redisson_delay_queue_channel:{${name}}`);
    return Number(count) === 1;
  });
  // Replies to transfers take 60 ms; wake-ups do not.
  roles.only("background").delay.reply = 60;

  // The task would sleep until then.
  await queue.offer("much later", 60_000);
  const lateness: number[] = [];
  for (const i of upTo(20)) {
    // A transfer moves a first message. Its reply, with "much later" as the next deadline, is on its way while a sooner
    // message is offered.
    await queue.offer(`first ${i}`, 20);
    expect(await redis.blpop(name, 20)).toEqual([name, `first ${i}`]);
    const { deadline } = await queue.offer(`sooner ${i}`, 30);
    expect(await redis.blpop(name, 20)).toEqual([name, `sooner ${i}`]);
    lateness.push((await serverTime(redis)) - deadline);
  }
  // The task hears of the sooner message 30 ms before it has its reply, and acts on it then. A missed wake-up would
  // mean a minute's delay.
  expect(Math.max(...lateness)).toBeLessThan(15_000);
  expect(Math.min(...lateness)).toBeGreaterThanOrEqual(0);
});
