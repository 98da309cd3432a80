import type { Redis } from "ioredis";
import { beforeEach, describe, expect, it } from "vitest";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import type { Elements } from "../../../src/lua/family.ts";
import { deadBelow, tidyAddresses, type TidyReply } from "../../../src/lua/delayed/tidy.ts";
import { find } from "../../../src/lua/places/delayed.ts";
import { offer } from "../../../src/lua/delayed/offer.ts";
import { START, readPage, type Cursor } from "../../../src/lua/delayed/pages.ts";
import { pollOldest } from "../../../src/lua/delayed/poll.ts";
import { removeElements } from "../../../src/lua/delayed/remove.ts";
import { asArray, asNumber } from "../../../src/lua/reply.ts";
import { defineScript, run } from "../../../src/lua/script.ts";
import { reschedule } from "../../../src/lua/delayed/reschedule.ts";
import { transfer } from "../../../src/lua/delayed/transfer.ts";
import {
  createId,
  packAddress,
  packMember,
  unpackMember,
} from "../../../src/queue/message/message.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

// The scripts by themselves, without tasks: the test makes every step, and waits for no clock.

let redis: Redis;
let keys: QueueKeys;
let stamp: number;

beforeEach(() => {
  redis = newRedis();
  keys = queueKeys(uniqueName("order"));
  stamp = 1_760_000_000_000_000;
});

interface Message {
  readonly deadline: number;
  readonly id: Buffer;
  readonly text: string;
}

/** Offers texts with absolute deadlines, 100 per script, in this order. */
async function put(messages: readonly (readonly [text: string, deadline: number])[]) {
  return await putWith("addresses", messages);
}

async function putWith(
  elementsAre: Elements,
  messages: readonly (readonly [text: string, deadline: number])[],
): Promise<Message[]> {
  const all = messages.map(([text, deadline]) => ({ text, deadline, id: createId(stamp++) }));
  for (let i = 0; i < all.length; i += 100) {
    const rows = all.slice(i, i + 100).map(({ id, text, deadline }) => {
      return { member: packMember(id, Buffer.from(text)), delay: "", deadline };
    });
    await run(redis, offer, keys, { channel: keys.channel, elementsAre }, rows);
  }
  return all;
}

const addressOf = ({ deadline, id }: Message) => packAddress(deadline, id);
const rowOf = (message: Message) => ({ element: addressOf(message) });

/** Finds by address. Returns the payload's text, or undefined. */
const findScript = defineScript({
  name: "test-find",
  keys: ["timeouts"],
  args: ["element"],
  needs: [find],
  lua: `local member, deadline = find(element) return member and { member, deadline } or false`,
  reply: (raw) => {
    if (raw === null) return undefined;
    const [member, deadline] = asArray(raw);
    const message = unpackMember(member as Buffer);
    return { text: message?.payload.toString(), deadline: asNumber(deadline) };
  },
});
const lookFor = (element: Buffer) => run(redis, findScript, keys, { element });

async function readTexts(step = 7): Promise<string[]> {
  const texts: string[] = [];
  let cursor: Cursor | undefined = START;
  while (cursor !== undefined) {
    const args: Cursor = cursor;
    const page = await run(redis, readPage, keys, { ...args, step, maxBytes: 1e6 });
    for (const { member } of page.items) texts.push(textOf(member));
    cursor = page.next;
  }
  return texts;
}

const textOf = (member: Buffer) => String(unpackMember(member)?.payload);

/** Makes steps until all is tidy, and returns their number; `between` runs before each. */
async function tidyUp(between: (step: number) => unknown = () => {}): Promise<number> {
  let next: TidyReply = { hasMore: true, thorough: 0 };
  let steps = 0;
  while (next.hasMore) {
    await between(steps++);
    next = await run(redis, tidyAddresses, keys, {
      step: next.thorough ? 100 : 300,
      thorough: next.thorough,
    });
  }
  return steps;
}

/** The number of elements, and the number of messages. */
async function lengths() {
  const [order, compacted, live] = await Promise.all([
    redis.llen(keys.order),
    redis.llen(keys.compacted),
    redis.zcard(keys.timeouts),
  ]);
  return { elements: order + compacted, live };
}

async function cancel(messages: readonly Message[]): Promise<void> {
  for (let i = 0; i < messages.length; i += 200) {
    const elements = messages.slice(i, i + 200).map(rowOf);
    await run(redis, removeElements, keys, {}, elements);
  }
}

/** How often Redis has looked up members in the ZSET. */
async function lookUps(): Promise<number> {
  const stats = await redis.info("commandstats");
  const calls = stats.matchAll(/cmdstat_(?:zrange|zrangebyscore|zscore):calls=(\d+)/g);
  return [...calls].reduce((sum, [, count]) => sum + Number(count), 0);
}

const moveDue = (elementsAre: Elements = "addresses", limit = 100) =>
  run(redis, transfer.list, keys, {
    elementsAre,
    limit,
    grace: 0,
    task: "test",
    known: 0,
    claim: 1,
    makes: 0,
    mark: 0,
  });

const SOON = 5_000_000_000_000;
const past = (i: number) => 1_000_000 + i;

describe("find by address", () => {
  it("finds each of many messages, with equal and different deadlines", async () => {
    const messages = await put(
      Array.from(
        { length: 500 },
        (_, i) => [`m${i}`, SOON + Math.floor(i / 100) * (i % 2)] as const,
      ),
    );
    for (const message of messages) {
      expect(await lookFor(addressOf(message))).toEqual({
        text: message.text,
        deadline: message.deadline,
      });
    }
  });

  it("does not find an absent message: another deadline, an id between two, before all, after all", async () => {
    const messages = await put(Array.from({ length: 64 }, (_, i) => [`m${i}`, SOON] as const));
    const [first, second] = messages as [Message, Message];
    expect(await lookFor(packAddress(SOON + 1, first.id))).toBeUndefined();
    expect(await lookFor(packAddress(SOON - 1, first.id))).toBeUndefined();
    expect(await lookFor(packAddress(SOON, createId(1)))).toBeUndefined();
    expect(await lookFor(packAddress(SOON, createId(9e15)))).toBeUndefined();
    const between = Buffer.from(first.id);
    between.fill(0xff, 8);
    expect(between.compare(second.id)).toBe(-1);
    expect(await lookFor(packAddress(SOON, between))).toBeUndefined();
    expect(await lookFor(packAddress(SOON + 5, createId(1)))).toBeUndefined();
  });

  it("compares ids as bytes, not in a locale's order", async () => {
    // Bytes above 0x7f, and letters whose order differs between strcoll and memcmp.
    const ids = ["5a", "61", "7f", "80", "c3", "ff", "00", "0a"].map((byte) =>
      Buffer.concat([createId(stamp).subarray(0, 8), Buffer.alloc(8, byte, "hex")]),
    );
    for (const id of ids) {
      await redis.zadd(keys.timeouts, SOON, packMember(id, Buffer.from(id.toString("hex"))));
    }
    for (const id of ids) {
      expect(await lookFor(packAddress(SOON, id))).toEqual({
        text: id.toString("hex"),
        deadline: SOON,
      });
    }
  });

  it("finds ours among Java's at the same deadline, and Java's by their members", async () => {
    const java = Array.from({ length: 50 }, (_, i) =>
      packMember(Buffer.alloc(i % 2 ? 8 : 16, i * 5), Buffer.from(`java${i}`)),
    );
    for (const member of java) await redis.zadd(keys.timeouts, SOON, member);
    const ours = await put(Array.from({ length: 50 }, (_, i) => [`ours${i}`, SOON] as const));
    for (const message of ours) {
      expect((await lookFor(addressOf(message)))?.text).toBe(message.text);
    }
    for (const member of java) expect((await lookFor(member))?.text).toBe(textOf(member));
    expect(await lookFor(packMember(createId(1), Buffer.from("gone")))).toBeUndefined();
  });

  it("is not misled by broken members of the same deadline", async () => {
    const messages = await put(Array.from({ length: 30 }, (_, i) => [`m${i}`, SOON] as const));
    for (const { id } of messages) {
      await redis.zadd(keys.timeouts, SOON, Buffer.concat([Buffer.from([16]), id.subarray(0, 7)]));
    }
    await redis.zadd(keys.timeouts, SOON, Buffer.from([16]), SOON, Buffer.from([0]));
    for (const message of messages) {
      expect((await lookFor(addressOf(message)))?.text).toBe(message.text);
    }
  });

  it("works for the earliest and the latest legal deadline", async () => {
    const messages = await put([
      ["zero", 0],
      ["epoch", 1],
      ["last", 8_999_999_999_999_999],
    ]);
    for (const message of messages) {
      expect((await lookFor(addressOf(message)))?.text).toBe(message.text);
    }
  });
});

describe("the rule of the dead", () => {
  const isDead = defineScript({
    name: "test-dead",
    keys: ["timeouts"],
    args: ["element"],
    needs: [deadBelow],
    lua: `
local head = redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")
return deadBelow(head[1], tonumber(head[2]))(element) and 1 or 0`,
    reply: (raw) => asNumber(raw) === 1,
  });
  const dead = (element: Buffer) => run(redis, isDead, keys, { element });

  it("holds for addresses below the head, and for no other", async () => {
    const messages = await put(
      Array.from({ length: 10 }, (_, i) => [`m${i}`, SOON + (i >> 1)] as const),
    );
    await redis.zremrangebyrank(keys.timeouts, 0, 4);
    const verdicts = await Promise.all(messages.map((message) => dead(addressOf(message))));
    expect(verdicts).toEqual([...Array(5).fill(true), ...Array(5).fill(false)]);
  });

  it("takes ours for alive while Java's stand before them at the same deadline", async () => {
    const [ours] = await put([["ours", SOON]]);
    await redis.zadd(keys.timeouts, SOON, packMember(Buffer.alloc(8, 0xff), Buffer.from("java")));
    expect(await dead(addressOf(ours as Message))).toBe(false);
  });

  it("looks Java's members up", async () => {
    const member = packMember(Buffer.alloc(8, 1), Buffer.from("java"));
    await put([["ours", SOON]]);
    expect(await dead(member)).toBe(true);
    await redis.zadd(keys.timeouts, SOON + 1, member);
    expect(await dead(member)).toBe(false);
  });

  it("does not take an old member of 24 bytes for an address", async () => {
    // dLc0 with a payload of 8 bytes: 8 + 8 + 8, and the random number may begin with 0.
    const old = Buffer.concat([
      Buffer.alloc(8),
      Buffer.from([8, 0, 0, 0, 0, 0, 0, 0]),
      Buffer.from("12345678"),
    ]);
    await redis.zadd(keys.timeouts, SOON, old);
    expect((await lookFor(old))?.text).toBe("12345678");
    expect(await dead(old)).toBe(false);
  });
});

describe("the insertion order", () => {
  it("holds 24-byte addresses, oldest first, whatever the deadlines", async () => {
    const messages = await put(Array.from({ length: 20 }, (_, i) => [`m${i}`, SOON - i] as const));
    expect(await redis.lrangeBuffer(keys.order, 0, -1)).toEqual(messages.map(addressOf));
    expect(await readTexts()).toEqual(messages.map(({ text }) => text));
  });

  it("is left alone by an offer that is sent twice", async () => {
    const id = createId(stamp);
    const rows = [{ member: packMember(id, Buffer.from("once")), delay: 60_000, deadline: "" }];
    const first = await run(redis, offer, keys, { channel: keys.channel }, rows);
    const second = await run(redis, offer, keys, { channel: keys.channel }, rows);
    expect(second.deadlines).toEqual(first.deadlines);
    expect(await redis.llen(keys.order)).toBe(1);
    expect(await redis.zcard(keys.timeouts)).toBe(1);
  });

  it("skips messages that have gone, and pops them when polled", async () => {
    const messages = await put(Array.from({ length: 30 }, (_, i) => [`m${i}`, SOON + i] as const));
    const odd = messages.filter((_, i) => i % 2 === 1);
    const removed = await run(redis, removeElements, keys, {}, odd.map(rowOf));
    expect(removed).toEqual(odd.map(() => true));
    const again = await run(redis, removeElements, keys, {}, odd.map(rowOf));
    expect(again).toEqual(odd.map(() => false));
    const even = messages.filter((_, i) => i % 2 === 0).map(({ text }) => text);
    expect(await readTexts()).toEqual(even);

    const polled = await run(redis, pollOldest, keys, { limit: 5, step: 300, maxBytes: 1e6 });
    expect(polled.members.map(textOf)).toEqual(even.slice(0, 5));
    expect(await redis.llen(keys.order)).toBe(30 - 9);
    expect(await readTexts()).toEqual(even.slice(5));
  });

  it("is deleted by a step of tidying once the last message was moved", async () => {
    await put(Array.from({ length: 20 }, (_, i) => [`m${i}`, past(i)] as const));
    const reply = await moveDue();
    expect(reply).toMatchObject({ moved: 20, quarantined: 0, next: Infinity });
    expect(await tidyUp()).toBe(1);
    expect(await redis.exists(keys.order, keys.compacted)).toBe(0);
    expect(await redis.llen(keys.ready)).toBe(20);
  });

  it("is trimmed at its head, as far as the dead elements go", async () => {
    const due = Array.from({ length: 150 }, (_, i) => [`due${i}`, past(i)] as const);
    await put([...due, ["later", SOON], ...due.map(([text], i) => [`x${text}`, past(i)] as const)]);
    while ((await moveDue()).moved > 0);
    expect(await redis.llen(keys.order)).toBe(301);
    expect(await tidyUp()).toBe(1);
    expect(await redis.llen(keys.order)).toBe(151);
    expect(await readTexts()).toEqual(["later"]);
  });

  it("is compacted when two thirds of it are dead: survivors in order, nothing lost meanwhile", async () => {
    // A live element at the head, so that trimming does nothing.
    const old = await put([
      ["first", SOON],
      ...Array.from(
        { length: 6000 },
        (_, i) => [`m${i}`, i % 4 === 0 ? SOON + i : past(i)] as const,
      ),
    ]);
    while ((await moveDue()).moved > 0);
    const alive = old.filter(({ deadline }) => deadline >= SOON).map(({ text }) => text);
    expect(await redis.llen(keys.order)).toBe(6001);

    // Step by step. After each step the order is complete, for reading and for polling.
    const steps = await tidyUp(async (step) => {
      if (step === 5) {
        const [late] = await put([["late", SOON]]);
        alive.push((late as Message).text);
        const polled = await run(redis, pollOldest, keys, { limit: 2, step: 300, maxBytes: 1e6 });
        expect(polled.members.map(textOf)).toEqual(alive.splice(0, 2));
      }
      if (step % 4 === 1) expect(await readTexts(200)).toEqual(alive);
    });
    expect(steps).toBeGreaterThan(15);
    expect(await redis.exists(keys.compacted)).toBe(0);
    expect(await redis.llen(keys.order)).toBe(alive.length);
    expect(await readTexts(200)).toEqual(alive);
    expect(await redis.zcard(keys.timeouts)).toBe(alive.length);
  });

  it("loses the elements of messages that were cancelled long before their deadline", async () => {
    const messages = await put(
      Array.from({ length: 4000 }, (_, i) => [`m${i}`, SOON + i] as const),
    );
    // All but two go. Above the head a comparison cannot decide, so they are looked up.
    await cancel(messages.slice(1, -1));
    await tidyUp();
    expect(await redis.lrangeBuffer(keys.order, 0, -1)).toEqual(
      [messages[0], messages.at(-1)].map((message) => addressOf(message as Message)),
    );
    expect(await tidyUp()).toBe(1);
    expect(await readTexts(200)).toEqual(["m0", "m3999"]);
  });

  it("stays below twice the live elements plus 2000 when all are cancelled or rescheduled, with few look-ups", async () => {
    const server = await startOwnServer();
    redis = newRedis(server.url);
    let alive: Message[] = [];
    let gone = 0;
    let spent = 0;
    // Nothing ever moves: the head of the queue stays.
    await put([["head", 1]]);
    for (let round = 0; round < 60; round++) {
      const texts = Array.from({ length: 400 }, (_, i) => `${round}.${i}`);
      alive.push(
        ...(await put(
          texts.map((text) => [text, SOON + Math.floor(Math.random() * 1e6)] as const),
        )),
      );
      // Most go. The queue grows for a while, then shrinks.
      const leaving = alive.filter((_, i) => (i * 7 + round) % 10 < (round < 40 ? 8 : 9));
      for (const { id } of leaving.slice(0, 50)) {
        const address = addressOf(alive.find((message) => message.id === id) as Message);
        await run(redis, reschedule, keys, {
          channel: keys.channel,
          id: address,
          key: "",
          delay: 5e8,
          deadline: "",
        });
      }
      await cancel(leaving.slice(50));
      gone += leaving.length;
      alive = alive.filter((message) => !leaving.includes(message));
      const before = await lookUps();
      await tidyUp();
      spent += (await lookUps()) - before;
      const { elements, live } = await lengths();
      expect(elements).toBeLessThanOrEqual(2 * live + 2000);
    }
    expect(gone).toBeGreaterThan(15_000);
    // At most two for each, and one in each step.
    expect(spent).toBeLessThan(2.5 * gone);
    expect((await readTexts(200)).length).toBe(await redis.zcard(keys.timeouts));
  });

  it("is compacted in short steps, even if all deadlines are equal", async () => {
    const server = await startOwnServer();
    redis = newRedis(server.url);
    const messages = await put(Array.from({ length: 20_000 }, (_, i) => [`m${i}`, SOON] as const));
    await cancel(messages.filter((_, i) => i % 20 !== 0));
    let [before, most] = [await lookUps(), 0];
    await tidyUp(async () => {
      const now = await lookUps();
      most = Math.max(most, now - before);
      before = now;
    });
    // Each takes some microseconds. The last element of a step may take a whole binary search.
    expect(most).toBeLessThan(60 + 40);
    expect(await readTexts(200)).toEqual(
      messages.filter((_, i) => i % 20 === 0).map(({ text }) => text),
    );
    expect(await redis.llen(keys.order)).toBe(1000);
  });

  it("is compacted in short steps, even if payloads are large", async () => {
    const server = await startOwnServer();
    redis = newRedis(server.url);
    const large = Array.from({ length: 30 }, (_, i) => [`${i} `.padEnd(200_000), SOON] as const);
    const messages = await put([
      ...large,
      ...Array.from({ length: 3000 }, () => ["small", SOON + 1] as const),
    ]);
    await cancel(messages.slice(30));
    const read: number[] = [];
    await tidyUp(async () => {
      const { elements } = await lengths();
      read.push(elements);
    });
    // At 200 KB each there are six to a step: 300 would be 60 MB.
    expect(await redis.llen(keys.order)).toBe(30);
    expect(read.length).toBeGreaterThan(3000 / 300 + 30 / 7);
  });

  it("stays below twice the live elements plus 3000 while random messages come and go", async () => {
    let longest = 0;
    let clock = 0;
    for (let round = 0; round < 150; round++) {
      // A tenth of the messages stays for long, the others go within a few rounds.
      await put(
        Array.from({ length: 100 }, (_, i) => {
          const span = i % 10 === 0 ? 3000 : 30;
          return [`${round}.${i}`, clock + Math.floor(Math.random() * span)] as const;
        }),
      );
      clock += 10;
      await redis.zremrangebyscore(keys.timeouts, "-inf", clock);
      await run(redis, tidyAddresses, keys, { step: 300, thorough: 0 });
      await run(redis, tidyAddresses, keys, { step: 300, thorough: 0 });
      const { elements, live } = await lengths();
      longest = Math.max(longest, elements - 2 * live);
    }
    expect(longest).toBeLessThan(3000);
  });
});

const page = (cursor: Cursor, step = 10) =>
  run(redis, readPage, keys, { ...cursor, step, maxBytes: 1e6 });

/** Reads all pages; `between` runs once, after the named page. */
async function readWith(between: (page: number) => Promise<unknown>): Promise<string[]> {
  const texts: string[] = [];
  let cursor: Cursor | undefined = START;
  for (let n = 1; cursor !== undefined; n++) {
    const read = await page(cursor);
    texts.push(...read.items.map(({ member }) => textOf(member)));
    cursor = read.next;
    await between(n);
  }
  return texts;
}

describe("a reader", () => {
  it("misses nothing when the head is trimmed between two pages", async () => {
    const messages = await put([
      ...Array.from({ length: 25 }, (_, i) => [`due${i}`, past(i)] as const),
      ...Array.from({ length: 100 }, (_, i) => [`m${i}`, SOON + i] as const),
    ]);
    const texts = await readWith(async (n) => {
      if (n !== 6) return;
      await moveDue();
      await tidyUp();
      expect(await redis.llen(keys.order)).toBe(100);
    });
    expect(texts).toEqual(messages.map(({ text }) => text));
  });

  it("misses nothing when everything that it has read goes away", async () => {
    const messages = await put([
      ...Array.from({ length: 40 }, (_, i) => [`due${i}`, past(i)] as const),
      ...Array.from({ length: 100 }, (_, i) => [`m${i}`, SOON + i] as const),
    ]);
    const texts = await readWith(async (n) => {
      if (n === 4) await run(redis, pollOldest, keys, { limit: 40, step: 300, maxBytes: 1e6 });
    });
    expect(texts).toEqual(messages.map(({ text }) => text));
  });

  it("finds its place again after a compaction", async () => {
    await put(
      Array.from({ length: 5000 }, (_, i) => [`m${i}`, i % 5 === 0 ? SOON + i : past(i)] as const),
    );
    while ((await moveDue()).moved > 0);
    const alive = await readTexts(200);
    expect(alive.length).toBe(1000);
    const texts = await readWith(async (n) => {
      if (n === 300) expect(await tidyUp()).toBeGreaterThan(10);
    });
    expect([...new Set(texts)]).toEqual(alive);
  });

  it("ends a page at its limit of bytes", async () => {
    await put(Array.from({ length: 10 }, (_, i) => ["x".repeat(1000) + i, SOON] as const));
    const read = await run(redis, readPage, keys, { ...START, step: 10, maxBytes: 2500 });
    expect(read.items.length).toBe(3);
    expect(read.next?.position).toBe(3);
  });
});

const members = async () => (await redis.lrangeBuffer(keys.order, 0, -1)).map(textOf);

describe('interop "redisson"', () => {
  it("keeps whole members in the LIST, and removes them at once", async () => {
    const messages = await putWith(
      "members",
      Array.from({ length: 250 }, (_, i) => [`m${i}`, i % 3 === 0 ? past(250 - i) : SOON] as const),
    );
    expect(await members()).toEqual(messages.map(({ text }) => text));
    while ((await moveDue("members")).moved > 0);
    const left = messages.filter((_, i) => i % 3 !== 0);
    expect(await members()).toEqual(left.map(({ text }) => text));

    const gone = left.slice(10, 20);
    const elements = gone.map(({ id, text }) => ({ element: packMember(id, Buffer.from(text)) }));
    expect(
      await run(redis, removeElements, keys, { elementsAre: "members" }, elements),
    ).not.toContain(false);
    expect(await members()).toEqual(
      [...left.slice(0, 10), ...left.slice(20)].map(({ text }) => text),
    );
    expect(await readTexts()).toEqual(await members());
    expect(await redis.zcard(keys.timeouts)).toBe(await redis.llen(keys.order));
  });

  it("empties the LIST with the last message, in order and in reverse", async () => {
    for (const sign of [1, -1]) {
      await putWith(
        "members",
        Array.from({ length: 300 }, (_, i) => [`m${i}`, past(1000 + sign * i)] as const),
      );
      while ((await moveDue("members")).moved > 0);
      expect(await redis.exists(keys.order, keys.timeouts)).toBe(0);
    }
  });
});
