import { Gate } from "../../helpers/gate.ts";
import {
  abandoned,
  changeNowAndThen,
  changeTogether,
  expectEndOfChanges,
  type Changing,
} from "../changes.ts";
import type { Clerk } from "../clerk.ts";
import { MOST_AT_ONCE } from "../plain-takers.ts";
import {
  checkSetting,
  drawSetting,
  runSetting,
  staff,
  take,
  type Deeds,
  type Setting,
} from "../setting.ts";
import type { Shop } from "../shop.ts";
import { FAULT_KINDS, type Sim, type World } from "../sim.ts";
import { someWork } from "../some-work.ts";
import { resumeForGood } from "./pauses.ts";

/** A queue whose number of partitions changes. What happens besides depends on the seed. */
export const partitions: World = {
  name: "partitions",
  faults: FAULT_KINDS,
  events: 1200,
  run: async (sim) => {
    const [setting, deeds] =
      KINDS[sim.random.weighted({ calm: 2, rush: 4, backlog: 3, pause: 2 })](sim);
    await runSetting(sim, setting, deeds);
  },
  check: async (sim) => [
    ...(await checkSetting(sim, { capacity: 2 * MOST_AT_ONCE, isPunctual: true })),
    ...abandoned(sim),
  ],
};

type Kind = (sim: Sim) => readonly [Setting, Deeds];

const KINDS: Readonly<Record<"calm" | "rush" | "backlog" | "pause", Kind>> = {
  /** Others offer, cancel and take meanwhile. The queue may have been an ordinary one. */
  calm: (sim) => [
    drawSetting(sim, { partitions: sim.random.between(0, 3), isMixed: sim.random.chance(0.5) }),
    {
      work: someWork,
      meanwhile: async (shop, clerks) => {
        const changers = clerks.slice(0, sim.random.between(1, 2));
        await Promise.all(changers.map((clerk) => changeNowAndThen(shop, clerk)));
      },
      settle: expectEndOfChanges,
    },
  ],

  /** Calls look for messages, by ids and by keys that all share, while these migrate. */
  rush: (sim) => {
    // Calls by key matter most while nobody migrates.
    const drawn = drawChanging(sim);
    const life = sim.random.chance(0.6) ? sim.random.magnitude(0.3, 15) : undefined;
    const changing = { ...drawn, life };
    const known: Target[] = [];
    const begun = new Gate();
    return [
      drawSetting(sim, { partitions: sim.random.between(1, 3) }),
      {
        work: async (shop, clerk) => {
          await stock(shop, clerk, known);
          await begun.opened;
          await rush(shop, clerk, known);
        },
        meanwhile: async (shop, clerks) => {
          await sim.sleep(sim.random.magnitude(5, 500));
          begun.open();
          await changeTogether(shop, clerks, changing);
        },
        settle: expectEndOfChanges,
      },
    ];
  },

  /** Messages are ready, in flight, retrying or dead, perhaps more than a page, and for a while nobody takes them. */
  backlog: (sim) => {
    const { random } = sim;
    const isBulky = random.chance(0.5);
    const changing = drawChanging(sim, isBulky ? 0.8 : 0.4);
    const setting = drawSetting(sim, {
      partitions: isBulky ? random.pick([0, 2]) : random.between(0, 4),
      isMixed: random.chance(0.5),
      isBulky,
      takers: 0,
    });
    return [
      setting,
      {
        work: async (shop, clerk) => {
          if (isBulky) await offerALot(shop, clerk);
          else await someWork(shop, clerk, { most: 8, longest: 300 });
        },
        meanwhile: async (shop, clerks) => {
          await someShift(shop, setting);
          await sim.sleep(random.magnitude(1, 1000));
          await changeTogether(shop, clerks, changing);
          await sim.sleep(random.pick([0, 0, 1000]));
          for (let i = 0; i < random.between(1, 2); i++) staff(shop, `late${i}`, setting);
        },
        settle: expectEndOfChanges,
      },
    ];
  },

  /** The queue is paused for a while, and its number changes meanwhile. */
  pause: (sim) => {
    const { random } = sim;
    const changing = drawChanging(sim);
    return [
      drawSetting(sim, { partitions: random.between(0, 2) }),
      {
        work: (shop, clerk) => someWork(shop, clerk, { most: 8, longest: 2000 }),
        meanwhile: async (shop, clerks) => {
          const [office] = clerks as [Clerk];
          await sim.sleep(random.magnitude(1, 500));
          const [before, after] = [random.pick([0, 0, 1, 20]), random.pick([0, 1, 2000, 4000])];
          await sim.go("office pauses", office.process, () => office.pause());
          await sim.sleep(before);
          await changeTogether(shop, clerks, changing);
          await sim.sleep(after);
          await sim.go("office resumes", office.process, async () => void (await office.resume()));
        },
        settle: async (shop, clerk, setting) => {
          await expectEndOfChanges(shop, clerk, setting);
          await resumeForGood(shop, clerk);
        },
      },
    ];
  },
};

/** Draws what changes; `two` says how often it is two numbers. */
function drawChanging({ random }: Sim, two = 0.4): Changing {
  return {
    counts: Array.from({ length: random.chance(two) ? 2 : 1 }, () => random.between(1, 4)),
    life: random.chance(0.4) ? random.magnitude(0.3, 40) : undefined,
    isSlow: random.chance(0.3),
  };
}

/** A message that several processes know of. */
interface Target {
  readonly target: string;
  readonly partitionKey: string;
}

/** Keys that all processes share, each with its partition key. */
const KEYS = ["a", "b", "c", "d", "e", "f"].map((key, i) => ({ key, partitionKey: `p${i % 3}` }));

/** Offers the first messages, some of them with keys. */
async function stock({ sim }: Shop, clerk: Clerk, known: Target[]): Promise<void> {
  const { random } = sim;
  for (let i = 0; i < 4; i++) {
    const terms = random.chance(0.6) ? random.pick(KEYS) : { partitionKey: `p${random.int(3)}` };
    const delay = random.between(200, 4000);
    if (!sim.wants()) continue;
    keep(await clerk.offer(delay, terms), terms.partitionKey, known);
    if ("key" in terms) known.push({ target: terms.key, partitionKey: terms.partitionKey });
  }
}

/** Looks for known messages, and offers others with the same keys, in quick succession. */
async function rush({ sim }: Shop, clerk: Clerk, known: Target[]): Promise<void> {
  const { random } = sim;
  const calls: Promise<void>[] = [];
  for (let i = 0; i < random.between(5, 10); i++) {
    const verb = random.weighted({ offer: 4, cancel: 3, reschedule: 1, get: 2 });
    const terms = random.chance(0.7) ? random.pick(KEYS) : { partitionKey: `p${random.int(3)}` };
    const delay = random.between(20, 4000);
    const onDuplicate = random.pick(["ignore", "replace", "update"] as const);
    const pause = random.pick([0, 0.5, 2, 10, 400, 2000]);
    const chosen = known.length === 0 ? undefined : random.pick(known);
    const hint = random.chance(0.7) ? chosen?.partitionKey : undefined;
    const isAwaited = random.chance(0.6);
    if (!sim.wants()) continue;
    const done = act();
    calls.push(done);
    if (isAwaited) await done;
    await sim.sleep(pause);

    async function act(): Promise<void> {
      if (verb === "offer" || chosen === undefined) {
        const more = "key" in terms ? { ...terms, onDuplicate } : terms;
        keep(await clerk.offer(delay, more), terms.partitionKey, known);
      } else if (verb === "cancel") await clerk.cancel(chosen.target, hint);
      else if (verb === "reschedule") await clerk.reschedule(chosen.target, delay, hint);
      else await clerk.get(chosen.target);
    }
  }
  await Promise.all(calls);
}

function keep(
  result: { readonly id: string } | undefined,
  partitionKey: string,
  known: Target[],
): void {
  if (result !== undefined) known.push({ target: result.id, partitionKey });
}

/** Offers more messages than one page holds. */
async function offerALot({ sim }: Shop, clerk: Clerk): Promise<void> {
  const { random } = sim;
  for (let i = 0; i < 2; i++) {
    const [delay, pause] = [random.pick([0, 0, 300]), random.magnitude(1, 300)];
    if (!sim.wants()) continue;
    await clerk.offerMany(
      Array.from({ length: 14 }, (_, j) => ({ delay, partitionKey: `p${j % 3}` })),
    );
    await sim.sleep(pause);
  }
}

/** One process takes for a while, and ends; perhaps while it holds messages. */
async function someShift(shop: Shop, setting: Setting): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  const worked = random.magnitude(20, 3000);
  const crashes = random.chance(0.5);
  if (random.chance(0.4) || !sim.wants()) return;
  const process = shop.hire("early");
  take(shop, process, setting);
  await sim.sleep(worked);
  if (crashes) process.crash();
  else await shop.close(process);
}
