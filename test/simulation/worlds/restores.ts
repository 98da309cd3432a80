import { BOUND } from "../../../src/redis/fuse.ts";
import type { Clerk } from "../clerk.ts";
import { checkSetting, drawSetting, runSetting } from "../setting.ts";
import type { Shop } from "../shop.ts";
import { RESTORE, type Sim, type World } from "../sim.ts";
import { resumeForGood } from "./pauses.ts";

/**
 * Redis goes back to a copy of some seconds ago while a queue is in use, as when a backup is restored. In some runs the
 * processes pause the queue for it, and somebody resumes it after a while.
 */
export const restores: World = {
  name: "restores",
  // What lasts long would excuse much: after it, nobody knows what was under way.
  faults: ["crash", "cut", "clock-step", "script-flush", "client-kill", "deaf"],
  events: 1500,
  run: async (sim) => {
    const onRestore = sim.random.pick(["pause", "report"] as const);
    sim.note({ onRestore });
    await runSetting(sim, drawSetting(sim, { failing: 0.1 }), {
      options: { onRestore },
      work,
      meanwhile: (shop, [office]) => restore(shop, office as Clerk, onRestore),
      settle: resumeForGood,
    });
  },
  check: async (sim) => {
    const noted = sim.history.find(({ event }) => "onRestore" in event);
    return await checkSetting(sim, {
      onRestore: noted?.event["onRestore"] as "pause" | "report",
    });
  },
};

/** Offers messages all the time, some of them for long after, so that the copy holds some of every kind. */
async function work(shop: Shop, clerk: Clerk): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  const known: string[] = [];
  const count = random.between(15, 30);
  for (let i = 0; i < count; i++) {
    const verb = random.weighted({ offer: 10, many: 2, cancel: 2, reschedule: 1 });
    const delay = random.pick([0, 100, random.between(1, 3000), random.between(3000, 25_000)]);
    const pause = random.between(50, 1500);
    const key = random.chance(0.3) ? { key: `${clerk.process.name}-${i}` } : {};
    const target = random.chance(0.5) ? known.at(-1) : known[0];
    if (sim.wants()) {
      if (verb === "many") await clerk.offerMany([{ delay }, { delay: 2 * delay }]);
      else if (verb === "cancel" && target !== undefined) await clerk.cancel(target);
      else if (verb === "reschedule" && target !== undefined) await clerk.reschedule(target, delay);
      else {
        const result = await clerk.offer(delay, key);
        if (result !== undefined) known.push(result.id);
      }
    }
    await sim.sleep(pause);
  }
}

/** Copies the data, restores the copy later, and resumes the queue if the processes pause it. */
async function restore(shop: Shop, office: Clerk, onRestore: "pause" | "report"): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  const stopWatching = shop.ledger.watchMoves();
  await sim.go("a backup is restored", office.process, async () => {
    await sim.sleep(random.between(2000, 8000));
    // Most are so old that everybody who has moved something can know it.
    const age = random.chance(0.2)
      ? random.between(500, BOUND)
      : random.between(2 * BOUND, 5 * BOUND);
    if (!sim.wants()) return;
    sim.fault({ kind: RESTORE, duration: age });
    while (!isRestored(sim)) await sim.sleep(100);
    await sim.sleep(random.between(5000, 20_000));
    if (onRestore === "pause") await resumeForGood(shop, office);
    await sim.sleep(random.between(0, 3000));
  });
  stopWatching();
}

function isRestored({ history }: Sim): boolean {
  return history.some(({ event }) => event["isRestore"] === true);
}
