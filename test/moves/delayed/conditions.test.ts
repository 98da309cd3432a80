import { expect, test } from "vitest";
import type { Elements } from "../../../src/lua/family.ts";
import { sweep, transfer } from "../../../src/lua/delayed/transfer.ts";
import { run } from "../../../src/lua/script.ts";
import type { OnlyIf } from "../../../src/queue/message/only-if.ts";
import { packTrailer, type Trailer } from "../../../src/queue/message/trailer.ts";
import { asText, bytes, message, newMoves, type Message, type Moves } from "../../helpers/moves.ts";

const FAR = 5_000_000_000_000;

/** A message with conditions, due long ago. */
function asking(payload: string, more: Partial<Trailer>, deadline = 1000): Message {
  const { key, ...conditions } = more;
  return message(payload, deadline, key, conditions);
}

const FORMS = [
  ["a transfer to the LIST", transfer.list],
  ["a transfer to the LIST, order of members", transfer.list, "members"],
  ["a sweep", sweep.list],
  ["a transfer to the stream", transfer.stream],
  ["a sweep of a reliable queue", sweep.stream],
] as const;

async function move(
  { redis, keys }: Moves,
  [, script, elementsAre = "addresses"]: readonly [
    string,
    (typeof FORMS)[number][1],
    (Elements | undefined)?,
  ],
  limit = 100,
) {
  const makes = script.name.includes("stream") ? 1 : 0;
  const args = { limit, grace: 0, claim: 1, task: "me", known: 0, makes, mark: 0, elementsAre };
  return await run(redis, script, keys, args);
}

/** The payloads that are ready, in either place. */
async function ready(queue: Moves): Promise<string[]> {
  const { ready: listed = [], stream = [] } = await queue.snapshot();
  return [...listed, ...stream.map(({ p = "" }) => p)];
}

const own = (queue: Moves, name: string) => queue.keys.paused.replace("delayline_paused", name);

test.each(FORMS)("%s drops what does not hold, and moves the rest in order", async (...form) => {
  const queue = await newMoves();
  const key = own(queue, "status");
  await queue.redis.set(key, "paid");
  const guard: OnlyIf = { key, is: "unpaid" };
  const dropped = asking("b", { onlyIf: guard, key: "key of b" }, 1001);
  const kept = asking("c", { onlyIf: { key, is: "paid" }, key: "key of c" }, 1002);
  const late = asking("d", { deliverWithin: 10 }, 1003);
  const all = [message("a", 1000), dropped, kept, late, message("e", 1004)];
  await queue.seed({
    timeouts: all.map(({ delayed }) => delayed),
    businessKeys: { "key of b": dropped.address + "\0", "key of c": kept.address + "\0" },
  });
  const reply = await move(queue, form);
  expect(reply).toMatchObject({ moved: 3, quarantined: 0, next: Infinity });
  expect(reply.dropped).toEqual([
    { address: bytes(dropped.address), key: "key of b", reason: "onlyIf" },
    { address: bytes(late.address), key: "", reason: "deliverWithin" },
  ]);
  expect(await ready(queue)).toEqual(["a", "c", "e"]);
  const left = await queue.snapshot();
  expect(left).not.toHaveProperty("timeouts");
  expect(left).not.toHaveProperty("businessKeys");
  expect(left).toMatchObject({ dropped: { onlyIf: "1", deliverWithin: "1" }, mover: "me" });
});

test.each(FORMS)("%s drops all that are due, and what is not due stays", async (...form) => {
  const queue = await newMoves();
  const far = asking("f", { deliverWithin: 10 }, FAR);
  const all = [asking("a", { deliverWithin: 0 }), asking("b", { deliverWithin: 1 }), far];
  await queue.seed({ timeouts: all.map(({ delayed }) => delayed) });
  const reply = await move(queue, form);
  expect(reply).toMatchObject({ moved: 0, next: FAR });
  expect(reply.dropped).toHaveLength(2);
  expect(await queue.snapshot()).toMatchObject({ timeouts: [far.delayed], mover: "me" });
  expect(await ready(queue)).toEqual([]);
});

test.each(FORMS)("%s asks every message of a full batch", async (...form) => {
  const queue = await newMoves();
  const letters = "abcdefghij".split("");
  const all = letters.map((one, i) =>
    asking(one, i % 2 === 0 ? { deliverWithin: 10 } : { deliverWithin: FAR }, 1000 + i),
  );
  await queue.seed({ timeouts: all.map(({ delayed }) => delayed) });
  const reply = await move(queue, form, 7);
  expect(reply.moved).toBe(3);
  expect(reply.dropped.map(({ address }) => asText(address))).toEqual(
    [0, 2, 4, 6].map((i) => all[i]?.address),
  );
  expect(await ready(queue)).toEqual(["b", "d", "f"]);
});

test("an entry of the stream has the key and the headers, and no conditions", async () => {
  const queue = await newMoves();
  const onlyIf = { key: "none", exists: false };
  const trailers = [
    { onlyIf, deliverWithin: FAR },
    { onlyIf, key: "k" },
    { onlyIf, key: "l", headers: { h: "v" } },
  ];
  const all = trailers.map((more, i) => asking("abc"[i] ?? "", more));
  await queue.seed({ timeouts: all.map(({ delayed }) => delayed) });
  await move(queue, ["", transfer.stream]);
  const { stream = [] } = await queue.snapshot();
  expect(stream.map(({ t }) => t)).toEqual([
    undefined,
    "k",
    asText(packTrailer({ key: "l", headers: { h: "v" } })),
  ]);
});

test.each<[what: string, guard: Omit<OnlyIf, "key">, holds: boolean, value?: string]>([
  ["is on the same value", { is: "unpaid" }, true, "unpaid"],
  ["is on another value", { is: "unpaid" }, false, "paid"],
  ["is on a missing key", { is: "unpaid" }, false],
  ["is with the empty text on a missing key", { is: "" }, false],
  ["is with the empty text on the empty text", { is: "" }, true, ""],
  ["isNot on the same value", { isNot: "paid" }, false, "paid"],
  ["isNot on another value", { isNot: "paid" }, true, "unpaid"],
  ["isNot on a missing key", { isNot: "paid" }, true],
  ["exists on a key", { exists: true }, true, "any"],
  ["exists on a missing key", { exists: true }, false],
  ["must not exist, on a key", { exists: false }, false, "any"],
  ["must not exist, on a missing key", { exists: false }, true],
  ["is that looks like a number", { is: "1e3" }, false, "1000"],
])("%s: holds %s", async (_, asked, holds, value) => {
  for (const name of [undefined, "field"]) {
    const queue = await newMoves();
    const key = own(queue, "own");
    if (value !== undefined && name === undefined) await queue.redis.set(key, value);
    if (value !== undefined && name !== undefined) await queue.redis.hset(key, name, value);
    const onlyIf: OnlyIf = { key, ...(name !== undefined && { field: name }), ...asked };
    await queue.seed({ timeouts: [asking("a", { onlyIf }).delayed] });
    await move(queue, FORMS[0]);
    expect({ name, holds: (await ready(queue)).length === 1 }).toEqual({ name, holds });
  }
});

test("exists asks a key of any type; another test of a key of another type lets it through", async () => {
  const queue = await newMoves();
  const key = own(queue, "own");
  await queue.redis.rpush(key, "an element");
  const guards: OnlyIf[] = [
    { key, exists: true },
    { key, exists: false },
    { key, is: "x" },
    { key, isNot: "x" },
    { key, field: "f", is: "x" },
    { key, field: "f", exists: true },
  ];
  const all = guards.map((onlyIf, i) => asking("abcdef"[i] ?? "", { onlyIf }, 1000 + i));
  await queue.seed({ timeouts: all.map(({ delayed }) => delayed) });
  await move(queue, FORMS[0]);
  expect(await ready(queue)).toEqual(["a", "c", "d", "e", "f"]);
});

/** A field of a trailer. */
function field(tag: number, text: string): string {
  const head = Buffer.alloc(5);
  head[0] = tag;
  head.writeUInt32LE(text.length, 1);
  return asText(head) + text;
}

test("bytes that are no condition let the message through", async () => {
  const queue = await newMoves();
  const trailers = [
    "\xff\x01" + field(7, ""),
    "\xff\x01" + field(7, "\0\xff\xff\0\0k"),
    "\xff\x01" + field(7, "\x09\x01\0\0\0k"),
    "\xff\x01" + field(8, "\0\0\0\0"),
    "\xff\x02" + field(8, "\0\0\0\0\0\0\0\0"),
    "\xff\x01" + field(8, "\0\0\0\0\0\0\0\0") + "\x01",
  ];
  const all = trailers.map((trailer, i) => {
    const plain = message("abcdef"[i] ?? "", 1000 + i);
    return [plain.member + trailer, plain.deadline] as const;
  });
  await queue.seed({ timeouts: all });
  expect((await move(queue, FORMS[0])).dropped).toEqual([]);
  expect(await ready(queue)).toEqual("abcdef".split(""));
});

test("the prefix of the queue's keys stands before the guard's key", async () => {
  const queue = await newMoves();
  const redis = queue.redis.duplicate({ keyPrefix: "app:" });
  const key = own(queue, "own");
  await redis.set(key, "yes");
  const [a, b] = [
    { key, is: "yes" },
    { key: `app:${key}`, is: "yes" },
  ].map((onlyIf, i) => asking("ab"[i] ?? "", { onlyIf })) as [Message, Message];
  for (const { delayed } of [a, b]) await redis.zadd(queue.keys.timeouts, 1, bytes(delayed[0]));
  await move({ ...queue, redis }, FORMS[0]);
  expect(await redis.lrange(queue.keys.ready, 0, -1)).toEqual(["a"]);
  redis.disconnect();
});
