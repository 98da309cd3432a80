import { setTimeout as sleep } from "node:timers/promises";
import type { Child } from "../../scripts/child/child.ts";
import { startChild } from "../helpers/child.ts";
import { eventually } from "../helpers/eventually.ts";
import { now, type History, type Run } from "./history.ts";
import type { Note, Target, Task } from "./task.ts";
import { offeredTick, ticksBetween } from "./ticks.ts";

/** How many processes consume. */
const WORKERS = 2;

/** Numbers between the first messages of two producers. */
const ROOM = 100_000;

const isNote = (message: unknown) => typeof message === "object";

/** A process of the run. */
interface Member {
  readonly name: string;
  readonly child: Child;
  /** Resolves when all its notes are written down. */
  readonly ended: Promise<void>;
}

export interface PartyOptions {
  readonly target: Target;
  readonly program: URL;
  readonly moreDelay: number;
  readonly largeBytes: number;
  /** Milliseconds by which the clocks of the producer and of each worker are wrong. */
  readonly shifts?: readonly number[];
}

/** A producer, two workers, and the history of what they do. */
export class Party {
  readonly history: History;
  readonly #options: PartyOptions;
  readonly #workers: Member[] = [];
  readonly #members: Member[] = [];
  readonly #running = new Map<string, Run>();
  #producer: Member | undefined;
  #spares: Member[] = [];
  #startedProducers = 0;
  /** Since when schedules are declared (epoch ms). */
  #flowsSince = Infinity;
  #loaded = 0;

  private constructor(options: PartyOptions) {
    this.#options = options;
    this.history = {
      queue: options.target.queue,
      offers: new Map(),
      runs: [],
      kills: [],
      stalls: [],
      rollbacks: [],
      epoch: Date.now() - now(),
    };
  }

  /** Resolves when messages flow. */
  static async start(options: PartyOptions): Promise<Party> {
    const party = new Party(options);
    const shifts = options.shifts ?? [];
    party.#spares = Array.from({ length: 1 + WORKERS }, (_, i) => party.#load(shifts[i] ?? 0));
    for (let i = 0; i < WORKERS; i++) party.#workers.push(await party.#join("consume"));
    party.#producer = await party.#join("produce");
    party.#flowsSince = Date.now();
    await party.isFlowing();
    return party;
  }

  /** Resolves when messages have been handled that were offered after this call. */
  async isFlowing(count = 10): Promise<void> {
    const { runs, offers } = this.history;
    const [since, from] = [now(), runs.length];
    const arrived = () =>
      runs.slice(from).filter(({ n, doneAt }) => {
        return doneAt !== undefined && (offers.get(n)?.sentAt ?? 0) > since;
      }).length;
    await eventually(() => arrived() >= count, { within: 60_000, what: "messages flow" });
  }

  /** Loads a process, so that it can take the place of another one at once. */
  prepare(): void {
    if (this.#spares.length === 0) this.#spares.push(this.#load(0));
  }

  /** Kills a worker (SIGKILL) while it works, and replaces it. */
  async killWorker(): Promise<void> {
    const at = Math.floor(Math.random() * this.#workers.length);
    const [victim] = this.#workers.splice(at, 1) as [Member];
    const isBusy = () => [...this.#running.values()].some(({ by }) => by === victim.name);
    await eventually(isBusy, { within: 10_000, what: "the worker works" }).catch(() => {});
    const killing = victim.child.kill();
    this.history.kills.push({ by: victim.name, at: now() });
    await killing;
    await victim.ended;
    this.#workers.push(await this.#join("consume"));
  }

  /** Kills the producer (SIGKILL), and replaces it. */
  async killProducer(): Promise<void> {
    await this.#producer?.child.kill();
    this.#producer = await this.#join("produce");
  }

  /** Stops a worker (SIGSTOP) for so many milliseconds. */
  async stallWorker(duration: number): Promise<void> {
    const [{ name, child }] = this.#workers.splice(0, 1) as [Member];
    const from = now();
    process.kill(child.pid, "SIGSTOP");
    await sleep(duration);
    process.kill(child.pid, "SIGCONT");
    this.history.stalls.push({ by: name, from, to: now() });
    this.#workers.push(...this.#members.filter((one) => one.name === name));
  }

  /** Stops offering. Resolves when every offer is settled, and when every tick of a schedule until now has come. */
  async stopOffering(): Promise<void> {
    await this.#expectTicks();
    await this.#producer?.child.send("stop");
    await this.#producer?.child.next((word) => word === "stopped", 90_000);
  }

  /** A tick that is not due yet is withdrawn with its schedule, so those that have to come are waited for. */
  async #expectTicks(): Promise<void> {
    const { target } = this.#options;
    if (target.queue !== "scheduled") return;
    const { offers, runs, epoch } = this.history;
    const ticks = ticksBetween(target, this.#flowsSince, Date.now());
    for (const n of ticks) if (!offers.has(n)) offers.set(n, offeredTick(target, n, epoch));
    const areDone = () => {
      const done = new Set(runs.filter(({ doneAt }) => doneAt !== undefined).map(({ n }) => n));
      return ticks.every((n) => done.has(n));
    };
    // What has not come by then is lost.
    await eventually(areDone, { within: 30_000 }).catch(() => {});
  }

  /** Whether a living worker runs a handler. */
  get isBusy(): boolean {
    const living = new Set(this.#workers.map(({ name }) => name));
    return [...this.#running.values()].some(({ by }) => living.has(by));
  }

  /** Ends all processes. */
  async end(): Promise<void> {
    await Promise.all(
      [...this.#members, ...this.#spares].map(async ({ child, ended }) => {
        await child.kill();
        await ended;
      }),
    );
  }

  #load(shift: number): Member {
    const name = `process ${this.#loaded++}`;
    const child = startChild(this.#options.program, { env: { CLOCK_SHIFT: String(shift) } });
    const ended = this.#listen(name, child);
    return { name, child, ended };
  }

  async #join(role: Task["role"]): Promise<Member> {
    const member = this.#spares.shift() ?? this.#load(0);
    this.#members.push(member);
    const { target, moreDelay, largeBytes } = this.#options;
    const isProducer = role === "produce";
    const task: Task = {
      ...target,
      role,
      mark: target.queue === "plain" ? "p" : "r",
      firstOwn: target.first + (isProducer ? this.#startedProducers++ * ROOM : 0),
      moreDelay,
      largeBytes,
    };
    await member.child.next((word) => word === "loaded", 60_000);
    await member.child.send({ ...task });
    await member.child.next((word) => word === "begun", 60_000);
    return member;
  }

  async #listen(by: string, child: Child): Promise<void> {
    try {
      for (;;) this.#write(by, (await child.next(isNote, Infinity)) as Note);
    } catch {
      // The process has ended, and all its notes have arrived.
    }
  }

  #write(by: string, note: Note): void {
    const { offers, runs, stalls } = this.history;
    if (note.what === "stall") {
      stalls.push({ by, from: note.from, to: note.to });
      return;
    }
    const offer = offers.get(note.n);
    switch (note.what) {
      case "offer":
        offers.set(note.n, note);
        return;
      case "acknowledged":
        if (offer) Object.assign(offer, { acknowledgedAt: note.at, deadline: note.deadline });
        return;
      case "rejected":
        if (offer) offer.rejected = note.effect;
        return;
      case "forbid":
        if (offer) offer.forbidSentAt = note.at;
        return;
      case "forbidden":
        if (offer) offer.forbiddenAt = note.at;
        return;
      case "start": {
        const { n, attempt, fence, startedAt } = note;
        const { target } = this.#options;
        if (target.queue === "scheduled" && offer === undefined) {
          offers.set(n, offeredTick(target, n, this.history.epoch));
        }
        const run: Run = { n, by, attempt, fence, startedAt };
        runs.push(run);
        this.#running.set(`${by} ${n} ${startedAt}`, run);
        return;
      }
      case "done": {
        const id = `${by} ${note.n} ${note.startedAt}`;
        const run = this.#running.get(id);
        if (run !== undefined) run.doneAt = note.at;
        this.#running.delete(id);
      }
    }
  }
}
