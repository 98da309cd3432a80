import { expect, test } from "vitest";
import { lanePage } from "../../../src/lua/queue/lanes.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves, type Bytes, type Moves } from "../../helpers/moves.ts";
import { scriptAt } from "../../helpers/script-at.ts";

const NOW = 5_000_000_000_000;

/** `count` turns of a lane. */
const turnsOf = (lane: string, count: number): [turn: Bytes, score: number][] =>
  Array.from({ length: count }, (_, i) => [
    `${String.fromCharCode(lane.length)}${lane}\x80\x18${String(i).padStart(24, "0")}`,
    0,
  ]);

const pageFrom = ({ redis, keys }: Moves, from: Buffer, step: number) =>
  run(redis, scriptAt(NOW, lanePage), keys, { from, step });

/** All pages of `step` lanes: of each lane how many wait, and until when it rests. */
async function lanesIn(queue: Moves, step: number) {
  const found: unknown[] = [];
  let from: Buffer | undefined = Buffer.alloc(0);
  while (from !== undefined) {
    const page: ReturnType<typeof lanePage.reply> = await pageFrom(queue, from, step);
    expect(page.lanes.length).toBeLessThanOrEqual(step);
    found.push(...page.lanes.map(({ lane, waiting, restsUntil }) => [lane, waiting, restsUntil]));
    from = page.next;
  }
  return found;
}

test("lane-page without turns: no lanes", async () => {
  const queue = await newMoves();
  expect(await pageFrom(queue, Buffer.alloc(0), 5)).toEqual({ lanes: [], next: undefined });
});

test.each([1, 2, 3, 50])(
  "lane-page counts who waits in each lane, in pages of %i, and changes nothing",
  async (step) => {
    const queue = await newMoves();
    await queue.seed({
      turns: [
        ...turnsOf("", 2),
        ...turnsOf("a", 3),
        ...turnsOf("b", 1),
        ...turnsOf("ab", 20),
        ...turnsOf("x".repeat(100), 4),
      ],
      resting: [
        ["a", NOW + 70],
        ["ab", NOW],
        // A lane in which nobody waits.
        ["nobody", NOW + 10],
      ],
    });
    const before = await queue.snapshot();
    expect(await lanesIn(queue, step)).toEqual([
      ["", 2, undefined],
      ["a", 3, NOW + 70],
      ["b", 1, undefined],
      ["ab", 20, undefined],
      ["x".repeat(100), 4, undefined],
    ]);
    expect(await queue.snapshot()).toEqual(before);
  },
);

test.each([1, 50])("bytes that are no turn end no page early, in pages of %i", async (step) => {
  const queue = await newMoves();
  const foreign = ["", "\x01a\xff\xff\x01", "\x01a\xff\xff\x02", "\xff\xffab", "\xff\xffcd"];
  await queue.seed({
    turns: [...foreign.map((turn) => [turn, 0] as const), ...turnsOf("b", 2)],
  });
  const lanes = await lanesIn(queue, step);
  expect(lanes).toContainEqual(["b", 2, undefined]);
  expect(lanes.length).toBeLessThanOrEqual(6);
});
