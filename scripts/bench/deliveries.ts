import { percentile } from "./percentile.ts";
import type { Figure } from "./figure.ts";

/** The offered messages. The index is the message's number minus the first one's. */
export interface Offered {
  /** The deadlines that the queue returned (epoch ms). */
  readonly deadlines: Float64Array;
  /** The earliest time on the reference clock at which each may be taken. */
  readonly notBefore: Float64Array;
  /** The duration in milliseconds. */
  readonly duration: number;
}

/** The messages that a worker took, in the order of arrival. */
export interface Taken {
  readonly numbers: Float64Array;
  /** When each arrived, by the reference clock (epoch ms). */
  readonly takenAt: Float64Array;
  /** The uncertainty of these instants, in milliseconds. */
  readonly uncertainty: number;
  /** The processor time of the worker's process (us), before the first message and after each {@link MARK}. */
  readonly processorTimes: readonly number[];
}

/** How many messages lie between two readings of a worker's processor time. */
export const MARK = 50;

/**
 * The processor time of the workers' processes for a message, in microseconds, from the first `after` messages of each
 * on. NaN if none has taken enough, or runs elsewhere.
 */
export function workerTimeOf(taken: readonly Taken[], after = 0): number {
  const spans = taken.map(({ processorTimes }) => processorTimes.slice(after / MARK));
  const micros = spans.map((times) => (times.at(-1) ?? NaN) - (times[0] ?? NaN));
  const marks = spans.reduce((sum, { length }) => sum + length - 1, 0);
  return micros.reduce((sum, each) => sum + each, 0) / (marks * MARK);
}

/** What happened to the offered messages. */
export interface Deliveries {
  readonly lost: number;
  readonly takenTwice: number;
  /** Taken before their deadline. */
  readonly early: number;
  /** From the deadline to the handler's call, in milliseconds, in ascending order. */
  readonly lateness: readonly number[];
  /** The same from the instant that the producer wanted: that of the call plus the delay, or the date. */
  readonly latenessFromCall: readonly number[];
}

/** Joins the offered messages, from number `first` on, with those that the workers took. */
export function joinDeliveries(
  { deadlines, notBefore }: Offered,
  first: number,
  taken: readonly Taken[],
): Deliveries {
  const counts = new Uint32Array(deadlines.length);
  const lateness: number[] = [];
  const latenessFromCall: number[] = [];
  let early = 0;
  for (const { numbers, takenAt, uncertainty } of taken) {
    numbers.forEach((number, k) => {
      const i = number - first;
      const deadline = deadlines[i];
      const at = takenAt[k] ?? NaN;
      if (deadline === undefined) throw new Error(`order ${number} was not offered`);
      const wantedAt = notBefore[i] ?? NaN;
      counts[i]!++;
      lateness.push(at - deadline);
      latenessFromCall.push(at - wantedAt);
      // Early beyond doubt, whatever the uncertainty of the reference clock.
      if (at + uncertainty < Math.max(deadline, wantedAt)) early++;
    });
  }
  return {
    lost: counts.filter((count) => count === 0).length,
    takenTwice: counts.filter((count) => count > 1).length,
    early,
    lateness: lateness.toSorted((a, b) => a - b),
    latenessFromCall: latenessFromCall.toSorted((a, b) => a - b),
  };
}

/** The promises that hold in every round. */
export function promises({ lost, takenTwice, early }: Deliveries): Figure[] {
  const goal = { atMost: 0, inEveryRound: true };
  return [
    { name: "lost", value: lost, unit: "", goal },
    { name: "taken twice", value: takenTwice, unit: "", goal },
    { name: "taken before the deadline", value: early, unit: "", goal },
  ];
}

/** The lateness of messages, with any goals in milliseconds. */
export function latenessFigures(
  { lateness }: Deliveries,
  goals: { readonly p50?: number; readonly p99?: number } = {},
): Figure[] {
  return [
    figure("p50", percentile(lateness, 50), goals.p50),
    figure("p99", percentile(lateness, 99), goals.p99),
    figure("p99.9", percentile(lateness, 99.9)),
    figure("max", lateness.at(-1) ?? NaN),
  ];
}

function figure(name: string, value: number, atMost?: number): Figure {
  const goal = atMost !== undefined && { goal: { atMost } };
  return { name: `lateness ${name}`, value, unit: "ms", ...goal };
}
