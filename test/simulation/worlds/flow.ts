import type { Clerk } from "../clerk.ts";
import { checkSetting, drawSetting, runSetting, type Setting } from "../setting.ts";
import type { Shop } from "../shop.ts";
import { FAULT_KINDS, type World } from "../sim.ts";
import { someWork } from "../some-work.ts";
import { pauseNowAndThen, resumeForGood } from "./pauses.ts";

/** A queue whose rate several processes set and clear, while others offer and take, and it is paused now and then. */
export const flow: World = {
  name: "flow",
  faults: FAULT_KINDS,
  events: 700,

  async run(sim) {
    let stopWatching: (() => void) | undefined;
    await runSetting(sim, drawSetting(sim, { partitions: sim.random.pick([0, 0, 2]) }), {
      work: (shop, clerk) => someWork(shop, clerk, { most: 20, longest: 1000 }),
      meanwhile: async (shop, clerks) => {
        stopWatching = shop.ledger.watchMoves();
        const pausing = sim.random.chance(0.3) ? clerks.slice(0, 1) : [];
        await Promise.all([
          ...clerks.slice(0, sim.random.between(1, 2)).map((clerk) => changeRate(shop, clerk)),
          ...pausing.map((clerk) => pauseNowAndThen(shop, clerk)),
        ]);
      },
      settle: async (shop, clerk) => {
        while (!(await clerk.clearFlow())) await sim.sleep(100);
        await resumeForGood(shop, clerk);
      },
    }).finally(() => stopWatching?.());
  },

  check: async (sim) => {
    const noted = sim.history.find(({ event }) => "setting" in event);
    const setting = noted?.event["setting"] as Setting | undefined;
    return await checkSetting(sim, { parts: Math.max(1, setting?.partitions ?? 0) });
  },
};

/** Sets the rate a few times, and ends it now and then. */
async function changeRate({ sim }: Shop, clerk: Clerk): Promise<void> {
  const { random } = sim;
  await sim.go(`${clerk.process.name} sets rates`, clerk.process, async () => {
    for (let i = random.between(1, 4); i > 0; i--) {
      const rate = {
        limit: random.pick([1, 3, 10, 100]),
        per: random.pick([100, 1000]),
        burst: random.pick([1, 2, 5, 50]),
      };
      const pause = random.magnitude(1, 5000);
      const isClearing = random.chance(0.2);
      if (!sim.wants()) continue;
      if (isClearing) await clerk.clearFlow();
      else await clerk.setFlow(rate);
      await sim.sleep(pause);
    }
  });
}
