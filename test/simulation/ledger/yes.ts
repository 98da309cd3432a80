import { copiesOf, isForgotten, nameOfDelivery, type Rule } from "./promises.ts";

/**
 * **A yes is exact**: once a message has been handed out again, nothing that is asked for with an earlier delivery of it
 * says `true`. Its lease was lost.
 */
export const exactYes: Rule = (story) =>
  story.deliveries.flatMap((delivery) => {
    const offer = story.offers.get(delivery.n);
    if (offer === undefined || copiesOf(offer, story) > 1) return [];
    // What a process that stood still had read before hands out an earlier attempt.
    const next = story
      .deliveriesOf(delivery.n)
      .find(
        ({ group, index, attempt }) =>
          group === delivery.group && index > delivery.index && attempt > delivery.attempt,
      );
    if (next === undefined) return [];
    return delivery.settlements
      .filter((call) => call.answer === true && call.begun.index > next.index)
      .filter((call) => !isForgotten(call, story) && !isFailedOver(story))
      .map(({ verb }) => `${verb} of a lost lease: ${nameOfDelivery(delivery)}`);
  });

/** After a failover two processes may believe the same. */
function isFailedOver({ faults }: Parameters<Rule>[0]): boolean {
  return faults.some(({ kind }) => kind === "failover");
}
