import { describe, expect, test } from "vitest";
import {
  START,
  readPage,
  searchPage,
  type Cursor,
  type Page,
} from "../../../src/lua/delayed/pages.ts";
import { run } from "../../../src/lua/script.ts";
import { asAddress, asMember, bytes, message, newMoves } from "../../helpers/moves.ts";
import type { Bytes, Message, Moves } from "../../helpers/moves.ts";

const [a, b, c, d] = [
  message("a", 3000),
  message("b", 1000, "key of b"),
  message("c", 1000),
  message("d", 2000),
];
const gone = message("g", 1000);
const live = [b.delayed, c.delayed, d.delayed, a.delayed];

interface Limits {
  readonly step?: number;
  readonly maxBytes?: number;
}

const read = (
  { redis, keys }: Moves,
  cursor: Cursor,
  { step = 100, maxBytes = 1e6 }: Limits = {},
) => run(redis, readPage, keys, { ...cursor, step, maxBytes });

const search = ({ redis, keys }: Moves, cursor: Cursor, wanted: readonly Bytes[], step = 100) =>
  run(
    redis,
    searchPage,
    keys,
    { ...cursor, step },
    wanted.map((payload) => ({ wanted: bytes(payload) })),
  );

const asItem = ({ deadline, member }: Message) => ({ deadline, member: bytes(member) });

/** Reads page by page; returns the items on each page. */
async function readAll<Item>(next: (cursor: Cursor) => Promise<Page<Item>>) {
  const pages: (readonly Item[])[] = [];
  let cursor: Cursor | undefined = START;
  while (cursor !== undefined) {
    const page: Page<Item> = await next(cursor);
    pages.push(page.items);
    cursor = page.next;
  }
  return pages;
}

test("nothing in an empty queue", async () => {
  const queue = await newMoves();
  const nothing = { items: [], next: undefined };
  expect(await read(queue, START)).toEqual(nothing);
  expect(await search(queue, START, ["a"])).toEqual(nothing);
  expect(await queue.snapshot()).toEqual({});
});

describe.each([
  { order: "addresses", element: asAddress },
  { order: "members", element: asMember },
])("a LIST of $order", ({ element }) => {
  const seeded = {
    timeouts: live,
    compacted: [c, gone].map(element),
    order: ["\xff{", ...[a, b, gone, d].map(element)],
  };

  test.each<{ what: string; limits: Limits; pages: Message[][] }>([
    { what: "all on one page, the compacted list first", limits: {}, pages: [[c, a, b, d], []] },
    {
      what: "a page passes over elements without a message",
      limits: { step: 2 },
      pages: [[c], [a], [b], [d], []],
    },
    {
      what: "maxBytes ends a page",
      limits: { maxBytes: c.member.length },
      pages: [[c], [a], [b], [d], []],
    },
    {
      what: "maxBytes not quite reached",
      limits: { maxBytes: c.member.length + 1 },
      pages: [[c, a], [b], [d], []],
    },
  ])("read-page: $what", async ({ limits, pages }) => {
    const queue = await newMoves();
    await queue.seed(seeded);
    const found = await readAll((cursor) => read(queue, cursor, limits));
    expect(found).toEqual(pages.map((page) => page.map(asItem)));
    expect(await queue.snapshot()).toEqual(seeded);
  });

  test.each([
    { what: "no payload", wanted: [], matches: [] },
    { what: "one payload", wanted: ["b"], matches: [b] },
    { what: "several payloads", wanted: ["d", "c", "unknown"], matches: [c, d] },
    { what: "the payload of a message that has left", wanted: ["g"], matches: [] },
  ])("search-page: $what", async ({ wanted, matches }) => {
    const queue = await newMoves();
    await queue.seed(seeded);
    const found = await readAll((cursor) => search(queue, cursor, wanted, 2));
    const hits = [c, a, b, d].map((one) => ({
      element: bytes(element(one)),
      isMatch: matches.includes(one),
    }));
    expect(found.flat()).toEqual(hits);
    expect(await queue.snapshot()).toEqual(seeded);
  });
});

test("search-page: a foreign member is passed, but never matches", async () => {
  const queue = await newMoves();
  const seeded = { timeouts: [["\xff{", 5] as const], order: ["\xff{"] };
  await queue.seed(seeded);
  const { items } = await search(queue, START, ["", "\xff{"]);
  expect(items).toEqual([{ element: bytes("\xff{"), isMatch: false }]);
  expect(await queue.snapshot()).toEqual(seeded);
});

describe("the next page", () => {
  const seeded = { timeouts: live, order: [a, b, c, d].map(asAddress) };

  test.each([
    { what: "earlier elements have left", left: [a], items: [c, d], position: 3 },
    {
      what: "the last element has left, too: starts again",
      left: [a, b],
      items: [c, d],
      position: 2,
    },
  ])("$what", async ({ left, items, position }) => {
    const queue = await newMoves();
    await queue.seed(seeded);
    const { next = START } = await read(queue, START, { step: 2 });
    expect(next).toEqual({ position: 2, last: bytes(b.address) });
    for (const { address } of left) await queue.redis.lrem(queue.keys.order, 1, bytes(address));
    expect(await read(queue, next, { step: 2 })).toEqual({
      items: items.map(asItem),
      next: { position, last: bytes(d.address) },
    });
  });

  test("searches back for the last element, one window per script", async () => {
    const queue = await newMoves();
    await queue.seed(seeded);
    const last = bytes(a.address);
    const back = await read(queue, { position: 4, last }, { step: 2 });
    expect(back).toEqual({ items: [], next: { position: 2, last } });
    expect(await read(queue, back.next ?? START, { step: 2 })).toEqual({
      items: [b, c].map(asItem),
      next: { position: 3, last: bytes(c.address) },
    });
  });
});
