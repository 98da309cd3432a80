import { planSchedule, raiseSet } from "../lua/schedules/plan-schedule.ts";
import { areHeld } from "../lua/delayed/get.ts";
import { readSchedule, schedulesPage, type DroppedRuns } from "../lua/schedules/schedules-due.ts";
import type { Call } from "../queue/call.ts";
import { messageIdAt, packMember } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import { queueTime } from "../time/runtime.ts";
import { laneOf, occurrenceAddress, occurrenceId, occurrenceKey } from "./occurrences.ts";
import type { Plan } from "./plan.ts";
import {
  formatRecord,
  parseRecord,
  revisionOf,
  type ScheduleRecord,
  type StoredRecord,
} from "./record.ts";

import type { Rule } from "./rule.ts";

/** A schedule, and its record. */
export interface NamedRecord {
  readonly name: string;
  readonly record: StoredRecord;
}

/** A schedule, as a page of them has it. */
export interface RecordInPage extends NamedRecord, DroppedRuns {
  /** Whether Redis knows when to plan it. */
  readonly isPlanned: boolean;
}

/** A record, if there is one, and the server's time when it was read (epoch ms). */
export interface Found extends DroppedRuns {
  readonly record: StoredRecord | undefined;
  /** Also of bytes that are no record; empty if there are none. */
  readonly revision: string;
  /** Whether Redis knows when to plan it. */
  readonly isPlanned: boolean;
  readonly serverTime: number;
}

/** A set of schedules, and the revision in which it is declared. */
export interface SetRevision {
  readonly set: string;
  readonly revision: number;
}

/** A revision of a set, with a digest of what it declares. */
export interface SetContent extends SetRevision {
  readonly digest: string;
}

/** What Redis knows of a set. */
export interface NotedSet {
  /** The revision that was noted last. */
  readonly latest: number;
  /** Whether it is that of the caller, and was noted with another content. */
  readonly isConflict: boolean;
}

/** What to do with a schedule: a plan, its removal, or nothing. */
export type Decision = Plan | "remove" | undefined;

/** A change of a schedule. */
interface ChangeCall extends Call {
  /** The set that it is declared in. A later revision of the set refuses the change. */
  readonly set?: SetRevision | undefined;
  /** Called with the ids of messages to withdraw, which may be in another partition. */
  readonly bring?: ((ids: readonly string[]) => Promise<void>) | undefined;
}

interface Step {
  readonly name: string;
  readonly before: StoredRecord | undefined;
  /** The revision that Redis has to hold still. */
  readonly expected: string;
  readonly decision: Plan | "remove";
  readonly now: number;
  readonly set: SetRevision | undefined;
  readonly wakes: boolean;
}

/** What came of a change. */
export type Changed = "changed" | "nothing" | "outdated";

/**
 * The schedules of one queue, or of one partition, as records. A client has one such object per part.
 *
 * Every method rejects with `ClosedError` once the queue is closed, and with `RedisError` if Redis refuses a command or its
 * reply is lost.
 */
export class StoredSchedules {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Reads a schedule. Bytes that are no record count as none. */
  async get(name: string, call?: Call): Promise<Found> {
    const sentAt = queueTime.now();
    const doing = "read a schedule of";
    const reply = await this.#queue.read(doing, readSchedule, { name }, call);
    const { record: bytes, ...others } = reply;
    this.#queue.clock.observe(reply.serverTime, sentAt);
    if (bytes === undefined) return { ...others, record: undefined, revision: "" };
    return { ...others, record: parseRecord(bytes), revision: revisionOf(bytes) };
  }

  /** Those of the ticks of schedules, by their keys, of which a message is delayed or retrying. */
  async present(keys: readonly string[], call?: Call): Promise<Set<string>> {
    const present = new Set<string>();
    for (let from = 0; from < keys.length; from += PAGE) {
      const some = keys.slice(from, from + PAGE);
      const rows = some.map((key) => ({ key }));
      const flags = await this.#queue.read("look into", areHeld, {}, { ...call, rows });
      some.forEach((key, i) => flags[i] && present.add(key));
    }
    return present;
  }

  /** All schedules, each at least once, in no particular order. */
  async *all(call?: Call): AsyncGenerator<RecordInPage, void, void> {
    for await (const page of this.pages(call)) yield* page;
  }

  /** As {@link all}, a page at a time. */
  async *pages(call?: Call): AsyncGenerator<RecordInPage[], void, void> {
    for await (const rows of this.#pages(call)) {
      yield rows.flatMap(({ field, value, ...others }) => {
        const record = field[0] === 0 ? undefined : parseRecord(value);
        return record === undefined ? [] : [{ ...others, name: field.toString(), record }];
      });
    }
  }

  /**
   * Changes a schedule as `decide` says. Calls it with the schedule's record and the server's time (epoch ms), and
   * again if another process has changed the schedule or a message to withdraw has fallen due.
   */
  async change(
    name: string,
    decide: (record: StoredRecord | undefined, now: number, isPlanned: boolean) => Decision,
    { set, bring, ...call }: ChangeCall = {},
  ): Promise<Changed> {
    for (;;) {
      const found = await this.get(name, call);
      const { record, revision: expected, serverTime } = found;
      const decision = decide(record, serverTime, found.isPlanned);
      if (decision === undefined) return "nothing";
      if (decision !== "remove" && call.knownFact !== undefined) {
        checkOverlap(this.#queue.name, decision.record.rule);
      }
      const step = { name, before: record, expected, decision, now: serverTime, set, wakes: true };
      const { args, rows } = this.#written(step, call.knownFact);
      const leaving = rows.flatMap(({ address }) => (address === "" ? [] : [messageIdAt(address)]));
      if (leaving.length > 0) await bring?.(leaving);
      const doing = "change a schedule of";
      const reply = await this.#queue.read(doing, planSchedule, args, { ...call, rows });
      if (reply.outcome === "done") return "changed";
      if (reply.outcome === "outdated") return "outdated";
      call.signal?.throwIfAborted();
    }
  }

  /** The revisions of all sets. */
  async revisions(call?: Call): Promise<SetContent[]> {
    const sets: SetContent[] = [];
    for await (const { field, value } of this.#fields(call)) {
      const [, revision, digest = ""] =
        /^(\d{1,16})(?: ([0-9a-f]*))?$/.exec(value.toString()) ?? [];
      if (field[0] === 0 && revision !== undefined)
        sets.push({ set: field.toString("utf8", 1), revision: Number(revision), digest });
    }
    return sets;
  }

  /** Notes a revision of a set, unless it is outdated, or was noted with another content; returns what is noted. */
  async raise({ set, revision, digest }: SetContent, call?: Call): Promise<NotedSet> {
    const isOrdinary = call?.knownFact === undefined ? 1 : 0;
    const args = { set, revision, digest, isOrdinary };
    return await this.#queue.read("declare schedules of", raiseSet, args, call);
  }

  /**
   * Carries out a planner's decision, by the record that it was made on; returns whether that was still there.
   *
   * Rejects with ioredis's errors.
   */
  async plan(
    { name, record }: NamedRecord,
    decision: Plan,
    now: number,
    knownFact: string | undefined,
  ): Promise<{ readonly isDone: boolean; readonly serverTime: number }> {
    const { revision: expected } = record;
    const step = { name, before: record, expected, decision, now, set: undefined, wakes: false };
    const { args, rows } = this.#written(step, knownFact);
    const { background } = this.#queue.server.connections;
    const reply = await this.#queue.run(background, planSchedule, args, rows, knownFact);
    return { isDone: reply.outcome === "done", serverTime: reply.serverTime };
  }

  /**
   * Drops the name of a schedule without a record, which an operator may have deleted, from those that are to be planned.
   *
   * Rejects with ioredis's errors.
   */
  async forget(name: string, knownFact: string | undefined): Promise<void> {
    const step = { ...REMOVAL, name };
    const { args, rows } = this.#written(step, knownFact);
    const { background } = this.#queue.server.connections;
    await this.#queue.run(background, planSchedule, args, rows, knownFact);
  }

  /** What the script that carries out a decision is given. */
  #written(
    { name, before, expected, decision, now, set, wakes }: Step,
    knownFact: string | undefined,
  ) {
    const plan = decision === "remove" ? undefined : decision;
    const planAt = plan?.record.planAt ?? Infinity;
    const withdrawn = plan?.withdrawn ?? before?.planned ?? [];
    const args = {
      channel: this.#queue.keys.channel,
      name,
      expected,
      record: plan === undefined ? "" : formatRecord(plan.record),
      planAt: planAt === Infinity ? "+inf" : planAt,
      // A removal does not depend on the time.
      asOf: plan === undefined ? Number.MAX_SAFE_INTEGER : now,
      set: set?.set ?? "",
      setRevision: set?.revision ?? "",
      isWaking: wakes && planAt !== Infinity ? 1 : 0,
      isOrdinary: knownFact === undefined ? 1 : 0,
      ...lanesOf(name, before, plan?.record),
    };
    const gone = withdrawn.map((one) => ({
      ...NO_MESSAGE,
      address: occurrenceAddress(name, before as StoredRecord, one),
    }));
    return { args, rows: [...gone, ...(plan === undefined ? [] : rowsOf(name, plan))] };
  }

  async *#fields(call?: Call) {
    for await (const rows of this.#pages(call)) yield* rows;
  }

  async *#pages(call?: Call) {
    let cursor = "0";
    do {
      const doing = "read the schedules of";
      const page = await this.#queue.read(doing, schedulesPage, { cursor, count: PAGE }, call);
      ({ cursor } = page);
      yield page.rows;
    } while (cursor !== "0");
  }
}

/** The lane that a schedule has for itself; that which it had, and has no more; and that in which its runs no longer wait. */
function lanesOf(name: string, before?: ScheduleRecord, after?: ScheduleRecord) {
  const ownOf = (record?: ScheduleRecord) =>
    record?.rule.overlap === "wait" ? (laneOf(name, record.rule) ?? "") : "";
  // A record that is gone says nothing of a lane.
  const had = before === undefined && after === undefined ? `schedule:${name}` : ownOf(before);
  const has = ownOf(after);
  const isLeft = after === undefined || (after.isPaused && before?.isPaused === false);
  return { ownLane: has, formerLane: has === "" ? had : "", leftLane: isLeft ? had : "" };
}

/** @throws {TypeError} if a schedule of a queue with partitions lets its runs wait for each other. */
export function checkOverlap(queue: string, { overlap }: Rule): void {
  if (overlap !== "wait") return;
  throw new TypeError(
    `overlap "wait" is for queues without partitions, and queue "${queue}" has some: "skip" drops a run instead`,
  );
}

/** The messages that a plan puts. */
function rowsOf(name: string, { record, puts }: Plan) {
  const { overlap, priority } = record.rule;
  const lane = laneOf(name, record.rule);
  return puts.map(({ tick, deadline, payload, deliverWithin }) => {
    const key = occurrenceKey(name, tick);
    const occurrence = { schedule: name, tick, ...(overlap !== "allow" && { overlap }) };
    const id = occurrenceId(name, record, tick);
    const member = packMember(id, payload, key, { deliverWithin, occurrence, lane, priority });
    return { member, deadline, key, address: "" as const };
  });
}

const REMOVAL = {
  before: undefined,
  expected: "",
  decision: "remove",
  now: 0,
  set: undefined,
  wakes: false,
} as const;

const NO_MESSAGE = { member: "", deadline: "", key: "" } as const;

/** Schedules that one step reads. */
const PAGE = 100;
