import { OfferError } from "../../../src/index.ts";

/** The planned result of a message of a reliable queue. */
export type Fate = "ack" | "nack" | "throw" | "reject";

/** The start of a handler: which attempt, and when, by this machine's clock (epoch ms). */
export interface Start {
  readonly attempt: number;
  readonly at: number;
}

/** The history of one message. Instants are from this machine's clock, which its servers share. */
export interface Fortune {
  readonly n: number;
  readonly fate: Fate;
  readonly dueAt: number;
  /** What Redis replied; undefined until then. */
  deadline?: number;
  acknowledgedAt?: number;
  rejection?: unknown;
  /** Whether it was cancelled; undefined if nobody tried. */
  wasCancelled?: boolean | "unknown";
  readonly starts: Start[];
  isDone: boolean;
  wasRejected?: true;
  /** Whether a process that was to be killed held it for a while. */
  wasAbroad?: true;
  /** The message may be lost, or one of its attempts unseen, as documented for the fault. */
  isWrittenOff?: true;
}

/** What is wrong: numbers of messages, and some details. */
export interface Wrongs {
  readonly lost: number[];
  readonly twice: number[];
  readonly early: number[];
  /** Cancelled or refused, and delivered all the same. */
  readonly against: number[];
  /** Messages of a reliable queue with other attempts than planned. */
  readonly attempts: number[];
}

/** Compares what was promised with what was delivered. */
export function wrongsOf(all: Iterable<Fortune>, kind: "plain" | "reliable"): Wrongs {
  const wrongs: Wrongs = { lost: [], twice: [], early: [], against: [], attempts: [] };
  for (const one of all) {
    const { n, starts, deadline } = one;
    if (mustArrive(one) && !(kind === "plain" ? starts.length > 0 : one.isDone))
      wrongs.lost.push(n);
    if (wasRefused(one) && starts.length > 0) wrongs.against.push(n);
    if (mayBeStoredTwice(one)) continue;
    if (one.wasCancelled === true && starts.length > 0) wrongs.against.push(n);
    if (kind === "plain" && starts.length > 1) wrongs.twice.push(n);
    // The clock is read in whole milliseconds.
    if (starts.some(({ at }) => at + 1 < (deadline ?? 0))) wrongs.early.push(n);
    if (kind === "reliable" && starts.length > 0 && !areAttemptsRight(one)) {
      wrongs.attempts.push(n);
    }
  }
  return wrongs;
}

function mustArrive({ acknowledgedAt, wasCancelled = false, isWrittenOff }: Fortune): boolean {
  return acknowledgedAt !== undefined && wasCancelled === false && isWrittenOff === undefined;
}

function wasRefused({ rejection }: Fortune): boolean {
  return rejection instanceof OfferError && rejection.effect === "none";
}

/**
 * An offer whose reply was lost is sent again. If its first copy had moved by then, it is stored twice, as documented.
 * That cannot have happened if the second reply came before the message was due.
 */
function mayBeStoredTwice({ acknowledgedAt, dueAt }: Fortune): boolean {
  return acknowledgedAt === undefined || acknowledgedAt > dueAt;
}

function areAttemptsRight({ fate, starts, wasAbroad, isWrittenOff }: Fortune): boolean {
  const attempts = starts.map(({ attempt }) => attempt);
  if (wasAbroad || isWrittenOff)
    return attempts.every((one, i) => i === 0 || one > attempts[i - 1]!);
  return attempts.join() === (fate === "nack" || fate === "throw" ? "1,2" : "1");
}
