import { randomUUID } from "node:crypto";
import type { Offering, OfferResult } from "../queue/offering.ts";
import type { PlainReach } from "../partitions/reach.ts";
import type { Deed } from "../queue/activity.ts";
import { callOf, checkCall, type CallOptions } from "../queue/call.ts";
import { checkInstant, checkOptions, checkSignal, checkWhole } from "../queue/checks.ts";
import { hashOf } from "../queue/message/bucket.ts";
import type { Payloads } from "../queue/payloads.ts";
import { laneOf, occurrenceKey } from "../schedules/occurrences.ts";
import type { ScheduleCalendar } from "../schedules/calendar.ts";
import {
  declare,
  digestOf,
  isSame,
  pause,
  planAgain,
  resume,
  type Declaration,
  type Recipe,
} from "../schedules/plan.ts";
import { calendarOf, recipeOf } from "../schedules/recipes.ts";
import type { ScheduleRecord, StoredRecord } from "../schedules/record.ts";
import type { Rule } from "../schedules/rule.ts";
import type {
  Decision,
  RecordInPage,
  NotedSet,
  SetContent,
  SetRevision,
} from "../schedules/stored-schedules.ts";
import { setImmediate } from "../time/runtime.ts";
import {
  checkedSchedule,
  checkScheduleName,
  checkTicks,
  dated,
  type BackfillOptions,
  type CheckedSchedule,
  type DeclareOptions,
  type ScheduleOptions,
} from "./schedule-options.ts";
import { Delay } from "../time/delay.ts";

/** The result of declaring a schedule. */
export interface ScheduleResult {
  /**
   * `"unchanged"` if it was declared the same before, `"outdated"` if a higher `version` is stored: in both cases nothing was
   * written.
   */
  readonly outcome: "added" | "changed" | "unchanged" | "outdated";
  /** The next ticks whose messages are placed (epoch ms): at least two, if the schedule has that many left. */
  readonly next: readonly number[];
}

/** The result of declaring a set of schedules. */
export interface DeclareResult {
  /**
   * `"outdated"` if a later revision was declared: nothing was done, or if that happened during the call, nothing more.
   * `"conflict"` if this revision was declared with other schedules: nothing was done; declare them with a higher revision.
   */
  readonly outcome: "declared" | "outdated" | "conflict";
  /** The names of new schedules. */
  readonly added: readonly string[];
  /** The names of schedules that were declared differently before. */
  readonly changed: readonly string[];
  /** The names of schedules for which nothing was written. */
  readonly unchanged: readonly string[];
  /** The names of schedules of the set that were no longer declared. */
  readonly removed: readonly string[];
}

/** A schedule, as Redis has it. All instants are epoch milliseconds. */
export interface Schedule extends Rule {
  readonly name: string;
  /**
   * `"code"` if its payload is a function or its ticks come from an object: only a process that has declared it can plan it.
   * `"nothing"` if every process with a transfer task can plan it.
   */
  readonly needs: "code" | "nothing";
  readonly version: number;
  /** The set that it was declared in. */
  readonly set: string | undefined;
  readonly isPaused: boolean;
  /** How many ticks were placed, except those withdrawn before they were due. */
  readonly count: number;
  /**
   * How many late ticks were skipped because of `misfire`. Some were never placed: of these, at most 100 count for each outage.
   * Others were dropped when they were due to move: this part restarts at 0 when the schedule moves to another partition.
   */
  readonly missed: number;
  /**
   * How many runs `overlap: "skip"` dropped because another one was ready or in flight. Restarts at 0 when the schedule moves to
   * another partition.
   */
  readonly droppedOverlap: number;
  /** Ticks up to this instant are placed; later ones will be. */
  readonly plannedUntil: number;
  /**
   * When it is planned next; Infinity if it is paused or over. An instant long past means that no process can plan it. 0 means that
   * Redis has lost the instant, because the key `delayline_planning` was deleted or evicted; a process that moves messages restores
   * it within a minute.
   */
  readonly planAt: number;
  /** The last tick that was due at the latest planning. */
  readonly lastAt: number | undefined;
  /**
   * The next ticks whose messages are placed and still waiting: neither cancelled nor cleared with the queue. Later ticks are not
   * affected, and appear here once they are placed.
   */
  readonly next: readonly number[];
  /** The time zone data of the process that planned it last, such as `2026a`. */
  readonly tzdata: string | undefined;
}

/** The parts of their queue that schedules use. */
type SchedulesReach = Pick<PlainReach, "offers" | "schedules" | "activity">;

/**
 * The schedules of a queue: messages that recur.
 *
 * The message of each tick is an ordinary delayed one with the key `schedule:<name>@<tick>`, placed 30 s or two ticks ahead. It can
 * be found, cancelled and counted, and every process that moves messages moves it. One step places it and records that, so each
 * tick comes once, whichever processes plan, and however often they die. Every process with a transfer task plans.
 *
 * Declare schedules at every start of every process: declaring one again changes nothing.
 */
export class Schedules<T = unknown> {
  readonly #reach: SchedulesReach;
  readonly #payloads: Payloads<T>;

  /** @internal Use `queue.schedules`. */
  constructor(reach: SchedulesReach, payloads: Payloads<T>) {
    this.#reach = reach;
    this.#payloads = payloads;
  }

  /**
   * Declares a schedule of this name: 1 to 100 bytes.
   *
   * If it was declared differently before, its old messages that are not due yet are withdrawn, and ticks count from now on. A
   * paused schedule stays paused.
   *
   * @throws {TypeError | RangeError} if the name or an option is not legal, no tick ever comes, or croner is not installed;
   * nothing was stored.
   * @throws {EncodeError | PayloadTooLargeError} if the payload cannot be encoded, or is too large.
   */
  async upsert(
    name: string,
    options: ScheduleOptions<T>,
    callOptions?: CallOptions,
  ): Promise<ScheduleResult> {
    checkScheduleName(name);
    const call = checkCall(callOptions);
    this.#reach.offers.checkOpen();
    return await this.#declare(name, await this.#prepared(name, options), call ?? {});
  }

  /**
   * Declares all schedules of a set: adds new ones, changes those that are declared differently, and removes those that are no
   * longer declared. Unchanged schedules are not written.
   *
   * Call it at the start of every process with the `revision` of the release. An older revision returns `"outdated"` and does
   * nothing, so a rolling deploy flips nothing, and a removed schedule does not come back. The current revision with other
   * schedules returns `"conflict"` and does nothing either. Functions and `startAt` are not compared.
   *
   * All schedules are checked before anything is written. A declaration that failed midway can be repeated.
   *
   * @throws {TypeError | RangeError} if a name, an option or the revision is not legal, or a schedule belongs to another
   * set; nothing was written.
   */
  async declare(
    set: string,
    schedules: Readonly<Record<string, ScheduleOptions<T>>>,
    options: DeclareOptions,
  ): Promise<DeclareResult> {
    checkScheduleName(set, "set");
    checkSchedules(schedules);
    checkOptions("declare option", options, ["revision", "dryRun", "signal"]);
    const { revision, dryRun = false, signal } = options;
    checkWhole("revision", revision, 0, Number.MAX_SAFE_INTEGER);
    if (typeof dryRun !== "boolean") {
      throw new TypeError(`dryRun must be a boolean, got ${typeof dryRun}`);
    }
    checkSignal(signal);
    const call = callOf(options) ?? {};
    this.#reach.offers.checkOpen();
    const now = await this.#reach.schedules.now(call);
    const before = await this.#recordsOf(call);
    const wanted = new Map<string, Prepared>();
    for (const [name, one] of Object.entries(schedules)) {
      checkScheduleName(name);
      checkSet(name, before.get(name)?.record, set);
      const prepared = await this.#prepared(name, one, set);
      // What is stored was checked. To check a thousand takes seconds.
      const { declaration, calendar } = prepared;
      if (outcomeOf(name, before.get(name)?.record, prepared, declaration, now) !== "unchanged") {
        checkTicks(name, declaration.rule, calendar, now);
      }
      wanted.set(name, prepared);
    }
    const result: Changes = { added: [], changed: [], unchanged: [], removed: [] };
    const declared = new Map(Array.from(wanted, ([name, one]) => [name, one.declaration]));
    const content = { set, revision, digest: digestOf(declared) };
    const { latest, isConflict } = dryRun
      ? await this.#foresee(content, call)
      : await this.#reach.schedules.raise(content, call);
    if (latest > revision) return { outcome: "outdated", ...result };
    if (isConflict) return { outcome: "conflict", ...result };

    // Only now: an older revision adds nothing any more.
    const present = await this.#recordsOf(call);
    let isOutdated = false;
    const inSet = { ...call, set: { set, revision } };
    await inTurns(wanted, async ([name, prepared]) => {
      const { record, isPlanned = true } = present.get(name) ?? {};
      let outcome = outcomeOf(name, record, prepared, prepared.declaration, now);
      if (outcome === "unchanged") this.#keep(name, prepared);
      // One with a higher version is left as it is.
      if ((outcome === "added" || outcome === "changed" || !isPlanned) && !dryRun) {
        ({ outcome } = await this.#declare(name, prepared, inSet));
        isOutdated ||= outcome === "outdated";
      }
      result[outcome === "outdated" ? "unchanged" : outcome].push(name);
    });
    const gone = [...present].filter(
      ([name, { record }]) => record.set === set && !wanted.has(name),
    );
    await inTurns(gone, async ([name]) => {
      const decide = removing(set);
      const outcome = dryRun ? "changed" : await this.#reach.schedules.change(name, decide, inSet);
      if (outcome === "changed") {
        result.removed.push(name);
        this.#reach.schedules.codes.delete(name);
      }
      isOutdated ||= outcome === "outdated";
    });
    const { added, changed, removed } = result;
    const count = added.length + changed.length + removed.length;
    const detail = `revision ${revision} of ${set}`;
    if (!dryRun) await this.#reach.activity.note({ what: "declared", count, detail });
    return { outcome: isOutdated ? "outdated" : "declared", ...result };
  }

  /** Returns the schedule of this name; undefined if there is none. */
  async get(name: string, options?: CallOptions): Promise<Schedule | undefined> {
    checkScheduleName(name);
    const call = checkCall(options);
    const { record, serverTime, ...others } = await this.#reach.schedules.get(name, call);
    if (record === undefined) return undefined;
    const ahead = aheadOf(name, record, serverTime);
    const present = await this.#present(name, ahead, call);
    return shown({ ...others, name, record }, ahead, present, serverTime);
  }

  /** Iterates over all schedules, each once, in no particular order. Not a snapshot. */
  async *list(options?: CallOptions): AsyncGenerator<Schedule, void, void> {
    const call = checkCall(options);
    const now = await this.#reach.schedules.now(call);
    const ticksOf = ({ name, record }: Shown) => aheadOf(name, record, now);
    const keysOf = (one: Shown) => ticksOf(one).map(({ key }) => key);
    for await (const { page, present } of this.#reach.schedules.pages(keysOf, call)) {
      for (const one of page) yield shown(one, ticksOf(one), present, now);
    }
  }

  /** Returns the latest revision in which a set was declared; undefined if it never was. */
  async revisionOf(set: string, options?: CallOptions): Promise<number | undefined> {
    checkScheduleName(set, "set");
    return (await this.#reach.schedules.revisions(checkCall(options))).get(set)?.revision;
  }

  /**
   * Pauses a schedule until it is resumed: withdraws its messages, including those that wait for other runs. A message that is
   * already ready is delivered. Returns false if there is no such schedule.
   */
  async pause(name: string, options?: CallOptions): Promise<boolean> {
    return await this.#change(name, "schedule paused", options, (record, now) =>
      record.isPaused ? undefined : pause(record, now),
    );
  }

  /** Ends the pause of a schedule. The ticks of the pause do not come. Returns false if there is no such schedule. */
  async resume(name: string, options?: CallOptions): Promise<boolean> {
    return await this.#change(name, "schedule resumed", options, (record, now) =>
      record.isPaused ? resume(record, now) : undefined,
    );
  }

  /**
   * Removes a schedule and its messages. A message that is already ready is delivered. Returns false if there is no
   * such schedule.
   */
  async remove(name: string, options?: CallOptions): Promise<boolean> {
    const code = this.#reach.schedules.codes.get(name);
    const wasThere = await this.#change(name, "schedule removed", options, () => "remove");
    // Unless it has been declared again by now.
    if (this.#reach.schedules.codes.get(name) === code) this.#reach.schedules.codes.delete(name);
    return wasThere;
  }

  /**
   * Offers a message of the schedule now, in addition to its ticks, even while it is paused or another run is under
   * way; with `overlap: "wait"` it waits for that run. Returns undefined if there is no such schedule.
   *
   * @throws {TypeError} if a function makes its payload, and this process has not declared it.
   */
  async trigger(name: string, options?: CallOptions): Promise<OfferResult | undefined> {
    checkScheduleName(name);
    const call = checkCall(options);
    const { record, serverTime } = await this.#reach.schedules.get(name, call);
    if (record === undefined) return undefined;
    const tick = Math.floor(serverTime);
    const code = this.#reach.schedules.codes.get(name);
    const made = code?.version === record.version ? code.payload?.(tick) : undefined;
    const payload = record.payload ?? made;
    if (payload === undefined) throw lacking(name);
    const offering = offeringOf(name, record, { tick, payload, behind: `!${randomUUID()}` });
    return await this.#reach.offers.offer(offering, call);
  }

  /**
   * Offers the messages of the ticks in a span once more, due now, the earliest first. Returns the ticks of the span. It offers
   * none for ticks that are not due yet: they come by themselves. Called again while the messages are still delayed, it offers
   * nothing twice; later it does.
   *
   * @throws {TypeError} if there is no such schedule, or its ticks or payload come from code that this process has not declared.
   * @throws {RangeError} if the span has more than 100 ticks and there is no `limit`; nothing was offered.
   */
  async backfill(name: string, range: BackfillOptions): Promise<number[]> {
    checkScheduleName(name);
    checkOptions("backfill option", range, ["from", "to", "limit", "dryRun", "signal"]);
    const from = checkInstant("from", range.from);
    const to = checkInstant("to", range.to);
    const { limit = MOST_UNASKED + 1, dryRun = false } = range;
    if (to <= from)
      throw new RangeError(`to must be after from, got ${dated(to)} and ${dated(from)}`);
    checkWhole("limit", limit, 1, 10_000);
    if (typeof dryRun !== "boolean") {
      throw new TypeError(`dryRun must be a boolean, got ${typeof dryRun}`);
    }
    checkSignal(range.signal);
    const call = callOf(range);
    const { record, serverTime } = await this.#reach.schedules.get(name, call);
    if (record === undefined) {
      throw new TypeError(`backfill needs a schedule, got ${JSON.stringify(name)}, which is none`);
    }
    const recipe = await recipeOf(name, record, this.#reach.schedules.codes.get(name));
    if (recipe === undefined) throw lacking(name);
    const ticks: number[] = [];
    let due = 0;
    for (let tick = recipe.ticks.next(from - 1); tick !== undefined && tick < to;) {
      const following = recipe.ticks.next(tick);
      const isDue = due === ticks.length && recipe.ticks.deadlineOf(tick, following) <= serverTime;
      if (isDue) due++;
      if (ticks.push(tick) === limit) break;
      // A thousand of cron take 200 ms.
      if (ticks.length % 50 === 0) await new Promise<void>((resolve) => setImmediate(resolve));
      tick = following;
    }
    if (range.limit === undefined && ticks.length > MOST_UNASKED) {
      throw new RangeError(
        `backfill of more than ${MOST_UNASKED} ticks needs a limit, got the span from ${from} to ${to}`,
      );
    }
    if (dryRun) return ticks;
    await this.#reach.offers.offerMany(
      ticks.slice(0, due).map((tick) => {
        const payload = recipe.payloadOf(tick);
        return offeringOf(name, record, { tick, payload, behind: "!backfill" });
      }),
      call,
    );
    return ticks;
  }

  /** The keys of the planned ticks whose message is delayed or retrying. */
  async #present(name: string, ahead: readonly Ahead[], call?: CallOptions): Promise<Set<string>> {
    if (ahead.length === 0) return new Set();
    return await this.#reach.schedules.present(
      name,
      ahead.map(({ key }) => key),
      call,
    );
  }

  async #recordsOf(call: CallOptions): Promise<Map<string, RecordInPage>> {
    const records = new Map<string, RecordInPage>();
    for await (const one of this.#reach.schedules.all(call)) records.set(one.name, one);
    return records;
  }

  /** Returns what recording a revision of a set would return. */
  async #foresee({ set, revision, digest }: SetContent, call: CallOptions): Promise<NotedSet> {
    const noted = (await this.#reach.schedules.revisions(call)).get(set);
    const latest = noted?.revision ?? revision;
    return {
      latest,
      isConflict: latest === revision && noted !== undefined && noted.digest !== digest,
    };
  }

  /** Keeps what Redis cannot hold of a declaration, so that this process can plan it. */
  #keep(name: string, { declaration, code }: Prepared): void {
    if (declaration.payload === undefined || declaration.hasCalendar)
      this.#reach.schedules.codes.set(name, code);
    else this.#reach.schedules.codes.delete(name);
  }

  /** Checks a declaration (of a set, if one is named), and loads what planning it needs. */
  async #prepared(name: string, options: ScheduleOptions<T>, set?: string): Promise<Prepared> {
    const checked = checkedSchedule(name, options, {
      isReliable: this.#reach.offers.takesHeaders,
      encode: (payload: T) => this.#payloads.encode(payload),
    });
    const { code } = checked;
    const declaration = { ...checked.declaration, set };
    this.#reach.schedules.check(declaration.rule);
    const calendar = code.calendar ?? (await calendarOf(declaration.rule));
    const recipe = await recipeOf(name, declaration, code);
    if (recipe === undefined || calendar === undefined) throw lacking(name);
    return { declaration, code, recipe, calendar };
  }

  /** Stores a declaration; of a set, if it names one. */
  async #declare(
    name: string,
    prepared: Prepared,
    call: CallOptions & { readonly set?: SetRevision },
  ): Promise<ScheduleResult> {
    // Before it is stored: from then on this process plans it.
    this.#keep(name, prepared);
    const { declaration: declared, recipe, calendar } = prepared;
    let result: ScheduleResult = { outcome: "outdated", next: [] };
    const decide = (
      record: StoredRecord | undefined,
      now: number,
      isPlanned: boolean,
    ): Decision => {
      if (call.set !== undefined) checkSet(name, record, call.set.set);
      const declaration = { ...declared, set: declared.set ?? record?.set };
      const outcome = outcomeOf(name, record, prepared, declaration, now);
      if (record !== undefined && (outcome === "unchanged" || outcome === "outdated")) {
        result = { outcome, next: nextOf(record, now) };
        return outcome === "outdated" || isPlanned ? undefined : planAgain(record, now);
      }
      // Those of a set were checked together.
      if (call.set === undefined) checkTicks(name, declared.rule, calendar, now);
      const plan = declare(record, declaration, recipe, now);
      result = { outcome, next: nextOf(plan.record, now) };
      return plan;
    };
    const changed = await this.#reach.schedules.change(name, decide, call);
    if (changed === "outdated") return { outcome: "outdated", next: [] };
    if (changed === "changed" || result.next.length === 0 || call.set !== undefined) return result;
    const ahead = result.next.map((tick) => ({ tick, key: occurrenceKey(name, tick) }));
    return { ...result, next: stillThere(ahead, await this.#present(name, ahead, call)) };
  }

  /** Changes a schedule, and notes that; returns whether there is one. */
  async #change(
    name: string,
    what: Deed["what"],
    options: CallOptions | undefined,
    decide: (record: StoredRecord, now: number) => Decision,
  ): Promise<boolean> {
    checkScheduleName(name);
    let isThere = false;
    const decideFor = (record: StoredRecord | undefined, now: number) => {
      // After a lost reply a removal may find nothing: the first copy has removed it.
      isThere ||= record !== undefined;
      return record && decide(record, now);
    };
    const changed = await this.#reach.schedules.change(name, decideFor, checkCall(options));
    if (changed === "changed") await this.#reach.activity.note({ what, detail: name });
    return isThere;
  }
}

/** The offer of a message beside those that are planned. */
function offeringOf(
  name: string,
  { rule }: ScheduleRecord,
  { tick, payload, behind }: { readonly tick: number; payload: Buffer; behind: string },
): Offering {
  return {
    payload,
    due: { delay: new Delay(0) },
    key: occurrenceKey(name, tick, behind),
    rule: "ignore",
    hash: hashOf(name),
    lane: laneOf(name, rule),
    priority: rule.priority,
    occurrence: { schedule: name, tick, overlap: BESIDE[rule.overlap] },
  };
}

/** What the move does about other runs, of one beside the ticks. */
const BESIDE = { allow: undefined, skip: "note", wait: "wait" } as const;

/** A declaration that was checked, and what it takes to plan it. */
interface Prepared extends CheckedSchedule {
  readonly recipe: Recipe;
  readonly calendar: ScheduleCalendar;
}

type Shown = RecordInPage;

/** A planned tick that is ahead. */
interface Ahead {
  readonly tick: number;
  readonly key: string;
}

type Changes = Record<Exclude<keyof DeclareResult, "outcome">, string[]>;

/** @throws {TypeError} unless it is an object of schedules by name. A Map would count as no schedule at all. */
function checkSchedules(schedules: unknown): void {
  const isObject = typeof schedules === "object" && schedules !== null;
  if (isObject && !(Symbol.iterator in schedules)) return;
  const got = isObject ? "an iterable object" : schedules === null ? "null" : typeof schedules;
  throw new TypeError(`schedules must be an object of schedules by name, got ${got}`);
}

/** Removes a schedule if it belongs to a set. */
function removing(set: string): (record: StoredRecord | undefined) => Decision {
  return (record) => (record?.set === set ? "remove" : undefined);
}

/** @throws {TypeError} if a schedule belongs to another set. */
function checkSet(name: string, record: StoredRecord | undefined, set: string): void {
  if (record?.set === undefined || record.set === set) return;
  throw new TypeError(
    `schedule ${JSON.stringify(name)} must not be in two sets, got ${JSON.stringify(set)}, and it is in ${JSON.stringify(record.set)}`,
  );
}

/** Calls `act` for each item, up to fifty at a time. After a failure it calls for no other. */
async function inTurns<Item>(
  items: Iterable<Item>,
  act: (item: Item) => Promise<void>,
): Promise<void> {
  const all = [...items];
  for (let from = 0; from < all.length; from += AT_ONCE)
    await Promise.all(all.slice(from, from + AT_ONCE).map(act));
}

const AT_ONCE = 50;

/** Ticks that are backfilled without a limit. */
const MOST_UNASKED = 100;

function outcomeOf(
  name: string,
  record: StoredRecord | undefined,
  { calendar }: Prepared,
  declaration: Declaration,
  now: number,
): ScheduleResult["outcome"] {
  if (record === undefined) return "added";
  if (declaration.version < record.version) return "outdated";
  return isSame(name, record, declaration, calendar, now) ? "unchanged" : "changed";
}

function shown(
  { name, record, isPlanned, droppedLate, droppedOverlap }: Shown,
  ahead: readonly Ahead[],
  present: ReadonlySet<string>,
  now: number,
): Schedule {
  const { rule, payload, hasCalendar, version, set, isPaused, count, missed } = record;
  return {
    name,
    ...rule,
    needs: payload === undefined || hasCalendar ? "code" : "nothing",
    version,
    set,
    isPaused,
    count,
    missed: missed + droppedLate,
    droppedOverlap,
    plannedUntil: record.until,
    planAt: isPlanned ? record.planAt : 0,
    lastAt: record.planned.findLast(({ deadline }) => deadline <= now)?.tick ?? record.lastAt,
    next: stillThere(ahead, present),
    tzdata: record.tzdata,
  };
}

function aheadOf(name: string, record: ScheduleRecord, now: number): Ahead[] {
  return nextOf(record, now).map((tick) => ({ tick, key: occurrenceKey(name, tick) }));
}

/** The ticks whose message is delayed or retrying: the others may have been cancelled, or cleared with the queue. */
function stillThere(ahead: readonly Ahead[], present: ReadonlySet<string>): number[] {
  return ahead.filter(({ key }) => present.has(key)).map(({ tick }) => tick);
}

/** The planned ticks that are ahead. */
function nextOf(record: ScheduleRecord | undefined, now: number): number[] {
  const { planned = [] } = record ?? {};
  return planned.filter(({ deadline }) => deadline > now).map(({ tick }) => tick);
}

function lacking(name: string): TypeError {
  return new TypeError(
    `schedule ${JSON.stringify(name)} has a function as payload or an object as cron, which only a process has that has declared it`,
  );
}
