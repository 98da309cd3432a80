import { OfferError } from "../../../src/index.ts";

/** What shall become of a message of a reliable queue. */
export type Fate = "ack" | "nack" | "throw" | "reject";

/** That a handler was given a message: the attempt, and when, by this machine's clock (epoch ms). */
export interface Start {
  readonly attempt: number;
  readonly at: number;
}

/** What became of one message. Instants are of this machine's clock, which is that of its servers, too. */
export interface Fortune {
  readonly n: number;
  readonly fate: Fate;
  readonly dueAt: number;
  /** What Redis said; undefined until then. */
  deadline?: number;
  acknowledgedAt?: number;
  rejection?: unknown;
  /** Whether it was cancelled; undefined if nobody tried. */
  wasCancelled?: boolean | "unknown";
  readonly starts: Start[];
  isDone: boolean;
  wasRejected?: true;
  /** Whether it was, for a while, in the hands of a process that was to be killed. */
  wasAbroad?: true;
  /** It is known, and documented, that it may be lost, or that an attempt of it was seen by nobody. */
  isWrittenOff?: true;
}

/** What is wrong: the numbers of the messages, and of some more about them. */
export interface Wrongs {
  readonly lost: number[];
  readonly twice: number[];
  readonly early: number[];
  /** Cancelled or refused, and delivered all the same. */
  readonly against: number[];
  /** Those of a reliable queue whose attempts are not what they had to be. */
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
    // A clock that is read as whole milliseconds.
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
  return rejection instanceof OfferError && rejection.stored === "not-stored";
}

/**
 * An offer whose reply was lost is sent again; if its first copy was moved by then, it is stored twice. That is
 * documented. It cannot be if the second reply came before the message was due.
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
