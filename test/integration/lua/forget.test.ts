import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import { describe, expect, onTestFinished, test } from "vitest";
import { forget } from "../../../src/lua/fragments/forget.ts";
import { defineScript, run } from "../../../src/lua/script.ts";
import { createId, packMember } from "../../../src/queue/message/message.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

// Members that leave the insertion-order LIST in a batch: exactly these, and no others.

const forgetScript = defineScript({
  name: "test-forget",
  keys: ["order", "compacted"],
  args: [],
  each: ["member"],
  needs: [forget],
  lua: `
local members = {}
for each row do members[#members + 1] = member end
forget(members)
return redis.call("LLEN", order)`,
  reply: (raw) => raw,
});

const rows = (members: readonly Buffer[]) => members.map((member) => ({ member }));

let stamp = Date.now() * 1000;

const ours = () => packMember(createId((stamp += 10)), Buffer.from("payload"));
const javas = () => packMember(randomBytes(8), Buffer.from("payload"));
const javasLong = () => packMember(randomBytes(16), Buffer.from("payload"));

function make(count: number, each: (i: number) => Buffer): Buffer[] {
  return Array.from({ length: count }, (_, i) => each(i));
}

async function list(elements: readonly Buffer[], redis: Redis = newRedis()) {
  const name = uniqueName("order");
  const keys = { order: name, compacted: `${name}:compacted` };
  onTestFinished(async () => void (await newRedis().del(keys.order, keys.compacted)));
  for (let i = 0; i < elements.length; i += 500) {
    await redis.rpush(keys.order, ...elements.slice(i, i + 500));
  }
  return { redis, keys };
}

/** Removes the batch, and compares the rest with what should be left. */
async function expectForgotten(elements: readonly Buffer[], batch: readonly Buffer[]) {
  const { redis, keys } = await list(elements);
  const gone = new Set(batch.map((member) => member.toString("hex")));
  await run(redis, forgetScript, keys, {}, rows(batch));
  const left = (await redis.lrangeBuffer(keys.order, 0, -1)).map((member) =>
    member.toString("hex"),
  );
  const expected = elements.map((member) => member.toString("hex")).filter((m) => !gone.has(m));
  expect(left).toEqual(expected);
}

function sample<T>(items: readonly T[], count: number): T[] {
  return shuffled(items).slice(0, count);
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

const queues: [string, () => Buffer[]][] = [
  ["ours", () => make(1000, ours)],
  ["Java's", () => make(1000, javas)],
  ["Java's with long ids", () => make(1000, javasLong)],
  ["ours and Java's by turns", () => make(1000, (i) => (i % 2 === 0 ? ours() : javas()))],
  ["ours behind many of Java's", () => [...make(900, javas), ...make(100, ours)]],
  ["ours, some rescheduled", () => shuffledTail(make(1000, ours), 200)],
  ["ours in no order at all", () => shuffled(make(1000, ours))],
  ["ours of several producers", () => swapped(make(1000, ours))],
];

/** Some are taken from anywhere and put at the end. */
function shuffledTail(elements: readonly Buffer[], count: number): Buffer[] {
  const moved = new Set(sample(elements, count));
  return [...elements.filter((element) => !moved.has(element)), ...moved];
}

/** Neighbours are swapped here and there. */
function swapped(elements: readonly Buffer[]): Buffer[] {
  const all = [...elements];
  for (let i = 0; i < 300; i++) {
    const at = Math.floor(Math.random() * (all.length - 20));
    all.splice(at, 20, ...shuffled(all.slice(at, at + 20)));
  }
  return all;
}

describe.each(queues)("%s", (_, create) => {
  test("from the head, in any order", async () => {
    const elements = create();
    await expectForgotten(elements, shuffled(elements.slice(0, 100)));
  });

  test("from the tail, in any order", async () => {
    const elements = create();
    await expectForgotten(elements, shuffled(elements.slice(-100)));
  });

  test("from both ends and between", async () => {
    const elements = create();
    const between = sample(elements.slice(10, -10), 10);
    await expectForgotten(
      elements,
      shuffled([...elements.slice(0, 10), ...between, ...elements.slice(-10)]),
    );
  });

  test.each([1, 2, 39, 40, 100, 999, 1000])("%d from anywhere", async (count) => {
    const elements = create();
    await expectForgotten(elements, sample(elements, count));
  });

  test("some that are absent", async () => {
    const elements = create();
    await expectForgotten(elements, [
      ...sample(elements, 20),
      ...make(10, ours),
      ...make(10, javas),
    ]);
    await expectForgotten(elements, [...make(60, ours), ...make(60, javas)]);
  });
});

test("from an empty LIST, and from one that holds something else", async () => {
  await expectForgotten([], make(50, ours));
  await expectForgotten([Buffer.from(""), Buffer.from("x")], make(50, ours));
});

test.each([1, 30, 200])(
  "%d that are in the compacted list while the LIST is made exact",
  async (count) => {
    const elements = make(600, ours);
    const { redis, keys } = await list(elements.slice(300));
    await redis.rpush(keys.compacted, ...elements.slice(0, 300));
    const batch = new Set([...sample(elements, count), ...sample(elements.slice(0, 300), count)]);
    await run(redis, forgetScript, keys, {}, rows([...batch]));
    const left = [
      ...(await redis.lrangeBuffer(keys.compacted, 0, -1)),
      ...(await redis.lrangeBuffer(keys.order, 0, -1)),
    ];
    expect(left).toEqual(elements.filter((element) => !batch.has(element)));
  },
);

test.each(["-lset", "-ltrim"])(
  "a client without a permission (%s) searches for each",
  async (rule) => {
    const user = uniqueName("user");
    const admin = newRedis();
    await admin.acl("SETUSER", user, "on", ">secret", "~*", "+@all", rule);
    onTestFinished(async () => void (await admin.acl("DELUSER", user)));
    const elements = make(300, ours);
    const { keys } = await list(elements);
    const redis = newRedis(undefined, { username: user, password: "secret" });
    const batch = new Set([
      ...sample(elements, 100),
      ...elements.slice(0, 5),
      ...elements.slice(-5),
    ]);
    await run(redis, forgetScript, keys, {}, rows([...batch]));
    expect(await redis.lrangeBuffer(keys.order, 0, -1)).toEqual(
      elements.filter((e) => !batch.has(e)),
    );
  },
);
