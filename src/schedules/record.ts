import { randomBytes } from "node:crypto";
import type { Rule } from "./rule.ts";

/** A tick whose message was put into the queue. */
export interface PlannedTick {
  /** Epoch ms. */
  readonly tick: number;
  /** When the message is due: the tick, and its spread and jitter (epoch ms). */
  readonly deadline: number;
}

/** What Redis holds about one schedule. Only the planner and calls of users change it; instants are epoch ms. */
export interface ScheduleRecord {
  readonly rule: Rule;
  /** The encoded payload; undefined if a function makes it, which only processes that declared it have. */
  readonly payload: Buffer | undefined;
  /** Whether the ticks come from a calendar, which only processes that declared it have. */
  readonly hasCalendar: boolean;
  readonly version: number;
  /** The set that it was declared in. */
  readonly set?: string | undefined;
  /** Is part of the ids of its messages: those of an earlier declaration have other ids. */
  readonly generation: string;
  readonly isPaused: boolean;
  /** How many ticks were planned, without those that were withdrawn before they were due. */
  readonly count: number;
  /** How many ticks were not planned because no process planned in time. At most 100 count for each outage. */
  readonly missed: number;
  /** How many late ticks were planned since a planner has found any. */
  readonly caughtUp: number;
  /** The watermark: all ticks up to this instant were planned or skipped. */
  readonly until: number;
  /** When it was declared in this form, or resumed: ticks that were due by then do not count. */
  readonly since: number;
  /** The last tick that was due when it was planned last. */
  readonly lastAt?: number | undefined;
  /** Planned messages that may still be delayed, the earliest first. */
  readonly planned: readonly PlannedTick[];
  /** When to plan next; Infinity if it is paused or over. */
  readonly planAt: number;
  /** The time zone data of the process that planned last, such as `2026a`. */
  readonly tzdata?: string | undefined;
}

/** A record as Redis holds it, and its revision, which is another one after each change. */
export interface StoredRecord extends ScheduleRecord {
  readonly revision: string;
}

/*
 * In Redis a record is `revision | JSON \n payload`: 16 hexadecimal digits, what people can read, and bytes. Scripts
 * look at nothing but the revision. Planned messages are numbers, since ids can be computed: the first tick, then for
 * each its delay and the milliseconds until the next one.
 */

/** Writes a record, with a new revision. */
export function formatRecord(record: ScheduleRecord): Buffer {
  const { payload, planned, planAt, ...others } = record;
  const json = JSON.stringify({
    ...others,
    hasPayload: payload !== undefined,
    placed: deltas(planned),
    ...(planAt !== Infinity && { planAt }),
  });
  const revision = randomBytes(8).toString("hex");
  return Buffer.concat([Buffer.from(`${revision}|${json}\n`), payload ?? Buffer.alloc(0)]);
}

/** Reads a record; undefined for bytes that are none. */
export function parseRecord(bytes: Buffer): StoredRecord | undefined {
  const end = bytes.indexOf("\n");
  const [, revision, json] = /^([0-9a-f]{16})\|(.*)$/.exec(bytes.toString("utf8", 0, end)) ?? [];
  if (revision === undefined || json === undefined) return undefined;
  let held: Held;
  try {
    held = JSON.parse(json) as Held;
  } catch {
    return undefined;
  }
  if (!isHeld(held)) return undefined;
  const { hasPayload, placed, planAt = Infinity, ...others } = held;
  const payload = hasPayload ? bytes.subarray(end + 1) : undefined;
  return { ...others, payload, planAt, planned: undeltas(placed), revision };
}

/** The revision that scripts find in a record, whatever its bytes are; empty without one. */
export function revisionOf(bytes: Buffer): string {
  return /^[0-9a-f]+(?=\|)/i.exec(bytes.toString("latin1"))?.[0] ?? "";
}

/** A record as its JSON has it. */
type Held = Omit<ScheduleRecord, "payload" | "planned" | "planAt"> & {
  readonly hasPayload: boolean;
  readonly placed: readonly number[];
  readonly planAt?: number;
};

/** Whether the JSON can be one of ours: other programs may write anything. */
function isHeld(value: unknown): value is Held {
  if (typeof value !== "object" || value === null) return false;
  const { rule, placed, planAt = 0, ...others } = value as Partial<Held>;
  const { generation, count, missed, caughtUp, until, since, version } = others;
  const numbers = [planAt, count, missed, caughtUp, until, since, version];
  return (
    typeof rule === "object" &&
    rule !== null &&
    typeof rule.timeZone === "string" &&
    typeof generation === "string" &&
    /^[0-9a-f]{8}$/.test(generation) &&
    numbers.every(Number.isFinite) &&
    Array.isArray(placed) &&
    placed.length % 2 === 0 &&
    placed.every(Number.isSafeInteger)
  );
}

function deltas(planned: readonly PlannedTick[]): number[] {
  let before = 0;
  return planned.flatMap(({ tick, deadline }) => {
    const since = tick - before;
    before = tick;
    return [since, deadline - tick];
  });
}

function undeltas(numbers: readonly number[]): PlannedTick[] {
  const planned: PlannedTick[] = [];
  for (let i = 0, tick = 0; i < numbers.length; i += 2) {
    tick += numbers[i] as number;
    planned.push({ tick, deadline: tick + (numbers[i + 1] as number) });
  }
  return planned;
}
