import { expect, test } from "vitest";
import { dropBatch } from "../../../src/lua/partitions/pull-out.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves } from "../../helpers/moves.ts";
import { scriptAt } from "../../helpers/script-at.ts";

const NOW = 5_000_000_000_000;
/** The number of a batch that is opened now. */
const next = String(NOW * 1000);

const open = { last: "7", rows: "rows" };

test.each<{
  what: string;
  before: Record<string, string>;
  number?: number;
  after: Record<string, string>;
  isDropped: boolean;
}>([
  { what: "no batch in an empty journal", before: {}, after: {}, isDropped: false },
  { what: "the open batch", before: open, after: { last: "7" }, isDropped: true },
  { what: "a batch once", before: { last: "7" }, after: { last: "7" }, isDropped: false },
  { what: "no earlier batch", before: open, number: 6, after: open, isDropped: false },
  { what: "no later batch", before: open, number: 8, after: open, isDropped: false },
  {
    what: "nothing if a foreign program has overwritten the number, which is replaced",
    before: { last: "foreign", rows: "rows" },
    after: { last: next, rows: "rows" },
    isDropped: false,
  },
  {
    what: "the open batch by its new number",
    before: { last: next, rows: "rows" },
    number: Number(next),
    after: { last: next },
    isDropped: true,
  },
])("drop-batch drops $what", async ({ before, number = 7, after, isDropped }) => {
  const queue = await newMoves();
  // It drops the rows of the journal, and nothing else.
  await queue.seed({ journal: before, arrivals: { 1: "7" }, ready: ["ready"] });
  const script = scriptAt(NOW, dropBatch);
  expect(await run(queue.redis, script, queue.keys, { number })).toBe(isDropped);
  const { journal = {}, ...others } = await queue.snapshot();
  expect(journal).toEqual(after);
  expect(others).toEqual({ arrivals: { 1: "7" }, ready: ["ready"] });
});
