import type { OnlyIf } from "../../../src/index.ts";
import {
  copiesOf,
  earliestOf,
  isForgotten,
  LOSES_CONNECTION,
  nameOf,
  nameOfDelivery,
  type Rule,
} from "./promises.ts";
import type { FaultKind } from "../sim.ts";
import {
  isList,
  type Drop,
  type Fault,
  type KeyState,
  type Moment,
  type Offer,
  type Story,
} from "./story.ts";

/**
 * **Nothing comes against its guard**: a message with `onlyIf` is delivered only if the guard held at some instant between
 * its deadline and the delivery. So what was paid before the deadline is never reminded of.
 */
export const guarded: Rule = (story) =>
  story.deliveries.flatMap((delivery) => {
    const offer = story.offers.get(delivery.n);
    const guard = offer && guardOf(offer);
    // What is taken out early is not asked, and a retry was asked before.
    if (offer === undefined || guard === undefined || delivery.isEarly || delivery.attempt > 1)
      return [];
    if (verdicts(offer, guard, story, delivery).includes(true)) return [];
    return [`against its guard: ${nameOfDelivery(delivery)}`];
  });

/**
 * **Nothing comes too late**: a message with `deliverWithin` that could not be moved in time, since its queue was paused,
 * is not delivered.
 */
export const within: Rule = (story) =>
  story.deliveries.flatMap((delivery) => {
    const offer = story.offers.get(delivery.n);
    const most = offer && withinOf(offer);
    if (offer?.deadline === undefined || most === undefined) return [];
    if (delivery.isEarly || delivery.attempt > 1 || copiesOf(offer, story) > 1) return [];
    const deadline = earliestOf(offer, story, delivery);
    if (deadline !== offer.deadline || story.faults.some(({ kind }) => UNHEARD.includes(kind)))
      return [];
    const isLate = story.callsOf("pause").some((pause) => {
      const { ended, begun } = pause;
      if (ended === undefined || pause.error !== undefined || isForgotten(pause, story))
        return false;
      if (deadline <= ended.now + ANNOUNCED) return false;
      const resumes = story
        .callsOf("resume")
        .filter((resume) => resume.ended === undefined || resume.ended.index > begun.index);
      return resumes.every((resume) => resume.begun.now > deadline + most);
    });
    return isLate ? [`too late: ${nameOfDelivery(delivery)}`] : [];
  });

/** **A drop has its reason**: the guard did not hold at some instant since the deadline, or the message was late. */
export const dropped: Rule = (story) =>
  story.drops.flatMap((drop) => {
    const offer = story.offerOf(drop.id);
    if (offer === undefined) return [];
    const what = `dropped by ${drop.reason} at ${drop.at} ms: ${nameOf(offer)}`;
    if (!hasReason(offer, drop, story)) return [`without reason ${what}`];
    if (copiesOf(offer, story) > 1 || isFailedOver(story)) return [];
    const delivery = story.deliveriesOf(offer.n).find(({ attempt }) => attempt < 2);
    return delivery === undefined ? [] : [`delivered and ${what}`];
  });

/** **Drops are counted**: as many as were told of; more only if a reply was lost that told of one. */
export const counted: Rule = (story, { dropCounts }) => {
  // A copy of the state, or a refusal, may have lost a count.
  if (dropCounts === undefined || isFailedOver(story)) return [];
  if (story.faults.some(({ kind }) => kind === "rights")) return [];
  const mayBeUntold = story.faults.some(({ kind }) => UNTOLD.includes(kind));
  return (["onlyIf", "deliverWithin"] as const).flatMap((reason) => {
    const told = story.drops.filter((drop) => drop.reason === reason).length;
    const count = dropCounts[reason];
    if (count === told || (mayBeUntold && count > told)) return [];
    return [`counted: ${count} dropped by ${reason}, though ${told} were told of`];
  });
};

/**
 * Whether the message may have been dropped when it was due. Whoever drops one tells of it, unless the reply of the move
 * is lost.
 */
export function mayBeDropped(offer: Offer, story: Story): boolean {
  const guard = guardOf(offer);
  const most = withinOf(offer);
  if (guard === undefined && most === undefined) return false;
  if (story.drops.some(({ id }) => story.offerOf(id) === offer)) return true;
  // The id of one that is not known to be stored is not known either.
  const mayBeUntold = offer.id === undefined || story.faults.some(losesReply);
  if (!mayBeUntold) return false;
  return (
    (guard !== undefined && verdicts(offer, guard, story, story.end).includes(false)) ||
    (most !== undefined && mayBeLate(offer, most, story, story.end))
  );
}

/** Whether the reply of a move may be lost: with the connection, or since Redis refused the claim, which comes last. */
function losesReply({ kind, command }: Fault): boolean {
  return UNTOLD.includes(kind) || (kind === "rights" && command === "set");
}

function hasReason(offer: Offer, drop: Drop, story: Story): boolean {
  const guard = guardOf(offer);
  const most = withinOf(offer);
  if (drop.reason === "deliverWithin")
    return most !== undefined && mayBeLate(offer, most, story, drop);
  return guard !== undefined && verdicts(offer, guard, story, drop).includes(false);
}

function mayBeLate(offer: Offer, most: number, story: Story, moment: Moment): boolean {
  return story.latest(moment) > earliestOf(offer, story, moment) + most;
}

/** What the move may have found whenever it came, from the deadline until `moment`: that the guard holds, or not. */
function verdicts(offer: Offer, guard: OnlyIf, story: Story, moment: Moment): boolean[] {
  const due = earliestOf(offer, story, moment);
  const from = story.moments.find(
    (one) => one.index >= offer.begun.index && story.latest(one) >= due,
  );
  const first = Math.min(from?.index ?? moment.index, moment.index);
  const found = statesOf(guard.key, story)
    .filter(({ until, index }) => until >= first && index <= moment.index)
    .flatMap(({ states }) => states.map((state) => holds(guard, state)));
  const { faults } = story;
  const mayBeRefused = faults.some(
    ({ kind, index, command = "" }) =>
      kind === "rights" && index <= moment.index && READS.includes(command),
  );
  return mayBeRefused ? [...found, true] : found;
}

/** What the key may have held, one after another. `until` is where the next one begins. */
function statesOf(key: string, story: Story) {
  const steps: { index: number; at: number; states: readonly KeyState[] }[] = [
    { index: -1, at: -1, states: [null] },
  ];
  const events = [
    ...story.guards.filter((one) => one.key === key),
    ...story.faults.filter(({ kind }) => kind === "failover"),
  ].toSorted((a, b) => a.index - b.index);
  for (const event of events) {
    const { index, at } = event;
    if ("state" in event) steps.push({ index, at, states: [event.state] });
    else {
      // It fell back to what there was at that instant.
      const before = steps.findLast((step) => step.at < event.since);
      const then = steps.filter((step) => step.at === event.since);
      steps.push({
        index,
        at,
        states: [...(before?.states ?? []), ...then.flatMap(({ states }) => states)],
      });
    }
  }
  return steps.map((step, i) => ({ ...step, until: steps[i + 1]?.index ?? Infinity }));
}

/** What a guard says of a key; in doubt, that it holds. */
function holds({ field, is, isNot, exists }: OnlyIf, state: KeyState): boolean {
  if (field === undefined && exists !== undefined) return (state !== null) === exists;
  const value = field === undefined ? textOf(state) : fieldOf(state, field);
  if (value === "of another type") return true;
  if (exists !== undefined) return (value !== null) === exists;
  return is === undefined ? value !== `=${isNot}` : value === `=${is}`;
}

/** The text behind a "="; null if there is none. */
type Value = `=${string}` | null | "of another type";

function textOf(state: KeyState): Value {
  if (state === null) return null;
  return typeof state === "string" ? `=${state}` : "of another type";
}

function fieldOf(state: KeyState, field: string): Value {
  if (state === null) return null;
  if (typeof state === "string" || isList(state)) return "of another type";
  const value = state[field];
  return value === undefined ? null : `=${value}`;
}

function guardOf({ args }: Offer): OnlyIf | undefined {
  return args["onlyIf"] as OnlyIf | undefined;
}

function withinOf({ args }: Offer): number | undefined {
  return args["deliverWithin"] as number | undefined;
}

function isFailedOver({ faults }: Story): boolean {
  return faults.some(({ kind }) => kind === "failover");
}

/** The commands that ask a guard. */
const READS = ["get", "hget", "exists", "hexists"];

/** After these the reply of a move may be lost, and with it what it tells of drops. */
const UNTOLD: readonly FaultKind[] = [...LOSES_CONNECTION, "crash"];

/** After these a process may go on moving in a pause, or the deadline is another one. */
const UNHEARD: readonly FaultKind[] = ["deaf", "silence", "clock-step", "failover"];

/** Milliseconds that the announcement of a pause may be on its way. */
const ANNOUNCED = 20;
