import { beforeEach, expect, test } from "vitest";
import { Delay } from "../../../src/time/delay.ts";
import { ClosedError, RedisError } from "../../../src/index.ts";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { createId, messageIdAt, packAddress } from "../../../src/queue/message/message.ts";
import { packTrailer } from "../../../src/queue/message/trailer.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { newReliableParts } from "../../helpers/reliable.ts";

const FAR = 5_000_000_000_000;

let keys: QueueKeys;
let redis: ReturnType<typeof newRedis>;
let parts: ReturnType<typeof newReliableParts>;

beforeEach(async () => {
  const name = uniqueName("retries");
  keys = queueKeys(name);
  redis = newRedis();
  parts = newReliableParts(name);
  for (const group of ["billing", "mail"]) {
    await redis.xgroup("CREATE", keys.stream, group, "$", "MKSTREAM");
  }
});

const NOTHING = Buffer.alloc(0);

const FAILURES = [{ attempt: 1, at: 1_760_000_000_123, reason: "busy" }];

const newAddress = () => packAddress(1000, createId(1));

/** Makes a message retry, and returns its id. */
async function wait(address: Buffer, due: number, group = "billing", trailer: Buffer = NOTHING) {
  const name = Buffer.concat([Buffer.from([address.length]), address, Buffer.from(group)]);
  const head = Buffer.alloc(8);
  head.writeUInt32LE(3, 0);
  head.writeUInt32LE(1, 4);
  const value = Buffer.concat([head, Buffer.from(group[0] ?? ""), trailer]);
  await redis.zadd(keys.retries, due, name);
  await redis.hset(keys.retrying, name, value);
  return messageIdAt(address);
}

test("shows the retry of the group that is due first, with key and headers", async () => {
  const address = newAddress();
  const trailer = packTrailer({ key: "k", headers: { a: "1" }, failures: FAILURES });
  const id = await wait(address, FAR + 1, "billing", trailer);
  await wait(address, FAR, "mail");
  expect(await parts.messages.get(id)).toEqual({
    id,
    deadline: FAR,
    payload: Buffer.from("m"),
    key: undefined,
    headers: undefined,
    failures: [],
  });
  await wait(address, FAR + 2, "mail");
  expect(await parts.messages.get(id)).toEqual({
    id,
    deadline: FAR + 1,
    payload: Buffer.from("b"),
    key: "k",
    headers: { a: "1" },
    failures: FAILURES,
  });
  expect(await parts.messages.get(messageIdAt(newAddress()))).toBeUndefined();
});

test("cancels 250 messages, with a verdict for each", async () => {
  const ids = await Promise.all(Array.from({ length: 250 }, () => wait(newAddress(), FAR)));
  const other = messageIdAt(newAddress());
  const flags = await Promise.all([...ids, other].map((id) => parts.messages.cancel(id)));
  expect(flags).toEqual([...ids.map(() => true), false]);
  expect(await redis.exists(keys.retries, keys.retrying)).toBe(0);
});

test("a cancelled message is gone for all groups; of two cancels one returns true", async () => {
  const address = newAddress();
  const id = await wait(address, FAR);
  await wait(address, FAR, "mail");
  const verdicts = await Promise.all([parts.messages.cancel(id), parts.messages.cancel(id)]);
  expect(verdicts.filter(Boolean).length).toBe(1);
  expect(await parts.messages.get(id)).toBeUndefined();
  expect(await parts.messages.size()).toBe(0);
});

test("finds a message with an 8-byte id, as Java creates them", async () => {
  const id = await wait(packAddress(1000, Buffer.alloc(8, 7)), FAR);
  expect(id).toBe("1000-0707070707070707");
  expect((await parts.messages.get(id))?.deadline).toBe(FAR);
  expect(await parts.messages.cancel(id)).toBe(true);
});

test("reschedules by a delay, to an instant and to now: the id stays, and waiting processes are woken", async () => {
  const heard: number[] = [];
  const subscriber = newRedis();
  await subscriber.subscribe(keys.channel);
  subscriber.on("message", (_channel, text) => heard.push(Number(text)));
  const address = newAddress();
  const id = await wait(address, FAR);
  await wait(address, FAR + 5, "mail");
  expect(await parts.messages.reschedule(id, { deadline: FAR - 7 })).toMatchObject({
    id,
    deadline: FAR - 7,
  });
  expect((await parts.messages.get(id))?.deadline).toBe(FAR - 7);
  const later = await parts.messages.reschedule(id, { delay: new Delay(60_000) });
  expect(later?.deadline).toBeGreaterThan(Date.now() + 50_000);
  const now = await parts.messages.reschedule(id, "now");
  expect(now?.deadline).toBeLessThan(Date.now() + 1000);
  expect(await parts.messages.nextDeadline()).toBe(now?.deadline);
  await eventually(() => expect(heard).toEqual([FAR - 7, later?.deadline, now?.deadline]));
  expect(await parts.messages.reschedule(messageIdAt(newAddress()), "now")).toBeUndefined();
});

test("counts retries and their due times with the delayed messages, and clears all", async () => {
  expect(await parts.messages.size()).toBe(0);
  expect(await parts.messages.nextDeadline()).toBeUndefined();
  await wait(newAddress(), FAR + 5);
  await parts.messages.offer({ payload: Buffer.from("a"), due: { deadline: FAR } });
  expect(await parts.messages.size()).toBe(2);
  expect(await parts.messages.nextDeadline()).toBe(FAR);
  await wait(newAddress(), FAR - 1);
  expect(await parts.messages.nextDeadline()).toBe(FAR - 1);
  expect(await parts.messages.clear()).toBe(3);
  expect(await parts.messages.size()).toBe(0);
});

test("finds nothing without a stream", async () => {
  const id = await wait(newAddress(), FAR);
  await redis.del(keys.stream);
  expect(await parts.messages.get(id)).toBeUndefined();
  expect(await parts.messages.cancel(id)).toBe(false);
  expect(await parts.messages.reschedule(id, "now")).toBeUndefined();
  expect(await parts.messages.size()).toBe(1);
});

test("rejects for a key of another type, and changes nothing", async () => {
  const id = await wait(newAddress(), FAR);
  await redis.set(keys.retrying, "string");
  await expect(parts.messages.cancel(id)).rejects.toThrow(RedisError);
  await expect(parts.messages.get(id)).rejects.toThrow(RedisError);
  await expect(parts.messages.reschedule(id, "now")).rejects.toThrow(RedisError);
  expect(await redis.zrange(keys.retries, "0", "-1", "WITHSCORES")).toContain(String(FAR));
});

test("an aborted call rejects with the signal's reason, a closed queue refuses", async () => {
  const id = await wait(newAddress(), FAR);
  const signal = AbortSignal.abort(new Error("enough"));
  for (const call of [
    () => parts.messages.cancel(id, { signal }),
    () => parts.messages.get(id, { signal }),
    () => parts.messages.reschedule(id, "now", { signal }),
    () => parts.messages.clear({ signal }),
    () => parts.messages.size({ signal }),
    () => parts.messages.nextDeadline({ signal }),
  ]) {
    await expect(call()).rejects.toThrow("enough");
  }
  expect(await parts.messages.size()).toBe(1);
  parts.queue.close();
  await expect(parts.messages.size()).rejects.toThrow(ClosedError);
});
