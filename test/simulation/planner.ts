import type { ReliableQueue, ScheduleOptions } from "../../src/index.ts";
import type { Deed } from "./ledger/ticks.ts";
import type { Sim, SimProcess } from "./sim.ts";

/** The schedules of their own, and the milliseconds between two ticks. */
export const EVERY: Readonly<Record<string, number>> = {
  fast: 4000,
  slow: 15_000,
  code: 8000,
  once: 6000,
  single: 3000,
  waits: 4000,
};

/** A set of schedules, and the names of those that it may have. */
const SET = "pair";
const SET_NAMES = ["left", "right"] as const;

export type Verb = (typeof VERBS)[number];

/** What changes no schedule: a change forgets what came before a clock was set back. */
export const HARMLESS = ["trigger", "look", "hold"] as const;

export const VERBS = [
  "pause",
  "remove",
  "declare",
  "set",
  "clear",
  "trigger",
  ...HARMLESS,
] as const;

/** The one who changes schedules. */
export class Planner {
  readonly #sim: Sim;
  readonly #process: SimProcess;
  readonly #queue: ReliableQueue<string>;
  readonly #every = new Map(Object.entries(EVERY));
  #revision = 0;

  /** `mayWait`: whether the queue takes schedules whose runs wait for each other. */
  constructor(sim: Sim, process: SimProcess, queue: ReliableQueue<string>, mayWait: boolean) {
    if (!mayWait) this.#every.delete("waits");
    this.#sim = sim;
    this.#process = process;
    this.#queue = queue;
  }

  async declareAll(): Promise<void> {
    for (const name of this.#every.keys()) await this.#deed("declare", name);
    await this.#declareSet(SET_NAMES);
  }

  async removeAll(): Promise<void> {
    for (const name of this.#every.keys()) await this.#deed("remove", name);
    await this.#declareSet([]);
  }

  async work(verbs: readonly Verb[]): Promise<void> {
    const sim = this.#sim;
    const { random } = sim;
    const { schedules } = this.#queue;
    for (let i = 0; i < random.between(1, 4); i++) {
      await sim.sleep(random.magnitude(100, 8000));
      const name = random.pick(["fast", "slow", "once"]);
      const triggered = random.pick([name, "single"]);
      const every = random.pick([2700, 4000, 9000]);
      const pause = random.magnitude(10, 6000);
      const ofSet = SET_NAMES.filter(() => random.chance(0.6));
      const verb = random.pick(verbs);
      if (!sim.wants()) continue;
      if (verb === "trigger") await this.#trigger(triggered);
      else if (verb === "look") await schedules.get(name).catch(() => {});
      else if (verb === "hold") await this.#hold(pause);
      else if (verb === "clear") await this.#clear();
      else if (verb === "set") await this.#declareSet(ofSet);
      else if (verb === "declare") await this.#deed("declare", name, every);
      else {
        await this.#deed(verb, name);
        await sim.sleep(pause);
        await this.#deed(verb === "pause" ? "resume" : "declare", name);
      }
    }
  }

  /** Does it, however often it has to be tried, and notes it. */
  async #deed(deed: Deed, name: string, every = this.#every.get(name)): Promise<void> {
    const sim = this.#sim;
    const about = { deed, name, every };
    sim.note({ ...about, phase: "begins", now: sim.now() });
    await this.#untilDone(({ schedules }) =>
      deed === "declare"
        ? schedules.upsert(name, optionsOf(name, every ?? 1))
        : schedules[deed](name),
    );
    if (every !== undefined) this.#every.set(name, every);
    sim.note({ ...about, phase: "done", now: sim.now() });
  }

  /** Declares the next revision of the set, with these schedules. */
  async #declareSet(names: readonly string[]): Promise<void> {
    const sim = this.#sim;
    const revision = ++this.#revision;
    const every = sim.random.pick([5000, 9000]);
    const note = (phase: string) => {
      for (const name of SET_NAMES) {
        const deed = names.includes(name) ? "declare" : "remove";
        sim.note({ deed, name, every, phase, now: sim.now() });
      }
    };
    note("begins");
    const wanted = Object.fromEntries(names.map((name) => [name, optionsOf(name, every)]));
    await this.#untilDone(({ schedules }) => schedules.declare(SET, wanted, { revision }));
    note("done");
  }

  async #trigger(name: string): Promise<void> {
    const offered = await this.#queue.schedules.trigger(name).catch(() => undefined);
    if (offered !== undefined) this.#sim.note({ triggers: name, id: offered.id });
  }

  /** Pauses the queue for a while. */
  async #hold(duration: number): Promise<void> {
    const sim = this.#sim;
    sim.note({ holds: true });
    await this.#untilDone((queue) => queue.pause());
    await sim.sleep(duration);
    await this.#untilDone((queue) => queue.resume());
    sim.note({ holds: false });
  }

  async #clear(): Promise<void> {
    const sim = this.#sim;
    sim.note({ clears: "begins", now: sim.now() });
    await this.#untilDone((queue) => queue.clear());
    sim.note({ clears: "done", now: sim.now() });
  }

  async #untilDone(act: (queue: ReliableQueue<string>) => Promise<unknown>): Promise<void> {
    await untilDone(this.#sim, () => this.#process.run(() => act(this.#queue)));
  }
}

/** A release before the first one of the set: with the same revision, and others in it. It is to be refused. */
export async function declareOutdated(sim: Sim, queue: ReliableQueue<string>): Promise<void> {
  const names = [...SET_NAMES, "gone"];
  const wanted = Object.fromEntries(names.map((name) => [name, optionsOf(name, 3700)]));
  await untilDone(sim, async () => {
    const { outcome } = await queue.schedules.declare(SET, wanted, { revision: 1 });
    sim.note({ outdated: outcome });
  });
}

/** Outdated declarations that were not refused, though no failover has undone the later one. */
export function judgeSets({ history }: Sim): string[] {
  if (history.some(({ event }) => event["fault"] === "failover")) return [];
  const accepted = history.filter(({ event }) => event["outdated"] === "declared");
  return accepted.map(({ at }) => `accepted: an outdated set at ${at} ms`);
}

export function optionsOf(name: string, every: number): ScheduleOptions<string> {
  return {
    every,
    payload: name === "code" ? () => name : name,
    misfire: name === "once" || name === "waits" ? "once" : "all",
    overlap: name === "single" ? "skip" : name === "waits" ? "wait" : "allow",
  };
}

export async function untilDone(sim: Sim, act: () => Promise<unknown>): Promise<void> {
  for (;;) {
    const isDone = await act().then(
      () => true,
      () => false,
    );
    if (isDone) return;
    await sim.sleep(200);
  }
}
