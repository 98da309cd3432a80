import { RedisError, ScheduleError } from "../errors.ts";
import { restorePlanning, schedulesDue, type DueSchedule } from "../lua/schedules/schedules-due.ts";
import { heldFact, REFUSAL } from "../lua/guarded.ts";
import type { Queue } from "../queue/queue.ts";
import { Task } from "../run/task.ts";
import { queueTime } from "../time/runtime.ts";
import { advance, type Plan } from "./plan.ts";
import { recipeOf, type Codes } from "./recipes.ts";
import { parseRecord } from "./record.ts";
import type { NamedRecord, StoredSchedules } from "./stored-schedules.ts";

/** What a planner has to know of the rest of its client. */
export interface Scheduling {
  readonly codes: Codes;
  /** If a schedule belongs to another partition, migrates it there; undefined if it belongs here. */
  readonly bringHome?: ((name: string) => Promise<void> | undefined) | undefined;
}

/** What came of planning a schedule. */
interface Planning {
  /** `left` to others, or `gone` from what is to be planned: others have planned it, or it was removed. */
  readonly outcome: "planned" | "left" | "gone";
  /** The server's time (epoch ms). */
  readonly serverTime?: number;
  /** Of a planned one: when it is to be planned again. */
  readonly planAt?: number;
}

/**
 * Plans the schedules of one queue: puts the messages of their next ticks. Every process with a transfer task does;
 * none is elected. A script puts the messages that follow from the record that the planner has read, or does nothing.
 *
 * Redis holds when each schedule is to be planned next, half-way through what is planned of it. The planner looks then,
 * and when a sweep tells that the queue has schedules (`look`): so it learns of new ones. Without any it sends nothing.
 *
 * - **active**: it was the first to plan lately. It looks at once.
 * - **standing by**: another process was. It looks 50 to 250 ms later, and mostly finds everything done.
 *
 * While the queue is paused nothing is planned. Ticks that fall due during the pause are late, as when no process runs.
 */
export class Planner {
  readonly #queue: Queue;
  readonly #stored: StoredSchedules;
  readonly #scheduling: Scheduling;
  readonly #task: Task;
  #isPaused = false;
  #isStandingBy = true;
  /** Whether it looks because it was told to, rather than by its timer. */
  #isCalled = false;
  /**
   * What the sweeps miss: one of the two keys may be lost, or only the revisions of sets are there, without any schedule.
   */
  #lacks: "nothing" | "a key" | "schedules" = "nothing";
  /** Schedules that this process cannot plan, although it should: reported once. */
  readonly #failing = new Set<string>();

  constructor(queue: Queue, stored: StoredSchedules, scheduling: Scheduling) {
    this.#queue = queue;
    this.#stored = stored;
    this.#scheduling = scheduling;
    const cannot = `cannot plan the schedules of queue "${queue.name}"`;
    this.#task = new Task(() => this.#act(), cannot, queue.server.troubles.work());
  }

  /** A sweep has told whether the queue is paused, and how many it has of the two keys of its schedules. */
  note(isPaused: boolean, keyCount: number): void {
    this.#isPaused = isPaused;
    if (keyCount !== 1) this.#lacks = "nothing";
    else if (this.#lacks === "nothing") this.#lacks = "a key";
    if (isPaused || keyCount === 0 || this.#lacks === "schedules") return;
    this.#isCalled = true;
    this.#task.wake();
  }

  /** Plans no more; resolves when nothing is under way. */
  async close(): Promise<void> {
    await this.#task.close();
  }

  /** Returns the milliseconds until it looks again. */
  async #act(): Promise<number> {
    const isCalled = this.#isCalled;
    this.#isCalled = false;
    if (this.#isPaused) return Infinity;
    if (isCalled && this.#isStandingBy) return standByDelay();
    try {
      if (this.#lacks === "a key" && !(await this.#restore())) return Infinity;
      const next = await this.#planAll(isCalled);
      return next + (this.#isStandingBy ? standByDelay() : 0);
    } catch (error) {
      // This process knows the newer fact by now.
      if (isRefusedAsOld(error)) return REFUSED_PAUSE;
      throw error;
    }
  }

  /**
   * Puts back when to plan each schedule, if that key was deleted or evicted: now. Returns whether there is anything to
   * plan.
   */
  async #restore(): Promise<boolean> {
    const { background } = this.#queue.server.connections;
    const fact = this.#queue.knownFact();
    const count = await this.#queue.run(background, restorePlanning, {}, [], fact);
    this.#lacks = count > 0 ? "nothing" : "schedules";
    return count > 0;
  }

  /** Plans everything that is to be planned by now; returns the milliseconds until something else is. */
  async #planAll(isCalled: boolean): Promise<number> {
    let hasPlanned = false;
    /** When the first of those is to be planned again that were to be planned by now. */
    let again = Infinity;
    /** How many are to be planned that this process has to leave to others. */
    let left = 0;
    for (;;) {
      const fact = this.#queue.knownFact();
      const { background } = this.#queue.server.connections;
      const args = { offset: left, limit: PAGE };
      const sentAt = queueTime.now();
      const reply = await this.#queue.run(background, schedulesDue, args, [], fact);
      this.#queue.clock.observe(reply.serverTime, sentAt);
      let now = reply.serverTime;
      for (const due of reply.due) {
        if (this.#task.isStopped) return Infinity;
        const planning = await this.#plan(due, now, fact);
        ({ serverTime: now = now } = planning);
        if (planning.outcome === "left") left++;
        else again = Math.min(again, planning.planAt ?? now);
        hasPlanned ||= planning.planAt !== undefined;
      }
      if (reply.due.length === PAGE) continue;
      if (hasPlanned || !isCalled) this.#isStandingBy = !hasPlanned;
      return Math.max(0, Math.min(again, reply.next ?? Infinity) - now);
    }
  }

  /** Plans one schedule, unless others have to, or have done so by now. */
  async #plan(
    { name, record: bytes }: DueSchedule,
    now: number,
    fact: string | undefined,
  ): Promise<Planning> {
    if (bytes === undefined) {
      await this.#stored.forget(name, fact);
      return { outcome: "gone" };
    }
    const migrating = this.#scheduling.bringHome?.(name);
    if (migrating !== undefined) {
      await migrating;
      return { outcome: "gone" };
    }
    const record = parseRecord(bytes);
    if (record === undefined) return { outcome: "left" };
    const plan = await this.#decide({ name, record }, now);
    if (plan === undefined) return { outcome: "left" };
    const { isDone, serverTime } = await this.#stored.plan({ name, record }, plan, now, fact);
    if (!isDone) return { outcome: "gone", serverTime };
    return { outcome: "planned", serverTime, planAt: plan.record.planAt };
  }

  /** Computes the next ticks; undefined if this process cannot. */
  async #decide({ name, record }: NamedRecord, now: number): Promise<Plan | undefined> {
    try {
      const recipe = await recipeOf(name, record, this.#scheduling.codes.get(name));
      const plan = recipe && advance(record, recipe, now);
      this.#failing.delete(name);
      return plan;
    } catch (error) {
      if (!this.#failing.has(name))
        this.#queue.report(new ScheduleError(this.#queue.name, name, error));
      this.#failing.add(name);
      return undefined;
    }
  }
}

function isRefusedAsOld(error: unknown): boolean {
  const isWrapped = error instanceof RedisError && error.reply === REFUSAL;
  return isWrapped || heldFact(error) !== undefined;
}

/** Milliseconds until a planner that stands by looks: others were first. */
function standByDelay(): number {
  return 50 + Math.random() * 200;
}

/** Schedules that one step reads. */
const PAGE = 20;

/** Milliseconds until the next attempt, after a refusal for an old fact. */
const REFUSED_PAUSE = 100;
