import type { ReliableQueue, ScheduleOptions } from "../../../src/index.ts";
import { PartitionNames } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { parseRecord } from "../../../src/schedules/record.ts";
import { expectEndOfChanges, setPartitions } from "../changes.ts";
import { judgeOverlap, judgeTicks, type Deed } from "../ledger/ticks.ts";
import { contentsOf } from "../contents.ts";
import { Shop } from "../shop.ts";
import { FAULT_KINDS, type Sim, type SimProcess, type World } from "../sim.ts";

/**
 * Schedules that several processes declare, plan, move and run, while one pauses, changes and removes them, and all
 * planners die now and then. Often the queue has partitions, and their number changes; or the clock is set.
 */
export const schedules: World = {
  name: "schedules",
  every: 8,
  faults: FAULT_KINDS.filter((kind) => kind !== "clock-step"),
  events: 1500,

  async run(sim) {
    const { random } = sim;
    const shop = new Shop(sim);
    const kind = random.weighted({ ordinary: 3, partitions: 4, clock: 2 });
    const own = {
      ...OPTIONS,
      leaseTimeout: random.pick([1000, 3000]),
      ...(kind === "partitions" && { partitions: random.between(1, 3) }),
    };
    const open = (process: SimProcess) =>
      process.run(() => process.line.getReliableQueue<string>(shop.queue, own));
    const office = shop.hire("office", { mayCrash: false, transfer: random.chance(0.5) });
    const clerk = new Planner(sim, office, open(office));
    await sim.go("office opens", office, async () => {
      for (const [name, every] of Object.entries(EVERY)) await clerk.deed("declare", name, every);
    });
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
    const meanwhile = {
      ordinary: async () => {},
      partitions: () => changeTheNumber(shop, office),
      clock: () => setTheClock(sim),
    }[kind]();
    await sim.go("office works", office, () => clerk.work(kind === "clock" ? HARMLESS : VERBS));
    await Promise.all([dying, meanwhile]);
    sim.calm();
    // Everything that was due has come by then.
    await sim.sleep(50_000);
    shop.isEnding = true;
    if (kind === "partitions") await expectEndOfChanges(shop, { process: office });
    await sim.go("office removes", office, async () => {
      for (const name of Object.keys(EVERY)) await clerk.deed("remove", name);
    });
    await watching;
    await shop.isEmptyWithin(30_000);
    await shop.closeAll(async () => {});
  },

  async check(sim) {
    const { live, left } = await contentsOf(sim.controls);
    return [
      ...judgeTicks(sim.history, ["fast", "slow", "code"]),
      ...judgeOverlap(sim.history, "single"),
      ...(live > 0 ? [`left over: ${live} messages`] : []),
      // A note of a run stays in the partition that its schedule has left.
      ...left
        .filter((key) => !/_dropped:|_running:\{.*\//.test(key))
        .map((key) => `left over: ${key}`),
    ];
  },
};

const OPTIONS = { maxAttempts: 100, retry: [0] } as const;

/** The schedules, and the milliseconds between two ticks. */
const EVERY: Readonly<Record<string, number>> = {
  fast: 1500,
  slow: 9000,
  code: 4000,
  once: 3000,
  single: 1200,
};

function optionsOf(name: string, every: number): ScheduleOptions<string> {
  return {
    every,
    payload: name === "code" ? () => name : name,
    misfire: name === "once" ? "once" : "all",
    overlap: name === "single" ? "skip" : "allow",
  };
}

/** A process that knows the schedules, and runs what they place. */
function work(sim: Sim, process: SimProcess, queue: ReliableQueue<string>): void {
  const { random } = sim;
  void sim.go(`${process.name} declares`, process, async () => {
    // Only this one needs code. The others may be changed by the office.
    await untilDone(sim, () =>
      queue.schedules.upsert("code", optionsOf("code", EVERY["code"] ?? 1)),
    );
  });
  process.run(() =>
    queue.subscribe(
      async (_, { key = "", attempt }) => {
        const [, name, instant = ""] = /^schedule:(.*)@([^!]*)$/.exec(key) ?? [];
        const run = { name, tick: Date.parse(instant), attempt };
        if (name !== undefined) sim.note({ ran: true, ...run });
        await sim.sleep(random.magnitude(1, name === "single" ? 3000 : 300));
        if (name !== undefined) sim.note({ ended: true, ...run });
      },
      { concurrency: random.between(1, 3), onError: () => {} },
    ),
  );
}

/** The one who changes schedules. */
class Planner {
  readonly #sim: Sim;
  readonly #process: SimProcess;
  readonly #queue: ReliableQueue<string>;
  readonly #every = new Map(Object.entries(EVERY));

  constructor(sim: Sim, process: SimProcess, queue: ReliableQueue<string>) {
    this.#sim = sim;
    this.#process = process;
    this.#queue = queue;
  }

  /** Does it, however often it has to be tried, and notes it. */
  async deed(deed: Deed, name: string, every = this.#every.get(name)): Promise<void> {
    const sim = this.#sim;
    const about = { deed, name, every };
    sim.note({ ...about, phase: "begins", now: sim.now() });
    const { schedules: all } = this.#queue;
    await untilDone(sim, () =>
      this.#process.run<Promise<unknown>>(() =>
        deed === "declare" ? all.upsert(name, optionsOf(name, every ?? 1)) : all[deed](name),
      ),
    );
    if (every !== undefined) this.#every.set(name, every);
    sim.note({ ...about, phase: "done", now: sim.now() });
  }

  async work(verbs: readonly Verb[]): Promise<void> {
    const sim = this.#sim;
    const { random } = sim;
    for (let i = 0; i < random.between(1, 4); i++) {
      await sim.sleep(random.magnitude(100, 8000));
      const name = random.pick(["fast", "slow", "once"]);
      const every = random.pick([1100, 2500, 7000]);
      const pause = random.magnitude(10, 6000);
      const verb = random.pick(verbs);
      if (!sim.wants()) continue;
      if (verb === "trigger") await this.#queue.schedules.trigger(name).catch(() => {});
      else if (verb === "look") await this.#queue.schedules.get(name).catch(() => {});
      else if (verb === "declare") await this.deed("declare", name, every);
      else {
        await this.deed(verb, name);
        await sim.sleep(pause);
        await this.deed(verb === "pause" ? "resume" : "declare", name);
      }
    }
  }
}

type Verb = (typeof VERBS)[number];

const VERBS = ["pause", "remove", "declare", "trigger", "look"] as const;

/** What changes no schedule: a change forgets what came before a clock was set back. */
const HARMLESS = ["trigger", "look"] as const;

/** Changes the number of partitions now and then. */
async function changeTheNumber(shop: Shop, office: SimProcess): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  for (let i = 0; i < random.between(1, 2); i++) {
    await sim.sleep(random.magnitude(10, 10_000));
    const count = random.between(1, 4);
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

async function untilDone(sim: Sim, act: () => Promise<unknown>): Promise<void> {
  for (;;) {
    const isDone = await act().then(
      () => true,
      () => false,
    );
    if (isDone) return;
    await sim.sleep(200);
  }
}

/** Looks now and then up to which tick each schedule is planned. */
async function watchWatermarks(shop: Shop): Promise<void> {
  const { sim, queue } = shop;
  const partitions = new PartitionNames(queue);
  const queues = [queue, ...[0, 1, 2, 3].map((partition) => partitions.at(partition))];
  await sim.go("somebody watches", undefined, async () => {
    for (let i = 0; i < 40 && !shop.isEnding; i++) {
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
