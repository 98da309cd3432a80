import type { ReliableQueue } from "../../src/index.ts";
import type { Clerk } from "./clerk.ts";
import { contentsOf } from "./contents.ts";
import { judge, Ledger, type Promises } from "./ledger.ts";
import type { ProcessOptions, Sim, SimProcess } from "./sim.ts";

/** Makes a process take messages: it opens the queue, and starts actors or subscribes. */
export type Job = (process: SimProcess) => void;

/** The processes of a world that share one queue, and the end of their work. */
export class Shop {
  readonly sim: Sim;
  readonly ledger: Ledger;
  /** Whether the work is coming to its end: handlers succeed from now on, and nobody closes any more. */
  isEnding = false;
  readonly #closed = new Set<SimProcess>();
  /** How those that take are replaced. */
  readonly #successions = new Map<SimProcess, () => void>();
  #isClosed = false;
  readonly #processes: SimProcess[] = [];
  readonly #options: ProcessOptions;

  constructor(sim: Sim, queue = "orders", options: ProcessOptions = {}) {
    this.sim = sim;
    this.ledger = new Ledger(sim, queue);
    this.#options = options;
  }

  get queue(): string {
    return this.ledger.queue;
  }

  /** How many milliseconds it takes until a message falls due that somebody knows of; undefined if none will. */
  get untilNextDue(): number | undefined {
    const { now } = this.ledger;
    const deadlines = this.sim.history.map(
      ({ event }) => (event["answer"] as { deadline?: number } | null | undefined)?.deadline ?? 0,
    );
    const next = Math.min(...deadlines.filter((deadline) => deadline > now));
    return next === Infinity ? undefined : next - now;
  }

  /** Lasts as long as the patience of a taker: often until a message is on its way. */
  async patience(): Promise<void> {
    const { sim, untilNextDue } = this;
    const isCareless = untilNextDue === undefined || sim.random.chance(0.3);
    const some = sim.random.magnitude(0.05, isCareless ? 2000 : 30);
    if (!isCareless && sim.random.chance(0.5)) {
      await sim.sleep(Math.min(untilNextDue, 5000));
      await this.fewEvents();
    } else await sim.sleep(isCareless ? some : Math.min(untilNextDue, 5000) + some);
  }

  /** Lasts for a few events, whatever time they take: what is on its way meanwhile may arrive first, or may not. */
  async fewEvents(): Promise<void> {
    const { sim } = this;
    for (let i = sim.random.int(8); i >= 0; i--) await sim.sleep(0);
  }

  /** Starts a process. */
  hire(name: string, options: ProcessOptions = {}): SimProcess {
    const process = this.sim.newProcess(name, { ...this.#options, ...options });
    this.ledger.watch(process);
    this.#processes.push(process);
    return process;
  }

  /** Starts a process that consumes, and a successor whenever it crashes. Returns how to close the last one for good. */
  staff(name: string, job: Job, options: ProcessOptions = {}): () => Promise<void> {
    let isDismissed = false;
    let current: SimProcess;
    const begin = (generation: number) => {
      const process = this.hire(`${name}-${generation}`, options);
      current = process;
      job(process);
      this.#successions.set(process, () => {
        void this.sim.go(`${name} is replaced`, undefined, async () => {
          if (!this.isEnding) await this.sim.sleep(this.sim.random.magnitude(10, 5000));
          if (!this.#isClosed && !isDismissed) begin(generation + 1);
        });
      });
      void process.crashed.then(() => this.#replace(process));
    };
    begin(1);
    return async () => {
      isDismissed = true;
      if (current.isAlive) await this.close(current);
    };
  }

  /** Those that were started by {@link staff}, and have neither crashed nor closed. */
  get staffed(): readonly SimProcess[] {
    return [...this.#successions.keys()].filter(({ isAlive }) => isAlive);
  }

  /** Closes a client, as a process does that is told to end. */
  async close(process: SimProcess): Promise<void> {
    this.#closed.add(process);
    await this.sim.go(`${process.name} closes`, process, async () => {
      await this.ledger.call(process, "close", {}, () => process.line.close());
    });
    this.#replace(process);
  }

  /**
   * Ends the faults, and waits until Redis holds no message any more. If one is still there when everybody has had the
   * time to take it, `takeLast` has to. `settle` comes before the wait.
   */
  async end(
    takeLast: (process: SimProcess) => Promise<void>,
    settle: () => Promise<void> = () => Promise.resolve(),
  ): Promise<void> {
    const { sim } = this;
    this.isEnding = true;
    sim.calm();
    this.ledger.calm();
    await this.#setClocks();
    await settle();
    if (!(await this.isEmptyWithin(PATIENCE))) {
      const last = this.hire("last", { mayCrash: false });
      await sim.go("last takes", last, () => takeLast(last));
    }
  }

  /** Notes all dead letters, and then lets them retry, or drops them. Returns how many there were. */
  async seeDeadLetters(
    process: SimProcess,
    queue: ReliableQueue<number>,
    then: "redrive" | "clear",
  ): Promise<number> {
    const { ledger } = this;
    let count = 0;
    await this.sim.go(`${process.name} looks at the dead letters`, process, async () => {
      await ledger.call(process, "deadLetters", {}, async () => {
        for await (const { payload, group, attempt, reason } of queue.deadLetters) {
          ledger.note(process, { dead: payload, group, attempt, reason });
          count++;
        }
      });
      if (then === "redrive")
        await ledger.call(process, then, {}, () => queue.deadLetters.redrive("all"));
      else await ledger.call(process, then, {}, () => queue.deadLetters.clear());
    });
    return count;
  }

  /**
   * Closes all clients that are still open. What they give back then, because it had been on its way to them, a last
   * process takes by `takeRest`.
   */
  async closeAll(takeRest: (process: SimProcess) => Promise<void>): Promise<void> {
    const { sim } = this;
    this.#isClosed = true;
    await this.#closeOpen();
    const { live } = await sim.outside(() => contentsOf(sim.controls));
    if (live === 0) return;
    const rest = this.hire("rest", { mayCrash: false });
    await sim.go("rest takes", rest, () => takeRest(rest));
    await this.#closeOpen();
  }

  #replace(process: SimProcess): void {
    this.#successions.get(process)?.();
    this.#successions.delete(process);
  }

  async #closeOpen(): Promise<void> {
    const open = this.#processes.filter((one) => one.isAlive && !this.#closed.has(one));
    await Promise.all(open.map((process) => this.close(process)));
  }

  /** Waits until no message is left, for so long after the last one was due. Returns whether none is. */
  async isEmptyWithin(patience: number): Promise<boolean> {
    const { sim, ledger } = this;
    let since = sim.elapsed;
    for (;;) {
      const { live, lastDueAt } = await sim.outside(() => contentsOf(sim.controls));
      if (live === 0) return true;
      if (lastDueAt > ledger.now) since = sim.elapsed;
      if (sim.elapsed - since > patience) return false;
      await sim.sleep(250);
    }
  }

  /** Sets clocks that fell back to the latest that they had shown: nobody wants to wait for a deadline that went far away. */
  async #setClocks(): Promise<void> {
    const { sim } = this;
    for (const server of sim.controls.keys()) {
      const steps = sim.history.filter(
        ({ event }) => event["fault"] === "clock-step" && (event["server"] ?? 0) === server,
      );
      let offset = 0;
      let most = 0;
      for (const { event } of steps) {
        offset += event["duration"] as number;
        most = Math.max(most, offset);
      }
      if (offset === most) continue;
      // Not within the same lease as the last step: nobody promises anything for that.
      await sim.sleep(LEASE);
      sim.fault({ kind: "clock-step", server, duration: most - offset });
    }
    await sim.sleep(1);
  }
}

/** What a shop has left in Redis, and what the ledger says. */
export async function audit(sim: Sim, promises: Promises): Promise<string[]> {
  const { live, left } = await contentsOf(sim.controls);
  return [
    ...judge(sim.history, promises),
    ...(live > 0 ? [`left over: ${live} messages`] : []),
    ...left.map((key) => `left over: ${key}`),
  ];
}

/** Now and then cuts a connection at a command or script that moves messages: it has to be carried out once. */
export function cutSometimes(sim: Sim, commands: readonly string[]): void {
  const { random } = sim;
  if (random.chance(0.4)) sim.fault({ kind: "cut", command: random.pick(commands) });
}

/** The producers of a world: each is a process, and works by itself. */
export async function produce(
  shop: Shop,
  clerks: readonly Clerk[],
  work: (clerk: Clerk) => Promise<void>,
): Promise<void> {
  await Promise.all(
    clerks.map((clerk) =>
      shop.sim.go(`${clerk.process.name} works`, clerk.process, () => work(clerk)),
    ),
  );
}

/** Milliseconds that a lease on a partition lasts. */
const LEASE = 2500;

/** Longer than a sweep: what no wake-up announced is found by then. */
const PATIENCE = 45_000;
