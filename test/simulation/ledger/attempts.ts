import {
  copiesOf,
  EXACT,
  isAbout,
  isAskedFor,
  isForgotten,
  isPlain,
  isUndone,
  LOSES_LEASE,
  mayBeAbout,
  mayHaveRevoked,
  mayHaveTakenEffect,
  nameOfDelivery,
  pauseAfter,
  tookEffect,
  type Promises,
  type Rule,
} from "./promises.ts";
import { hexOf, type Call, type Delivery, type Moment, type Story } from "./story.ts";

/**
 * **An attempt is made once**: each delivery of a message to a group has the next number, except after a redrive, and
 * except if a handler was cut short by closing, which does not count.
 */
export const attempts: Rule = (story, promises) =>
  byMessage(story, promises).flatMap((deliveries) => {
    const [first] = deliveries;
    if (first === undefined) return [];
    const offer = story.offers.get(first.n);
    if (offer === undefined) return [];
    const redrives = story
      .callsOf("redrive")
      .filter((call) => mayBeAbout(call, offer) && mayHaveTakenEffect(call)).length;
    // Attempts begin anew when the queue is made plain.
    const changes = story.callsOf("makePlain").filter(mayHaveMoved).length;
    // Each copy may die and be redriven.
    const allowed = copiesOf(offer, story) * (1 + redrives) + changes;
    const violations: string[] = [];
    const counts = new Map<number, number>();
    for (const delivery of deliveries) {
      const { attempt, failures, end } = delivery;
      if (end?.how === "cut short" || isPlain(delivery) || isUndone(delivery, story)) continue;
      // Where a failover undid the acknowledgement, the process does not know what it has in flight, and gives it back.
      if (endsOf(delivery).some((moment) => isUndone(moment, story))) continue;
      const count = (counts.get(attempt) ?? 0) + 1;
      counts.set(attempt, count);
      if (count > allowed) violations.push(`attempt made again: ${nameOfDelivery(delivery)}`);
      if (attempt > (promises.maxAttempts ?? Infinity))
        violations.push(`more than maxAttempts: ${nameOfDelivery(delivery)}`);
      const expected = Math.min(10, attempt - 1);
      if (redrives === 0 ? failures !== expected : failures < expected)
        violations.push(`${failures} failures: ${nameOfDelivery(delivery)}`);
    }
    return violations;
  });

/** When the process learnt, or decided, that it has the message no longer. */
function endsOf({ end, abortedAt, settlements }: Delivery): Moment[] {
  const moments = [end, abortedAt, ...settlements.map(({ ended }) => ended)];
  return moments.filter((moment) => moment !== undefined);
}

/** Whether a step of `makePlain` may have moved messages. */
function mayHaveMoved(call: Call): boolean {
  const { isPlain: isDone, moved } = (call.answer ?? {}) as { isPlain?: boolean; moved?: number };
  if (call.answer === undefined) return mayHaveTakenEffect(call);
  return isDone === true || (moved ?? 0) > 0;
}

/**
 * **A message keeps its id and its key**, on each delivery and in each group. In a list, which it passes through where the
 * queue changes its kind, it has neither.
 */
export const identity: Rule = (story, { kind }) =>
  story.deliveries.flatMap((delivery) => {
    const offer = story.offers.get(delivery.n);
    if (offer === undefined || delivery.id === undefined || offer.fate === "rejected") return [];
    if (kind === "mixed" && delivery.key === undefined) return [];
    if (delivery.key !== offer.key) return [`key ${delivery.key}: ${nameOfDelivery(delivery)}`];
    // Retries get new ids when the queue is made plain.
    if (kind === "mixed" || offer.id === undefined || hexOf(offer.id) === hexOf(delivery.id))
      return [];
    return [`id ${delivery.id}, not ${offer.id}: ${nameOfDelivery(delivery)}`];
  });

/**
 * **What succeeded is not handled again, and what is handled again has failed**: by a handler that threw, a `nack`, a
 * lease that ended, or a fault that met the process.
 */
export const again: Rule = (story, promises) =>
  byMessage(story, promises).flatMap((deliveries) =>
    deliveries.flatMap((delivery, i) => {
      const offer = story.offers.get(delivery.n);
      if (offer === undefined || copiesOf(offer, story) > 1) return [];
      const before = deliveries[i - 1];
      if (before === undefined) {
        if (delivery.attempt <= 1 || isAnyHit(story, delivery)) return [];
        return [`attempt without those before it: ${nameOfDelivery(delivery)}`];
      }
      if (isUndone(before, story)) return [];
      const acknowledged = before.settlements.find(
        (call) => call.verb === "ack" && call.answer === true && tookEffect(call, story),
      );
      if (acknowledged !== undefined && (acknowledged.ended?.index ?? 0) < delivery.index)
        return [`handled again after its ack: ${nameOfDelivery(delivery)}`];
      if (isPlain(before)) return [`handled again after it was taken: ${nameOfDelivery(delivery)}`];
      if (isRedriven(before, delivery, story)) return [];
      if (hasFailed(before, delivery, story, promises)) return [];
      return [`handled again without a reason: ${nameOfDelivery(delivery)}`];
    }),
  );

/**
 * **What nobody has tried is no attempt**: one that is counted, and reached no handler, was lost to a fault after the
 * pause before it was over. Who waits for the end of a pause may die.
 */
export const uncounted: Rule = (story, promises) =>
  byMessage(story, promises).flatMap((deliveries) =>
    deliveries.slice(1).flatMap((next, i) => {
      const before = deliveries[i];
      const offer = story.offers.get(next.n);
      if (before === undefined || offer === undefined || copiesOf(offer, story) > 1) return [];
      if (next.attempt <= before.attempt + 1 || isRedriven(before, next, story)) return [];
      const { faults } = story;
      if (faults.some(({ kind, at }) => kind === "clock-step" && at >= before.at)) return [];
      const hits = faults.filter(
        ({ kind, at, until }) => LOSES_LEASE.includes(kind) && at <= next.at && until >= before.at,
      );
      // One fault may end the attempt before, or its settlement; that is no attempt more.
      const isHeldBack = before.end?.how === "threw" && before.settlements.length === 0;
      const pause = isHeldBack && hits.length === 1 ? pauseAfter(before, undefined, promises) : 0;
      const dueAt = retryAt(before, next, story, promises) ?? before.now + (pause ?? 0);
      const over = before.at + dueAt - before.now;
      const isLost = hits.some(({ until }) => until >= over);
      return isLost ? [] : [`counted and not tried: ${nameOfDelivery(next)}`];
    }),
  );

/** Whether there is a reason for the next delivery. */
function hasFailed(before: Delivery, next: Delivery, story: Story, promises: Promises): boolean {
  if (before.end !== undefined && before.end.how !== "returned") return true;
  // What it lost before, as while it stood still, it had not begun.
  const isHit = story
    .faultsOn(before.by, LOSES_LEASE, before, next)
    .some(({ index, until }) => index > before.index || until > before.at);
  if (isHit) return true;
  if (seemsDead(next, story, promises)) return true;
  const isClosing = story
    .callsOf("close", "closeQueue")
    .some((call) => call.by === before.by && call.begun.index < next.index);
  if (isClosing) return true;
  if (before.settlements.some((call) => FAILS.includes(call.verb) && isAskedFor(call))) return true;
  if (mayBeTakenForDead(before, next, story)) return true;
  return isByHand(before) && isExpired(before, next, promises);
}

/** Whether `makePlain` may have taken a consumer for dead: it asks Redis once, and believes its clock. */
function seemsDead(moment: Moment, story: Story, { kind }: Promises): boolean {
  if (kind !== "mixed") return false;
  return story.faults.some((fault) => fault.kind === "clock-step" && fault.index < moment.index);
}

/** A change of the number of partitions looks once whether a consumer lives, and the clock may have been set forward. */
function mayBeTakenForDead(before: Delivery, next: Delivery, story: Story): boolean {
  const steps = story.faults.filter(
    ({ kind, by, at }) => kind === "clock-step" && by > 0 && before.at <= at && at <= next.at,
  );
  return steps.some((step) =>
    story
      .callsOf("setPartitions")
      .some(({ begun, ended }) => begun.at <= next.at && (ended?.at ?? Infinity) >= step.at),
  );
}

/** Whether a delivery that was taken by hand was not settled in time. */
function isExpired(before: Delivery, next: Delivery, promises: Promises): boolean {
  const { leaseTimeout = 30_000 } = promises;
  const [first] = before.settlements;
  return (first?.begun.at ?? next.at) - before.at >= leaseTimeout * 0.9;
}

function isByHand({ end }: Delivery): boolean {
  return end === undefined;
}

const FAILS = ["nack", "reject"];

/** **What was given up settles nothing**: its handler went on for longer than its time limit and its grace. */
export const givenUp: Rule = (story) =>
  story.deliveries.flatMap((delivery) =>
    delivery.settlements
      .filter((call) => call.answer === true && wasGivenUpBefore(delivery, call.begun))
      .map(({ verb }) => `${verb} after it was given up: ${nameOfDelivery(delivery)}`),
  );

function wasGivenUpBefore({ end }: Delivery, moment: Moment): boolean {
  return end?.how === "given up" && end.index < moment.index;
}

/** **A settlement is exact**: `false` means that the lease was lost, or that the delivery was settled or revoked before. */
export const exactSettlements: Rule = (story, promises) =>
  story.deliveries.flatMap((delivery) =>
    delivery.settlements.flatMap((call, i) => {
      if (call.answer !== false || call.ended === undefined) return [];
      if (delivery.settlements.slice(0, i).some(isAskedFor)) return [];
      if (wasGivenUpBefore(delivery, call.ended)) return [];
      if (mayBeRevoked(delivery, call.ended, story)) return [];
      if (story.isHit(delivery.by, LOSES_LEASE, delivery, call.ended)) return [];
      // What the old master still sent has been forgotten.
      if (isUndone(delivery, story) || seemsDead(call.ended, story, promises)) return [];
      const { leaseTimeout = 30_000 } = promises;
      if (call.ended.at - delivery.at >= leaseTimeout * 0.9) return [];
      if (story.callsOf("close", "closeQueue").some(({ by }) => by === delivery.by)) return [];
      return [`${call.verb} refused without a reason: ${nameOfDelivery(delivery)}`];
    }),
  );

/** Whether the message of a delivery may have been revoked by then. */
function mayBeRevoked({ n, group }: Delivery, { index }: Moment, story: Story): boolean {
  const offer = story.offers.get(n);
  return story
    .callsOf("revoke")
    .some(
      (call) =>
        offer !== undefined &&
        call.begun.index < index &&
        mayHaveRevoked(call, offer, story, group),
    );
}

/** **No retry is early**: it waits as long as `nack` or `retry` said, on the server's clock. */
export const pausesOfRetries: Rule = (story, promises) =>
  byMessage(story, promises).flatMap((deliveries) =>
    deliveries.slice(1).flatMap((delivery, i) => {
      const before = deliveries[i];
      const offer = story.offers.get(delivery.n);
      if (before === undefined || offer === undefined || copiesOf(offer, story) > 1) return [];
      if (isRedriven(before, delivery, story) || isUndone(before, story)) return [];
      // A process that stood still hands out what it was given before: no retry, which counts one attempt more.
      if (delivery.attempt <= before.attempt) return [];
      const isMoved = story
        .callsOf("reschedule", "promote")
        .some((call) => isAbout(call, offer, story) && mayHaveTakenEffect(call));
      if (isMoved) return [];
      const dueAt = retryAt(before, delivery, story, promises);
      if (dueAt === undefined) return [];
      const by = dueAt - story.latest(delivery);
      return by > EXACT ? [`retry early by ${by.toFixed(2)} ms: ${nameOfDelivery(delivery)}`] : [];
    }),
  );

/** When the retry is due at the earliest; undefined if nobody knows how the attempt ended for Redis. */
function retryAt(before: Delivery, next: Delivery, story: Story, promises: Promises) {
  const nack = before.settlements.find(({ verb }) => verb === "nack");
  const pause = pauseAfter(before, nack, promises);
  if (nack !== undefined) {
    if (!tookEffect(nack, story) || isForgotten(nack, story)) return undefined;
    return pause === undefined ? undefined : nack.begun.now + pause;
  }
  if (before.end?.how !== "threw" || pause === undefined) return undefined;
  if (before.settlements.length > 0) return undefined;
  if (story.isHit(before.by, LOSES_LEASE, before, next)) return undefined;
  return before.end.now + pause;
}

/** **A message dies of its last delivery, or because it was rejected.** */
export const deaths: Rule = (story, { maxAttempts = Infinity }) =>
  story.deaths.flatMap((death) => {
    const deliveries = story
      .deliveriesOf(death.n)
      .filter(({ group, index }) => group === death.group && index < death.index);
    const violations: string[] = [];
    const isRejected = deliveries.some(
      (delivery) =>
        delivery.end?.how === "rejected" ||
        delivery.settlements.some(({ verb }) => verb === "reject"),
    );
    const what = `message ${death.n} in group ${death.group}, attempt ${death.attempt}`;
    if (death.attempt < maxAttempts && !isRejected) violations.push(`died too early: ${what}`);
    const offer = story.offers.get(death.n);
    if (offer === undefined) return [...violations, `dead, but never offered: ${what}`];
    const calls = deliveries.flatMap((delivery) => delivery.settlements);
    const isDone = calls.some(
      (call) => call.verb === "ack" && call.answer === true && tookEffect(call, story),
    );
    if (isDone && copiesOf(offer, story) === 1) violations.push(`dead after its ack: ${what}`);
    return violations;
  });

/** The deliveries of each message to each group, in order. */
function byMessage(story: Story, { kind }: Promises): Delivery[][] {
  if (kind === "plain") return [];
  const all = new Map<string, Delivery[]>();
  for (const delivery of story.deliveries) {
    const name = kind === "mixed" ? `${delivery.n}` : `${delivery.group} ${delivery.n}`;
    const list = all.get(name) ?? [];
    all.set(name, list);
    list.push(delivery);
  }
  return [...all.values()];
}

function isRedriven(before: Delivery, next: Delivery, story: Story): boolean {
  const offer = story.offers.get(next.n);
  return story
    .callsOf("redrive")
    .some(
      (call) =>
        mayHaveTakenEffect(call) &&
        (offer === undefined || mayBeAbout(call, offer)) &&
        call.begun.index < next.index &&
        (call.ended === undefined || call.ended.index > before.index),
    );
}

function isAnyHit(story: Story, until: Delivery): boolean {
  return story.faults.some(({ kind, index }) => LOSES_LEASE.includes(kind) && index < until.index);
}
