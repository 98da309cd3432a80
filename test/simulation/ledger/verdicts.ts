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
    .callsOf("cancel", "reschedule", "promote", "get", "has")
    .filter(({ error, answer }) => error === undefined && (answer === false || answer === null))
    .flatMap((call) =>
      [...story.offers.values()]
        .filter((offer) => isAbout(call, offer, story) && isWaiting(offer, call, story, promises))
        .map(
          (offer) =>
            `wrong no: ${call.verb} of ${call.by} at ${call.begun.at} ms did not find ${nameOf(offer)}`,
        ),
    );

/** **Keys are exact**: whether a second offer is added, rejected, replaces or keeps depends on who holds the key. */
export const keys: Rule = (story, promises) =>
  [...story.offers.values()].flatMap((offer) => {
    if (offer.key === undefined || offer.ended === undefined || offer.outcome === undefined)
      return [];
    if (copiesOf(offer, story) > 1) return [];
    const others = [...story.offers.values()].filter(
      (other) => other.key === offer.key && other !== offer,
    );
    if (offer.outcome === "added") {
      const holder = others.find((other) => isWaiting(other, offer, story, promises));
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
  if (others.some(({ fate }) => fate === "unknown")) return [];
  if (offer.outcome === "rejected" && offer.id !== undefined) {
    const { id } = offer;
    if (others.some((other) => other.id !== undefined && hexOf(other.id) === hexOf(id))) return [];
    return [`key: ${nameOf(offer)} was rejected for ${id}, which nobody offered`];
  }
  return [];
}

/** Whether the message was delayed or retrying from before the call began until after it had ended. */
function isWaiting(offer: Offer, call: Call, story: Story, promises: Promises): boolean {
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
  // A process may take out what is not due yet.
  if (story.deliveries.some(({ n, isEarly }) => n === offer.n && isEarly)) return false;
  return !changesOf(offer, story).some(
    (change) => change !== call && change.begun.index < ended.index && mayHaveTakenEffect(change),
  );
}
