import { hasLanes } from "../../../src/queue/flow.ts";
import { earliest, endOf, flowOf, flowsSet, laneOf, overlapping, turned } from "./flows.ts";
import type { Until } from "./flows.ts";
import {
  EXACT,
  LOSES_LEASE,
  mayHaveRevoked,
  mayHaveTakenEffect,
  nameOfDelivery,
  type Promises,
  type Rule,
} from "./promises.ts";
import type { Call, Delivery, Story } from "./story.ts";

/**
 * **No lane has more in hand than it may, nor has the queue**: while a flow certainly holds, so many different messages are
 * handled at a time. Of those that were offered before it was set, some may have been ready already.
 */
export const inHand: Rule = (story, promises) => {
  if (promises.kind !== "reliable") return [];
  return flowsSet(story).flatMap((set) => {
    const { concurrency, lane, lanes = {} } = flowOf(set);
    const until = earliest([endOf(set, story), changesSince(set, story)]);
    const deliveries = story.deliveries.filter(
      ({ n, index }) =>
        index < until.index &&
        (story.offers.get(n)?.begun.index ?? 0) > (set.ended?.index ?? Infinity),
    );
    const spans = deliveries.map((delivery) => ({
      delivery,
      lane: laneOfDelivery(delivery, story),
      ...handling(delivery, story, promises),
    }));
    return spans.flatMap((one) => {
      const beside = spans.filter(
        ({ delivery, end, endAt }) =>
          delivery.index <= one.delivery.index &&
          end > one.delivery.index &&
          endAt > one.delivery.at,
      );
      const ofLane = (lanes[one.lane] ?? lane)?.concurrency;
      const own = beside.filter((other) => other.lane === one.lane);
      return [...tooMany(own, ofLane, one.delivery), ...tooMany(beside, concurrency, one.delivery)];
    });
  });
};

/** When the number of partitions began to change that was not certain when the call began: what is in flight stays behind. */
function changesSince({ begun }: Call, story: Story): Until {
  return earliest(
    story
      .callsOf("setPartitions")
      .filter(({ ended, error }) => error !== undefined || (ended?.index ?? Infinity) > begun.index)
      .map((change) => change.begun),
  );
}

function tooMany(
  beside: readonly { readonly delivery: Delivery }[],
  most: number | undefined,
  delivery: Delivery,
): string[] {
  const count = new Set(beside.map(({ delivery: { n } }) => n)).size;
  if (most === undefined || count <= most) return [];
  return [`${count} in hand, and ${most} may be: ${nameOfDelivery(delivery)}`];
}

/** Until when a delivery certainly has its slot: nothing has ended it yet, nor may have lost its lease. */
function handling(
  delivery: Delivery,
  story: Story,
  { leaseTimeout = 30_000 }: Promises,
): { end: number; endAt: number } {
  const { end, abortedAt, settlements, n, by, group, index, at } = delivery;
  const faults = story.faultsOn(by, LOSES_LEASE, delivery);
  const closing = story.callsOf("close", "closeQueue").filter((call) => call.by === by);
  const offer = story.offers.get(n);
  const revokes = story
    .callsOf("revoke")
    .filter((call) => offer !== undefined && mayHaveRevoked(call, offer, story, group))
    .filter(({ ended }) => (ended?.index ?? Infinity) > index);
  const again = story.deliveriesOf(n).filter((other) => other.index > index);
  const ends = [
    ...settlements.map(({ begun }) => begun),
    ...closing.map(({ begun }) => begun),
    ...revokes.map(({ begun }) => (begun.index > index ? begun : delivery)),
    ...again,
    end,
    abortedAt,
  ].filter((moment) => moment !== undefined);
  return {
    end: Math.min(...ends.map((moment) => moment.index)),
    // By hand nobody renews a lease.
    endAt: Math.min(at + leaseTimeout * 0.9, ...faults.map((fault) => Math.max(fault.at, at))),
  };
}

/**
 * **A lane rests as long as it is told to**: no message of it that was offered since is delivered before. A flow without
 * lanes ends all rests.
 */
export const rested: Rule = (story) =>
  story.callsOf("hold", "nack").flatMap((hold) => {
    const { ended, error, answer, begun, args } = hold;
    const lane = laneToRest(hold, story);
    if (lane === undefined || ended === undefined || error !== undefined || answer !== true)
      return [];
    if (!isInLanes(hold, story)) return [];
    const endings = overlapping(hold, story).filter(
      (call) => call.verb === "clearFlow" || isWithoutLanes(call),
    );
    const until = earliest([...endings.map((call) => call.begun), turned(hold, story)]);
    const restsUntil = begun.now + (args["delay"] as number);
    return story.deliveries
      .filter(({ n, index, now }) => {
        const offer = story.offers.get(n);
        const isOfLane = offer !== undefined && laneOf(offer) === lane;
        const isSince = isOfLane && offer.begun.index > ended.index;
        return isSince && index < until.index && now < restsUntil - EXACT;
      })
      .map((delivery) => `its lane rests until ${restsUntil}: ${nameOfDelivery(delivery)}`);
  });

/** The lane that a call lets rest, if it does. */
function laneToRest({ verb, args }: Call, story: Story): string | undefined {
  if (verb === "hold") return args["lane"] as string;
  if (args["holdLane"] !== true) return undefined;
  const delivery = story.deliveries.find(({ number }) => number === args["delivery"]);
  return delivery && laneOfDelivery(delivery, story);
}

/** Whether the queue certainly had lanes when the call was made. */
function isInLanes({ begun }: Call, story: Story): boolean {
  const before = story
    .callsOf("setFlow", "clearFlow")
    .filter((call) => mayHaveTakenEffect(call) && call.begun.index < begun.index)
    .toSorted((a, b) => a.begun.index - b.begun.index);
  const last = before.at(-1);
  if (last?.ended === undefined || last.error !== undefined || isWithoutLanes(last)) return false;
  const overlaps = before.some(
    (call) => call !== last && (call.ended?.index ?? Infinity) > last.begun.index,
  );
  return !overlaps && last.verb === "setFlow" && last.ended.index < begun.index;
}

function isWithoutLanes(call: Call): boolean {
  return call.verb !== "setFlow" || !hasLanes(flowOf(call));
}

function laneOfDelivery({ n }: Delivery, story: Story): string {
  const offer = story.offers.get(n);
  return offer === undefined ? "" : laneOf(offer);
}
