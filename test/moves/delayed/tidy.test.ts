import { expect, test } from "vitest";
import { tidyAddresses, tidyBusinessKeys } from "../../../src/lua/delayed/tidy.ts";
import { run } from "../../../src/lua/script.ts";
import { indexEntry, message, newMoves } from "../../helpers/moves.ts";
import type { Message, Moves, QueueState } from "../../helpers/moves.ts";

const [a, b] = [message("a", 2000, "key of a"), message("b", 4000, "key of b")];
/** Left before the head: one comparison shows it. */
const moved = message("m", 1000, "key of m");
/** Was cancelled: only a look-up shows it. */
const ghost = message("g", 3000, "key of g");

const live = [a.delayed, b.delayed];
const elements = (...all: readonly Message[]) => all.map(({ address }) => address);
/** A LIST of members, as Java writes it. */
const whole = (...all: readonly Message[]) => all.map(({ member }) => member);

const tidyStep = ({ redis, keys }: Moves, thorough: 0 | 1) =>
  run(redis, tidyAddresses, keys, { step: 100, thorough });
const tidyIndexStep = ({ redis, keys }: Moves) =>
  run(redis, tidyBusinessKeys, keys, { cursor: "0", step: 100 });

interface Row {
  readonly what: string;
  readonly before: QueueState;
  readonly thorough?: 0 | 1;
  readonly after: QueueState;
  readonly hasMore: boolean;
}

test.each<Row>([
  {
    what: "dead elements at the head are cut off, those behind a live one stay",
    before: { timeouts: live, order: elements(moved, moved, a, moved, b) },
    after: { timeouts: live, order: elements(a, moved, b) },
    hasMore: false,
  },
  {
    what: "members at the head are looked up",
    before: { timeouts: live, order: whole(ghost, a, b) },
    after: { timeouts: live, order: whole(a, b) },
    hasMore: false,
  },
  {
    what: "without messages nothing is left",
    before: {
      order: elements(a),
      compacted: elements(b),
      businessKeys: { "key of a": indexEntry(a) },
    },
    after: {},
    hasMore: false,
  },
  {
    what: "a compaction goes on, leaves ghosts, and becomes the LIST",
    before: { timeouts: live, compacted: elements(a), order: elements(moved, ghost, b) },
    after: { timeouts: live, order: elements(a, ghost, b) },
    hasMore: true,
  },
  {
    what: "a thorough one finds the ghosts",
    before: { timeouts: live, order: elements(a, ghost, moved, b) },
    thorough: 1,
    after: { timeouts: live, order: elements(a, b) },
    hasMore: false,
  },
])("tidy: $what", async ({ before, thorough = 0, after, hasMore }) => {
  const queue = await newMoves();
  await queue.seed(before);
  expect(await tidyStep(queue, thorough)).toEqual({ hasMore, thorough: 0 });
  expect(await queue.snapshot()).toEqual(after);
});

test.each<Omit<Row, "hasMore">>([
  {
    what: "with more keys than messages, those whose message is gone are dropped",
    before: {
      timeouts: live,
      businessKeys: {
        "key of a": indexEntry(a),
        "key of g": indexEntry(ghost),
        "key of b": indexEntry(b),
      },
    },
    after: {
      timeouts: live,
      businessKeys: { "key of a": indexEntry(a), "key of b": indexEntry(b) },
    },
  },
  {
    what: "with no more keys than messages nothing is looked at",
    before: {
      timeouts: live,
      businessKeys: { "key of a": indexEntry(a), "key of g": indexEntry(ghost) },
    },
    after: {
      timeouts: live,
      businessKeys: { "key of a": indexEntry(a), "key of g": indexEntry(ghost) },
    },
  },
  {
    what: "a key that leads to another one's message is dropped",
    before: {
      timeouts: [b.delayed],
      businessKeys: { "key of b": indexEntry(b), "key of a": indexEntry(b) },
    },
    after: { timeouts: [b.delayed], businessKeys: { "key of b": indexEntry(b) } },
  },
])("tidy-businessKeys: $what", async ({ before, after }) => {
  const queue = await newMoves();
  await queue.seed(before);
  expect(await tidyIndexStep(queue)).toBe("0");
  expect(await queue.snapshot()).toEqual(after);
});
