import { changeNowAndThen, finishChange } from "../changes.ts";
import { checkSetting, drawSetting, runSetting } from "../setting.ts";
import { FAULT_KINDS, type World } from "../sim.ts";
import { someWork } from "../some-work.ts";

/** One consumer per key, often in strict order, while processes come and go, and the number of partitions changes. */
export const exclusive: World = {
  name: "exclusive",
  // The server's clock alone says whether a lease on a partition is over: a step of more than 2.5 s gives the partition to
  // somebody else while a handler runs.
  faults: FAULT_KINDS.filter((kind) => kind !== "clock-step"),
  events: 1500,
  run: async (sim) => {
    const { random } = sim;
    const setting = drawSetting(sim, {
      kind: "reliable",
      partitions: random.between(1, 3),
      isExclusive: true,
      isStrict: random.chance(0.6),
      takers: 2,
    });
    const changes = random.chance(0.5);
    await runSetting(sim, setting, {
      work: (shop, clerk) => someWork(shop, clerk, { moves: false, longest: 1500 }),
      ...(changes && {
        meanwhile: async (shop, clerks) => {
          await Promise.all(clerks.slice(0, 1).map((clerk) => changeNowAndThen(shop, clerk)));
        },
        settle: finishChange,
      }),
    });
  },
  check: (sim) => checkSetting(sim),
};
