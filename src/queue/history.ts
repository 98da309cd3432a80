import {
  DAYS,
  fieldsWith,
  MINUTES,
  NOTED,
  noteHistory,
  slotsIn,
  VALUES,
  type Noted,
} from "../lua/queue/history.ts";
import { run } from "../lua/script.ts";
import type { RedisClient } from "../redis/client.ts";
import { queueKeys } from "./keys.ts";

export { NOTED, type Noted } from "../lua/queue/history.ts";

/** The numbers of a queue now. `late`: how long (ms) the message has waited that has waited longest since it was due. */
export type NotedNumbers = Readonly<Record<Noted, number | undefined>>;

/** The past of a queue. Values above 15 are exact to 4 %. */
export interface PastNumbers {
  /** When the first interval begins (epoch ms). */
  readonly from: number;
  /** The length of each interval (ms). */
  readonly step: number;
  /**
   * A value for each interval, undefined if it is unknown: what was counted in a minute, or the most in a day. `finished`
   * is how many have finished in the interval.
   */
  readonly values: Readonly<Record<Noted, readonly (number | undefined)[]>>;
}

/** How far back to look. */
export interface PastRange {
  readonly of: "minutes" | "days";
  /** How many, the current one included: up to 1,440 minutes, or 90 days. */
  readonly count: number;
  /** The time on the server's clock (epoch ms). */
  readonly now: number;
}

const SLOTS = { minutes: MINUTES, days: DAYS };

/**
 * Notes the numbers of a queue in Redis, unless that was done in this minute; returns whether it did.
 *
 * Rejects with ioredis's errors.
 */
export async function noteNumbers(
  redis: RedisClient,
  name: string,
  numbers: NotedNumbers,
): Promise<boolean> {
  const texts = NOTED.map((noted) => [noted, numbers[noted] ?? ""]);
  const args = Object.fromEntries(texts) as Record<Noted, string | number>;
  return await run(redis, noteHistory, queueKeys(name), args);
}

/**
 * When the numbers of a queue were last noted: the beginning of that minute (epoch ms); undefined if they never were.
 *
 * Rejects with ioredis's errors.
 */
export async function lastNotedAt(redis: RedisClient, name: string): Promise<number | undefined> {
  const last = await redis.hget(queueKeys(name).history, "last");
  const minute = Number(last?.split(" ")[1] ?? Number.NaN);
  return Number.isNaN(minute) ? undefined : minute * MINUTES.step;
}

/**
 * Reads the past of a queue: one command, and at most 13 kB.
 *
 * Rejects with ioredis's errors.
 */
export async function readPast(
  redis: RedisClient,
  name: string,
  { of, count, now }: PastRange,
): Promise<PastNumbers> {
  const { step, inField } = SLOTS[of];
  const last = Math.floor(now / step);
  const first = last - count + 1;
  const fields = fieldsWith(SLOTS[of], first, last);
  const names = fields.map(({ field }) => field);
  const found = await redis.hmgetBuffer(queueKeys(name).history, ...names);
  const lines = NOTED.map((): (number | undefined)[] => []);
  for (const [i, { number }] of fields.entries()) {
    const slots = slotsIn(found[i], number);
    const from = Math.max(first - number * inField, 0);
    const to = Math.min(last - number * inField, inField - 1);
    for (let j = 0; j < NOTED.length; j++) {
      const line = lines[j] as (number | undefined)[];
      for (let at = from; at <= to; at++) {
        line.push(slots && VALUES[slots[at * NOTED.length + j] ?? 0]);
      }
    }
  }
  const values = Object.fromEntries(NOTED.map((noted, j) => [noted, lines[j]]));
  return { from: first * step, step, values: values as unknown as PastNumbers["values"] };
}
