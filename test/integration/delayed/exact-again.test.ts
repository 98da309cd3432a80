import type { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { run } from "../../../src/lua/script.ts";
import { tidyAddresses, tidyMembers, type TidyReply } from "../../../src/lua/delayed/tidy.ts";
import { transfer } from "../../../src/lua/delayed/transfer.ts";
import { unpackMember } from "../../../src/queue/message/message.ts";
import type { MessageId } from "../../../src/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { offerAsRedisson, transferAsRedisson } from "../../helpers/redisson.ts";
import { OFTEN, startTransferTask } from "../../helpers/transfer-task.ts";

// A queue that was filled with `interop: "none"` is switched to "redisson": Java finds a LIST of whole members again,
// one for each message.

const HOUR = 3_600_000;

let redis: Redis;
let name: string;
let keys: QueueKeys;

beforeEach(() => {
  redis = newRedis();
  name = uniqueName("exact");
  keys = queueKeys(name);
});

const open = (interop: "none" | "redisson") =>
  newLine({ codec: "string", interop, transfer: false }).getDelayedQueue<string>(name);

/** What Java's `readAll` returns. It fails at an address. */
async function inJava(): Promise<(string | undefined)[]> {
  const elements = await redis.lrangeBuffer(keys.order, 0, -1);
  return elements.map((element) => unpackMember(element)?.payload.toString());
}

const sorted = (all: Buffer[]) => all.toSorted((a, b) => Buffer.compare(a, b));

/** Expects the LIST that Redisson would have made. */
async function expectExact(payloads: readonly string[]): Promise<void> {
  expect(await inJava()).toEqual(payloads);
  const members = await redis.zrangeBuffer(keys.timeouts, "0", "-1");
  const elements = await redis.lrangeBuffer(keys.order, 0, -1);
  expect(sorted(elements)).toEqual(sorted(members));
  expect(await redis.exists(keys.compacted)).toBe(0);
}

/** Offers to a queue with "none". Java's messages are among ours, and some messages have gone. */
async function feed(count: number): Promise<{ payloads: string[]; ids: MessageId[] }> {
  const queue = open("none");
  const payloads: string[] = [];
  const ids: MessageId[] = [];
  for (let i = 0; i < count; i++) {
    const payload = `message ${i}`;
    if (i % 10 === 9) {
      await offerAsRedisson(redis, name, payload, HOUR);
    } else {
      const { id } = await queue.offer(payload, HOUR + (i % 7), { key: `k${i}` });
      if (i % 3 === 0) {
        expect(await queue.cancel(id)).toBe(true);
        continue;
      }
      ids.push(id);
    }
    payloads.push(payload);
  }
  return { payloads, ids };
}

test("a task that starts makes the LIST exact: whole members, in order, without the dead", async () => {
  const { payloads } = await feed(500);
  expect(await redis.llen(keys.order)).toBe(500);
  newLine({ codec: "string", interop: "redisson" }).getDelayedQueue(name);
  await eventually(() => expectExact(payloads));
  expect(await open("redisson").insertionOrder.readAll()).toEqual(payloads);
});

test("a sweep clears the LIST where Java moved the last message", async () => {
  startTransferTask(name, OFTEN, { elements: "members" });
  const queue = open("none");
  for (const payload of ["a", "b", "c"]) await queue.offer(payload, HOUR, { key: payload });
  expect(await redis.llen(keys.order)).toBe(3);
  // The program that removed these from the ZSET did not know of addresses.
  await redis.zremrangebyrank(keys.timeouts, 0, -1);
  await eventually(async () => expect(await redis.exists(keys.order, keys.businessKeys)).toBe(0));
});

test("addresses between Java's messages appear when the first of them has gone", async () => {
  await offerAsRedisson(redis, name, "Java's first", HOUR);
  const { id } = await open("none").offer("goes", HOUR, { key: "goes" });
  await open("none").offer("stays", HOUR);
  await offerAsRedisson(redis, name, "Java's last", HOUR);
  startTransferTask(name, OFTEN, { elements: "members" });
  expect(await open("redisson").cancel(id)).toBe(true);
  await eventually(() => expectExact(["Java's first", "stays", "Java's last"]));
});

test("changes made while the LIST is made exact are right at its end", async () => {
  const { payloads, ids } = await feed(300);
  const queue = open("redisson");
  const drop = (payload: string | undefined) => {
    const at = payloads.indexOf(payload ?? "");
    expect(at).toBeGreaterThanOrEqual(0);
    payloads.splice(at, 1);
  };
  let steps = 0;
  const step = async () => {
    steps++;
    return await run(redis, tidyMembers, keys, { step: 20 });
  };
  for (let i = 0; await step(); i++) {
    // Some of these are in the compacted list, others are still addresses.
    for (const id of [ids[i * 2 + 1], ids.at(-1 - i * 2)]) {
      const message = await queue.get(id as MessageId);
      if (message === undefined) continue;
      if (i % 3 === 0) {
        drop(message.payload);
        await queue.cancel(message.id);
      } else if (i % 3 === 1) {
        drop(message.payload);
        payloads.push(message.payload);
        await queue.reschedule(message.id, 2 * HOUR);
      } else {
        drop(message.payload);
        payloads.push(`${message.payload}, new`);
        const key = message.key as string;
        await queue.offer(`${message.payload}, new`, HOUR, { key, onDuplicate: "replace" });
      }
    }
    if (i === 4) drop(await queue.insertionOrder.poll());
    if (i === 5) drop(await queue.insertionOrder.pollLastAndOfferFirstTo(name));
    if (i === 6) {
      const early = ids.find((id) => id === ids[20]) as MessageId;
      drop((await queue.get(early))?.payload);
      await queue.reschedule(early, 0);
      const args = {
        limit: 100,
        grace: 0,
        claim: 0,
        task: "test",
        known: 0,
        makes: 0,
        mark: 0,
        elementsAre: "members" as const,
      };
      await eventually(async () => (await run(redis, transfer.list, keys, args)).moved === 1);
    }
  }
  expect(steps).toBeGreaterThan(10);
  await expectExact(payloads);
  expect(await step()).toBe(false);
});

test("if Java moves messages while the LIST is made exact, only the next sweep has something left to do", async () => {
  await offerAsRedisson(redis, name, "due", -1000);
  const { payloads } = await feed(100);
  expect(await run(redis, tidyMembers, keys, { step: 10 })).toBe(true);
  // Java looks for its message in the LIST, but the message is in the compacted list.
  await transferAsRedisson(redis, name);
  while (await run(redis, tidyMembers, keys, { step: 10 }));
  expect(await inJava()).toEqual(["due", ...payloads]);
  startTransferTask(name, OFTEN, { elements: "members" });
  await eventually(() => expectExact(payloads));
});

test("reschedule lists an unlisted message, once", async () => {
  const queue = open("redisson");
  const { id } = await queue.offer("a", HOUR);
  await redis.del(keys.order);
  const moved = await queue.reschedule(id, 2 * HOUR);
  await expectExact(["a"]);
  await queue.reschedule(moved?.id as MessageId, 3 * HOUR);
  await expectExact(["a"]);
});

test("an element that occurs many times keeps no task busy", async () => {
  for (const interop of ["none", "redisson"] as const) {
    await open(interop).offer("a", HOUR);
    const [element] = await redis.lrangeBuffer(keys.order, 0, 0);
    await redis.rpush(keys.order, ...Array.from({ length: 2500 }, () => element as Buffer));
    let next: TidyReply = { hasMore: true, thorough: 0 };
    for (let steps = 0; next.hasMore; steps++) {
      expect(steps).toBeLessThan(100);
      next =
        interop === "none"
          ? await run(redis, tidyAddresses, keys, { step: 100, thorough: next.thorough })
          : { hasMore: await run(redis, tidyMembers, keys, { step: 100 }), thorough: 0 };
    }
    await redis.del(keys.timeouts, keys.order);
  }
});
