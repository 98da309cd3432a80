import type { Clerk } from "../clerk.ts";
import { checkSetting, drawSetting, runSetting } from "../setting.ts";
import { cutSometimes, type Shop } from "../shop.ts";
import { FAULT_KINDS, type World } from "../sim.ts";

/** A few business keys that many offers want, with every rule for a second offer, in a plain or a reliable queue. */
export const keys: World = {
  name: "keys",
  faults: FAULT_KINDS,
  events: 700,
  run: async (sim) => {
    cutSometimes(sim, ["offer-keyed", "remove", "reschedule", "exchange"]);
    await runSetting(sim, drawSetting(sim), { work });
  },
  check: (sim) => checkSetting(sim),
};

const KEYS = ["k0", "k1", "k2"];

async function work(shop: Shop, clerk: Clerk): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  const count = random.between(6, 14);
  const acts: Promise<unknown>[] = [];
  for (let i = 0; i < count; i++) {
    const verb = random.weighted({
      offer: 8,
      cancel: 3,
      exchange: 3,
      reschedule: 2,
      get: 1,
      has: 1,
      promote: 1,
      cancelWhere: 1,
      view: 1,
    });
    const key = random.pick(KEYS);
    const other = random.pick([key, ...KEYS]);
    const onDuplicate = random.pick(["ignore", "replace", "update"] as const);
    const delay = random.pick([0, 20, 100, random.between(1, 2000), random.between(1000, 8000)]);
    const maxWait = random.pick([undefined, 50, 1000]);
    const isAwaited = random.chance(0.6);
    const pause = random.pick([0, 0, 5, 100, 900]);
    if (!sim.wants()) continue;
    const limit = onDuplicate === "replace" && maxWait !== undefined ? { maxWait } : {};
    const act = {
      offer: () => clerk.offer(delay, { key, onDuplicate, ...limit }),
      cancel: () => clerk.cancel(key),
      exchange: () => clerk.exchange(key, delay, { key: other }),
      reschedule: () => clerk.reschedule(key, delay),
      get: () => clerk.get(key),
      has: () => clerk.has(key),
      promote: () => clerk.promote(key),
      cancelWhere: () => clerk.cancelWhere("k", KEYS),
      view: () => clerk.view("soonest"),
    }[verb]();
    acts.push(act);
    if (isAwaited) await act;
    if (pause > 0) await sim.sleep(pause);
  }
  await Promise.all(acts);
}
