import { DelaylineError, OfferError } from "../../../src/index.ts";
import { FAULT_KINDS, type Note, type Sim, type SimProcess, type World } from "../sim.ts";

/**
 * A plain queue under every fault that the machine knows: two producers offer, and cancel by key, and two takers take.
 * Processes that crash are started again. It is small enough to read a whole trace.
 */
export const smoke: World = {
  name: "smoke",
  every: 4,
  faults: FAULT_KINDS,
  events: 600,
  limit: 400_000,

  async run(sim) {
    const processes: SimProcess[] = [];
    const work = { isDone: false };
    const keepTaking = async (name: string): Promise<void> => {
      for (let life = 1; !work.isDone; life++) {
        const process = sim.newProcess(`${name}.${life}`);
        processes.push(process);
        await sim.go(`${name} takes`, process, () => take(sim, process));
      }
    };
    const takers = ["taker-1", "taker-2"].map(keepTaking);
    const producers = ["producer-1", "producer-2"].map((name) => sim.newProcess(name));
    processes.push(...producers);
    await Promise.all(
      producers.map((process) =>
        sim.go(`${process.name} offers`, process, () => offer(sim, process)),
      ),
    );
    sim.calm();
    while ((await sim.outside(() => countLeft(sim))) > 0) await sim.sleep(100);
    // What was taken last may still be on its way.
    await sim.sleep(3000);
    work.isDone = true;
    for (const process of processes) {
      await sim.go(`${process.name} closes`, process, () => process.line.close());
    }
    await Promise.all(takers);
  },

  async check(sim) {
    const events = sim.history.map(({ event }) => event);
    const had = (...faults: string[]) => events.some(({ fault }) => faults.includes(String(fault)));
    const mayLose = had("crash", "cut", "silence", "client-kill", "failover");
    const wrong: string[] = [];
    const all = new Set(events.map((event) => event["n"] as string | undefined));
    all.delete(undefined);
    for (const n of all as Set<string>) {
      const its = (what: string) =>
        events.filter((event) => event["n"] === n && event["what"] === what);
      const [stored, unknown, refused] = [its("stored"), its("unknown"), its("none")];
      const [taken, cancelled] = [its("taken"), its("cancelled")];
      const ends = taken.length + cancelled.length;
      // An offer that was sent again is stored twice if its first copy had been moved already.
      if (ends > 1 && !had(...REPEATING)) wrong.push(`${n} ended ${ends} times`);
      if (ends === 0 && stored.length > 0 && unknown.length === 0 && !mayLose)
        wrong.push(`${n} is lost`);
      if (ends > 0 && refused.length > 0) wrong.push(`${n} was not stored, and came`);
      if (!had("clock-step") && taken.some(isEarly)) wrong.push(`${n} came early`);
      const wasQuiet = events.every(({ fault }) => fault === undefined);
      if (wasQuiet && taken.some(isLate)) wrong.push(`${n} came late`);
    }
    const keys = await sim.control.keys("*");
    const left = keys.filter((key) => !/listed|mover|receipts|^redisson_delay_queue:/.test(key));
    return [...wrong, ...left.map((key) => `${key} is left`)];
  },
};

/** The faults after which ioredis sends an offer again. */
const REPEATING = ["cut", "silence", "client-kill", "failover"];

interface Job {
  readonly n: string;
  readonly due: number;
}

function isEarly({ now, due }: Note): boolean {
  return (now as number) < (due as number);
}

/** Takers may pause, one after the other. */
function isLate({ now, due }: Note): boolean {
  return (now as number) > (due as number) + 5000;
}

async function countLeft(sim: Sim): Promise<number> {
  const [delayed, ready] = await Promise.all([
    sim.control.zcard("redisson_delay_queue_timeout:{jobs}"),
    sim.control.llen("jobs"),
  ]);
  return delayed + ready;
}

async function offer(sim: Sim, process: SimProcess): Promise<void> {
  const queue = process.line.getDelayedQueue<Job>("jobs");
  const count = sim.random.between(3, 10);
  for (let i = 0; i < count; i++) {
    const delay = sim.random.pick([0, 0, 1, 20, 100, 1000]);
    const cancels = sim.random.chance(0.3);
    const pause = sim.random.pick([0, 0, 5, 50, 500]);
    if (!sim.wants()) continue;
    const n = `${process.name}/${i}`;
    const due = sim.now() + delay;
    await attempt(sim, n, due, async () => {
      await queue.offer({ n, due }, delay, { key: n });
      return "stored";
    });
    if (pause > 0) await sim.sleep(pause);
    if (cancels) {
      await attempt(sim, n, due, async () => ((await queue.cancel(n)) ? "cancelled" : "kept"));
    }
  }
}

/** Notes what came of a call, or what its error says of it. */
async function attempt(
  sim: Sim,
  n: string,
  due: number,
  act: () => Promise<string>,
): Promise<void> {
  try {
    sim.note({ n, due, what: await act() });
  } catch (error) {
    if (!(error instanceof DelaylineError)) throw error;
    const what = error instanceof OfferError ? error.effect : "unknown";
    sim.note({ n, due, what });
  }
}

async function take(sim: Sim, process: SimProcess): Promise<void> {
  const queue = process.line.getBlockingQueue<Job>("jobs");
  for (;;) {
    try {
      const patience = new AbortController();
      if (sim.random.chance(0.3)) {
        const pause = sim.random.pick([0, 1, 5, 100]);
        void sim.sleep(pause).then(() => patience.abort());
      }
      const { n, due } = await queue.take({ signal: patience.signal });
      sim.note({ n, due, what: "taken", now: sim.now() });
      if (sim.random.chance(0.2)) await sim.sleep(sim.random.between(1, 300));
    } catch (error) {
      if ((error as Error).name === "AbortError") {
        await sim.sleep(sim.random.pick([0, 10, 100]));
        continue;
      }
      if (!(error instanceof DelaylineError)) throw error;
      if (error.code === "CLOSED") return;
      await sim.sleep(sim.random.pick([1, 10, 100]));
    }
  }
}
