import { judge as judgeExclusive } from "../fault/partitions/exclusive-judge.ts";
import type { StormNote } from "../fault/partitions/storm-note.ts";
import type { Result } from "../../scripts/matrix/results.ts";
import { grouped } from "../../src/queue/grouped.ts";
import type { History, Offered, Run, Span } from "./history.ts";

/*
 * Compares what was promised with what happened.
 *
 * A loss, or a second run of a handler, is excused only by what the README says is not promised, and only if it shows in
 * the history of that very message:
 *
 * - **lost**: the server forgot the time in which the offer was acknowledged (`rollbacks`); a plain message was in the
 *   hands of a killed process, or on its way to one, or to a connection that was cut;
 * - **again**: the process of the run before died or stood still before the run was surely settled; the server forgot the time of the run before; the offer was sent
 *   again when its first copy may already have moved; or connections were broken, and a lease later the message came
 *   again.
 *
 * A message whose condition was ended may be dropped. Once Redis has acknowledged that before the deadline, the message must
 * not be delivered, unless the server forgot that time, or the offer was sent again.
 *
 * Nothing excuses a handler that starts before its deadline, a message that is delivered although its offer was
 * certainly not stored, or, with exclusive consumption, an order that is broken.
 */

/** Milliseconds in which a run that has ended is settled, if its process and the server live. */
const SETTLED_WITHIN = 1000;

/** Milliseconds by which two readings of one clock may differ: they are rounded. */
const ROUNDING = 2;

/** Milliseconds around a kill in which a message may have been on its way to the dead process. */
const ON_ITS_WAY = 1000;

/** What the judge has to know beside the history. */
export interface Circumstances {
  /** How many messages one process may hold at once. */
  readonly inHand: number;
  /** Whether the bytes of a message were sent to a process whose connection survived. */
  readonly wasSent: (n: number) => boolean;
  /** Milliseconds of a lease, if it may run out because its process cannot reach Redis. */
  readonly lease: number | undefined;
}

/** What the judge counts. */
export type Verdict = Pick<
  Result,
  | "messages"
  | "refused"
  | "lost"
  | "forfeited"
  | "twice"
  | "again"
  | "early"
  | "unwanted"
  | "disordered"
  | "latest"
  | "faults"
>;

export function judge(history: History, circumstances: Circumstances): Verdict {
  const { offers, runs, queue } = history;
  const runsOf = grouped(
    runs.toSorted((a, b) => a.startedAt - b.startedAt),
    ({ n }) => n,
  );
  const all = [...offers.values()];
  const acknowledged = all.filter(({ acknowledgedAt }) => acknowledgedAt !== undefined);
  const isDropped = ({ n, forbidSentAt }: Offered) => forbidSentAt !== undefined && !runsOf.has(n);
  const missing = acknowledged.filter(
    (offer) => !isDropped(offer) && !(runsOf.get(offer.n) ?? []).some(isDone),
  );
  const excusesOfLoss = lossExcuses(history, runsOf, circumstances);
  const lost = missing.filter((offer) => !excusesOfLoss(offer));

  const repeats = [...runsOf.values()].flatMap((ofMessage) =>
    ofMessage.slice(1).map((run, i) => {
      const before = ofMessage[i] as Run;
      return { run, excuse: repeatExcuse(history, circumstances, before, run) };
    }),
  );
  const twice = repeats.filter(({ excuse }) => excuse === undefined);

  const against = runs.filter(({ n }) => offers.get(n)?.rejected === "none");
  const early = runs.filter(({ n, startedAt }) => {
    const offer = offers.get(n);
    if (offer?.deadline === undefined || mayBeStoredTwice(offer)) return false;
    return startedAt + history.epoch + ROUNDING < offer.deadline;
  });

  const unwanted = all.filter((offer) => runsOf.has(offer.n) && isForbidden(history, offer));

  // What the server has forgotten, and what may be stored twice, comes when it likes.
  const replayed = new Set(
    repeats.flatMap(({ run, excuse }) =>
      excuse === "rolled back" || excuse === "stored twice" ? [run] : [],
    ),
  );
  const inTurn = runs.filter((run) => !replayed.has(run));
  const disordered = queue === "exclusive" ? exclusiveFaults(history, inTurn) : undefined;

  return {
    messages: acknowledged.length,
    refused: all.filter(({ rejected }) => rejected !== undefined).length,
    lost: lost.length,
    forfeited: missing.length - lost.length,
    twice: twice.length,
    again: repeats.length - twice.length,
    early: early.length,
    unwanted: queue === "conditional" ? unwanted.length : null,
    disordered: disordered?.length ?? null,
    latest: Math.round(Math.max(0, ...acknowledged.map((offer) => lateness(offer, runsOf)))),
    faults: [
      ...some("lost", lost.map(named)),
      ...some(
        "twice",
        twice.map(({ run }) => named(run)),
      ),
      ...some("not stored, and delivered", against.map(named)),
      ...some("early", early.map(named)),
      ...some("unwanted, and delivered", unwanted.map(named)),
      ...some("out of order", disordered ?? []),
    ],
  };
}

/** Returns a function that says whether a loss is excused. */
function lossExcuses(
  { queue, kills, rollbacks }: History,
  runsOf: ReadonlyMap<number, readonly Run[]>,
  { inHand, wasSent }: Circumstances,
): (offer: Offered) => boolean {
  // A kill excuses no more than one process may hold.
  const left = kills.map(({ by, at }) => ({ by, at, count: inHand }));
  const take = (kill: (typeof left)[number] | undefined): boolean => {
    if (kill === undefined) return false;
    kill.count--;
    return true;
  };
  return ({ n, acknowledgedAt = 0, sentAt, delay }) => {
    if (rollbacks.some((span) => isWithin(acknowledgedAt, span))) return true;
    if (queue !== "plain") return false;
    const run = runsOf.get(n)?.at(-1);
    if (run !== undefined) return take(left.find(({ by, count }) => by === run.by && count > 0));
    if (!wasSent(n)) return true;
    const dueAt = sentAt + delay;
    return take(left.find(({ at, count }) => count > 0 && Math.abs(at - dueAt) < ON_ITS_WAY));
  };
}

/** Whether it was certain before the deadline that a message is not wanted any more. */
function isForbidden({ rollbacks, epoch }: History, offer: Offered): boolean {
  const { forbiddenAt, deadline } = offer;
  if (forbiddenAt === undefined || deadline === undefined || mayBeStoredTwice(offer)) return false;
  if (rollbacks.some((span) => isWithin(forbiddenAt, span))) return false;
  return forbiddenAt + epoch + ROUNDING < deadline;
}

/** Why a message may have come again, or undefined. */
function repeatExcuse(
  { kills, stalls, rollbacks, offers, queue }: History,
  { lease }: Circumstances,
  before: Run,
  run: Run,
): "stored twice" | "died" | "stood still" | "rolled back" | "lease over" | undefined {
  const offer = offers.get(run.n);
  const { by, startedAt } = before;
  const settledAt = (before.doneAt ?? run.startedAt) + SETTLED_WITHIN;
  const overlaps = ({ from, to }: Span) => startedAt <= to && settledAt >= from;
  if (kills.some((kill) => kill.by === by && kill.at >= startedAt && kill.at <= settledAt))
    return "died";
  if (stalls.some((stall) => stall.by === by && overlaps(stall))) return "stood still";
  if (rollbacks.some(overlaps)) return "rolled back";
  if (run.attempt === 1 && (offer === undefined || mayBeStoredTwice(offer))) return "stored twice";
  if (queue !== "plain" && lease !== undefined && run.startedAt - startedAt >= lease)
    return "lease over";
  return undefined;
}

/** The reply came when the message was due: a first copy may have moved before a second one arrived. */
function mayBeStoredTwice({ acknowledgedAt, sentAt, delay }: Offered): boolean {
  return acknowledgedAt === undefined || acknowledgedAt >= sentAt + delay;
}

/** Breaches of the order, overlapping handlers, and fences that fall. */
function exclusiveFaults({ offers, kills, stalls }: History, runs: readonly Run[]): string[] {
  // Numbers the messages of each key by their deadlines, equal ones by their offers.
  const numbers = new Map<number, number>();
  const known = [...offers.values()].filter((one) => one.deadline !== undefined);
  for (const ofKey of grouped(known, ({ key }) => key).values()) {
    const inOrder = ofKey.toSorted(
      (a, b) => (a.deadline ?? 0) - (b.deadline ?? 0) || a.sentAt - b.sentAt,
    );
    for (const [i, { n }] of inOrder.entries()) numbers.set(n, i);
  }
  const notes = runs.flatMap(({ n, by, attempt, fence, startedAt, doneAt }): StormNote[] => {
    const number = numbers.get(n);
    const offer = offers.get(n);
    if (number === undefined || offer === undefined || mayBeStoredTwice(offer)) return [];
    const { key, sentAt } = offer;
    const about = { by, key, number, attempt, fence, offered: sentAt, entered: startedAt };
    const rest = { ...about, aborted: 0, from: 0 };
    const start: StormNote = { ...rest, what: "start", at: startedAt };
    return doneAt === undefined ? [start] : [start, { ...rest, what: "done", at: doneAt }];
  });
  const rules = { strict: true, retry: [100], maxAttempts: Infinity };
  const found = judgeExclusive(notes, { kills, stops: stalls, redrives: [] }, rules);
  return [...found.disordered, ...found.overlaps, ...found.fences];
}

function lateness(
  { n, sentAt, delay }: Offered,
  runsOf: ReadonlyMap<number, readonly Run[]>,
): number {
  const done = (runsOf.get(n) ?? []).flatMap(({ doneAt }) => doneAt ?? []);
  return done.length === 0 ? 0 : Math.min(...done) - sentAt - delay;
}

const isDone = ({ doneAt }: Run) => doneAt !== undefined;
const isWithin = (at: number, { from, to }: Span) => at >= from && at <= to;
const named = ({ n }: { readonly n: number }) => `message ${n}`;

/** How many faults of a kind are named. */
const SHOWN = 3;

function some(what: string, faults: readonly string[]): string[] {
  if (faults.length === 0) return [];
  return [`${faults.length} ${what}: ${faults.slice(0, SHOWN).join("; ")}`];
}
