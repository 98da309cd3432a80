import { expect, test } from "vitest";
import { nextDue } from "../../../src/lua/queue/next-due.ts";
import { clearRetries, getRetries, sizeWithRetries } from "../../../src/lua/reliable/retries.ts";
import { remove as removeScript } from "../../../src/lua/delayed/remove.ts";
import { reschedule as rescheduleScript } from "../../../src/lua/delayed/reschedule.ts";
import { run } from "../../../src/lua/script.ts";
import { bytes, message, newMoves, packRetry, retryName } from "../../helpers/moves.ts";
import type { Message, Moves } from "../../helpers/moves.ts";

const FAR = 5_000_000_000_000;
const [a, b, c] = [message("a", 1000, "key of a"), message("b", 1000), message("c", FAR)];

/** `a` is retrying in two groups, `b` in one. The name of group "é" is not ASCII, and "c" has nothing. */
const before = {
  groups: ["c", "g", "é"],
  retries: [
    [retryName(b, "g"), FAR],
    [retryName(a, "é"), FAR + 1],
    [retryName(a, "g"), FAR + 2],
  ],
  retrying: {
    [retryName(b, "g")]: packRetry(b, 1),
    [retryName(a, "é")]: packRetry(a, 2),
    [retryName(a, "g")]: packRetry(a, 3),
  },
} as const;

const wanted = ({ address }: Message) => bytes(address);
const remove = ({ redis, keys }: Moves, ...messages: Message[]) =>
  run(
    redis,
    removeScript,
    keys,
    {},
    messages.map((one) => ({ id: wanted(one), key: "" })),
  );
const get = ({ redis, keys }: Moves, one: Message) =>
  run(redis, getRetries, keys, { wanted: wanted(one) });
const reschedule = async (
  { redis, keys }: Moves,
  one: Message,
  due: { readonly delay?: number; readonly deadline?: number },
) => {
  const which = { id: wanted(one), key: "" };
  const args = { channel: keys.channel, ...which, delay: "", deadline: "", ...due };
  return (await run(redis, rescheduleScript, keys, args))?.deadline;
};

test("remove: removes a message's retries of all groups; the others stay", async () => {
  const queue = await newMoves();
  await queue.seed(before);
  expect(await remove(queue, a, c, a)).toEqual([true, false, false]);
  expect(await queue.snapshot()).toEqual({
    groups: before.groups,
    retries: [before.retries[0]],
    retrying: { [retryName(b, "g")]: packRetry(b, 1) },
  });
});

test("remove: finds and changes nothing without a stream", async () => {
  const queue = await newMoves();
  const { retries, retrying } = before;
  await queue.seed({ retries, retrying });
  expect(await remove(queue, a)).toEqual([false]);
  expect(await queue.snapshot()).toEqual({ retries, retrying });
});

test("remove: a name without a value is no message", async () => {
  const queue = await newMoves();
  const bare = { groups: ["g"], retries: [[retryName(a, "g"), 5]] } as const;
  await queue.seed(bare);
  expect(await remove(queue, a)).toEqual([false]);
  expect(await queue.snapshot()).toEqual(bare);
});

test.each(["retries", "retrying", "stream"] as const)(
  "remove: changes nothing if %s is a string",
  async (key) => {
    const queue = await newMoves();
    await queue.seed(before);
    await queue.redis.set(queue.keys[key], "string");
    await expect(remove(queue, a)).rejects.toThrow("WRONGTYPE");
    const { retries, retrying } = queue.keys;
    if (key !== "retries") expect(await queue.redis.zcard(retries)).toBe(3);
    if (key !== "retrying") expect(await queue.redis.hlen(retrying)).toBe(3);
  },
);

test("get: returns the retry of each group", async () => {
  const queue = await newMoves();
  await queue.seed(before);
  const common = { payload: Buffer.from("a"), trailer: Buffer.from("key of a") };
  expect(await get(queue, a)).toEqual([
    { group: "é", due: FAR + 1, attempts: 2, ...common },
    { group: "g", due: FAR + 2, attempts: 3, ...common },
  ]);
  expect(await get(queue, c)).toEqual([]);
  expect(await queue.snapshot()).toEqual(before);
});

test("get: skips malformed values", async () => {
  const queue = await newMoves();
  await queue.seed({
    groups: ["broken", "g", "short", "without"],
    retries: ["broken", "g", "short", "without"].map((group) => [retryName(a, group), FAR]),
    retrying: {
      [retryName(a, "broken")]: "\0\0\0\0\xFF\xFF\xFF\xFFa",
      [retryName(a, "g")]: packRetry(a, 0),
      [retryName(a, "short")]: "",
    },
  });
  expect((await get(queue, a)).map(({ group }) => group)).toEqual(["g"]);
});

test("get: finds nothing without a stream", async () => {
  const queue = await newMoves();
  await queue.seed({ retries: before.retries, retrying: before.retrying });
  expect(await get(queue, a)).toEqual([]);
});

test("get: a score that is not a deadline", async () => {
  const queue = await newMoves();
  const name = retryName(a, "g");
  await queue.seed({ groups: ["g"], retrying: { [name]: packRetry(a, 0) } });
  for (const [score, due] of [
    ["+inf", Infinity],
    ["-inf", -Infinity],
    ["1.5", 1.5],
  ] as const) {
    await queue.redis.zadd(queue.keys.retries, score, bytes(name));
    expect((await get(queue, a))[0]?.due).toBe(due);
  }
});

test("reschedule: to before all others is published", async () => {
  const queue = await newMoves();
  await queue.seed({ ...before, timeouts: [c.delayed] });
  expect(await reschedule(queue, a, { deadline: FAR - 1 })).toBe(FAR - 1);
  expect(await queue.snapshot()).toEqual({
    ...before,
    timeouts: [c.delayed],
    // With equal deadlines the name decides.
    retries: [
      [retryName(a, "g"), FAR - 1],
      [retryName(a, "é"), FAR - 1],
      [retryName(b, "g"), FAR],
    ],
    channel: [String(FAR - 1)],
  });
});

test.each([
  { what: "another retry", timeouts: [], deadline: FAR + 1 },
  { what: "another retry, at the same time", timeouts: [], deadline: FAR },
  { what: "a delayed message", timeouts: [message("c", 500).delayed], deadline: 501 },
])("reschedule: to behind $what is not published", async ({ timeouts, deadline }) => {
  const queue = await newMoves();
  await queue.seed({ ...before, timeouts });
  expect(await reschedule(queue, a, { deadline })).toBe(deadline);
  const state = await queue.snapshot();
  expect(state.channel).toBeUndefined();
  expect(state.retrying).toEqual(before.retrying);
  const dues = new Map(state.retries);
  expect([dues.get(retryName(a, "g")), dues.get(retryName(a, "é"))]).toEqual([deadline, deadline]);
  expect(dues.get(retryName(b, "g"))).toBe(FAR);
});

test("reschedule: the first retry to a later time", async () => {
  const queue = await newMoves();
  await queue.seed(before);
  expect(await reschedule(queue, b, { deadline: FAR + 9 })).toBe(FAR + 9);
  expect(await queue.snapshot()).toEqual({
    ...before,
    retries: [...before.retries.slice(1), [retryName(b, "g"), FAR + 9]],
  });
});

test.each([{ delay: 60_000 }, {}])(
  "reschedule: by %j, on the server's clock",
  async ({ delay }: { delay?: number }) => {
    const queue = await newMoves();
    await queue.seed(before);
    const [seconds] = await queue.redis.time();
    const due = await reschedule(queue, b, delay === undefined ? {} : { delay });
    const [later] = await queue.redis.time();
    expect(due).toBeGreaterThanOrEqual(Number(seconds) * 1000 + (delay ?? 0));
    expect(due).toBeLessThanOrEqual(Number(later) * 1000 + 1001 + (delay ?? 0));
    const state = await queue.snapshot();
    expect(state.retries?.[0]).toEqual([retryName(b, "g"), due]);
    expect(state.channel).toEqual([String(due)]);
  },
);

test("reschedule: to now; where it is due already it keeps its time", async () => {
  const queue = await newMoves();
  const [name, other] = [retryName(a, "g"), retryName(a, "h")];
  await queue.seed({
    groups: ["g", "h"],
    retries: [
      [name, 1000],
      [other, FAR],
    ],
    retrying: { [name]: packRetry(a, 1), [other]: packRetry(a, 1) },
  });
  expect(await reschedule(queue, a, {})).toBe(1000);
  const { retries, channel } = await queue.snapshot();
  expect(retries?.[0]).toEqual([name, 1000]);
  expect(retries?.[1]?.[1]).toBeLessThan(FAR);
  expect(channel).toBeUndefined();
});

test("reschedule: a message that is not retrying, or has no value, is not found, and nothing changes", async () => {
  const queue = await newMoves();
  const bare = { ...before, retries: [...before.retries, [retryName(c, "g"), FAR + 3]] } as const;
  await queue.seed(bare);
  expect(await reschedule(queue, message("x", 5), { delay: 5 })).toBeUndefined();
  expect(await reschedule(queue, c, { delay: 5 })).toBeUndefined();
  expect(await queue.snapshot()).toEqual(bare);
});

test("clear: removes the retries and nothing else", async () => {
  const queue = await newMoves();
  await queue.seed({ ...before, timeouts: [c.delayed] });
  expect(await run(queue.redis, clearRetries, queue.keys, {})).toBe(3);
  expect(await queue.snapshot()).toEqual({ groups: before.groups, timeouts: [c.delayed] });
});

test("size: counts delayed messages and retries", async () => {
  const queue = await newMoves();
  const size = () => run(queue.redis, sizeWithRetries, queue.keys, {});
  expect(await size()).toBe(0);
  await queue.seed({ ...before, timeouts: [c.delayed] });
  expect(await size()).toBe(4);
});

test.each<[timeouts: (number | string)[], retries: (number | string)[], due: number | undefined]>([
  [[], [], undefined],
  [[5], [], 5],
  [[], [5, 6], 5],
  [[4, 9], [5], 4],
  [[4], [3], 3],
  [["+inf"], [], Infinity],
  [["+inf"], [9.1e15], Infinity],
  [["+inf"], [7], 7],
  [[], ["-inf"], -Infinity],
  [[1.5], [2], 1.5],
])("next: with delayed at %j and retries at %j it is %j", async (timeouts, retries, due) => {
  const { redis, keys } = await newMoves();
  for (const score of timeouts) await redis.zadd(keys.timeouts, score, `m ${score}`);
  for (const score of retries) await redis.zadd(keys.retries, score, `r ${score}`);
  expect(await run(redis, nextDue, keys, {})).toBe(due);
});
