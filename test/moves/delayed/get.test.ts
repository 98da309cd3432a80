import { expect, test } from "vitest";
import { areHeld, get } from "../../../src/lua/delayed/get.ts";
import { run } from "../../../src/lua/script.ts";
import { bytes, indexEntry, message, newMoves, type Moves } from "../../helpers/moves.ts";

const [a, b] = [message("a", 1000), message("b", 1000, "key of b")];
const gone = message("g", 1000, "key of g");
const state = {
  timeouts: [a.delayed, b.delayed],
  order: [a.address, b.address],
  businessKeys: { "key of b": indexEntry(b), "key of g": indexEntry(gone) },
};

const find = async ({ redis, keys }: Moves, row: { id: Buffer | ""; key: string }) =>
  (await run(redis, get, keys, { maxBytes: 1 }, [row])).messages[0];
const byId = (queue: Moves, wanted: string) => find(queue, { id: bytes(wanted), key: "" });
const byKey = (queue: Moves, wanted: string) => find(queue, { id: "", key: wanted });

test.each([
  { what: "by id", get: byId, wanted: a.address, found: a },
  { what: "by id, the second of a deadline", get: byId, wanted: b.address, found: b },
  { what: "by id, gone", get: byId, wanted: gone.address, found: undefined },
  { what: "by id, at another deadline", get: byId, wanted: message("a", 1001).address },
  { what: "by key", get: byKey, wanted: "key of b", found: b },
  { what: "by key, gone", get: byKey, wanted: "key of g", found: undefined },
  { what: "by key, unknown", get: byKey, wanted: "no key", found: undefined },
])("get $what: nothing changes", async ({ get: look, wanted, found }) => {
  const queue = await newMoves();
  await queue.seed(state);
  expect(await look(queue, wanted)).toEqual(
    found && { place: "delayed", deadline: found.deadline, member: bytes(found.member) },
  );
  expect(await queue.snapshot()).toEqual(state);
});

test("asking which keys are there changes nothing", async () => {
  const queue = await newMoves();
  await queue.seed(state);
  const asked = ["key of g", "key of b", "no key"].map((key) => ({ key }));
  expect(await run(queue.redis, areHeld, queue.keys, {}, asked)).toEqual([false, true, false]);
  expect(await queue.snapshot()).toEqual(state);
});
