import { describe, expect, test } from "vitest";
import {
  clearDead,
  deadHeads,
  deadPage,
  redrive,
  redriveLetters,
  removeDead,
  removeLetters,
  FIRST_LETTERS,
  type LetterCursor,
} from "../../../src/lua/reliable/dead-letters.ts";
import { run } from "../../../src/lua/script.ts";
import { bytes, indexEntry, message, newMoves, packRetry, retryName } from "../../helpers/moves.ts";
import type { Message, Moves } from "../../helpers/moves.ts";

const FAR = 5_000_000_000_000;
const [a, b] = [message("a", 1000, "key of a"), message("b", 1001)];

/** A letter as `appendDead` writes it. */
const letter = (entryId: string, { address, payload, key }: Message, group: string) => {
  const name = Buffer.from(group).toString("latin1");
  return [
    entryId,
    "a",
    address,
    "p",
    payload,
    "t",
    key,
    "n",
    "5",
    "g",
    name,
    "r",
    "Error",
  ] as const;
};

/** `a` died in two groups, `b` in one. Between them are unreadable letters. */
const dead = [
  letter("1-0", a, "g"),
  ["2-0", "p", "no address", "g", "g"],
  ["3-0", "a", b.address, "g", "no payload"],
  letter("4-0", b, "g"),
  ["5-7", "a", b.address, "p", "no group"],
  ["6-0", "a", "short", "p", "b", "g", "g"],
  letter("7-0", a, "é"),
] as const;
const readable = [dead[0], dead[3], dead[6]];
const unreadable = dead.filter((entry) => !readable.includes(entry as never));

interface Limits {
  readonly limit?: number;
  readonly maxBytes?: number;
}
const ALL = { limit: 100, maxBytes: 1_000_000 };

const page = ({ redis, keys }: Moves, cursor: LetterCursor, limits: Limits = {}) =>
  run(redis, deadPage, keys, { ...cursor, ...ALL, ...limits });
const remove = (
  { redis, keys }: Moves,
  wanted: Buffer,
  cursor = FIRST_LETTERS,
  limits: Limits = {},
) => run(redis, removeDead, keys, { wanted, ...cursor, ...ALL, ...limits });
const drive = (
  { redis, keys }: Moves,
  wanted: Buffer | "",
  {
    delay = 0,
    cursor = FIRST_LETTERS,
    ...limits
  }: Limits & { delay?: number; cursor?: LetterCursor } = {},
) => {
  const args = { channel: keys.channel, wanted, delay, ...cursor, ...ALL, ...limits };
  return run(redis, redrive, keys, args);
};

describe("a page", () => {
  test("has all letters, oldest first, including unreadable ones", async () => {
    const queue = await newMoves();
    await queue.seed({ dead });
    const { letters, next } = await page(queue, FIRST_LETTERS);
    expect(next).toBeUndefined();
    expect(letters.map(({ diedAt, reason }) => [diedAt, reason])).toEqual([
      [1, "Error"],
      [2, "unreadable"],
      [3, "unreadable"],
      [4, "Error"],
      [5, "unreadable"],
      [6, "unreadable"],
      [7, "Error"],
    ]);
    expect(letters[6]).toEqual({
      entryId: "7-0",
      diedAt: 7,
      address: bytes(a.address),
      payload: Buffer.from("a"),
      trailer: Buffer.from("key of a"),
      attempts: 5,
      group: "é",
      reason: "Error",
    });
    expect(letters.map(({ payload }) => payload.toString("latin1"))).toEqual([
      "a",
      "no address",
      `a${b.address}gno payload`,
      "b",
      "no group",
      "b",
      "a",
    ]);
    expect(letters[4]?.address.toString("hex")).toBe("00000000000000050000000000000007");
    expect(await queue.snapshot()).toEqual({ dead });
  });

  test("is followed by the next page, up to the letter that was the last at the beginning", async () => {
    const queue = await newMoves();
    await queue.seed({ dead: dead.slice(0, 5) });
    const first = await page(queue, FIRST_LETTERS, { limit: 3 });
    expect(first.next).toEqual({ after: "3-0", last: "5-7" });
    await queue.seed({ dead: dead.slice(5) });
    const second = await page(queue, first.next ?? FIRST_LETTERS, { limit: 3 });
    expect(second.letters.map(({ diedAt }) => diedAt)).toEqual([4, 5]);
    expect(second.next).toBeUndefined();
  });

  test("ends with the letters even if the last one was removed meanwhile", async () => {
    const queue = await newMoves();
    await queue.seed({ dead: dead.slice(0, 4) });
    const { next = FIRST_LETTERS } = await page(queue, FIRST_LETTERS, { limit: 2 });
    await queue.redis.xdel(queue.keys.dead, "4-0");
    const second = await page(queue, next, { limit: 1 });
    expect(second.letters.map(({ diedAt }) => diedAt)).toEqual([3]);
    const third = await page(queue, second.next ?? FIRST_LETTERS, { limit: 1 });
    expect(third).toEqual({ letters: [], next: undefined });
  });

  test("is short if letters are large", async () => {
    const queue = await newMoves();
    const large = message("x".repeat(1000), 5);
    await queue.seed({
      dead: Array.from({ length: 30 }, (_, i) => letter(`${i + 1}-0`, large, "g")),
    });
    const { letters, next } = await page(queue, FIRST_LETTERS, { maxBytes: 12_000 });
    expect(letters.length).toBe(12);
    expect(next).toEqual({ after: "12-0", last: "30-0" });
  });

  test("may end with the greatest stream id", async () => {
    const queue = await newMoves();
    const greatest = "18446744073709551615-18446744073709551615";
    await queue.seed({ dead: [letter("1-0", a, "g"), [greatest, "some", "thing"]] });
    const { letters, next } = await page(queue, FIRST_LETTERS, { limit: 2 });
    expect(letters.length).toBe(2);
    expect(next).toBeUndefined();
    expect((await drive(queue, "")).redriven).toBe(1);
    const place = letters[1]?.address ?? Buffer.alloc(0);
    expect(place).toEqual(Buffer.alloc(16, 0xff));
    expect(await remove(queue, place)).toEqual({ removed: 1, next: undefined });
  });

  test("is empty without letters", async () => {
    const queue = await newMoves();
    expect(await page(queue, FIRST_LETTERS)).toEqual({ letters: [], next: undefined });
  });
});

describe("remove", () => {
  test("removes a message's letters of all groups", async () => {
    const queue = await newMoves();
    await queue.seed({ dead });
    expect(await remove(queue, bytes(a.address))).toEqual({ removed: 2, next: undefined });
    expect(await queue.snapshot()).toEqual({ dead: dead.slice(1, 6) });
  });

  test("looks through a page, and returns the next cursor", async () => {
    const queue = await newMoves();
    await queue.seed({ dead });
    const first = await remove(queue, bytes(a.address), FIRST_LETTERS, { limit: 3 });
    expect(first).toEqual({ removed: 1, next: { after: "3-0", last: "7-0" } });
    const second = await remove(queue, bytes(a.address), first.next, { limit: 100 });
    expect(second).toEqual({ removed: 1, next: undefined });
    expect(await queue.snapshot()).toEqual({ dead: dead.slice(1, 6) });
  });

  test("finds an unreadable letter by its entry's id, not by the address that it contains", async () => {
    const queue = await newMoves();
    await queue.seed({ dead });
    expect((await remove(queue, bytes(b.address))).removed).toBe(1);
    const { letters } = await page(queue, FIRST_LETTERS);
    const [place] = letters.filter(({ diedAt }) => diedAt === 5);
    expect((await remove(queue, place?.address ?? Buffer.alloc(16))).removed).toBe(1);
    expect(await queue.snapshot()).toEqual({
      dead: dead.filter(([entryId]) => entryId !== "4-0" && entryId !== "5-7"),
    });
  });

  test("changes nothing if no letter matches", async () => {
    const queue = await newMoves();
    await queue.seed({ dead });
    expect((await remove(queue, bytes(message("x", 5).address))).removed).toBe(0);
    expect(await queue.snapshot()).toEqual({ dead });
  });
});

describe("redrive", () => {
  test("all: each readable letter becomes a retry of its group, and is published", async () => {
    const queue = await newMoves();
    await queue.seed({ dead, timeouts: [message("d", FAR).delayed] });
    const { redriven, next, serverTime } = await drive(queue, "");
    expect({ redriven, next }).toEqual({ redriven: 3, next: undefined });
    const due = Math.floor(serverTime);
    expect(await queue.snapshot()).toEqual({
      dead: unreadable,
      timeouts: [message("d", FAR).delayed],
      retries: [
        [retryName(a, "g"), due],
        [retryName(a, "é"), due],
        [retryName(b, "g"), due],
      ],
      retrying: {
        [retryName(b, "g")]: packRetry(b, 0),
        [retryName(a, "g")]: packRetry(a, 0),
        [retryName(a, "é")]: packRetry(a, 0),
      },
      businessKeys: { [a.key]: indexEntry(a) },
      channel: [String(due)],
    });
  });

  test("one message, after a delay", async () => {
    const queue = await newMoves();
    await queue.seed({ dead });
    const { redriven, serverTime } = await drive(queue, bytes(b.address), { delay: 60_000 });
    expect(redriven).toBe(1);
    const due = Math.ceil(serverTime + 60_000);
    expect(await queue.snapshot()).toEqual({
      dead: dead.filter(([entryId]) => entryId !== "4-0"),
      retries: [[retryName(b, "g"), due]],
      retrying: { [retryName(b, "g")]: packRetry(b, 0) },
      channel: [String(due)],
    });
  });

  test("publishes nothing if others are due earlier", async () => {
    const queue = await newMoves();
    await queue.seed({ dead, timeouts: [message("d", 5).delayed] });
    expect((await drive(queue, "")).redriven).toBe(3);
    expect((await queue.snapshot()).channel).toBeUndefined();
    await queue.seed({ dead: [letter("8-0", message("e", 5), "g")] });
    await queue.redis.del(queue.keys.timeouts);
    expect((await drive(queue, "", { delay: 1000 })).redriven).toBe(1);
    expect((await queue.snapshot()).channel).toBeUndefined();
  });

  test("redrives a page at a time", async () => {
    const queue = await newMoves();
    await queue.seed({ dead });
    const first = await drive(queue, "", { limit: 1 });
    expect(first).toMatchObject({ redriven: 1, next: { after: "1-0", last: "7-0" } });
    const cursor = first.next ?? FIRST_LETTERS;
    expect(await drive(queue, "", { cursor })).toMatchObject({ redriven: 2, next: undefined });
    expect((await queue.snapshot()).dead).toEqual(unreadable);
  });

  test("two letters of one message and group become one retry; an existing retry is replaced", async () => {
    const queue = await newMoves();
    await queue.seed({
      dead: [letter("1-0", a, "g"), letter("2-0", a, "g")],
      retries: [[retryName(a, "g"), FAR]],
      retrying: { [retryName(a, "g")]: packRetry(a, 3) },
    });
    expect((await drive(queue, "")).redriven).toBe(2);
    const { retries, retrying, dead: left } = await queue.snapshot();
    expect({ count: retries?.length, retrying, left }).toEqual({
      count: 1,
      retrying: { [retryName(a, "g")]: packRetry(a, 0) },
      left: undefined,
    });
  });

  test.each(["retries", "retrying", "timeouts"] as const)(
    "changes nothing if %s is a string",
    async (key) => {
      const queue = await newMoves();
      await queue.seed({ dead });
      await queue.redis.set(queue.keys[key], "string");
      await expect(drive(queue, "")).rejects.toThrow("WRONGTYPE");
      await queue.redis.del(queue.keys[key]);
      expect(await queue.snapshot()).toEqual({ dead });
    },
  );

  test("of no letters", async () => {
    const queue = await newMoves();
    expect(await drive(queue, "")).toMatchObject({ redriven: 0, next: undefined });
    expect(await queue.snapshot()).toEqual({});
  });
});

test("heads are letters without their payloads", async () => {
  const queue = await newMoves();
  await queue.seed({ dead });
  const first = await run(queue.redis, deadHeads, queue.keys, {
    ...FIRST_LETTERS,
    ...ALL,
    limit: 2,
  });
  expect(first).toEqual({
    heads: [
      {
        entryId: "1-0",
        isReadable: true,
        address: bytes(a.address),
        group: "g",
        reason: "Error",
        key: a.key,
        size: 1,
      },
      {
        entryId: "2-0",
        isReadable: false,
        address: Buffer.from("00000000000000020000000000000000", "hex"),
        group: "",
        reason: "",
        key: undefined,
        size: 0,
      },
    ],
    next: { after: "2-0", last: "7-0" },
  });
  const { heads, next } = await run(queue.redis, deadHeads, queue.keys, {
    ...(first.next ?? FIRST_LETTERS),
    ...ALL,
  });
  expect(heads.map(({ entryId, isReadable }) => [entryId, isReadable])).toEqual([
    ["3-0", false],
    ["4-0", true],
    ["5-7", false],
    ["6-0", false],
    ["7-0", true],
  ]);
  expect(next).toBeUndefined();
});

const rows = (...entries: string[]) => entries.map((entry) => ({ entry }));
const driveSome = ({ redis, keys }: Moves, ...entries: string[]) =>
  run(redis, redriveLetters, keys, { channel: keys.channel, delay: 0 }, rows(...entries));

describe("chosen letters", () => {
  test("are redriven, each once; others and unreadable ones stay", async () => {
    const queue = await newMoves();
    await queue.seed({ dead });
    expect(await driveSome(queue, "7-0", "3-0", "4-0", "7-0", "8-0")).toBe(2);
    const { retrying, channel, ...state } = await queue.snapshot();
    expect(state.dead?.map(([entryId]) => entryId)).toEqual(["1-0", "2-0", "3-0", "5-7", "6-0"]);
    expect(retrying).toEqual({
      [retryName(b, "g")]: packRetry(b, 0),
      [retryName(a, "é")]: packRetry(a, 0),
    });
    expect(channel?.length).toBe(1);
    expect(await driveSome(queue, "7-0", "4-0")).toBe(0);
  });

  test("are removed, unreadable ones too", async () => {
    const queue = await newMoves();
    await queue.seed({ dead });
    const removeSome = () =>
      run(queue.redis, removeLetters, queue.keys, {}, rows("2-0", "4-0", "4-0", "9-0"));
    expect(await removeSome()).toBe(2);
    expect((await queue.snapshot()).dead?.map(([entryId]) => entryId)).toEqual([
      "1-0",
      "3-0",
      "5-7",
      "6-0",
      "7-0",
    ]);
    expect(await removeSome()).toBe(0);
  });
});

test("clear removes all letters", async () => {
  const queue = await newMoves();
  await queue.seed({ dead, timeouts: [a.delayed] });
  expect(await run(queue.redis, clearDead, queue.keys, {})).toBe(7);
  expect(await queue.snapshot()).toEqual({ timeouts: [a.delayed] });
  expect(await run(queue.redis, clearDead, queue.keys, {})).toBe(0);
});
