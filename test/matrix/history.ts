import type { Queue } from "../../scripts/matrix/cells.ts";

/*
 * What happened in a run: to messages, to processes and to the server. All instants are milliseconds on this machine's
 * monotonic clock, which its processes share, but for deadlines: those are the server's (epoch ms).
 */

/** An offer, and its result as far as its producer learnt of it. */
export interface Offered {
  readonly n: number;
  readonly key: string;
  readonly sentAt: number;
  readonly delay: number;
  deadline?: number;
  acknowledgedAt?: number;
  /** When Redis was told that it is not wanted any more, and when Redis had acknowledged that. */
  forbidSentAt?: number;
  forbiddenAt?: number;
  /** Why it was rejected: `effect` of the error. */
  rejected?: "none" | "unknown";
}

/** One run of a handler. */
export interface Run {
  readonly n: number;
  readonly by: string;
  readonly attempt: number;
  readonly fence: number;
  readonly startedAt: number;
  doneAt?: number;
}

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** What was done to a process. */
export interface Standstill extends Span {
  readonly by: string;
}

export interface History {
  readonly queue: Queue;
  readonly offers: Map<number, Offered>;
  /** In the order of their starts, for each process. */
  readonly runs: Run[];
  /** Workers that were killed. */
  readonly kills: { readonly by: string; readonly at: number }[];
  /** Workers that stood still. */
  readonly stalls: Standstill[];
  /** The server that goes on has forgotten what was changed in these times, or some of it. */
  readonly rollbacks: Span[];
  /** Adds to the monotonic clock: epoch milliseconds. */
  epoch: number;
}

/** Milliseconds on the monotonic clock of this machine, the same in all its processes. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
