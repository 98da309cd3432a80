import type { ReliableQueue, ScheduleOptions } from "../../../src/index.ts";
import { parseRecord } from "../../../src/schedules/record.ts";
import { judgeTicks, type Deed } from "../ledger/ticks.ts";
import { contentsOf } from "../contents.ts";
import { Shop } from "../shop.ts";
import { FAULT_KINDS, type Sim, type SimProcess, type World } from "../sim.ts";

/**
 * Schedules that several processes declare, plan, move and run, while one pauses, changes and removes them, and all
 * planners die now and then.
 */
export const schedules: World = {
  name: "schedules",
  every: 8,
  faults: FAULT_KINDS.filter((kind) => kind !== "clock-step"),
  events: 1500,

  async run(sim) {
    const { random } = sim;
    const shop = new Shop(sim);
    const own = { ...OPTIONS, leaseTimeout: random.pick([1000, 3000]) };
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
    await sim.go("office works", office, () => clerk.work());
    await dying;
    sim.calm();
    // Everything that was due has come by then.
    await sim.sleep(50_000);
    shop.isEnding = true;
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
      ...judgeTicks(
        sim.history,
        Object.keys(EVERY).filter((name) => name !== "once"),
      ),
      ...(live > 0 ? [`left over: ${live} messages`] : []),
      ...left.filter((key) => !key.includes("dropped")).map((key) => `left over: ${key}`),
    ];
  },
};

const OPTIONS = { maxAttempts: 100, retry: [0] } as const;

/** The schedules, and the milliseconds between two ticks. */
const EVERY: Readonly<Record<string, number>> = { fast: 1500, slow: 9000, code: 4000, once: 3000 };

function optionsOf(name: string, every: number): ScheduleOptions<string> {
  return {
    every,
    payload: name === "code" ? () => name : name,
    misfire: name === "once" ? "once" : "all",
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
        if (name !== undefined) sim.note({ ran: true, name, tick: Date.parse(instant), attempt });
        await sim.sleep(random.magnitude(1, 300));
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

  async work(): Promise<void> {
    const sim = this.#sim;
    const { random } = sim;
    for (let i = 0; i < random.between(1, 4); i++) {
      await sim.sleep(random.magnitude(100, 8000));
      const name = random.pick(["fast", "slow", "once"]);
      const every = random.pick([1100, 2500, 7000]);
      const pause = random.magnitude(10, 6000);
      const verb = random.pick(["pause", "remove", "declare", "trigger", "look"] as const);
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
  await sim.go("somebody watches", undefined, async () => {
    for (let i = 0; i < 40 && !shop.isEnding; i++) {
      await sim.sleep(sim.random.magnitude(50, 2500));
      const found = await sim.outside(() =>
        sim.control.hgetallBuffer(`delayline_schedules:{${queue}}`),
      );
      for (const [name, bytes] of Object.entries(found)) {
        const record = parseRecord(bytes);
        if (record !== undefined) {
          sim.note({ watermark: name, until: record.until, count: record.count });
        }
      }
    }
  });
}
