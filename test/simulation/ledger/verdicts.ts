import {
  changesOf,
  copiesOf,
  earliestOf,
  hasLeft,
  isAbout,
  isStored,
  mayBeStored,
  mayHaveTakenEffect,
  nameOf,
  nameOfDelivery,
  type Promises,
  type Rule,
} from "./promises.ts";
import { isRetrying } from "./holds.ts";
import { hexOf, type Call, type Offer, type Story } from "./story.ts";

/**
 * **A "no" is exact**: a call that found no message, although one waited from before it began until after it ended, was
 * wrong.
 */
export const wrongNo: Rule = (story, promises) =>
  story
    .callsOf("cancel", "revoke", "stage", "reschedule", "promote", "get", "has")
    .filter(({ error, answer }) => error === undefined && (answer === false || answer === null))
    .flatMap((call) =>
      [...story.offers.values()]
        .filter(
          (offer) => isAbout(call, offer, story) && isCancellable(offer, call, story, promises),
        )
        .map(
          (offer) =>
            `wrong no: ${call.verb} of ${call.by} at ${call.begun.at} ms did not find ${nameOf(offer)}`,
        ),
    );

/**
 * **A view shows what waits**: every message that waited from before it began until after it ended, each once, and none
 * that had left.
 */
export const views: Rule = (story, promises) =>
  story.callsOf("view").flatMap((call) => {
    if (call.error !== undefined || call.ended === undefined) return [];
    const seen = call.answer as readonly number[];
    const what = `view: ${String(call.args["how"])} of ${call.by} at ${call.begun.at} ms`;
    const isTwice = seen.some((n, i) => seen.indexOf(n) !== i && isOnce(n, story));
    return [...story.offers.values()]
      .flatMap((offer) => {
        if (seen.includes(offer.n)) {
          const isGone = isOnce(offer.n, story) && hasLeft(offer, call, story, promises);
          return isGone ? [`${what} shows ${nameOf(offer)}, which had left`] : [];
        }
        return isDelayed(offer, call, story) ? [`${what} does not show ${nameOf(offer)}`] : [];
      })
      .concat(isTwice ? [`${what} shows a message twice`] : []);
  });

function isOnce(n: number, story: Story): boolean {
  const offer = story.offers.get(n);
  return offer !== undefined && copiesOf(offer, story) === 1 && !isFailedOver(story);
}

function isFailedOver({ faults }: Story): boolean {
  return faults.some(({ kind }) => kind === "failover");
}

/** **What was cleared stays away**: what waited while all delayed messages were dropped is never delivered. */
export const cleared: Rule = (story) =>
  story.callsOf("clear").flatMap((call) => {
    if (call.error !== undefined) return [];
    return story.deliveries
      .filter(({ n, index }) => {
        const offer = story.offers.get(n);
        return index > call.begun.index && offer !== undefined && isDelayed(offer, call, story);
      })
      .map((delivery) => `cleared at ${call.begun.at} ms: ${nameOfDelivery(delivery)}`);
  });

/** **Keys are exact**: whether a second offer is added, rejected, replaces or keeps depends on who holds the key. */
export const keys: Rule = (story, promises) =>
  [...story.offers.values()].flatMap((offer) => {
    if (offer.key === undefined || offer.ended === undefined || offer.outcome === undefined)
      return [];
    const others = [...story.offers.values()].filter(
      (other) => other.key === offer.key && other !== offer,
    );
    if (copiesOf(offer, story) > 1) return wrongHolder(offer, others);
    if (offer.outcome === "added") {
      const holder = others.find((other) => isCancellable(other, offer, story, promises));
      return holder ? [`key: ${nameOf(offer)} was added while ${nameOf(holder)} waited`] : [];
    }
    return [...notHeld(offer, others, story, promises), ...wrongHolder(offer, others)];
  });

/** The key was free: whoever held it had left before the offer began, or came after it had ended. */
function notHeld(offer: Offer, others: Offer[], story: Story, promises: Promises): string[] {
  const mayHold = others.filter(
    (other) =>
      other.begun.index < (offer.ended?.index ?? Infinity) &&
      (mayBeStored(other) || copiesOf(other, story) > 1) &&
      (copiesOf(other, story) > 1 || !hasLeft(other, offer, story, promises)),
  );
  if (mayHold.length > 0) return [];
  return [`key: ${nameOf(offer)} was ${offer.outcome}, though nobody held the key`];
}

/** The answer names a message, or a deadline, that does not belong to the key. */
function wrongHolder(offer: Offer, others: Offer[]): string[] {
  const until = offer.ended?.index ?? Infinity;
  if (others.some(({ fate, begun }) => fate === "unknown" && begun.index < until)) return [];
  if (offer.outcome === "existing" && offer.id !== undefined) {
    const { id } = offer;
    if (others.some((other) => other.id !== undefined && hexOf(other.id) === hexOf(id))) return [];
    return [`key: ${nameOf(offer)} was rejected for ${id}, which nobody offered`];
  }
  return [];
}

/** Whether the message was delayed or retrying from before the call began until after it had ended. */
function isCancellable(offer: Offer, call: Call, story: Story, promises: Promises): boolean {
  return isDelayed(offer, call, story) || isRetrying(offer, call, story, promises);
}

function isDelayed(offer: Offer, call: Call, story: Story): boolean {
  if (!isStored(offer, story) || offer.ended === undefined || call.ended === undefined)
    return false;
  if (offer.ended.index > call.begun.index || copiesOf(offer, story) > 1) return false;
  if (earliestOf(offer, story, call.ended) <= story.latest(call.ended)) return false;
  const { ended } = call;
  if (story.faults.some(({ kind, index }) => kind === "failover" && index < ended.index))
    return false;
  // A process may take out what is not due yet, or drop it.
  if (story.deliveries.some(({ n, isEarly }) => n === offer.n && isEarly)) return false;
  const mayBeGone = story
    .callsOf("dropDelayed", "clear")
    .filter((other) => other !== call && other.begun.index < ended.index)
    .some((other) => (other.verb === "clear" ? mayHaveTakenEffect(other) : isUnanswered(other)));
  if (mayBeGone) return false;
  return !changesOf(offer, story).some(
    (change) =>
      change !== call &&
      change.begun.index < ended.index &&
      mayHaveTakenEffect(change) &&
      !wasOver(change, offer),
  );
}

/** Whether the call was over when the offer began: then it has met another message. */
function wasOver({ ended, error }: Call, offer: Offer): boolean {
  return error === undefined && ended !== undefined && ended.index < offer.begun.index;
}

/** Whether the call may have taken messages that nobody got. */
function isUnanswered(call: Call): boolean {
  return call.answer === undefined && mayHaveTakenEffect(call);
}
