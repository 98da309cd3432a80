import { expect, test } from "vitest";
import { clearDelayed } from "../../src/lua/delayed/clear-delayed.ts";
import { clearReady } from "../../src/lua/ready/clear-ready.ts";
import { run } from "../../src/lua/script.ts";
import { indexEntry, message, newMoves, type Moves } from "../helpers/moves.ts";

const [a, b] = [message("a", 1000, "key of a"), message("b", 2000)];
const delayed = {
  timeouts: [a.delayed, b.delayed],
  order: [b.address],
  compacted: [a.address],
  businessKeys: { "key of a": indexEntry(a) },
};
const others = { ready: ["c", "d", "e"], quarantine: ["x"], mover: "me", receipts: ["mine"] };
const { ready: _, ...withoutReady } = others;

const dropDelayed = ({ redis, keys }: Moves) => run(redis, clearDelayed, keys, {});
const dropReady = ({ redis, keys }: Moves) => run(redis, clearReady, keys, {});

test.each([
  { what: "clear-delayed", move: dropDelayed, count: 2, after: others },
  { what: "clear-ready", move: dropReady, count: 3, after: { ...delayed, ...withoutReady } },
])("$what drops its own, and nothing else", async ({ move, count, after }) => {
  const queue = await newMoves();
  await queue.seed({ ...delayed, ...others });
  expect(await move(queue)).toBe(count);
  expect(await queue.snapshot()).toEqual(after);
  expect(await move(queue)).toBe(0);
});
