import type { Clerk } from "../clerk.ts";
import { checkSetting, drawSetting, runSetting } from "../setting.ts";
import type { Shop } from "../shop.ts";
import { FAULT_KINDS, type World } from "../sim.ts";
import { someWork } from "../some-work.ts";

/** A queue that several processes pause and resume, while others offer and take. */
export const pauses: World = {
  name: "pauses",
  faults: FAULT_KINDS,
  events: 700,
  run: (sim) =>
    runSetting(sim, drawSetting(sim, { partitions: sim.random.pick([0, 0, 2]) }), {
      work: someWork,
      meanwhile: async (shop, clerks) => {
        await Promise.all(
          clerks.slice(0, sim.random.between(1, 2)).map((clerk) => pauseNowAndThen(shop, clerk)),
        );
      },
      settle: resumeForGood,
    }),
  check: (sim) => checkSetting(sim),
};

/** Resumes, as often as it takes. */
export async function resumeForGood({ sim }: Shop, clerk: Clerk): Promise<void> {
  while (!(await clerk.resume())) await sim.sleep(100);
}

/** Pauses and resumes a few times. */
export async function pauseNowAndThen({ sim }: Shop, clerk: Clerk): Promise<void> {
  const { random } = sim;
  await sim.go(`${clerk.process.name} pauses`, clerk.process, async () => {
    for (let i = 0; i < random.between(1, 3); i++) {
      await sim.sleep(random.magnitude(1, 2000));
      if (!sim.wants()) continue;
      await clerk.pause();
      await sim.sleep(random.magnitude(1, 10_000));
      await clerk.resume();
    }
  });
}
