import { expect, test } from "vitest";
import { tidyMembers } from "../../../src/lua/delayed/tidy.ts";
import { run } from "../../../src/lua/script.ts";
import { asAddress, asMember, indexEntry, message, newMoves } from "../../helpers/moves.ts";
import type { QueueState } from "../../helpers/moves.ts";

const [a, b] = [message("a", 2000, "key of a"), message("b", 4000)];
/** Has left, but its elements are still in the LIST. */
const ghost = message("g", 3000);
const ghosts = (count: number) => Array.from({ length: count }, () => ghost.member);

const live = [a.delayed, b.delayed];
const exact = { timeouts: live, order: [a, b].map(asMember) };

interface Row {
  readonly what: string;
  readonly before: QueueState;
  readonly after: QueueState;
  readonly hasMore?: boolean;
}

test.each<Row>([
  { what: "an empty queue", before: {}, after: {} },
  {
    what: "without messages nothing is left",
    before: {
      order: [a.member],
      compacted: [b.address],
      businessKeys: { "key of a": indexEntry(a) },
    },
    after: {},
  },
  { what: "an exact LIST stays", before: exact, after: exact },
  {
    what: "addresses become members",
    before: { timeouts: live, order: [a, b].map(asAddress) },
    after: exact,
  },
  {
    what: "elements without a message are dropped, and so are foreign bytes",
    before: { timeouts: live, order: [ghost.address, a.member, ghost.member, "\xff{", b.member] },
    after: exact,
  },
  {
    what: "a ghost stays while the LIST is no longer than the queue",
    before: { timeouts: live, order: [ghost.member, a.member] },
    after: { timeouts: live, order: [ghost.member, a.member] },
  },
  {
    what: "a step copies whole members to the compacted list",
    before: { timeouts: live, order: [a.address, ...ghosts(10), b.address] },
    after: { timeouts: live, compacted: [a.member], order: [ghost.member, b.address] },
    hasMore: true,
  },
  {
    what: "the next step finishes, and the compacted list becomes the LIST",
    before: { timeouts: live, compacted: [a.member], order: [ghost.member, b.address] },
    after: exact,
  },
  {
    what: "a finished compaction only becomes the LIST",
    before: { timeouts: live, compacted: [a, b].map(asMember) },
    after: exact,
  },
])("tidy-members: $what", async ({ before, after, hasMore = false }) => {
  const queue = await newMoves();
  await queue.seed(before);
  expect(await run(queue.redis, tidyMembers, queue.keys, { step: 10 })).toBe(hasMore);
  expect(await queue.snapshot()).toEqual(after);
});
