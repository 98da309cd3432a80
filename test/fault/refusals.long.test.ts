import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { DecodeError, OfferError, OfferManyError, RedisError } from "../../src/index.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";
import { expectEachOnce } from "../helpers/ledger.ts";
import { upTo } from "../helpers/numbers.ts";

/*
 * Redis refuses a command because a key holds another type or the memory is full. The waiting caller gets the error, no
 * message is lost or duplicated, and everything goes on when the cause is gone.
 */

/** A queue of strings, whose keys the test can spoil. */
function newQueue() {
  const name = uniqueName();
  const redis = newRedis();
  const keys = {
    timeouts: `redisson_delay_queue_timeout:{${name}}`,
    order: `redisson_delay_queue:{${name}}`,
    ready: name,
    quarantine: `delayline_quarantine:{${name}}`,
    unreadable: `delayline_unreadable:{${name}}`,
    compacted: `delayline_compacted:{${name}}`,
    mover: `delayline_mover:{${name}}`,
  };
  const producer = newLine({ transfer: false, codec: "string" });
  const delayed = producer.getDelayedQueue<string>(name);
  return { name, redis, keys, delayed };
}

const wrongType = { code: "REDIS", reply: "WRONGTYPE" };
const refusedOffer = { code: "OFFER", reply: "WRONGTYPE", effect: "none" };

test("WRONGTYPE on the timeouts ZSET rejects calls until the key is gone", async () => {
  const { name, redis, keys, delayed } = newQueue();
  await redis.set(keys.timeouts, "somebody else's");
  const worker = newLineThatMayFail({ codec: "string" });
  const received: string[] = [];
  worker.getBlockingQueue<string>(name).subscribe((message) => received.push(message));

  const offer = delayed.offer("refused", 0);
  await expect(offer).rejects.toBeInstanceOf(OfferError);
  await expect(offer).rejects.toMatchObject(refusedOffer);
  const offers = await delayed
    .offerMany(["a", "b"].map((payload) => ({ payload, delay: 0 })))
    .catch((reason: unknown) => reason);
  expect(offers).toBeInstanceOf(OfferManyError);
  expect(offers).toMatchObject({ results: [refusedOffer, refusedOffer] });
  await expect(delayed.size()).rejects.toMatchObject(wrongType);
  await expect(delayed.nextDeadline()).rejects.toMatchObject(wrongType);
  // The task reports it once, and goes on trying.
  await eventually(() => worker.errors.length > 0);
  expect(worker.errors[0]).toBeInstanceOf(RedisError);
  expect(worker.errors[0]).toMatchObject(wrongType);
  expect(await redis.exists(keys.order)).toBe(0);

  await redis.del(keys.timeouts);
  await delayed.offer("accepted", 0);
  await eventually(() => received.length > 0, { within: 10_000 });
  expect(received).toEqual(["accepted"]);
});

test("WRONGTYPE on the insertion-order LIST refuses offers, but delivery goes on", async () => {
  const { name, redis, keys, delayed } = newQueue();
  await delayed.offer("before", 500);
  await redis.set(keys.order, "somebody else's");

  await expect(delayed.offer("refused", 0)).rejects.toMatchObject(refusedOffer);
  await expect(delayed.insertionOrder.readAll()).rejects.toMatchObject(wrongType);
  await expect(delayed.insertionOrder.poll()).rejects.toMatchObject(wrongType);
  // The refused offer is not in the ZSET either.
  expect(await delayed.size()).toBe(1);

  // Stored messages are delivered on time all the same: moving does not need the LIST.
  const worker = newLineThatMayFail({ codec: "string" });
  const queue = worker.getBlockingQueue<string>(name);
  expect(await queue.take()).toBe("before");
  await redis.del(keys.order);
  await delayed.offer("accepted", 0);
  expect(await queue.take()).toBe("accepted");
  expect(await queue.poll()).toBeUndefined();
});

test("WRONGTYPE on the ready LIST keeps messages delayed until the key is gone", async () => {
  const { name, redis, keys, delayed } = newQueue();
  await redis.set(keys.ready, "somebody else's");
  const sent = upTo(250).map((i) => `message ${i}`);
  await delayed.offerMany(sent.map((payload) => ({ payload, delay: 0 })));

  const worker = newLineThatMayFail({ codec: "string" });
  const queue = worker.getBlockingQueue<string>(name);
  await expect(queue.take()).rejects.toMatchObject(wrongType);
  await expect(queue.poll(100)).rejects.toMatchObject(wrongType);
  await expect(queue.poll()).rejects.toMatchObject(wrongType);
  await expect(queue.put("put")).rejects.toMatchObject(wrongType);
  await expect(queue.size()).rejects.toMatchObject(wrongType);
  await eventually(() => worker.errors.length > 0);
  expect(worker.errors[0]).toMatchObject(wrongType);
  // The messages stay where they were.
  expect(await delayed.size()).toBe(250);

  // A subscription goes on trying as well.
  const received: string[] = [];
  queue.subscribe((message) => received.push(message));
  await redis.del(keys.ready);
  await eventually(() => received.length >= 250, { within: 15_000 });
  expect(received).toEqual(sent);
});

test("WRONGTYPE on the quarantine LIST loses neither poison nor good messages", async () => {
  const { name, redis, keys, delayed } = newQueue();
  await redis.set(keys.unreadable, "somebody else's");
  await redis.zadd(keys.timeouts, 1, "poison");
  await delayed.offer("good", 0);

  const worker = newLineThatMayFail({ codec: "string" });
  const queue = worker.getBlockingQueue<string>(name);
  await eventually(() => worker.errors.length > 0);
  expect(worker.errors[0]).toMatchObject(wrongType);
  // Neither the poison nor the good message is lost.
  expect((await redis.zcard(keys.timeouts)) + (await redis.llen(keys.ready))).toBe(2);

  await redis.del(keys.unreadable);
  expect(await queue.take()).toBe("good");
  await eventually(async () => (await redis.zcard(keys.timeouts)) === 0, { within: 10_000 });
  expect(await redis.lrange(keys.unreadable, 0, -1)).toEqual(["poison"]);
});

test("WRONGTYPE on the quarantine LIST: the error still holds the payload that cannot be decoded", async () => {
  const { name, redis, keys } = newQueue();
  await redis.set(keys.quarantine, "somebody else's");
  await redis.rpush(name, "{ no json");
  const line = newLineThatMayFail({ codec: "json" });
  const error = await line
    .getBlockingQueue(name)
    .take()
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(DecodeError);
  expect(error).toHaveProperty("bytes", Buffer.from("{ no json"));
  await eventually(() => line.errors.length > 0);
  expect(line.errors[0]).toMatchObject(wrongType);
});

test("poison and WRONGTYPE on the ready LIST at once: the poison is put aside once, and reported", async () => {
  const { name, redis, keys, delayed } = newQueue();
  await redis.set(keys.ready, "somebody else's");
  await redis.zadd(keys.timeouts, 1, "poison");
  await delayed.offer("good", 0);

  const worker = newLineThatMayFail({ codec: "string" });
  const queue = worker.getBlockingQueue<string>(name);
  await eventually(() => worker.errors.length > 0);
  await redis.del(keys.ready);
  expect(await queue.take()).toBe("good");
  expect(await redis.lrange(keys.unreadable, 0, -1)).toEqual(["poison"]);
  await eventually(() => worker.errors.some(({ code }) => code === "QUARANTINED"));
});

test("WRONGTYPE on housekeeping keys does not hold messages up", async () => {
  const { name, redis, keys, delayed } = newQueue();
  await redis.rpush(keys.mover, "somebody else's");
  await redis.set(keys.compacted, "somebody else's");
  const worker = newLineThatMayFail({ codec: "string" });
  const queue = worker.getBlockingQueue<string>(name);
  await delayed.offer("message", 0);
  await eventually(() => worker.errors.length > 0, { within: 1_000 }).catch(() => {});
  // Held up or not, the message is not lost.
  await redis.del(keys.mover, keys.compacted);
  expect(await queue.take()).toBe("message");
  expect(await queue.poll()).toBeUndefined();
});

test("memory is full: offers are refused, and stored messages still move, are consumed and given back", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const name = uniqueName();
  const producer = newLine({ redis: server.url, transfer: false, codec: "string" });
  const delayed = producer.getDelayedQueue<string>(name);
  const sent = upTo(300).map((i) => `message ${i}`);
  await delayed.offerMany(sent.map((payload, i) => ({ payload, delay: 300 + i })));

  await redis.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
  const refused = { code: "OFFER", reply: "OOM", effect: "none" };
  await expect(delayed.offer("refused", 0)).rejects.toMatchObject(refused);
  const offers = await delayed
    .offerMany(["a", "b"].map((payload) => ({ payload, delay: 0 })))
    .catch((reason: unknown) => reason);
  expect(offers).toMatchObject({ code: "OFFER_MANY", results: [refused, refused] });

  const worker = newLine({ redis: server.url, codec: "string" });
  const queue = worker.getBlockingQueue<string>(name);
  await expect(queue.put("refused")).rejects.toMatchObject({ code: "REDIS", reply: "OOM" });
  const received: string[] = [];
  while (received.length < 300) received.push(await queue.take());
  expect(received).toEqual(sent);
  expect(worker.errors).toEqual([]);

  // A message that arrives for nobody goes back, however full the memory is.
  await redis.config("SET", "maxmemory", "0");
  await delayed.offerMany(upTo(500).map((i) => ({ payload: `${i}`, delay: 100 + i * 2 })));
  await redis.config("SET", "maxmemory", "1");
  const taken: string[] = [];
  while (taken.length < 500) {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), Math.random() * 6);
    await queue
      .take({ signal: controller.signal })
      .then((message) => taken.push(message))
      // Let one arrive for nobody.
      .catch(() => sleep(Math.random() * 4));
  }
  expect(taken).toEqual(upTo(500).map(String));

  await redis.config("SET", "maxmemory", "0");
  await delayed.offer("accepted", 0);
  expect(await queue.take()).toBe("accepted");
  expect(worker.errors).toEqual([]);
});

test("memory is full: poison is put aside all the same", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const name = uniqueName();
  const producer = newLine({ redis: server.url, transfer: false, codec: "string" });
  await producer.getDelayedQueue<string>(name).offer("good", 0);
  await redis.zadd(`redisson_delay_queue_timeout:{${name}}`, 1, "poison");
  await redis.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");

  const worker = newLineThatMayFail({ redis: server.url, codec: "string" });
  expect(await worker.getBlockingQueue<string>(name).take()).toBe("good");
  expect(await redis.lrange(`delayline_unreadable:{${name}}`, 0, -1)).toEqual(["poison"]);
});

test("memory is full: a payload that cannot be decoded is put aside all the same", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const name = uniqueName();
  await redis.rpush(name, "{ no json");
  await redis.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
  const line = newLine({ redis: server.url, codec: "json" });
  const error = await line
    .getBlockingQueue(name)
    .take()
    .catch((reason: unknown) => reason);
  expect(error).toHaveProperty("bytes", Buffer.from("{ no json"));
  expect(await redis.lrange(`delayline_quarantine:{${name}}`, 0, -1)).toEqual(["{ no json"]);
  expect(line.errors).toEqual([]);
});

test("on a replica that refuses writes calls reject, and everything goes on when it is a master again", async () => {
  const [master, server] = [await startOwnServer(), await startOwnServer()];
  const redis = newRedis(server.url);
  const line = newLineThatMayFail({ redis: server.url, codec: "string" });
  const name = uniqueName();
  const delayed = line.getDelayedQueue<string>(name);
  const queue = line.getBlockingQueue<string>(name);
  await delayed.offer("before", 0);
  expect(await queue.take()).toBe("before");

  await redis.replicaof("127.0.0.1", master.port);
  await expect(delayed.offer("refused", 0)).rejects.toMatchObject({
    code: "OFFER",
    reply: "READONLY",
    effect: "none",
  });
  const take = queue.take();
  await redis.replicaof("NO", "ONE");
  await eventually(() => delayed.offer("after", 0).then(() => true), { within: 10_000 });
  expect(await take).toBe("after");
  expectEachOnce([], await delayed.insertionOrder.readAll());
});

test("with min-replicas-to-write, a master without replicas refuses offers, and stores none", async () => {
  const server = await startOwnServer({ args: ["--min-replicas-to-write", "1"] });
  const queue = newLine({ redis: server.url, transfer: false }).getDelayedQueue<string>(
    uniqueName(),
  );
  const refused = { code: "OFFER", reply: "NOREPLICAS", effect: "none" };
  await expect(queue.offer("plain", 0)).rejects.toMatchObject(refused);
  await expect(queue.offer("keyed", 0, { key: "k" })).rejects.toMatchObject(refused);
  expect(await queue.size()).toBe(0);
});
