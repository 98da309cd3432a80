import type { OfferError } from "../../../src/index.ts";
import type { Sim, SimProcess, World } from "../sim.ts";

/** A plain queue: two producers offer and cancel by key, two takers take. */
export const plain: World = {
  name: "plain",
  faults: ["delay", "stall", "script-flush"],
  events: 400,
  limit: 200_000,

  async run(sim) {
    const takers = ["taker-1", "taker-2"].map((name) => sim.newProcess(name));
    const producers = ["producer-1", "producer-2"].map((name) => sim.newProcess(name));
    for (const process of takers)
      void sim.go(`${process.name} takes`, process, () => take(sim, process));
    await Promise.all(
      producers.map((process) =>
        sim.go(`${process.name} offers`, process, () => offer(sim, process)),
      ),
    );
    sim.calm();
    const sent = new Set(sim.history.flatMap(({ event }) => (event["stored"] ? [event["n"]] : [])));
    const gone = () =>
      sim.history.flatMap(({ event }) =>
        event["taken"] || event["cancelled"] ? [event["n"]] : [],
      );
    while (gone().length < sent.size) await sim.sleep(100);
    await sim.sleep(100);
    for (const process of [...takers, ...producers]) {
      await sim.go(`${process.name} closes`, process, () => process.line.close());
    }
  },

  async check(sim) {
    const wrong: string[] = [];
    const left = await sim.control.keys("*");
    const stored = new Map<unknown, number>();
    const ends = new Map<unknown, number>();
    for (const { event } of sim.history) {
      if (event["stored"]) stored.set(event["n"], event["due"] as number);
      if (event["taken"] || event["cancelled"])
        ends.set(event["n"], (ends.get(event["n"]) ?? 0) + 1);
      if (event["taken"] && (event["now"] as number) < (event["due"] as number)) {
        wrong.push(`${String(event["n"])} came early`);
      }
    }
    for (const [n] of stored)
      if (ends.get(n) !== 1) wrong.push(`${String(n)} ended ${ends.get(n) ?? 0} times`);
    for (const key of left) {
      if (!/listed|mover|^redisson_delay_queue:/.test(key)) wrong.push(`${key} is left`);
    }
    return wrong;
  },
};

interface Job {
  readonly n: string;
  readonly due: number;
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
    try {
      await queue.offer({ n, due }, delay, { key: n });
      sim.note({ stored: true, n, due });
    } catch (error) {
      sim.note({ failed: true, n, due, outcome: (error as OfferError).stored });
      continue;
    }
    if (pause > 0) await sim.sleep(pause);
    if (!cancels) continue;
    try {
      if (await queue.cancel(n)) sim.note({ cancelled: true, n });
    } catch {
      sim.note({ unknown: true, n });
    }
  }
}

async function take(sim: Sim, process: SimProcess): Promise<void> {
  const queue = process.line.getBlockingQueue<Job>("jobs");
  try {
    for (;;) {
      const { n, due } = await queue.take();
      sim.note({ taken: true, n, due, now: sim.now() });
      if (sim.random.chance(0.2)) await sim.sleep(sim.random.between(1, 300));
    }
  } catch (error) {
    if ((error as { code?: string }).code !== "CLOSED") throw error;
  }
}
