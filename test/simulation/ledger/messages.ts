import {
  isAbout,
  copiesOf,
  deliveriesTo,
  earliestOf,
  EXACT,
  isAskedFor,
  isPlain,
  isStored,
  isUndone,
  limitOf,
  LOSES_CONNECTION,
  mayBeAbout,
  mayBeStored,
  mayHaveRevoked,
  mayHaveTakenEffect,
  mayReplace,
  nameOf,
  nameOfDelivery,
  replaces,
  tookEffect,
  type Promises,
  type Rule,
} from "./promises.ts";
import { isFor, wasForgotten } from "./groups.ts";
import { mayBeDropped } from "./guards.ts";
import { isInCopy } from "./restores.ts";
import type { FaultKind } from "../sim.ts";
import type { Call, Delivery, Fault, Offer, Story } from "./story.ts";

/**
 * Messages with one key, or a message without a key. Redis knows which of them a call by key has met; the ledger
 * compares numbers.
 */
interface Family {
  readonly name: string;
  readonly offers: Offer[];
  readonly cancels: Call[];
}

/**
 * **Nothing is lost**: what was stored and not taken away has been delivered, or in a reliable queue was handled to the
 * end, in each group.
 *
 * A plain queue may lose what is on its way to a process that crashes, or whose connection is lost. A reliable one may
 * not. A failover takes with it what was done since the copy was made.
 */
export const lost: Rule = (story, promises) => {
  const violations: string[] = [];
  const missing: Missing[] = [];
  for (const group of promises.groups) {
    for (const family of familiesOf(story)) {
      const offers = family.offers.filter(
        (offer) =>
          isStored(offer, story) &&
          isFor(offer, group, story, promises) &&
          !mayBeRevoked(offer, group, story) &&
          !wasForgotten(offer, group, story) &&
          !(promises.isSpread === true && mayHaveFallenBetween(offer, story)),
      );
      const removed = sum(family.cancels.filter(mayHaveTakenEffect), () => 1);
      const replacing = family.offers.filter((offer) => mayReplace(offer, story));
      const replaced = sum(replacing, (offer) => copiesOf(offer, story));
      const gone = offers.filter((offer) => !mayBeDone(offer, group, story, promises));
      const unknown = family.offers.filter(
        (offer) => !offers.includes(offer) && mayBeDone(offer, group, story, promises),
      );
      const count = gone.length - removed - replaced - unknown.length;
      if (count <= 0) continue;
      if (promises.kind !== "reliable") missing.push({ gone, count });
      else
        violations.push(`lost: ${count} of ${family.name}${inGroup(group)}, perhaps ${list(gone)}`);
    }
  }
  return [...violations, ...unexcused(missing, story, promises)];
};

function mayBeRevoked(offer: Offer, group: string, story: Story): boolean {
  return story.callsOf("revoke").some((call) => mayHaveRevoked(call, offer, story, group));
}

/**
 * Whether one of several servers has fallen back over a change of the number of partitions while the message was there:
 * the arrival of a batch may be undone on one server, and not that the other one has dropped it. A single server goes
 * back as a whole, and loses nothing but what was done since.
 */
function mayHaveFallenBetween({ begun }: Offer, story: Story): boolean {
  return story.faults.some(
    ({ kind, index, at, since }) =>
      kind === "failover" &&
      begun.index < index &&
      story
        .callsOf("setPartitions")
        .some((call) => call.begun.at <= at && (call.ended?.at ?? Infinity) >= since),
  );
}

/** Messages that share a key, of which so many are missing: nobody knows which ones. */
interface Missing {
  readonly gone: readonly Offer[];
  count: number;
}

/** The messages for whose loss there is no excuse. */
function unexcused(missing: readonly Missing[], story: Story, { capacity }: Promises): string[] {
  const excuses = story.faults
    .filter(({ kind }) => kind === "crash" || LOSES_CONNECTION.includes(kind))
    .filter(({ role = "blocking" }) => TAKE_OVER.includes(role))
    .map((fault) => {
      const most = onTheWay(fault, story);
      return { fault, left: most > 0 ? (capacity ?? most) : 0 };
    });
  // What was taken out, and whose reply was lost, or what was dropped, need not have been due.
  const removals = story
    .callsOf("dropDelayed", "clear")
    .filter(
      (call) => mayHaveTakenEffect(call) && (call.verb === "clear" || call.answer === undefined),
    )
    .map((call) => ({
      call,
      left: ((call.answer ?? call.args["limit"]) as number | undefined) ?? Infinity,
    }));
  const due = missing
    .flatMap((family) => family.gone.map((offer) => ({ family, offer, at: dueAt(offer, story) })))
    .toSorted((a, b) => b.at - a.at);
  for (const { family, offer, at } of due) {
    if (family.count === 0) continue;
    const until = offer.begun.index;
    const excuse =
      removals.find(({ call, left }) => left > 0 && (call.ended?.index ?? Infinity) > until) ??
      excuses.find(({ left, fault }) => left > 0 && endOf(fault) >= at);
    if (excuse === undefined) continue;
    excuse.left--;
    family.count--;
  }
  return missing.flatMap(({ gone, count }) => {
    if (count === 0) return [];
    return gone.slice(-count).map((offer) => `lost: ${nameOf(offer)}`);
  });
}

/** Until when a fault may lose a message: Redis sees a moment later that the connections of a process have ended. */
function endOf({ kind, until }: Fault): number {
  return kind === "crash" ? until + 20 : until;
}

/** The connections that messages come over. */
const TAKE_OVER = ["blocking", "background"];

/** How many messages may have been on their way to the processes that a fault met. */
function onTheWay({ process, at, until }: Fault, story: Story): number {
  const calls = story
    .callsOf("take", "takeMany", "poll", "dropDelayed", "subscribe")
    .filter(({ by, args, begun, ended, error, answer }) => {
      // A group loses nothing.
      if ((process !== undefined && process !== by) || args["group"] !== undefined) return false;
      // What came when nobody waited any more goes back.
      const isGivenUp = error !== undefined || answer === 0;
      return begun.at <= until && (ended?.at ?? Infinity) + (isGivenUp ? GOING_BACK : 0) >= at;
    });
  return sum(calls, ({ args }) => (args["limit"] as number | undefined) ?? 1);
}

/** Milliseconds that a message may be on its way back. */
const GOING_BACK = 5000;

/** When the message fell due at the earliest, in milliseconds since the run began. */
function dueAt(offer: Offer, story: Story): number {
  const { end } = story;
  return end.at - (story.latest(end) - earliestOf(offer, story, end));
}

/** Whether the group may be done with the message. */
function mayBeDone(offer: Offer, group: string, story: Story, promises: Promises): boolean {
  const deliveries = deliveriesTo(group, offer.n, story, promises);
  const counting = deliveries.filter((one) => !isInCopy(offer, one, story));
  if (counting.some((one) => isPlain(one) || mayHaveSucceeded(one))) return true;
  if (mayBeDropped(offer, story)) return true;
  // Together with its letter, one of another group is removed that nobody has seen.
  const isRemoved = story
    .callsOf("removeLetters")
    .some((call) => mayBeAbout(call, offer) && mayHaveTakenEffect(call));
  return isRemoved || isDead(offer, group, story);
}

/** Whether the consumer may have acknowledged the message. */
function mayHaveSucceeded({ end, settlements }: Delivery): boolean {
  if (end?.how === "returned") return true;
  return settlements.some((call) => call.verb === "ack" && isAskedFor(call));
}

/** Whether the message is a dead letter that nobody has redriven since. */
function isDead(offer: Offer, group: string, story: Story): boolean {
  const deaths = story.deaths.filter((death) => death.n === offer.n && death.group === group);
  const last = deaths.at(-1);
  if (last === undefined) return false;
  const [next] = story
    .callsOf("redrive", "clear")
    .filter((call) => mayBeAbout(call, offer) && mayHaveTakenEffect(call))
    .filter((call) => call.begun.index > last.index);
  return next?.verb !== "redrive";
}

/**
 * **What was taken away stays away**: of the messages with one key no more are delivered than were stored and neither
 * cancelled nor replaced.
 */
export const undone: Rule = (story, promises) => {
  const [group] = promises.groups;
  // A message that one group has finished may still be cancelled for another one.
  if (promises.groups.length > 1 || group === undefined) return [];
  return familiesOf(story).flatMap((family) => {
    const stored = family.offers.filter(mayBeStored);
    const copies = sum(stored, (offer) => copiesOf(offer, story));
    const cancelled = family.cancels.filter((call) => tookEffect(call, story)).length;
    const replaced = stored.filter((offer) => isStored(offer, story) && replaces(offer)).length;
    const done = stored.filter((offer) => isDone(offer, group, story, promises));
    if (done.length <= copies - cancelled - replaced) return [];
    return [
      `not taken away: of ${family.name} ${list(done)} were handled, though of ${copies} stored ${cancelled} were cancelled and ${replaced} replaced`,
    ];
  });
};

/** Whether the group is certainly done with the message. */
function isDone(offer: Offer, group: string, story: Story, promises: Promises): boolean {
  return deliveriesTo(group, offer.n, story, promises)
    .filter((one) => !isUndone(one, story))
    .some(
      (one) =>
        isPlain(one) ||
        one.settlements.some((call) => call.verb === "ack" && tookEffect(call, story)),
    );
}

/** **A refusal is exact**: an offer that was rejected, or whose error said that it is not stored, is never delivered. */
export const refused: Rule = (story) =>
  story.deliveries.flatMap((delivery) => {
    const offer = story.offers.get(delivery.n);
    if (offer === undefined) return [`unknown: ${nameOfDelivery(delivery)} was never offered`];
    if (mayBeStored(offer)) return [];
    // Its first copy was stored; the second met the first one's successor.
    if (offer.fate === "rejected" && copiesOf(offer, story) > 1) return [];
    return [`delivered though ${offer.fate}: ${nameOfDelivery(delivery)}`];
  });

/** **A cancelled message is never delivered**, and only one call cancels it. */
export const cancelled: Rule = (story, promises) => {
  const violations: string[] = [];
  const cancels = story
    .callsOf("cancel")
    .filter((call) => call.answer === true && tookEffect(call, story));
  const seen = new Set<Offer>();
  for (const call of cancels) {
    const offer = story.offerOf(call.args["target"] as string);
    if (offer === undefined || copiesOf(offer, story) > 1) continue;
    if (promises.groups.length > 1) continue;
    // Of a message that waits for a retry, earlier attempts have been delivered.
    const late = story
      .deliveriesOf(offer.n)
      .filter(({ index }) => promises.kind === "plain" || index > (call.ended?.index ?? Infinity));
    for (const delivery of late)
      violations.push(
        `cancelled: ${nameOfDelivery(delivery)}, cancelled by ${call.by} at ${call.ended?.at} ms`,
      );
    if (seen.has(offer)) violations.push(`cancelled twice: ${nameOf(offer)}`);
    seen.add(offer);
  }
  return violations;
};

/** **A plain queue delivers a message once**, unless its offer was sent again or a failover undid the taking. */
export const twice: Rule = (story, { kind }) => {
  if (kind !== "plain") return [];
  return [...story.offers.values()].flatMap((offer) => {
    const deliveries = story.deliveriesOf(offer.n).filter((one) => !isUndone(one, story));
    if (deliveries.length <= copiesOf(offer, story)) return [];
    return [`twice: ${deliveries.map(nameOfDelivery).join("; ")}`];
  });
};

/** **Nothing is early** on the server's clock. */
export const early: Rule = (story) =>
  story.deliveries.flatMap((delivery) => {
    const offer = story.offers.get(delivery.n);
    if (offer === undefined || !mayBeStored(offer) || delivery.isEarly || delivery.attempt > 1)
      return [];
    const by = earliestOf(offer, story, delivery) - story.latest(delivery);
    return by > EXACT ? [`early by ${by.toFixed(2)} ms: ${nameOfDelivery(delivery)}`] : [];
  });

/**
 * **An offer that resolves has an id, and a deadline: the server's time plus the delay**, rounded up. A delay that is over
 * when the offer reaches Redis, as one of 0 is, is rounded down: the message is due at once. A `maxWait` of its key may make
 * it sooner.
 */
export const deadlines: Rule = (story) => {
  const stepped = story.faults.find(({ kind }) => kind === "clock-step")?.index ?? Infinity;
  return [...story.offers.values()].flatMap((offer) => {
    const isPut = offer.args["isPut"] === true;
    if (offer.fate === "stored" && offer.id === undefined && !isPut)
      return [`no result: ${nameOf(offer)}`];
    if ((offer.ended?.index ?? Infinity) > stepped) return [];
    const { delay, maxWait } = offer.args as { delay?: number; maxWait?: number };
    if (offer.fate !== "stored" || offer.outcome === "updated" || offer.ended === undefined)
      return [];
    if (delay === undefined || maxWait !== undefined || offer.deadline === undefined) return [];
    const exactly = offer.begun.now + delay - EXACT;
    const mayBeOver = exactly <= offer.ended.now;
    const least = Math.min(mayBeOver ? Math.floor(exactly) : exactly, limitOf(offer, story));
    const most = offer.ended.now + delay + 1;
    if (least <= offer.deadline && offer.deadline <= most) return [];
    if (copiesOf(offer, story) > 1 && isMovedMeanwhile(offer, story)) return [];
    return [`deadline: ${nameOf(offer)} got ${offer.deadline}, not ${least} to ${most}`];
  });
};

/** Whether the first copy of an offer may have been moved before its second one was answered with the deadline as it is. */
function isMovedMeanwhile(offer: Offer, story: Story): boolean {
  return story
    .callsOf("reschedule", "promote")
    .some(
      (call) =>
        isAbout(call, offer, story) &&
        mayHaveTakenEffect(call) &&
        call.begun.index < (offer.ended?.index ?? Infinity),
    );
}

/**
 * **In order**: a process gets messages in the order of their deadlines, and messages of one producer with equal
 * deadlines in the order of the offers. A message that was not there yet when a later one was moved comes behind it.
 */
export const order: Rule = (story, { inOrder = false }) => {
  if (!inOrder) return [];
  const violations: string[] = [];
  const disturbed =
    story.faults.find(({ kind }) => MAY_GIVE_BACK.includes(kind))?.index ?? Infinity;
  for (const [i, first] of story.deliveries.entries()) {
    for (const second of story.deliveries.slice(i + 1)) {
      if (first.by !== second.by || first.step === second.step) continue;
      if (second.index > disturbed) break;
      if (first.isEarly || second.isEarly || first.group !== second.group) continue;
      if (first.attempt > 1 || second.attempt > 1) continue;
      const a = settled(first, story);
      const b = settled(second, story);
      if (a === undefined || b === undefined || !isBefore(b, a)) continue;
      // Was b in Redis when a was moved?
      if (story.latest(b.offer.ended) >= a.deadline) continue;
      violations.push(`order: ${nameOfDelivery(first)} before ${nameOfDelivery(second)}`);
    }
  }
  return violations;
};

/** After these a message may go back to the head of the queue, behind those that were taken meanwhile. */
const MAY_GIVE_BACK: readonly FaultKind[] = [...LOSES_CONNECTION, "stall", "crash", "rights"];

/** A message whose deadline is certain. */
function settled({ n }: Delivery, story: Story) {
  const offer = story.offers.get(n);
  if (offer?.deadline === undefined || offer.ended === undefined) return undefined;
  if (!isStored(offer, story) || copiesOf(offer, story) > 1) return undefined;
  const target = [...story.callsOf("reschedule", "promote")].some(
    ({ args }) => args["target"] === offer.key || story.offerOf(String(args["target"])) === offer,
  );
  return target ? undefined : { offer: { ...offer, ended: offer.ended }, deadline: offer.deadline };
}

function isBefore(
  a: { offer: Offer; deadline: number },
  b: { offer: Offer; deadline: number },
): boolean {
  if (a.deadline !== b.deadline) return a.deadline < b.deadline;
  return a.offer.by === b.offer.by && a.offer.begun.index < b.offer.begun.index;
}

/** **Nothing is stuck**: while processes take, the reader that drains the queue at the end finds nothing. */
export const stuck: Rule = (story) =>
  story.deliveries
    .filter(({ isLast }) => isLast)
    .map((delivery) => `stuck: only the last reader got ${nameOfDelivery(delivery)}`);

function familiesOf(story: Story): Family[] {
  const families = new Map<string, Family>();
  for (const offer of story.offers.values()) {
    const name = familyOf(offer);
    const family = families.get(name) ?? { name, offers: [], cancels: [] };
    families.set(name, family);
    family.offers.push(offer);
  }
  for (const call of story.callsOf("cancel")) {
    const target = call.args["target"] as string;
    const offer = story.offerOf(target);
    families.get(offer === undefined ? target : familyOf(offer))?.cancels.push(call);
  }
  return [...families.values()];
}

function familyOf({ key, n }: Offer): string {
  return key ?? `message ${n}`;
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

function list(offers: readonly Offer[]): string {
  return offers.map(({ n }) => n).join(", ");
}

function inGroup(group: string): string {
  return group === "" ? "" : ` in group ${group}`;
}
