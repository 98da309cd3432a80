import type { FlowOptions, Lane, Rate } from "../../../src/index.ts";
import { abandoned, changeNowAndThen, expectEndOfChanges } from "../changes.ts";
import type { Clerk } from "../clerk.ts";
import { checkSetting, drawSetting, runSetting, type Setting } from "../setting.ts";
import type { Shop } from "../shop.ts";
import { FAULT_KINDS, type Sim, type World } from "../sim.ts";
import { someWork } from "../some-work.ts";
import { pauseNowAndThen, resumeForGood } from "./pauses.ts";

/**
 * A queue whose flow several processes set and clear, rates and mostly lanes, while others offer and take, and it is paused now
 * and then, or its partitions change.
 */
export const flow: World = {
  name: "flow",
  faults: FAULT_KINDS,
  events: 700,

  async run(sim) {
    let stopWatching: (() => void) | undefined;
    const setting = drawSetting(sim, {
      partitions: sim.random.pick([0, 0, 0, 2]),
      mayHoldLane: sim.random.chance(0.5),
    });
    // Of a single lane the rate is seen exactly. The lane without a name is in every partition.
    const lanes = sim.random
      .pick([["a"], ["a", "b"], ["", "a", "b", "c"]])
      .filter((lane) => lane !== "" || setting.partitions === 0);
    await runSetting(sim, setting, {
      work: (shop, clerk) => someWork(shop, clerk, { most: 20, longest: 1000, lanes }),
      meanwhile: async (shop, clerks) => {
        stopWatching = shop.ledger.watchMoves();
        const pausing = sim.random.chance(0.3) ? clerks.slice(0, 1) : [];
        const changing = setting.partitions > 0 && sim.random.chance(0.5) ? clerks.slice(0, 1) : [];
        await Promise.all([
          ...clerks
            .slice(0, sim.random.between(1, 2))
            .map((clerk) => changeFlow(shop, clerk, setting, lanes)),
          ...pausing.map((clerk) => pauseNowAndThen(shop, clerk)),
          ...changing.map((clerk) => changeNowAndThen(shop, clerk)),
        ]);
      },
      settle: async (shop, clerk) => {
        while (!(await clerk.clearFlow())) await sim.sleep(100);
        await resumeForGood(shop, clerk);
        if (setting.partitions > 0) await expectEndOfChanges(shop, clerk, setting);
      },
    }).finally(() => stopWatching?.());
  },

  check: async (sim) => {
    const noted = sim.history.find(({ event }) => "setting" in event);
    const setting = noted?.event["setting"] as Setting | undefined;
    const parts = (setting?.partitions ?? 0) > 0 ? MOST_PARTITIONS : 1;
    return [...(await checkSetting(sim, { parts })), ...abandoned(sim)];
  },
};

/** The most partitions that a change makes. */
const MOST_PARTITIONS = 4;

/** Sets the flow a few times, and ends it now and then. */
async function changeFlow(
  { sim }: Shop,
  clerk: Clerk,
  setting: Setting,
  lanes: readonly string[],
): Promise<void> {
  const { random } = sim;
  await sim.go(`${clerk.process.name} sets flows`, clerk.process, async () => {
    for (let i = random.between(1, 4); i > 0; i--) {
      const hasLanes = lanes.length > 0 && random.chance(0.75);
      const next = hasLanes ? lanesFlow(sim, setting, lanes) : { rate: rateOf(sim) };
      const pause = random.magnitude(1, 5000);
      const isClearing = random.chance(0.2);
      const isHolding = hasLanes && random.chance(0.3);
      if (!sim.wants()) continue;
      if (isClearing) await clerk.clearFlow();
      else await clerk.setFlow(next);
      if (isHolding) await clerk.hold(random.pick(lanes.filter(Boolean)), 1000);
      await sim.sleep(pause);
    }
  });
}

function rateOf({ random }: Sim): Rate {
  return {
    limit: random.pick([1, 3, 10, 100]),
    per: random.pick([100, 1000]),
    burst: random.pick([1, 2, 5, 50]),
  };
}

/** A flow with lanes, some of which have a rate or a weight of their own, and in a reliable queue a limit of what is in hand. */
function lanesFlow(sim: Sim, { kind, partitions }: Setting, lanes: readonly string[]): FlowOptions {
  const { random } = sim;
  const isReliable = kind === "reliable";
  const lane = (): Lane => ({
    ...(random.chance(0.6) && { rate: rateOf(sim) }),
    ...(isReliable && random.chance(0.4) && { concurrency: random.between(1, 2) }),
    ...(random.chance(0.3) && { weight: random.pick([0.1, 3]) }),
  });
  const named = lanes.filter((name) => name !== "" && random.chance(0.3));
  return {
    ...(random.chance(0.3) && { rate: rateOf(sim) }),
    ...(isReliable &&
      partitions === 0 &&
      random.chance(0.3) && { concurrency: random.between(1, 3) }),
    lane: lane(),
    ...(named.length > 0 && { lanes: Object.fromEntries(named.map((name) => [name, lane()])) }),
    ...(random.chance(0.6) && { ahead: random.pick([1, 2, 5]) }),
  };
}
