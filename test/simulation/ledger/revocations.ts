import {
  copiesOf,
  isForgotten,
  isStored,
  LOSES_LEASE,
  mayBeAbout,
  mayBeStored,
  mayHaveTakenEffect,
  nameOf,
  nameOfDelivery,
  placesOf,
  tookEffect,
  type Promises,
  type Rule,
  type Where,
} from "./promises.ts";
import type { Call, Delivery, Moment, Offer, Story } from "./story.ts";

type Place = Where["places"][number];

/**
 * **A revoked message never begins again**, in any group, and is no dead letter: not once the call has answered. Only what
 * was handed to a process by then, as its answer says, may begin there as long as the notice is on its way. What is gone is
 * nowhere, so nothing begins after that either.
 */
export const revoked: Rule = (story, promises) =>
  answers(story, "revoke", "stage").flatMap((call) =>
    [...story.offers.values()].flatMap((offer) => {
      const isAnswered = call.verb === "revoke" || call.answer === null;
      if (!isAnswered || !isJudged(call, offer, story)) return [];
      const places = placesOf(call, offer, story);
      const isMeant = (group: string) =>
        isEverywhere(call, offer, story) || places.some((place) => isOf(place, group));
      const begun = story
        .deliveriesOf(offer.n)
        .filter(({ index, group }) => index > call.ended.index && isMeant(group))
        .filter((delivery) => !wasHandedBefore(delivery, call, places, story, promises));
      const died = story.deaths.filter(
        (death) =>
          death.n === offer.n && isMeant(death.group) && seenSince(death, story) > call.ended.index,
      );
      const what = `${call.verb} of ${call.by} at ${call.begun.at} ms said ${stageOf(call)}`;
      return [
        ...begun.map((delivery) => `begins after ${what}: ${nameOfDelivery(delivery)}`),
        ...died.map(({ group }) => `dead in ${group} after ${what}: ${nameOf(offer)}`),
      ];
    }),
  );

/** Since when the dead letters were looked at, of which this is one. */
function seenSince({ index }: Moment, story: Story): number {
  const looks = story.callsOf("deadLetters").filter(({ begun }) => begun.index < index);
  return looks.at(-1)?.begun.index ?? -1;
}

/** **What was revoked while it ran is settled by nobody**: `ack`, `nack` and `reject` say `false`, and so does a later `extend`. */
export const settledLate: Rule = (story) =>
  answers(story, "revoke").flatMap((call) =>
    [...story.offers.values()].flatMap((offer) => {
      if (!isJudged(call, offer, story)) return [];
      const places = placesOf(call, offer, story);
      const running = runningOf(call, offer, story);
      return story.deliveriesOf(offer.n).flatMap((delivery) => {
        const { group, attempt, settlements, by } = delivery;
        const isMeant = places.some((one) => isOf(one, group)) || isEverywhere(call, offer, story);
        if (!isMeant) return [];
        const isRunning = running.includes(delivery);
        return settlements
          .filter((one) => one.answer === true && !isForgotten(one, story))
          .filter(
            ({ verb, begun }) => begun.index > call.ended.index || (isRunning && verb !== "extend"),
          )
          .map(
            ({ verb }) =>
              `${verb} of what was revoked at ${call.begun.at} ms, ${stageOf(call)}: message ${offer.n} in ${by}, attempt ${attempt}`,
          );
      });
    }),
  );

/**
 * **A stage is exact**: what has not begun by the answer of a `revoke` never began; and what a group has acknowledged is in
 * no place of it any more.
 */
export const exactStages: Rule = (story) =>
  answers(story, "revoke", "stage").flatMap((call) =>
    [...story.offers.values()].flatMap((offer) => {
      if (copiesOf(offer, story) > 1 || isFailedOver(story, call)) return [];
      return placesOf(call, offer, story).flatMap((place) =>
        story
          .deliveriesOf(offer.n)
          .filter(({ group }) => isOf(place, group))
          .filter((delivery) => disagrees(delivery, place, call, story))
          .map(
            (delivery) =>
              `${call.verb} of ${call.by} at ${call.begun.at} ms said ${place.stage} after ${place.attempts}: ${nameOfDelivery(delivery)}`,
          ),
      );
    }),
  );

function disagrees(delivery: Delivery, place: Place, call: Answered, story: Story): boolean {
  const { attempt, index, by, end, settlements } = delivery;
  const isSettled = settlements.some(
    (one) =>
      one.verb === "ack" &&
      one.answer === true &&
      tookEffect(one, story) &&
      (one.ended?.index ?? Infinity) < call.begun.index,
  );
  if (isSettled) return place.group !== undefined || groupCount(story) === 1;
  if (attempt <= place.attempts) return false;
  if (call.verb === "stage" && index > call.begun.index) return false;
  // An attempt that was cut short by closing does not count, and one after a redrive counts from 1.
  const isClosing = story
    .callsOf("close", "closeQueue")
    .some((one) => one.by === by && one.begun.index < call.ended.index);
  if (isClosing || end?.how === "cut short") return false;
  const offer = story.offers.get(delivery.n);
  return !story
    .callsOf("redrive")
    .some(
      (one) =>
        mayHaveTakenEffect(one) &&
        (offer === undefined || mayBeAbout(one, offer)) &&
        one.begun.index < call.ended.index,
    );
}

function groupCount({ deliveries }: Story): number {
  return new Set(deliveries.map(({ group }) => group)).size;
}

/**
 * **`hasEnded` is true only if no handler runs**: each has returned, or was settled by hand, or its process is dead or seems
 * so. It is false only of what was running.
 */
export const endedThen: Rule = (story, promises) =>
  answers(story, "revoke").flatMap((call) => {
    const { stage, hasEnded = true } = (call.answer ?? {}) as Partial<Where>;
    if (!hasEnded) return stage === "running" ? [] : [`not ended, though ${stageOf(call)}`];
    return [...story.offers.values()].flatMap((offer) => {
      if (copiesOf(offer, story) > 1) return [];
      return runningOf(call, offer, story)
        .filter((delivery) => !hasEndedBy(delivery, call, story, promises))
        .map(
          (delivery) =>
            `revoke of ${call.by}, at ${call.ended.at} ms, said that it has ended: ${nameOfDelivery(delivery)}`,
        );
    });
  });

function hasEndedBy(
  delivery: Delivery,
  { ended }: Answered,
  story: Story,
  { leaseTimeout = 30_000 }: Promises,
): boolean {
  const { by, end, forgottenAt, settlements, at } = delivery;
  const isBefore = (moment?: Moment) => moment !== undefined && moment.index < ended.index;
  if (isBefore(end) || isBefore(forgottenAt)) return true;
  // By hand, a delivery that is never settled goes with its lease.
  if (end === undefined) {
    if (settlements.some(({ begun }) => isBefore(begun))) return true;
    if (ended.at - at >= leaseTimeout * 0.9) return true;
  }
  // Whoever seems dead counts as such.
  return story.isHit(by, LOSES_LEASE, { at: at - RECOVERY }, { at: Math.max(ended.at, at) });
}

/** **A handler hears at once** that its message was revoked, unless the notice may be lost. */
export const heardOf: Rule = (story) =>
  answers(story, "revoke").flatMap((call) =>
    [...story.offers.values()].flatMap((offer) => {
      if (copiesOf(offer, story) > 1 || isFailedOver(story, call)) return [];
      const until = { at: call.ended.at + ANNOUNCED };
      return runningOf(call, offer, story)
        .filter(({ index }) => index < call.ended.index)
        .filter(({ by, abortedAt, end, settlements }) => {
          if ((abortedAt?.at ?? Infinity) <= until.at || mayMissNotice(by, call, until, story))
            return false;
          const isOver = [end, ...settlements.map(({ begun }) => begun)].some(
            (moment) => moment !== undefined && moment.at <= until.at,
          );
          const isClosing = story
            .callsOf("close", "closeQueue")
            .some((one) => one.by === by && one.begun.at <= until.at);
          return !isOver && !isClosing && story.end.at > until.at;
        })
        .map(
          (delivery) =>
            `does not hear that it was revoked at ${call.ended.at} ms: ${nameOfDelivery(delivery)}`,
        );
    }),
  );

/** A call that has answered. */
type Answered = Call & { readonly ended: Moment };

function answers(story: Story, ...verbs: string[]): Answered[] {
  return story
    .callsOf(...verbs)
    .filter(
      (call): call is Answered =>
        call.ended !== undefined && call.error === undefined && !isForgotten(call, story),
    );
}

/** What a call says of where the message was. */
function stageOf({ answer }: Call): string {
  return (answer as Where | null)?.stage ?? "gone";
}

/** The deliveries of a message that ran, as the call says. After a redrive the attempts begin again. */
function runningOf(call: Answered, offer: Offer, story: Story): Delivery[] {
  return placesOf(call, offer, story).flatMap(({ stage, group, attempts }) => {
    if (stage !== "running") return [];
    const last = story
      .deliveriesOf(offer.n)
      .findLast((one) => one.group === group && one.attempt === attempts);
    return last === undefined ? [] : [last];
  });
}

function isOf(place: Place, group: string): boolean {
  return place.group === undefined || place.group === group;
}

/** Whether what the call says holds for this message: it was found, or it was certainly there to be found. */
function isJudged(call: Answered, offer: Offer, story: Story): boolean {
  if (copiesOf(offer, story) > 1 || isFailedOver(story, call)) return false;
  return placesOf(call, offer, story).length > 0 || isEverywhere(call, offer, story);
}

/**
 * Whether the call has looked for the message in every place: by the only id that it has had; or by its key, if no other
 * message may have taken that away from one that retries.
 */
function isEverywhere(call: Answered, offer: Offer, story: Story): boolean {
  if (!isStored(offer, story) || (offer.ended?.index ?? Infinity) > call.begun.index) return false;
  const { target } = call.args;
  if (target === offer.id) {
    return !story
      .callsOf("reschedule", "promote")
      .some(
        (one) =>
          one.begun.index < call.ended.index &&
          mayHaveTakenEffect(one) &&
          (one.args["target"] === offer.key || story.offerOf(String(one.args["target"])) === offer),
      );
  }
  if (target !== offer.key) return false;
  // Redis may have refused the index, and the message retries without its key.
  if (story.faults.some(({ kind, index }) => kind === "rights" && index < call.ended.index))
    return false;
  return ![...story.offers.values()].some(
    (other) =>
      other !== offer &&
      other.key === offer.key &&
      other.begun.index < call.ended.index &&
      (mayBeStored(other) || copiesOf(other, story) > 1),
  );
}

/** Whether a failover may have brought the message back, or what processes know of it was undone. */
function isFailedOver({ faults }: Story, call: Answered): boolean {
  return faults.some(({ kind, since }) => kind === "failover" && since <= call.ended.at);
}

/** Whether the process had this attempt when the message was revoked, and may not know of that yet. */
function wasHandedBefore(
  delivery: Delivery,
  call: Answered,
  places: readonly Place[],
  story: Story,
  promises: Promises,
): boolean {
  const { by, group, attempt, at } = delivery;
  const place = places.find((one) => isOf(one, group));
  if (place?.stage === "running" && place.attempts === attempt)
    return at <= call.ended.at + ANNOUNCED || mayMissNotice(by, call, delivery, story);
  // A process that stood still hands out what it was given before.
  const before = story
    .deliveriesOf(delivery.n)
    .filter((one) => one.group === group && one.index < call.ended.index);
  const made = place?.attempts ?? Math.max(0, ...before.map((one) => one.attempt));
  const { leaseTimeout = 30_000 } = promises;
  return (
    attempt <= made && story.isHit(by, LOSES_LEASE, { at: call.begun.at - leaseTimeout }, delivery)
  );
}

/** Whether a fault may have kept the notice from the process. */
function mayMissNotice(
  by: string,
  { begun }: Call,
  until: Pick<Moment, "at">,
  story: Story,
): boolean {
  if (story.isHit(by, ["deaf"], { at: 0 }, until)) return true;
  return story.isHit(by, LOSES_LEASE, { at: begun.at - RECOVERY }, until);
}

/** Milliseconds that a notice may be on its way. */
const ANNOUNCED = 20;

/** Milliseconds that it may take until a process is connected again. */
const RECOVERY = 10_000;
