import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { startOwnServer } from "../../helpers/own-server.ts";
import { ExclusiveStorm } from "./exclusive-storm.ts";

/*
 * Processes consume a queue exclusively, and come, go, die and sleep, while it is paused and resumed, its number of
 * partitions changes in every way, handlers fail, and dead letters are redriven.
 *
 * `EXCLUSIVE_SEED=<seed>` replays the plan of a run. The plan decides what happens and in which order; processes and
 * the network decide the rest. `EXCLUSIVE_LEDGER=<file>` keeps all that handlers did, a line of JSON each. `npm run soak` runs many rounds, each with the next seed.
 */

const { EXCLUSIVE_SEED, EXCLUSIVE_ROUNDS } = process.env;
const FIRST_SEED = Number(EXCLUSIVE_SEED ?? randomInt(1_000_000));
const ROUNDS = Number(EXCLUSIVE_ROUNDS ?? 1);

/** Events of a round, after 400 ms of rest each on average. */
const EVENT_COUNT = EXCLUSIVE_ROUNDS === undefined ? 18 : 30;

const NONE = {
  late: [],
  lost: [],
  invented: [],
  overlaps: [],
  disordered: [],
  fences: [],
  pauses: [],
  attempts: [],
  unaborted: [],
};

test.each([
  { kind: "not strict", strict: false },
  { kind: "strict", strict: true },
])(
  "a storm, $kind: every key in order and by one handler at a time, nothing lost, every change ends",
  async ({ kind, strict }) => {
    const [server, ledger] = await Promise.all([startOwnServer(), startOwnServer()]);
    for (let round = 0; round < ROUNDS; round++) {
      const seed = FIRST_SEED + round;
      console.log(`A storm over an exclusive queue, ${kind}: EXCLUSIVE_SEED=${seed}`);
      const { counts, faults } = await ExclusiveStorm.run({
        seed,
        url: server.url,
        ledgerUrl: ledger.url,
        strict,
        eventCount: EVENT_COUNT,
      });
      if (EXCLUSIVE_ROUNDS !== undefined) console.log(seed, counts);
      expect({ seed, ...shortened(faults) }).toEqual({ seed, ...NONE });
    }
  },
  180_000 * ROUNDS,
);

/** The first few faults of each kind, and how many there are. */
function shortened(faults: Readonly<Record<string, readonly string[]>>): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(faults).map(([kind, all]) => {
      const more = all.length > SHOWN ? [`and ${all.length - SHOWN} more`] : [];
      return [kind, [...all.slice(0, SHOWN), ...more]];
    }),
  );
}

const SHOWN = 6;
