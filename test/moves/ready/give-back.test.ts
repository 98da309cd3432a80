import { expect, test } from "vitest";
import { giveBack } from "../../../src/lua/ready/ready.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves, type Moves } from "../../helpers/moves.ts";

const give = ({ redis, keys }: Moves, receipt: string, payloads: readonly string[]) =>
  run(
    redis,
    giveBack,
    keys,
    { receipt },
    payloads.map((payload) => ({ payload })),
  );

test.each([
  {
    what: "in front of what is ready, with a receipt",
    before: { ready: ["c"] },
    after: { ready: ["a", "b", "c"], receipts: ["mine"] },
    count: 2,
  },
  {
    what: "beside the receipts of others",
    before: { receipts: ["yours"] },
    after: { ready: ["a", "b"], receipts: ["yours", "mine"] },
    count: 2,
  },
  {
    what: "not again where its receipt is",
    before: { ready: ["c"], receipts: ["mine"] },
    after: { ready: ["c"], receipts: ["mine"] },
    count: 0,
  },
])("give-back: $what", async ({ before, after, count }) => {
  const queue = await newMoves();
  await queue.seed(before);
  expect(await give(queue, "mine", ["a", "b"])).toBe(count);
  expect(await queue.snapshot()).toEqual(after);
});
