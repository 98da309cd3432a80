import { expect, test } from "vitest";
import { retire } from "../../../src/lua/delayed/transfer.ts";
import { run } from "../../../src/lua/script.ts";
import { message, newMoves, type Moves } from "../../helpers/moves.ts";

const leave = ({ redis, keys }: Moves) =>
  run(redis, retire, keys, { channel: keys.channel, task: "me" });

const { delayed, address } = message("a", 1000);
const messages = { timeouts: [delayed], order: [address] };

test.each([
  { what: "who moved last calls the others", mover: "me", after: { channel: ["0"] } },
  { what: "anybody else changes nothing", mover: "you", after: { mover: "you" } },
  { what: "nor does anybody where nobody has moved", mover: undefined, after: {} },
])("retire: $what", async ({ mover, after }) => {
  const queue = await newMoves();
  await queue.seed({ ...messages, ...(mover !== undefined && { mover }) });
  expect(await leave(queue)).toBe(mover === "me");
  expect(await queue.snapshot()).toEqual({ ...messages, ...after });
});

test.each([
  { what: "who moved last drops", mover: "me", isDropped: true },
  { what: "where nobody moves, whoever leaves drops", mover: undefined, isDropped: true },
  { what: "another mover keeps", mover: "you", isDropped: false },
])("retire: $what what an empty queue has left", async ({ mover, isDropped }) => {
  const queue = await newMoves();
  const left = { order: [address], compacted: [address], businessKeys: { key: address } };
  await queue.seed({ ...left, ...(mover !== undefined && { mover }) });
  await leave(queue);
  const { channel: _, mover: __, ...after } = await queue.snapshot();
  expect(after).toEqual(isDropped ? {} : left);
});

test("retire: a key that a retrying message may hold stays", async () => {
  const queue = await newMoves();
  const retrying = { retries: [["a", 1000]] as const, businessKeys: { key: address } };
  await queue.seed({ ...retrying, order: [address] });
  await leave(queue);
  expect(await queue.snapshot()).toEqual(retrying);
});

test.each([
  {
    what: "ready messages keep the queue's name known",
    before: { ready: ["x"] },
    after: { ready: ["x"], listed: "1" },
  },
  { what: "those that are gone do not", before: { listed: "1" }, after: {} },
])("retire: $what", async ({ before, after }) => {
  const queue = await newMoves();
  await queue.seed(before);
  expect(await leave(queue)).toBe(false);
  expect(await queue.snapshot()).toEqual(after);
});
