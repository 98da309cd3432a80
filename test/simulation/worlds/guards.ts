import type { Redis } from "ioredis";
import type { OnlyIf } from "../../../src/index.ts";
import type { Clerk, OfferTerms } from "../clerk.ts";
import { isList, type KeyState } from "../ledger/story.ts";
import type { Random } from "../random.ts";
import { checkSetting, drawSetting, runSetting } from "../setting.ts";
import type { Shop } from "../shop.ts";
import { FAULT_KINDS, type World } from "../sim.ts";
import { pauseNowAndThen, resumeForGood } from "./pauses.ts";

/**
 * Messages with conditions: `onlyIf` of a few keys that change all the time, mostly around deadlines, and
 * `deliverWithin` in a queue that is paused now and then.
 */
export const guards: World = {
  name: "guards",
  faults: FAULT_KINDS,
  events: 700,

  async run(sim) {
    const setting = drawSetting(sim, {
      partitions: sim.random.pick([0, 0, 2]),
      failing: sim.random.pick([0, 0.25]),
    });
    let stopWatching: (() => void) | undefined;
    await runSetting(sim, setting, {
      work,
      meanwhile: async (shop, clerks) => {
        stopWatching = shop.ledger.watchDrops();
        const pausing = sim.random.chance(0.5) ? clerks.slice(0, 1) : [];
        await Promise.all([
          changeKeys(shop),
          ...pausing.map((clerk) => pauseNowAndThen(shop, clerk)),
        ]);
      },
      settle: resumeForGood,
    }).finally(() => stopWatching?.());
  },

  check: async (sim) => checkSetting(sim, { dropCounts: await dropCountsOf(sim.controls) }),
};

/** The keys that guards ask, with what they hold in turn. */
const KEYS: Readonly<Record<string, readonly KeyState[]>> = {
  "user:{orders}:text": ["yes", "no", "yes", "", null],
  "user:{orders}:fields": [{ f: "yes" }, { f: "no" }, { g: "yes" }, null],
  "user:{orders}:any": ["yes", { f: "yes" }, ["yes"], null],
};

/** Changes the keys, mostly shortly before or after a message is due. */
async function changeKeys(shop: Shop): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  await sim.go("keys change", undefined, async () => {
    const count = random.between(6, 20);
    for (let i = 0; i < count; i++) {
      const [key, states] = random.pick(Object.entries(KEYS));
      const state = random.pick(states);
      if (random.chance(0.7)) await shop.patience();
      else await sim.sleep(random.magnitude(1, 2000));
      if (!sim.wants()) continue;
      await sim.outside(() => set(sim.control, key, state));
      shop.ledger.guard(key, state);
    }
  });
}

async function set(redis: Redis, key: string, state: KeyState): Promise<void> {
  const change = redis.multi().del(key);
  if (typeof state === "string") change.set(key, state);
  else if (state !== null && isList(state)) change.rpush(key, ...state);
  else if (state !== null) change.hset(key, { ...state });
  await change.exec();
}

async function work(shop: Shop, clerk: Clerk): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  const known: string[] = [];
  const count = random.between(5, 12);
  const acts: Promise<unknown>[] = [];
  for (let i = 0; i < count; i++) {
    const verb = random.weighted({
      offer: 9,
      many: 3,
      reschedule: 2,
      promote: 1,
      cancel: 1,
      get: 1,
    });
    const delay = random.pick([0, 20, 100, random.between(1, 3000), random.between(1000, 8000)]);
    const terms = termsOf(random);
    const many = Array.from({ length: random.between(2, 4) }, () => ({
      delay,
      ...termsOf(random),
    }));
    const key = random.chance(0.3)
      ? { key: `k${random.int(2)}`, onDuplicate: random.pick(RULES) }
      : {};
    const target = known.length === 0 ? undefined : random.pick(known);
    const isAwaited = random.chance(0.7);
    const pause = random.pick([0, 0, 5, 100, 900]);
    if (!sim.wants()) continue;
    const act = (async () => {
      if (verb === "many") for (const { id } of await clerk.offerMany(many)) known.push(id);
      else if (verb === "offer" || target === undefined) {
        const result = await clerk.offer(delay, { ...terms, ...key });
        if (result !== undefined) known.push(result.id);
      } else if (verb === "reschedule") await clerk.reschedule(target, delay);
      else await clerk[verb](target);
    })();
    acts.push(act);
    if (isAwaited) await act;
    if (pause > 0) await sim.sleep(pause);
  }
  if (random.chance(0.3)) await withoutRights(shop, clerk);
  await Promise.all(acts);
}

/** Redis refuses to read the key when the message is due: then it is delivered. */
async function withoutRights({ sim }: Shop, clerk: Clerk): Promise<void> {
  if (!sim.wants()) return;
  const command = sim.random.pick(["get", "hget", "hexists"]);
  sim.fault({ kind: "rights", command, duration: 1000 });
  await clerk.offer(50, termsOf(sim.random));
}

const RULES = ["ignore", "replace", "update"] as const;

function termsOf(random: Random): Pick<OfferTerms, "onlyIf" | "deliverWithin"> {
  const guard = guardOf(random);
  const deliverWithin = random.pick([0, 5, 100, 1000, 60_000]);
  const which = random.weighted({ guard: 6, both: 1, within: 2, none: 1 });
  return {
    ...((which === "guard" || which === "both") && { onlyIf: guard }),
    ...((which === "within" || which === "both") && { deliverWithin }),
  };
}

function guardOf(random: Random): OnlyIf {
  const key = random.pick(Object.keys(KEYS));
  const hasField = key.endsWith(":fields") || (key.endsWith(":any") && random.chance(0.5));
  const about = hasField ? { key, field: "f" } : { key };
  const test = random.pick([{ is: "yes" }, { isNot: "yes" }, { exists: true }, { exists: false }]);
  return { ...about, ...test };
}

async function dropCountsOf(servers: readonly Redis[]) {
  const counts = { onlyIf: 0, deliverWithin: 0 };
  for (const redis of servers) {
    for (const key of await redis.keys("delayline_dropped:*")) {
      const found = await redis.hgetall(key);
      counts.onlyIf += Number(found["onlyIf"] ?? 0);
      counts.deliverWithin += Number(found["deliverWithin"] ?? 0);
    }
  }
  return counts;
}
