import { expect, test } from "vitest";
import { FIRST, soonest, type DeadlineCursor } from "../../../src/lua/delayed/soonest.ts";
import { headDeadline } from "../../../src/lua/queue/next-due.ts";
import { run } from "../../../src/lua/script.ts";
import { asText, bytes, message, newMoves } from "../../helpers/moves.ts";
import type { Bytes, Moves } from "../../helpers/moves.ts";

/** In the order of their deadlines; three are equal, and in the order of their ids. */
const messages = [
  message("a", 1000),
  message("b", 2000),
  message("c", 2000, "key of c"),
  message("d", 2000),
  message("e", 3000),
  message("f", 4000),
] as const;
const state = { timeouts: messages.map(({ delayed }) => delayed) };
const all = messages.map(({ member }) => member);
const [a, b, c, d, e, f] = all;

interface Limits {
  readonly step?: number;
  readonly maxBytes?: number;
}

const page = (
  { redis, keys }: Moves,
  cursor: DeadlineCursor,
  { step = 100, maxBytes = 1e6 }: Limits = {},
) => run(redis, soonest, { zset: keys.timeouts }, { ...cursor, step, maxBytes });

const membersOf = ({ messages: found }: ReturnType<typeof soonest.reply>): Bytes[] =>
  found.map(({ member }) => asText(member));

/** Reads page by page; returns the members on each page. */
async function readAll(queue: Moves, limits: Limits): Promise<Bytes[][]> {
  const pages: Bytes[][] = [];
  let cursor: DeadlineCursor | undefined = FIRST;
  while (cursor !== undefined) {
    const found: ReturnType<typeof soonest.reply> = await page(queue, cursor, limits);
    pages.push(membersOf(found));
    cursor = found.next;
  }
  return pages;
}

test.each<{ scores: number[]; deadline: number | undefined }>([
  { scores: [], deadline: undefined },
  { scores: [2000, 1000], deadline: 1000 },
  { scores: [1.5], deadline: 1.5 },
  { scores: [9e15], deadline: 9e15 },
  { scores: [9.1e15], deadline: Infinity },
  { scores: [Infinity], deadline: Infinity },
  { scores: [-Infinity, 5], deadline: -Infinity },
])("head-deadline: with deadlines at $scores it is $deadline", async ({ scores, deadline }) => {
  const queue = await newMoves();
  await queue.seed({ timeouts: scores.map((score) => [`member ${score}`, score]) });
  const before = await queue.snapshot();
  expect(await run(queue.redis, headDeadline, queue.keys, {})).toBe(deadline);
  expect(await queue.snapshot()).toEqual(before);
});

test("soonest: nothing in an empty queue", async () => {
  const queue = await newMoves();
  expect(await page(queue, FIRST)).toEqual({ next: undefined, messages: [] });
  expect(await queue.snapshot()).toEqual({});
});

test.each([
  { what: "all on one page", limits: {}, pages: [all, []] },
  {
    what: "pages that split equal deadlines",
    limits: { step: 2 },
    pages: [[a, b], [c, d], [e, f], []],
  },
  { what: "one message a page", limits: { step: 1 }, pages: [...all.map((one) => [one]), []] },
  // It reads four at a time.
  { what: "a few behind maxBytes", limits: { maxBytes: 1 }, pages: [[a, b, c, d], [e, f], []] },
])("soonest: $what", async ({ limits, pages }) => {
  const queue = await newMoves();
  await queue.seed(state);
  expect(await readAll(queue, limits)).toEqual(pages);
  expect(await queue.snapshot()).toEqual(state);
});

test.each([
  { what: "the last message of the page", gone: [b], rest: [c, d, e, f] },
  { what: "all messages of the page, and the next one", gone: [a, b, c], rest: [d, e, f] },
  { what: "all others with that deadline", gone: [c, d], rest: [e, f] },
])("soonest: finds its place after the loss of $what", async ({ gone, rest }) => {
  const queue = await newMoves();
  await queue.seed(state);
  const { next = FIRST } = await page(queue, FIRST, { step: 2 });
  await queue.redis.zrem(queue.keys.timeouts, ...gone.map((member) => bytes(member ?? "")));
  expect(membersOf(await page(queue, next))).toEqual(rest);
});

test("soonest: foreign members with any scores have their places, too", async () => {
  const queue = await newMoves();
  const foreign = [
    ["never", -Infinity],
    ["", 1.5],
    ["\xff{", 1.5],
    ["short", 1e16],
    ["x".repeat(40), Infinity],
  ] as const;
  await queue.seed({ timeouts: foreign });
  const before = await queue.snapshot();
  const { messages: found } = await page(queue, FIRST);
  expect(found.map(({ member, deadline }) => [asText(member), deadline])).toEqual(foreign);
  const pages = await readAll(queue, { step: 1 });
  expect(pages).toEqual([...foreign.map(([member]) => [member]), []]);
  expect(await queue.snapshot()).toEqual(before);
});
