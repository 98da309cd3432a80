import { expect, test } from "vitest";
import { Random } from "../random.ts";
import { MUTANTS } from "./table.ts";
import { trySeeds } from "./try-seeds.ts";

/** Minutes for as many mutants as there is time for, in another order each time. Without it, two that are found fast. */
const MINUTES = Number(process.env["MUTANTS_MINUTES"] ?? 0);

const FAST = ["no-publish", "ack-before-handler"];

const MINUTE = 60_000;

test("the simulator finds what is broken", { timeout: (MINUTES + 20) * MINUTE }, async () => {
  const endsAt = performance.now() + MINUTES * MINUTE;
  const all = new Random(Date.now(), "mutants").shuffled(MUTANTS);
  const some = MINUTES > 0 ? all : MUTANTS.filter(({ name }) => FAST.includes(name));
  const survivors: string[] = [];
  for (const mutant of some) {
    const limit = MINUTES > 0 ? endsAt - performance.now() : 5 * MINUTE;
    if (limit <= 0) break;
    const { caught, isOutOfTime, failure } = await trySeeds(mutant, { seeds: 1000, limit });
    const isSeen = caught !== undefined || mutant.unseen !== undefined;
    if (!isSeen && !(MINUTES > 0 && isOutOfTime)) survivors.push(`${mutant.name} ${failure ?? ""}`);
  }
  expect(survivors).toEqual([]);
});
