import { expect, test } from "vitest";
import { arePending, getById, getByKey } from "../../src/lua/delayed/get.ts";
import { run } from "../../src/lua/script.ts";
import { bytes, indexEntry, message, newMoves, type Moves } from "../helpers/moves.ts";

const [a, b] = [message("a", 1000), message("b", 1000, "key of b")];
const gone = message("g", 1000, "key of g");
const state = {
  timeouts: [a.delayed, b.delayed],
  order: [a.address, b.address],
  index: { "key of b": indexEntry(b), "key of g": indexEntry(gone) },
};

const byId = ({ redis, keys }: Moves, target: string) =>
  run(redis, getById, keys, { target: bytes(target) });
const byKey = ({ redis, keys }: Moves, target: string) => run(redis, getByKey, keys, { target });

test.each([
  { what: "by id", get: byId, target: a.address, found: a },
  { what: "by id, the second of a deadline", get: byId, target: b.address, found: b },
  { what: "by id, gone", get: byId, target: gone.address, found: undefined },
  { what: "by id, at another deadline", get: byId, target: message("a", 1001).address },
  { what: "by key", get: byKey, target: "key of b", found: b },
  { what: "by key, gone", get: byKey, target: "key of g", found: undefined },
  { what: "by key, unknown", get: byKey, target: "no key", found: undefined },
])("get $what: nothing changes", async ({ get, target, found }) => {
  const queue = await newMoves();
  await queue.seed(state);
  expect(await get(queue, target)).toEqual(
    found && { deadline: found.deadline, member: bytes(found.member) },
  );
  expect(await queue.snapshot()).toEqual(state);
});

test("which keys are there: nothing changes", async () => {
  const queue = await newMoves();
  await queue.seed(state);
  const asked = ["key of g", "key of b", "no key"];
  expect(await run(queue.redis, arePending, queue.keys, {}, asked)).toEqual([false, true, false]);
  expect(await queue.snapshot()).toEqual(state);
});
