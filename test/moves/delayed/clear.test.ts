import { expect, test } from "vitest";
import { clearDelayed } from "../../../src/lua/delayed/remove.ts";
import { clearQuarantine } from "../../../src/lua/ready/quarantine.ts";
import { clearReady } from "../../../src/lua/ready/ready.ts";
import { run } from "../../../src/lua/script.ts";
import { indexEntry, message, newMoves, type Moves } from "../../helpers/moves.ts";

const [a, b] = [message("a", 1000, "key of a"), message("b", 2000)];
const delayed = {
  timeouts: [a.delayed, b.delayed],
  order: [b.address],
  compacted: [a.address],
  businessKeys: { "key of a": indexEntry(a) },
};
const others = {
  ready: ["c", "d", "e"],
  quarantine: ["x", "y"],
  unreadable: ["z", "garbage"],
  mover: "me",
  paused: "1",
  receipts: ["mine"],
};
const { ready: _, ...withoutReady } = others;
const { quarantine: _1, unreadable: _2, ...withoutQuarantine } = others;

const dropDelayed = ({ redis, keys }: Moves) => run(redis, clearDelayed, keys, {});
const dropReady = ({ redis, keys }: Moves) => run(redis, clearReady, keys, {});
const dropQuarantine = ({ redis, keys }: Moves) => run(redis, clearQuarantine, keys, {});

test.each([
  { what: "clear-delayed", move: dropDelayed, count: 2, after: others },
  { what: "clear-ready", move: dropReady, count: 3, after: { ...delayed, ...withoutReady } },
  {
    what: "clear-quarantine",
    move: dropQuarantine,
    count: 4,
    after: { ...delayed, ...withoutQuarantine },
  },
])("$what drops its own, and nothing else", async ({ move, count, after }) => {
  const queue = await newMoves();
  await queue.seed({ ...delayed, ...others });
  expect(await move(queue)).toBe(count);
  expect(await queue.snapshot()).toEqual(after);
  expect(await move(queue)).toBe(0);
});
