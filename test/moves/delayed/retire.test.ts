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
