import { grouped } from "../../../src/queue/grouped.ts";
import type { StormNote } from "./storm-note.ts";

/*
 * Judges the ledger of a storm over a queue that is consumed exclusively.
 *
 * **Who may run.** Redis cannot stop a handler whose process stands still for longer than its lease, so such a handler
 * is excused, but only in this way: it began before the process stood still, and its right to run ends
 * `SHORTEST_LEASE` after that. Nothing else is excused: not a handler that began after the process woke, nor one whose
 * process merely lost its lease, nor a standstill that is too short for a lease to end. A handler of a killed process
 * ends with the kill, and the signal of one that was replaced while its process stood still must be aborted when that wakes. Standstills are those that the test caused (SIGSTOP), and those that a process noticed itself.
 */

/** A time in which a process stood still (epoch ms). */
export interface Standstill {
  readonly by: string;
  readonly from: number;
  readonly to: number;
}

/** What the test did to the processes, and to the messages. */
export interface Disturbances {
  readonly stops: readonly Standstill[];
  /** When processes were killed. */
  readonly kills: readonly { readonly by: string; readonly at: number }[];
  /** When dead letters were redriven. */
  readonly redrives: readonly number[];
}

export interface Rules {
  readonly strict: boolean;
  /** Milliseconds of pause after the first, second, ... failed attempt; the last one repeats. */
  readonly retry: readonly number[];
  readonly maxAttempts: number;
}

/**
 * A lease lasts 2.5 s, and is renewed every 0.8 s, later on a busy machine. So no other process takes over within this
 * time (ms) after a process came to a standstill.
 */
const SHORTEST_LEASE = 1000;

/** How long a lease lasts (ms), and so the longest time until a process that stands still has lost it. */
const LEASE = 2500;

/** Milliseconds by which two readings of the same clock may differ: they are rounded. */
const ROUNDING = 2;

/** One run of a handler. */
interface Run {
  readonly by: string;
  readonly key: string;
  readonly number: number;
  readonly attempt: number;
  readonly fence: number;
  /** When its message was offered. */
  readonly offered: number;
  /** When it began, by its process's clock. Every process runs on this machine. */
  readonly entered: number;
  /** When it was noted on the server. */
  readonly from: number;
  /** When it ended or was about to; infinite if that was not noted. */
  to: number;
  /** When its right to run ended, at the latest. */
  until: number;
  end: "done" | "fail" | undefined;
  /** When its signal was aborted; 0 if it was not before its end. */
  aborted: number;
  /** When the library had recorded the failure. */
  settledAt: number | undefined;
}

/** Returns every violation of what the guide promises, in words. */
export function judge(
  notes: readonly StormNote[],
  { stops, kills, redrives }: Disturbances,
  { strict, retry, maxAttempts }: Rules,
) {
  const stalls = notes.filter(({ what }) => what === "stall");
  const standstills = [
    ...stops,
    ...stalls.map(({ by, from, entered }): Standstill => ({ by, from, to: entered })),
  ];
  const runs = runsOf(notes);
  for (const run of runs) {
    const killedAt = kills.find(({ by }) => by === run.by)?.at ?? Infinity;
    // A handler that was to begin at that moment may have begun just after.
    const lost = standstills
      .filter(({ by, from, to }) => {
        return by === run.by && run.entered <= from && from < run.to && to - from > SHORTEST_LEASE;
      })
      .map(({ from }) => from + SHORTEST_LEASE);
    run.until = Math.min(run.to, killedAt, ...lost);
  }

  const overlaps: string[] = [];
  const disordered: string[] = [];
  const fences: string[] = [];
  const pauses: string[] = [];
  const attempts: string[] = [];
  const unaborted: string[] = [];

  for (const ofKey of grouped(runs, ({ key }) => key).values()) {
    const byTime = ofKey.toSorted((a, b) => a.entered - b.entered || a.fence - b.fence);
    let running: Run | undefined;
    for (const run of byTime) {
      if (running !== undefined && run.from < running.until) {
        overlaps.push(
          `${named(run)} began ${ms(running.until - run.from)} before ${named(running)} had ended`,
        );
      }
      if (running === undefined || run.until > running.until) running = run;
    }
    for (const run of byTime) {
      if (run.end === undefined || run.aborted > 0) continue;
      const woke = standstills.find(({ by, from, to }) => {
        return by === run.by && run.entered < from && to < run.to && to - from > LEASE;
      });
      if (woke === undefined) continue;
      const isReplaced = byTime.some(
        (other) => other.fence > run.fence && other.from > run.from && other.from < woke.to,
      );
      if (isReplaced) unaborted.push(named(run));
    }
    for (const [i, run] of byTime.entries()) {
      const before = byTime[i - 1];
      if (before !== undefined && run.fence < before.fence) {
        fences.push(`${named(run)} after ${named(before)}`);
      }
    }

    // After a redrive a message comes whenever it likes.
    const ofMessage = grouped(byTime, ({ number }) => number);
    const inTurn = byTime.filter((run) => {
      const earlier = ofMessage.get(run.number)!;
      const first = earlier[0] as Run;
      if (run !== first && !strict) return false;
      return !redrives.some(
        (at) => first.entered < at && at < run.entered && mayBeDead(earlier, at),
      );
    });
    let last: Run | undefined;
    for (const run of inTurn) {
      if (last !== undefined && run.number < last.number) {
        disordered.push(`${named(run)} after ${named(last)}`);
      }
      if (last === undefined || run.number > last.number) last = run;
    }
  }

  /** Whether a message may have been dead at that moment. */
  function mayBeDead(ofMessage: readonly Run[], at: number): boolean {
    const before = ofMessage.filter(({ entered }) => entered < at);
    return (before.at(-1)?.attempt ?? 0) + lossesIn(before.at(-1)?.entered ?? 0, at) >= maxAttempts;
  }

  /** How many processes may have lost a delivery between two moments. */
  function lossesIn(from: number, to: number): number {
    const killed = kills.filter(({ at }) => at > from && at < to).length;
    const stood = standstills.filter((one) => {
      return one.to - one.from > SHORTEST_LEASE && one.to > from && one.from < to;
    });
    return killed + stood.length;
  }

  for (const ofMessage of grouped(runs, (run) => `${run.key}:${run.number}`).values()) {
    const byTime = ofMessage.toSorted((a, b) => a.entered - b.entered || a.attempt - b.attempt);
    for (const [i, run] of byTime.entries()) {
      const before = byTime[i - 1];
      const since = before?.entered ?? run.offered;
      const mayLack = lossesIn(since, run.entered);
      const isRedriven =
        before !== undefined &&
        redrives.some((at) => since < at && at < run.entered && mayBeDead(byTime, at));
      const isFrom = (least: number) => run.attempt >= least && run.attempt <= least + mayLack;
      const isExact = isFrom((before?.attempt ?? 0) + 1) || (isRedriven && isFrom(1));
      if (!isExact) {
        const prior = before === undefined ? "nothing" : named(before);
        attempts.push(`${named(run)} follows ${prior}, with ${mayLack} losses`);
      }
      if (run.attempt > maxAttempts) attempts.push(`${named(run)} is more than ${maxAttempts}`);
      if (before?.end === "done" && !wasLost(before))
        attempts.push(`${named(run)} after ${named(before)} was done`);

      if (before?.end !== "fail" || before.settledAt === undefined || wasLost(before)) continue;
      const pause = retry[Math.min(before.attempt, retry.length) - 1] ?? 0;
      const gap = run.from - before.to;
      if (gap + ROUNDING < pause && !isRedriven) {
        pauses.push(
          `${named(run)} came ${ms(gap)} after attempt ${before.attempt} failed, not ${ms(pause)}`,
        );
      }
    }
  }

  /** Whether the process lost its lease, or died, before what it did was surely settled. */
  function wasLost(run: Run): boolean {
    const settledAt = run.settledAt ?? run.to + SETTLED_WITHIN;
    const isKilled =
      run.settledAt === undefined && kills.some(({ by, at }) => by === run.by && at < settledAt);
    const stood = standstills.some(({ by, from, to }) => {
      return by === run.by && to - from > SHORTEST_LEASE && to > run.entered && from < settledAt;
    });
    return isKilled || stood;
  }

  return { overlaps, disordered, fences, pauses, attempts, unaborted };
}

/** Milliseconds in which a handler that has ended is settled, if its process lives. */
const SETTLED_WITHIN = 1000;

function runsOf(notes: readonly StormNote[]): Run[] {
  const runs = new Map<string, Run>();
  for (const { what, by, key, number, attempt, fence, offered, entered, aborted, at } of notes) {
    if (what === "stall") continue;
    const id = [by, key, number, attempt, fence, entered].join(" ");
    const run = runs.get(id);
    if (what === "start") {
      const times = { offered, entered, from: at, to: Infinity, until: Infinity };
      const end = { end: undefined, aborted: 0, settledAt: undefined };
      runs.set(id, { by, key, number, attempt, fence, ...times, ...end });
    } else if (run !== undefined) {
      if (what === "settled") run.settledAt = at;
      else [run.to, run.end, run.aborted] = [at, what, aborted];
    }
  }
  return [...runs.values()];
}

function named({ by, key, number, attempt, fence }: Run): string {
  return `${key}:${number} (attempt ${attempt}, fence ${fence}, ${by})`;
}

const ms = (duration: number) => `${Math.round(duration)} ms`;
