import {
  copiesOf,
  earliestOf,
  isUndone,
  nameOfDelivery,
  type Promises,
  type Rule,
} from "./promises.ts";
import type { Moment, Offer, Story } from "./story.ts";

/**
 * Whether the group certainly has to handle the message: the group was there before the offer began, or before the message
 * was due; or it began with the oldest message, and no other group could finish any before.
 */
export function isFor(offer: Offer, group: string, story: Story, promises: Promises): boolean {
  if (story.callsOf("destroy").some(({ args }) => args["group"] === group)) return false;
  const { groups, startNew = [] } = promises;
  if (groups.length === 1 && startNew.length === 0) return true;
  const founded = foundedAt(group, story);
  if (founded === undefined) return false;
  if (offer.begun.index > founded.index) return true;
  if (earliestOf(offer, story, founded) > story.latest(founded)) return true;
  if (startNew.includes(group)) return false;
  return !story.joins.some((join) => join.group !== group && join.index < founded.index);
}

/**
 * Whether a failover may have taken the group away from the message. A group that was founded after the copy was made is
 * created again, with what is still there; other groups may have finished the message until then.
 */
export function wasForgotten(offer: Offer, group: string, story: Story): boolean {
  const founded = foundedAt(group, story);
  return story.faults.some((fault) => {
    if (fault.kind !== "failover" || (founded !== undefined && founded.at < fault.since))
      return false;
    const back = story.deliveries.find(
      (one) => one.group === group && one.index > fault.index && !isUndone(one, story),
    );
    const until = back?.index ?? Infinity;
    return story
      .deliveriesOf(offer.n)
      .some((other) => other.group !== group && other.index < until);
  });
}

/** **A group with start `"new"`** gets no message that another group had got before it was founded. */
export const newGroups: Rule = (story, { startNew = [] }) => {
  if (story.faults.some(({ kind }) => kind === "failover")) return [];
  return story.deliveries
    .filter(({ group }) => startNew.includes(group))
    .filter((delivery) => {
      const offer = story.offers.get(delivery.n);
      if (offer === undefined || copiesOf(offer, story) > 1) return false;
      const since = foundingOf(delivery.group, story);
      return story
        .deliveriesOf(delivery.n)
        .some(({ group, index }) => group !== delivery.group && index < since);
    })
    .map((delivery) => `older than its group: ${nameOfDelivery(delivery)}`);
};

/** The first moment at which the group was certainly there: a call that creates it had ended. */
function foundedAt(group: string, story: Story): Moment | undefined {
  const founding = story.calls.filter(
    ({ args, error, ended }) => args["group"] === group && ended !== undefined && !error,
  );
  const delivery = story.deliveries.find((one) => one.group === group);
  const moments = [
    ...founding.map(({ ended }) => ended as Moment),
    ...(delivery ? [delivery] : []),
  ];
  return moments.toSorted((a, b) => a.index - b.index)[0];
}

/** Where in the history the first call began that may have created the group. */
function foundingOf(group: string, story: Story): number {
  const calls = story.calls.filter(({ args }) => args["group"] === group);
  const joins = story.joins.filter((join) => join.group === group);
  return Math.min(...calls.map(({ begun }) => begun.index), ...joins.map(({ index }) => index));
}
