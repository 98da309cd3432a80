import type { ReliableQueue } from "../../../src/index.ts";
import { PartitionNames } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { parseRecord } from "../../../src/schedules/record.ts";
import { expectEndOfChanges, setPartitions } from "../changes.ts";
import { contentsOf } from "../contents.ts";
import { judgeOneInHand, judgeOverlap, judgeRuns } from "../ledger/runs.ts";
import { judgeTicks } from "../ledger/ticks.ts";
import {
  declareOutdated,
  EVERY,
  HARMLESS,
  judgeSets,
  optionsOf,
  Planner,
  untilDone,
  VERBS,
} from "../planner.ts";
import { Shop } from "../shop.ts";
import { FAULT_KINDS, type Sim, type SimProcess, type World } from "../sim.ts";

/**
 * Schedules that several processes declare, plan, move and run, while one pauses, changes, removes and triggers them,
 * declares a set anew, pauses and clears the queue; handlers throw, and all planners die now and then. Often the queue has
 * partitions, and their number changes; or the clock is set.
 */
export const schedules: World = {
  name: "schedules",
  faults: FAULT_KINDS.filter((kind) => kind !== "clock-step"),
  events: 1500,

  async run(sim) {
    const { random } = sim;
    const shop = new Shop(sim);
    const partitions = random.chance(0.5) ? random.between(1, 2) : undefined;
    const isClockSet = random.chance(0.25);
    const own = {
      ...OPTIONS,
      leaseTimeout: random.pick([4000, 8000]),
      ...(partitions !== undefined && { partitions }),
    };
    const open = (process: SimProcess) =>
      process.run(() => process.line.getReliableQueue<string>(shop.queue, own));
    const office = shop.hire("office", { mayCrash: false, transfer: random.chance(0.5) });
    const clerk = new Planner(sim, office, open(office), partitions === undefined);
    await sim.go("office opens", office, () => clerk.declareAll());
    for (let i = 0; i < random.between(1, 2); i++) {
      shop.staff(`planner${i}`, (process) => work(sim, process, open(process)));
    }
    const watching = watchWatermarks(shop);
    const dying = sim.go("planners die", undefined, async () => {
      for (let i = 0; i < random.int(3); i++) {
        await sim.sleep(random.magnitude(500, 15_000));
        if (sim.wants()) for (const process of shop.staffed) process.crash();
      }
    });
    const changing = partitions === undefined ? undefined : changeTheNumber(shop, office);
    const setting = isClockSet ? setTheClock(sim) : undefined;
    await sim.go("office works", office, () => clerk.work(isClockSet ? HARMLESS : VERBS));
    await Promise.all([dying, changing, setting]);
    sim.calm();
    // Everything that was due has come by then.
    await sim.sleep(50_000);
    shop.isEnding = true;
    if (partitions !== undefined) await expectEndOfChanges(shop, { process: office });
    await sim.go("office removes", office, () => clerk.removeAll());
    await watching;
    await shop.isEmptyWithin(30_000);
    await shop.closeAll(async () => {});
  },

  async check(sim) {
    const { live, left } = await contentsOf(sim.controls);
    return [
      ...judgeTicks(sim.history, ["fast", "slow", "code", "left", "right"]),
      ...judgeRuns(sim.history),
      ...judgeOverlap(sim.history, "single"),
      ...judgeOneInHand(sim.history, "waits"),
      ...judgeSets(sim),
      ...(live > 0 ? [`left over: ${live} messages`] : []),
      ...left.filter((key) => !mayStay(key, sim)).map((key) => `left over: ${key}`),
    ];
  },
};

/**
 * Whether the key may stay: counts of what was dropped, the log; a note of a run, in the partition that its schedule has left, or
 * of one that came, or was retried, after its schedule was removed.
 */
function mayStay(key: string, { history }: Sim): boolean {
  if (/_dropped:|_activity:|_running:\{.*\//.test(key)) return true;
  const removal = history.findLast(
    ({ event }) => event["deed"] === "remove" && event["name"] === "single",
  );
  const last = history.findLast(({ event }) => event["name"] === "single" && "attempt" in event);
  return /_running:/.test(key) && (last?.step ?? 0) >= (removal?.step ?? Infinity);
}

const OPTIONS = { maxAttempts: 100, retry: [0, 2000] } as const;

/** A process that knows the schedules, and runs what they place. */
function work(sim: Sim, process: SimProcess, queue: ReliableQueue<string>): void {
  const { random } = sim;
  const failing = random.pick([0, 0.3]);
  void sim.go(`${process.name} is outdated`, process, () => declareOutdated(sim, queue));
  void sim.go(`${process.name} declares`, process, async () => {
    // Only this one needs code. The others may be changed by the office.
    await untilDone(sim, () =>
      queue.schedules.upsert("code", optionsOf("code", EVERY["code"] ?? 1)),
    );
  });
  process.run(() =>
    queue.subscribe(
      async (_, { id, key = "", attempt }) => {
        const [, name, instant = "", mark] = /^schedule:(.*)@([^!]*)(!?)/.exec(key) ?? [];
        const run = { name, tick: Date.parse(instant), attempt, id };
        const isFailed = attempt < 3 && random.chance(failing);
        sim.note({ [mark === "" ? "ran" : "triggered"]: true, ...run, now: sim.now() });
        const isLong = name === "single" || name === "waits";
        await sim.sleep(isLong ? random.magnitude(500, 8000) : random.magnitude(1, 300));
        sim.note({ ended: true, ...run, isFailed });
        if (isFailed) throw new Error("a handler that fails");
      },
      { concurrency: random.between(1, 2), onError: () => {} },
    ),
  );
}

/** Changes the number of partitions now and then. */
async function changeTheNumber(shop: Shop, office: SimProcess): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  for (let i = 0; i < random.between(1, 2); i++) {
    await sim.sleep(random.magnitude(10, 10_000));
    const count = random.between(1, 3);
    if (!sim.wants()) continue;
    sim.note({ changes: count });
    await sim.go("office changes the number", office, async () => {
      await setPartitions(shop, office, count);
    });
    sim.note({ changes: count });
  }
}

/** Sets the server's clock now and then. */
async function setTheClock(sim: Sim): Promise<void> {
  const { random } = sim;
  for (let i = 0; i < random.between(1, 3); i++) {
    await sim.sleep(random.magnitude(100, 10_000));
    const duration = random.magnitude(10, 20_000) * (random.chance(0.5) ? 1 : -1);
    if (sim.wants()) sim.fault({ kind: "clock-step", duration: Math.round(duration) });
  }
}

/** Looks now and then up to which tick each schedule is planned. */
async function watchWatermarks(shop: Shop): Promise<void> {
  const { sim, queue } = shop;
  const partitions = new PartitionNames(queue);
  const queues = [queue, ...[0, 1, 2, 3].map((partition) => partitions.at(partition))];
  await sim.go("somebody watches", undefined, async () => {
    for (let i = 0; i < 25 && !shop.isEnding; i++) {
      await sim.sleep(sim.random.magnitude(50, 2500));
      const found = await sim.outside(() =>
        Promise.all(queues.map((one) => sim.control.hgetallBuffer(queueKeys(one).schedules))),
      );
      for (const [name, bytes] of found.flatMap(Object.entries<Buffer>)) {
        const record = parseRecord(bytes);
        if (record !== undefined) {
          sim.note({ watermark: name, until: record.until, count: record.count });
        }
      }
    }
  });
}
