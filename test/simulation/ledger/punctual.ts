import { copiesOf, isAbout, mayHaveTakenEffect, nameOfDelivery, type Rule } from "./promises.ts";
import type { FaultKind } from "../sim.ts";
import type { Call, Delivery, Moment, Offer, Story } from "./story.ts";

/**
 * **Punctual**: what falls due while a consumer waits is delivered soon.
 *
 * A lost wake-up costs the time until the next sweep, and a lost connection the time until it is noticed. So this is
 * asked only where nothing of the kind has happened since the deadline was set. The death of a process is no excuse. A
 * step of the clock is noticed with the next message, and with the next sweep at the latest.
 */
export const punctual: Rule = (story, { isPunctual = false }) => {
  if (!isPunctual) return [];
  return story.deliveries.flatMap((delivery) => {
    if (delivery.isEarly || delivery.isLast || delivery.attempt > 1) return [];
    const offer = story.offers.get(delivery.n);
    const set = offer && deadlineOf(offer, delivery, story);
    if (set === undefined || isExcused(set.call, delivery, story)) return [];
    const resumed = resumedAt(delivery, story);
    const stepped = story.faults.filter(
      ({ kind, at }) => kind === "clock-step" && at <= delivery.at,
    );
    const dueAt = Math.max(
      delivery.at - (delivery.now - set.deadline),
      set.call.ended?.at ?? Infinity,
      resumed,
      ...stepped.map(({ at }) => (at < set.call.begun.at ? at : at + SWEEP)),
    );
    const late = Math.round(delivery.at - dueAt);
    if (late <= LATEST || !hasWaited(delivery, dueAt, story)) return [];
    return [`late by ${late} ms: ${nameOfDelivery(delivery)}`];
  });
};

/** The deadline that the message had last, and the call that has set it; undefined if that is not certain. */
function deadlineOf(
  offer: Offer,
  delivery: Delivery,
  story: Story,
): { readonly call: Call; readonly deadline: number } | undefined {
  if (offer.fate !== "stored" || copiesOf(offer, story) > 1) return undefined;
  const about = story
    .callsOf("reschedule", "promote")
    .filter((call) => isAbout(call, offer, story) && call.begun.index < delivery.index)
    .filter(mayHaveTakenEffect);
  const calls = [offer, ...about].toSorted((a, b) => a.begun.index - b.begun.index);
  const areInTurn = calls.every((call, i) => {
    const next = calls[i + 1]?.begun ?? delivery;
    return call.ended !== undefined && call.ended.index < next.index;
  });
  const last = calls.at(-1);
  if (!areInTurn || last === undefined) return undefined;
  const deadline =
    last === offer ? offer.deadline : (last.answer as { deadline?: number } | undefined)?.deadline;
  return deadline === undefined ? undefined : { call: last, deadline };
}

/** Whether something has happened since the deadline was set that may make the message late. */
function isExcused({ begun }: Call, delivery: Delivery, story: Story): boolean {
  return story.faults.some(
    ({ kind, at, until }) =>
      (kind === "deaf" && at <= delivery.at) ||
      (EXCUSES.includes(kind) && at <= delivery.at && until >= begun.at - RECOVERY),
  );
}

/** When the queue was resumed last (elapsed ms); Infinity if it may be paused. */
function resumedAt(delivery: Delivery, story: Story): number {
  let resumed = -Infinity;
  for (const call of story.callsOf("pause", "resume")) {
    if (call.begun.index > delivery.index) break;
    const isDone = call.error === undefined && (call.ended?.index ?? Infinity) < delivery.index;
    resumed = call.verb === "resume" && isDone ? (call.ended as Moment).at : Infinity;
  }
  return resumed;
}

/** Whether the process that got the message has waited for it since it was due. */
function hasWaited(delivery: Delivery, dueAt: number, story: Story): boolean {
  const isOwn = ({ by }: { readonly by: string }) => by === delivery.by;
  if (story.callsOf("close").some((call) => isOwn(call) && call.begun.index < delivery.index)) {
    return false;
  }
  const hasAsked = story
    .callsOf("take", "takeMany", "poll")
    .some(
      (call) =>
        isOwn(call) &&
        call.begun.at <= dueAt &&
        (call.ended === undefined || call.ended.index >= delivery.index),
    );
  if (hasAsked) return true;
  // A subscription: its handlers have ended by then.
  const before = story.deliveries.filter((one) => isOwn(one) && one.index < delivery.index);
  return before.length > 0 && before.every(({ end }) => end !== undefined && end.at <= dueAt);
}

/** Milliseconds: more than a task that stands by needs. */
const LATEST = 1500;

/** The most milliseconds between two sweeps of a task on duty. */
const SWEEP = 60_000;

/** Milliseconds that it may take until everybody is connected again. */
const RECOVERY = 10_000;

const EXCUSES: readonly FaultKind[] = [
  "cut",
  "silence",
  "delay",
  "late-replies",
  "trickle",
  "stall",
  "client-kill",
  "failover",
  "rights",
];
