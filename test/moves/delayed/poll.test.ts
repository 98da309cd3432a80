import { describe, expect, test } from "vitest";
import { pollNewestTo, pollOldest } from "../../../src/lua/delayed/poll.ts";
import { run } from "../../../src/lua/script.ts";
import { asAddress, bytes, indexEntry, asMember, message, newMoves } from "../../helpers/moves.ts";
import type { Moves } from "../../helpers/moves.ts";

const [a, b, c] = [message("a", 1000), message("b", 2000, "key of b"), message("c", 3000)];
const dead = message("d", 500);
const businessKeys = { "key of b": indexEntry(b) };

const oldest = ({ redis, keys }: Moves, limit: number) =>
  run(redis, pollOldest, keys, { limit, step: 3, maxBytes: 1e6 });
const newest = ({ redis, keys }: Moves) => run(redis, pollNewestTo, keys, { step: 3 });

describe.each([
  { order: "addresses", element: asAddress },
  { order: "members", element: asMember },
])("a LIST of $order", ({ element }) => {
  const live = [a.delayed, b.delayed, c.delayed];

  test("poll-oldest takes the messages inserted first, with their keys, and drops dead elements", async () => {
    const queue = await newMoves();
    await queue.seed({ timeouts: live, order: [dead, b, c, a].map(element), businessKeys });
    expect(await oldest(queue, 1)).toEqual({ members: [bytes(b.member)], hasMore: true });
    expect(await queue.snapshot()).toEqual({
      timeouts: [a.delayed, c.delayed],
      order: [c, a].map(element),
    });
  });

  test("poll-oldest looks into the compacted list first", async () => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: live,
      compacted: [element(c)],
      order: [b, a].map(element),
      businessKeys,
    });
    expect(await oldest(queue, 2)).toEqual({
      members: [bytes(c.member), bytes(b.member)],
      hasMore: true,
    });
    expect(await queue.snapshot()).toEqual({ timeouts: [a.delayed], order: [element(a)] });
  });

  test("poll-oldest looks at a limited number of elements", async () => {
    const queue = await newMoves();
    await queue.seed({ timeouts: [a.delayed], order: [dead, dead, dead, a].map(element) });
    expect(await oldest(queue, 1)).toEqual({ members: [], hasMore: true });
    expect(await queue.snapshot()).toEqual({ timeouts: [a.delayed], order: [element(a)] });
  });

  test("poll-newest-to puts the message inserted last in front of all ready messages", async () => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: live,
      order: [c, a, b, dead].map(element),
      businessKeys,
      ready: ["ready before"],
    });
    expect(await newest(queue)).toEqual({ payload: bytes("b"), hasMore: true });
    expect(await queue.snapshot()).toEqual({
      timeouts: [a.delayed, c.delayed],
      order: [c, a].map(element),
      ready: ["b", "ready before"],
    });
  });

  test("poll-newest-to looks into the compacted list last", async () => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: [a.delayed, c.delayed],
      compacted: [a, c].map(element),
      order: [element(dead)],
    });
    expect(await newest(queue)).toEqual({ payload: bytes("c"), hasMore: true });
    expect(await queue.snapshot()).toEqual({
      timeouts: [a.delayed],
      compacted: [element(a)],
      ready: ["c"],
    });
  });
});

test("finds nothing in an empty queue", async () => {
  const queue = await newMoves();
  expect(await oldest(queue, 1)).toEqual({ members: [], hasMore: false });
  expect(await newest(queue)).toEqual({ payload: undefined, hasMore: false });
  expect(await queue.snapshot()).toEqual({});
});
