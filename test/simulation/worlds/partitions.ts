import { changeNowAndThen, finishChange } from "../changes.ts";
import { MOST_AT_ONCE } from "../plain-takers.ts";
import { checkSetting, drawSetting, runSetting } from "../setting.ts";
import { FAULT_KINDS, type World } from "../sim.ts";
import { someWork } from "../some-work.ts";

/** A queue whose number of partitions changes while others offer, cancel and take. */
export const partitions: World = {
  name: "partitions",
  faults: FAULT_KINDS,
  events: 1200,
  run: (sim) =>
    runSetting(sim, drawSetting(sim, { partitions: sim.random.between(0, 3) }), {
      work: someWork,
      meanwhile: async (shop, clerks) => {
        const changers = clerks.slice(0, sim.random.between(1, 2));
        await Promise.all(changers.map((clerk) => changeNowAndThen(shop, clerk)));
      },
      settle: finishChange,
    }),
  check: (sim) => checkSetting(sim, { capacity: 2 * MOST_AT_ONCE }),
};
