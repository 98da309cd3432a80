import type { QueueStats } from "../../index.ts";
import type { DuePlace } from "../../inside.ts";
import { notReadyIn, type Counted } from "./places.ts";
import type { Severity } from "./severity.ts";

/** The numbers by which a queue is judged. */
export type Judged = Counted<DuePlace> &
  Pick<
    QueueStats,
    | "serverTime"
    | "isPaused"
    | "overdue"
    | "waiting"
    | "ready"
    | "dead"
    | "quarantined"
    | "unplanned"
    | "nextDeadline"
    | "oldestReadyAge"
    | "oldestInFlightAge"
    | "consumers"
    | "listeners"
  >;

interface Law {
  readonly level: Severity;
  readonly isBroken: (queue: Judged) => boolean;
  /** Problems that explain this one, so that it is not reported beside them. */
  readonly unless?: readonly string[];
}

/** Bounds in milliseconds. */
export const BOUNDS = {
  /** By then a running process has moved a message, even one that stands by, or misses wake-ups and sweeps every second. */
  overdue: 5_000,
  /** A burst or a deployment may leave messages waiting for a minute or two. After five, consumers do not keep up. */
  backlog: 300_000,
  /** Most handlers take milliseconds. Five minutes are long enough for those that call slow services. */
  inFlight: 300_000,
} as const;

/**
 * What can be wrong with a queue according to its numbers, the worst first. Everything that judges queues judges by these
 * laws: the doctor, `delayline stats`, the dashboard. docs/guide/observing.md has the same table.
 */
export const LAWS = {
  overdue: {
    level: "error",
    // Messages that wait for their turn are due, but not late.
    isBroken: ({ nextDeadline, serverTime, overdue, waiting }) =>
      (overdue > 0 || waiting === 0) && isOverdue(nextDeadline, serverTime),
    unless: ["paused"],
  },
  // Zero consumers are certain: dead ones count until they are removed. Those of a plain queue are unknown.
  "no-consumer": {
    level: "error",
    isBroken: ({ ready, consumers }) => ready > 0 && consumers === 0,
    unless: ["paused"],
  },
  // Its placed messages still come. Then it stands still.
  unplanned: {
    level: "error",
    isBroken: ({ unplanned }) => unplanned > 0,
    unless: ["paused", "overdue", "no-transfer"],
  },
  // A pause is on purpose. But whoever paused the queue may have forgotten.
  paused: { level: "warning", isBroken: ({ isPaused }) => isPaused },
  // Nothing is late yet, and a worker may start in time.
  "no-transfer": {
    level: "warning",
    isBroken: (numbers) => numbers.listeners === 0 && notReadyIn(numbers) > 0,
    unless: ["paused", "overdue"],
  },
  backlog: {
    level: "warning",
    isBroken: ({ oldestReadyAge = 0 }) => oldestReadyAge >= BOUNDS.backlog,
    unless: ["paused", "no-consumer"],
  },
  // No other consumer gets the message as long as that process lives.
  "long-in-flight": {
    level: "warning",
    isBroken: ({ oldestInFlightAge = 0 }) => oldestInFlightAge >= BOUNDS.inFlight,
    unless: ["no-consumer"],
  },
  // These two wait for a person, and hold up no other message.
  quarantine: { level: "warning", isBroken: ({ quarantined }) => quarantined > 0 },
  "dead-letters": { level: "warning", isBroken: ({ dead }) => dead > 0 },
} as const satisfies Readonly<Record<string, Law>>;

export type Problem = keyof typeof LAWS;

/** The problems of a queue, the worst first. Empty if it is well. */
export function problemsOf(queue: Judged): Problem[] {
  const laws = Object.entries<Law>(LAWS) as [Problem, Law][];
  const broken = laws.filter(([, { isBroken }]) => isBroken(queue)).map(([name]) => name);
  const explained = (name: Problem) =>
    (LAWS[name] as Law).unless?.some((other) => broken.includes(other as Problem)) ?? false;
  return broken.filter((name) => !explained(name));
}

/**
 * Whether a message is later than any running process would leave it. `now` is the server's time (epoch ms). A queue
 * without messages has no deadline, and is not late.
 */
export function isOverdue(deadline: number | undefined, now: number): boolean {
  return deadline !== undefined && now - deadline >= BOUNDS.overdue;
}
