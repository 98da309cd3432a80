import { abandoned, changeNowAndThen, expectEndOfChanges } from "../changes.ts";
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
import { FAULT_KINDS, LATE_REPLIES, type Sim, type SimProcess, type World } from "../sim.ts";
import { someWork } from "../some-work.ts";
import { pauseNowAndThen, resumeForGood } from "./pauses.ts";

/** One consumer per key, often in strict order. What happens besides depends on the seed. */
export const exclusive: World = {
  name: "exclusive",
  faults: [...FAULT_KINDS, LATE_REPLIES],
  events: 1500,
  run: async (sim) => {
    const [setting, deeds] =
      KINDS[sim.random.weighted({ quiet: 1, changes: 3, relay: 4, desertion: 2, gap: 2 })](sim);
    await runSetting(sim, setting, deeds);
  },
  check: async (sim) => [...(await checkSetting(sim)), ...abandoned(sim)],
};

type Kind = (sim: Sim) => readonly [Setting, Deeds];

const KINDS: Readonly<Record<"quiet" | "changes" | "relay" | "desertion" | "gap", Kind>> = {
  /** Only the faults of the plan, and pauses. */
  quiet: (sim) => [
    draw(sim),
    {
      work: (shop, clerk) => someWork(shop, clerk, { longest: 1500 }),
      meanwhile: async (shop, clerks) => {
        await Promise.all(clerks.slice(0, 1).map((clerk) => pauseNowAndThen(shop, clerk)));
      },
      settle: resumeForGood,
    },
  ],

  /** The number of partitions changes, perhaps twice at a time. */
  changes: (sim) => [
    draw(sim),
    {
      work: (shop, clerk) => someWork(shop, clerk, { longest: 1500 }),
      meanwhile: async (shop, clerks) => {
        const changers = clerks.slice(0, sim.random.between(1, 2));
        await Promise.all(changers.map((clerk) => changeNowAndThen(shop, clerk)));
      },
      settle: expectEndOfChanges,
    },
  ],

  /** Handlers fail often, and then the partition often changes hands. */
  relay: (sim) => {
    const { random } = sim;
    const fates = random.pick(FATES);
    const longest = random.pick([500, 8000]);
    return [
      draw(sim, {
        partitions: random.between(1, 2),
        retry: random.pick([[300], [800, 100], [50, 1500]]),
        maxAttempts: random.between(3, 6),
        failing: 0.4,
      }),
      {
        work: (shop, clerk) => someWork(shop, clerk, { longest, keys: 2 }),
        onFailure: (shop, process) => void meetFate(shop, process, fates),
      },
    ];
  },

  /** A process that waits for messages goes, and they come when another one has its partition. */
  desertion: (sim) => [
    draw(sim, { partitions: sim.random.between(1, 2), producers: 1 }),
    {
      work: async (shop, clerk) => {
        const { random } = sim;
        await someWork(shop, clerk, { most: 5, longest: 500 });
        await sim.sleep(random.between(500, 2000));
        const fate = random.pick(["crash", "vanish", "vanish", "stall"] as const);
        if (sim.wants() && shop.staffed.length > 0) overcome(sim, random.pick(shop.staffed), fate);
        await sim.sleep(random.between(2000, 5000));
        await someWork(shop, clerk, { most: 8, longest: 500 });
      },
    },
  ],

  /** For a while nobody takes, and meanwhile the number of partitions changes. */
  gap: (sim) => {
    const { random } = sim;
    const setting = draw(sim, {
      takers: 0,
      partitions: random.between(1, 2),
      retry: random.pick([[300], [50, 1500]]),
      maxAttempts: 4,
      failing: 0.4,
    });
    return [
      setting,
      {
        work: (shop, clerk) => someWork(shop, clerk, { longest: 9000 }),
        meanwhile: async (shop, clerks) => {
          await workInShifts(shop, setting, async () => {
            await Promise.all(clerks.slice(0, 1).map((clerk) => changeNowAndThen(shop, clerk)));
          });
        },
        settle: expectEndOfChanges,
      },
    ];
  },
};

function draw(sim: Sim, fixed: Partial<Setting> = {}): Setting {
  const { random } = sim;
  return drawSetting(sim, {
    kind: "reliable",
    partitions: random.between(1, 3),
    isExclusive: true,
    isStrict: random.chance(0.6),
    takers: 2,
    ...fixed,
  });
}

/** What comes over a process. `vanish`: it is gone, and its connections stay. `step`: the server's clock is set. */
type Fate = "crash" | "vanish" | "stall" | "leave" | "step";

/** What there is in a run. */
const FATES: readonly (readonly Fate[])[] = [
  ["crash"],
  ["vanish"],
  ["stall"],
  ["leave"],
  ["leave", "step"],
  ["step"],
  ["crash", "vanish", "stall", "leave"],
];

/** Now and then, one of the fates comes over a process soon after one of its handlers has failed. */
async function meetFate(shop: Shop, process: SimProcess, fates: readonly Fate[]): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  const fate = random.pick(fates);
  const pause = random.magnitude(1, 1000);
  if (random.chance(0.6) || !sim.wants()) return;
  await sim.go(`fate of ${process.name}`, undefined, async () => {
    await sim.sleep(pause);
    if (!process.isAlive || shop.isEnding) return;
    if (fate === "leave") await shop.close(process);
    else overcome(sim, process, fate);
  });
}

function overcome(sim: Sim, process: SimProcess, fate: Exclude<Fate, "leave">): void {
  const { random } = sim;
  if (fate === "stall") {
    sim.fault({ kind: "stall", process, duration: random.between(2000, 8000) });
  } else if (fate === "step") {
    const duration = random.pick([-1, 1]) * random.magnitude(500, 60_000);
    sim.fault({ kind: "clock-step", duration });
  } else process.crash({ vanishes: fate === "vanish" });
}

/** Two processes take, and end; after `meanwhile`, others take. */
async function workInShifts(
  shop: Shop,
  setting: Setting,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  const shift = ["early0", "early1"].map((name) => shop.hire(name));
  for (const process of shift) take(shop, process, setting);
  const crashes = random.chance(0.7);
  const [worked, rest] = [random.magnitude(300, 4000), random.pick([0, 7500, 7500])];
  await sim.sleep(worked);
  for (const process of shift) {
    if (crashes) process.crash();
    else await shop.close(process);
  }
  await sim.sleep(rest);
  await meanwhile();
  for (const name of ["late0", "late1"]) staff(shop, name, setting);
}
