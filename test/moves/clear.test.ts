import { expect, test } from "vitest";
import { clear, clearTarget } from "../../src/lua/delayed/remove.ts";
import { run } from "../../src/lua/script.ts";
import { indexEntry, message, newMoves, type Moves } from "../helpers/moves.ts";

const [a, b] = [message("a", 1000, "key of a"), message("b", 2000)];
const delayed = {
  timeouts: [a.delayed, b.delayed],
  order: [b.address],
  compacted: [a.address],
  index: { "key of a": indexEntry(a) },
};
const others = { target: ["c", "d", "e"], quarantine: ["x"], mover: "me", receipts: ["mine"] };
const { target: _, ...withoutReady } = others;

const clearDelayed = ({ redis, keys }: Moves) => run(redis, clear, keys, {});
const clearReady = ({ redis, keys }: Moves) => run(redis, clearTarget, keys, {});

test.each([
  { what: "clear", move: clearDelayed, count: 2, after: others },
  { what: "clear-target", move: clearReady, count: 3, after: { ...delayed, ...withoutReady } },
])("$what drops its own, and nothing else", async ({ move, count, after }) => {
  const queue = await newMoves();
  await queue.seed({ ...delayed, ...others });
  expect(await move(queue)).toBe(count);
  expect(await queue.snapshot()).toEqual(after);
  expect(await move(queue)).toBe(0);
});
