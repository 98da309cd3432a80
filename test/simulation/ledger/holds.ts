import {
  changesOf,
  copiesOf,
  hasLeft,
  isStored,
  mayBeStored,
  mayHaveTakenEffect,
  pauseAfter,
  tookEffect,
  type Promises,
} from "./promises.ts";
import type { Call, Offer, Story } from "./story.ts";

/**
 * Whether the message was retrying from before the call began until after it had ended, so that the call finds it: by its
 * id, or by its key, which a retrying message holds unless a newer one has it.
 *
 * Only a `nack` by hand says when the message began to retry.
 */
export function isRetrying(offer: Offer, call: Call, story: Story, promises: Promises): boolean {
  const { isStrict = false, maxAttempts = Infinity } = promises;
  const { ended } = call;
  // A message that failed in strict order stays in flight. With partitions, a retry may stay where its key is not looked for.
  if (promises.kind !== "reliable" || isStrict || story.callsOf("setPartitions").length > 0)
    return false;
  if (ended === undefined || !isStored(offer, story) || copiesOf(offer, story) > 1) return false;
  if (story.faults.some(({ kind, index }) => kind === "failover" && index < ended.index))
    return false;
  return story.deliveriesOf(offer.n).some((delivery) => {
    const nack = delivery.settlements.find(({ verb }) => verb === "nack");
    if (nack?.ended === undefined || !tookEffect(nack, story)) return false;
    if (nack.ended.index > call.begun.index || delivery.attempt >= maxAttempts) return false;
    const pause = pauseAfter(delivery, nack, promises);
    if (pause === undefined || nack.begun.now + pause <= story.latest(ended)) return false;
    const isChanged = changesOf(offer, story).some(
      (change) =>
        change !== call &&
        change.begun.index < ended.index &&
        (change.ended?.index ?? Infinity) > delivery.index &&
        mayHaveTakenEffect(change),
    );
    if (isChanged) return false;
    // Retries are looked for by the groups that there are.
    const isDestroyed = story
      .callsOf("destroy")
      .some(({ args, begun }) => args["group"] === delivery.group && begun.index < ended.index);
    if (isDestroyed) return false;
    const { target = offer.key } = call.args;
    // Of the ids that it has had, the last one finds it.
    if (target !== offer.key) return target === delivery.id;
    return holdsKey(offer, nack, story, promises);
  });
}

/** Whether the message certainly has its key since this `nack`: no other one with the key waited. */
function holdsKey(offer: Offer, nack: Call, story: Story, promises: Promises): boolean {
  const { ended, begun, by } = nack;
  // Redis may have refused the index, and the message retries without its key.
  if (ended === undefined || story.isHit(by, ["rights"], begun, ended)) return false;
  return ![...story.offers.values()].some(
    (other) =>
      other !== offer &&
      other.key === offer.key &&
      other.begun.index < ended.index &&
      (copiesOf(other, story) > 1 ||
        (mayBeStored(other) && !hasLeft(other, nack, story, promises))),
  );
}
