import { expect, test } from "vitest";
import { guarded } from "../../../src/lua/guarded.ts";
import { noteDone, readFact } from "../../../src/lua/partitions/fact.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves, type Moves } from "../../helpers/moves.ts";

/** Runs a guarded script in a partition that holds `held`, and returns what it holds afterwards, or the refusal. */
async function meet(held: string, knownFact: string, ofPartition = 1): Promise<string> {
  const queue = await newMoves();
  if (held !== "") await queue.seed({ partitions: held });
  return await guardedRun(queue, knownFact, ofPartition);
}

async function guardedRun(
  { redis, keys }: Moves,
  knownFact: string,
  ofPartition: number,
): Promise<string> {
  try {
    return (await run(redis, guarded(readFact), keys, { knownFact, ofPartition })) ?? "";
  } catch (error) {
    return (error as Error).message;
  }
}

test.each([
  ["of the begin of a change", "1:2:2:stable:1", "2:4:2:moving:1"],
  ["of its end, where nothing is left to migrate", "2:4:2:moving:1:done", "3:4:4:stable:1"],
  ["of a later change of the same number", "2:4:2:holding:1:done", "4:8:4:moving:1"],
  ["for the same number", "1:4:4:stable:1", "5:4:4:stable:1"],
  ["beside a partition that was not in use", "", "4:8:1:moving:1"],
  ["beside a partition that had been removed", "1:1:1:stable:1", "4:2:8:moving:1"],
  ["beside a partition that nobody has used yet", "", "2:4:2:moving:1"],
  ["in place of other bytes", "what is this", "4:8:1:moving:1"],
  ["that scatters, whatever there was", "2:8:2:moving:1", "6:4:8:moving:1:any"],
  ["that takes in the ordinary queue", "3:4:4:stable:1", "4:4:0:moving:1"],
])("a newer fact is written down: %s", async (_what, held, known) => {
  expect(await meet(held, known)).toBe(known);
});

test.each([
  ["messages may be in partitions that it does not have", "1:4:4:stable:1", "3:2:2:stable:1"],
  ["messages are on their way", "2:2:4:moving:1", "3:2:2:stable:1"],
  ["messages are on their way from elsewhere", "2:8:2:moving:1", "4:4:8:moving:1"],
  ["the change begins with another number", "1:4:4:stable:1", "4:8:2:moving:1"],
  ["of two facts with one epoch none is newer", "3:8:8:stable:1", "3:2:2:stable:1"],
])("a newer fact is refused: %s", async (_what, held, known) => {
  expect(await meet(held, known)).toBe(`PARTITIONS ${held}`);
});

test.each(["", "what is this"])(
  "a partition in use holds %j: only the first fact is written down as it stands",
  async (held) => {
    for (const partition of [0, 1]) {
      expect(await meet(held, "2:4:4:stable:1", partition)).toBe(`PARTITIONS ${held}`);
      expect(await meet(held, "4:8:4:moving:1", partition)).toBe(`PARTITIONS ${held}`);
      expect(await meet(held, "1:4:4:stable:1", partition)).toBe("1:4:4:stable:1");
    }
  },
);

test.each([
  ["1:4:0:moving:1:done", "2:4:4:stable:1"],
  ["2:4:4:stable:1", "6:2:2:stable:1"],
  ["2:4:2:moving:1", "6:2:2:stable:1"],
  ["3:4:8:moving:1:any", "4:4:4:stable:1"],
  ["", "2:4:0:moving:1"],
])("beside the ordinary queue, that holds %j, %s is written down", async (held, known) => {
  expect(await meet(held, known, -1)).toBe(known);
});

test.each(["1:4:0:moving:1", "3:4:8:moving:1:everywhere", "", "5:4:4:stable:1"])(
  "beside the ordinary queue, that holds %j, a stable fact is refused",
  async (held) => {
    expect(await meet(held, "4:2:2:stable:1", -1)).toBe(`PARTITIONS ${held}`);
  },
);

test("a partition notes that it is done with a change, and with no other", async () => {
  const [fact, done] = ["2:4:2:moving:1", "2:4:2:moving:1:done"];
  const queue = await newMoves();
  const note = () => run(queue.redis, noteDone, queue.keys, { fact, done });
  expect(await note()).toBe(false);
  await queue.seed({ partitions: fact });
  expect(await note()).toBe(true);
  expect(await note()).toBe(true);
  expect(await queue.snapshot()).toEqual({ partitions: done });
  expect(await guardedRun(queue, fact, 1)).toBe(done);
  await queue.redis.set(queue.keys.partitions, "1:2:2:stable:1");
  expect(await note()).toBe(false);
});
