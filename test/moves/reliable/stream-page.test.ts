import { describe, expect, test } from "vitest";
import { streamPage, type StreamPage } from "../../../src/lua/reliable/stream-page.ts";
import { run } from "../../../src/lua/script.ts";
import { bytes } from "../../helpers/moves.ts";
import { newStreams, type Fields, type Streams } from "../../helpers/streams.ts";

type Args = Partial<Record<"wanted" | "key" | "after", string>> & {
  readonly limit?: number;
  readonly maxBytes?: number;
};

const page = (
  { redis, keys }: Streams,
  { wanted = "", key = "", after = "", limit = 100, maxBytes = 1e6 }: Args = {},
) => run(redis, streamPage, keys, { wanted: bytes(wanted), key, after, limit, maxBytes });

/** Payloads, each with its claims: `<group>` if it is ready, `<group>: <consumer>, <deliveries>` if it is in flight. */
const claimsIn = ({ entries }: StreamPage) =>
  entries.map(({ entry, claims }) => [
    entry.payload.toString(),
    ...claims.map(({ group = "every group", consumer, deliveries }) =>
      consumer === undefined ? group : `${group}: ${consumer}, ${deliveries}`,
    ),
  ]);
const payloadsIn = ({ entries }: StreamPage) =>
  entries.map(({ entry }) => entry.payload.toString());

describe("claims", () => {
  test("nothing without a stream", async () => {
    const queue = await newStreams();
    expect(await page(queue)).toEqual({ entries: [], next: undefined, groupCount: 0 });
    expect(await queue.redis.exists(queue.keys.stream)).toBe(0);
  });

  test("without groups, every entry is ready", async () => {
    const queue = await newStreams();
    await queue.add("a", { p: "b", g: "only" });
    const before = await queue.snapshot();
    const found = await page(queue);
    expect(found).toMatchObject({ next: undefined, groupCount: 0 });
    expect(claimsIn(found)).toEqual([
      ["a", "every group"],
      ["b", "only"],
    ]);
    expect(await queue.snapshot()).toEqual(before);
  });

  test("each group has finished an entry, has it in flight, or has not read it", async () => {
    const queue = await newStreams("g", "h");
    const [a = ""] = await queue.add("a", "b", { p: "c", g: "h" }, "d");
    await queue.deliver("g", "one", 1);
    await queue.deliver("g", "two", 2);
    await queue.deliver("h", "one", 1);
    await queue.redis.xack(queue.keys.stream, "g", a);
    const before = await queue.snapshot();
    const found = await page(queue);
    expect(found).toMatchObject({ next: undefined, groupCount: 2 });
    expect(claimsIn(found)).toEqual([
      ["a", "h: one, 1"],
      ["b", "g: two, 1", "h"],
      ["c", "h"],
      ["d", "g", "h"],
    ]);
    expect(await queue.snapshot()).toEqual(before);
    await queue.redis.xack(queue.keys.stream, "h", a);
    expect(claimsIn(await page(queue, { limit: 1 }))).toEqual([["a"]]);
  });

  test("are found behind many other entries in flight", async () => {
    const queue = await newStreams("g");
    const others = Array.from({ length: 50 }, (_, i) => `other ${i}`);
    await queue.add("a", ...others, { p: "a", n: "1" });
    await queue.deliver("g", "one");
    const found = await page(queue, { wanted: "a".padEnd(24, ".") });
    expect(claimsIn(found)).toEqual([
      ["a", "g: one, 1"],
      ["a", "g: one, 1"],
    ]);
    expect(found.entries.map(({ entry }) => entry.attempts)).toEqual([0, 1]);
  });
});

const entries: Fields[] = [
  { p: "a", t: "key of a" },
  { p: "b" },
  { p: "c", t: "\xff\x01\x01\x08\0\0\0key of a" },
  { p: "d", t: "\xff\x09key of a" },
  { p: "e", a: "a".padEnd(24, ".") },
];

test.each<{ what: string; args: Args; found: string[] }>([
  { what: "an address", args: { wanted: "b".padEnd(24, ".") }, found: ["b"] },
  {
    what: "an address that two entries have",
    args: { wanted: "a".padEnd(24, ".") },
    found: ["a", "e"],
  },
  { what: "an unknown address", args: { wanted: "x".padEnd(24, ".") }, found: [] },
  { what: "a business key", args: { key: "key of a" }, found: ["a", "c"] },
  { what: "an unknown business key", args: { key: "key of b" }, found: [] },
  { what: "neither", args: {}, found: ["a", "b", "c", "d", "e"] },
])("entries with $what", async ({ args, found }) => {
  const queue = await newStreams("g");
  await queue.add(...entries);
  expect(payloadsIn(await page(queue, args))).toEqual(found);
});

describe("pages", () => {
  /** Reads page by page; returns the payloads on each page. */
  async function readAll(queue: Streams, args: Args): Promise<string[][]> {
    const pages: string[][] = [];
    let after: string | undefined = "";
    while (after !== undefined) {
      const found: StreamPage = await page(queue, { ...args, after });
      pages.push(payloadsIn(found));
      after = found.next;
    }
    return pages;
  }

  test.each<{ what: string; args: Args; pages: string[][] }>([
    { what: "all on one", args: {}, pages: [["a", "b", "c", "d", "e"]] },
    { what: "up to `limit`", args: { limit: 2 }, pages: [["a", "b"], ["c", "d"], ["e"]] },
    { what: "the last one empty", args: { limit: 5 }, pages: [["a", "b", "c", "d", "e"], []] },
    // It reads two at first.
    {
      what: "a few behind maxBytes",
      args: { maxBytes: 1 },
      pages: [["a", "b"], ["c", "d"], ["e"]],
    },
    {
      what: "pages without a match",
      args: { limit: 2, key: "key of a" },
      pages: [["a"], ["c"], []],
    },
  ])("$what", async ({ args, pages }) => {
    const queue = await newStreams("g");
    await queue.add(...entries);
    const before = await queue.snapshot();
    expect(await readAll(queue, args)).toEqual(pages);
    expect(await queue.snapshot()).toEqual(before);
  });

  test("pass over foreign and deleted entries, and foreign ones count against the limit", async () => {
    const queue = await newStreams("g");
    const [, gone = ""] = await queue.add("a", "b");
    await queue.redis.xadd(queue.keys.stream, "*", "foreign", bytes("\xff{"));
    await queue.add({ p: "short", a: "1234567" }, "c");
    await queue.deliver("g", "one");
    await queue.redis.xdel(queue.keys.stream, gone);
    expect(await readAll(queue, { limit: 3 })).toEqual([["a"], ["c"]]);
  });

  test("end behind the greatest of all ids", async () => {
    const queue = await newStreams("g");
    const { redis, keys } = queue;
    const greatest = "18446744073709551615-18446744073709551615";
    await redis.xadd(keys.stream, greatest, "a", "a".padEnd(24, "."), "p", "a");
    const found = await page(queue, { limit: 1 });
    expect(found.next).toBe(greatest);
    expect(claimsIn(found)).toEqual([["a", "g"]]);
    expect(await page(queue, { after: greatest })).toMatchObject({ entries: [], next: undefined });
  });
});
