import { isStored, nameOfDelivery, type Promises, type Rule } from "./promises.ts";
import type { Delivery, Story } from "./story.ts";
import type { FaultKind } from "../sim.ts";

/**
 * **One handler for each key**, across all processes; with `orderBy`, in each process.
 *
 * A process that stood still or was cut off beyond its lease may still run its handler. Then the later delivery has the
 * greater fence.
 */
export const oneAtATime: Rule = (story, promises) => {
  const { isExclusive = false, isOrderedBy = false } = promises;
  if (!isExclusive && !isOrderedBy) return [];
  return lanesOf(story, promises).flatMap((lane) =>
    lane.flatMap((first, i) =>
      lane.slice(i + 1).flatMap((second) => {
        if (!isExclusive && first.by !== second.by) return [];
        const isOver = endOf(first, story) < second.index;
        if (isOver || story.isHit(first.by, CUTS_OFF, first, second)) return [];
        return [`two handlers: ${nameOfDelivery(first)}, ${nameOfDelivery(second)}`];
      }),
    ),
  );
};

/** **A fence never falls** for a key, and grows with each holder, unless Redis lost its data and its clock went back. */
export const fences: Rule = (story, promises) => {
  if (promises.isExclusive !== true) return [];
  if (story.faults.some(({ kind }) => kind === "failover")) return [];
  return lanesOf(story, promises).flatMap((lane) =>
    lane.slice(1).flatMap((second, i) => {
      const first = lane[i];
      if (first?.fence === undefined) return [];
      if (second.fence === undefined) return [`no fence: ${nameOfDelivery(second)}`];
      if (second.fence > first.fence) return [];
      if (second.fence === first.fence && first.by === second.by) return [];
      // A process that stood still hands out what it had, with its old fence.
      if (second.fence < first.fence && story.isHit(second.by, CUTS_OFF, { at: 0 }, second))
        return [];
      return [
        `fence ${second.fence} after ${first.fence}: ${nameOfDelivery(first)}, ${nameOfDelivery(second)}`,
      ];
    }),
  );
};

/**
 * **Strict order**: once a message of a key has been handed out, none of the earlier ones is. Earlier is what became due
 * before, or at the same time by an earlier offer of the same producer.
 */
export const strictOrder: Rule = (story, promises) => {
  if (promises.isStrict !== true || story.faults.some(({ kind }) => kind === "failover")) return [];
  return lanesOf(story, promises).flatMap((lane) =>
    lane.flatMap((first, i) =>
      lane.slice(i + 1).flatMap((second) => {
        if (first.n === second.n || !isEarlier(second, first, story)) return [];
        if (story.isHit(second.by, CUTS_OFF, { at: 0 }, second)) return [];
        return [`strict order: ${nameOfDelivery(first)} before ${nameOfDelivery(second)}`];
      }),
    ),
  );
};

/** Whether `a` became ready before `b`, for certain. */
function isEarlier(a: Delivery, b: Delivery, story: Story): boolean {
  const [first, second] = [story.offers.get(a.n), story.offers.get(b.n)];
  if (first?.deadline === undefined || second?.deadline === undefined) return false;
  if (!isStored(first, story) || !isStored(second, story) || first.ended === undefined)
    return false;
  if (story.callsOf("reschedule", "promote", "redrive").length > 0) return false;
  if (story.latest(first.ended) >= second.deadline) return false;
  if (first.deadline !== second.deadline) return first.deadline < second.deadline;
  return first.by === second.by && first.begun.index < second.begun.index;
}

/** When the handler ended; with its process at the latest. */
function endOf(delivery: Delivery, story: Story): number {
  const crash = story.faultsOn(delivery.by, ["crash"], delivery)[0];
  return Math.min(delivery.end?.index ?? Infinity, crash?.index ?? Infinity);
}

/** The deliveries of each partition key; of each lane, if those are not exclusive; in each group. */
function lanesOf(story: Story, { isExclusive = false }: Promises): Delivery[][] {
  const lanes = new Map<string, Delivery[]>();
  for (const delivery of story.deliveries) {
    const lane = isExclusive ? delivery.partitionKey : delivery.lane;
    if (lane === undefined) continue;
    const name = `${delivery.group} ${lane}`;
    const list = lanes.get(name) ?? [];
    lanes.set(name, list);
    list.push(delivery);
  }
  return [...lanes.values()];
}

/** After these a process may have lost its lease without knowing it. */
const CUTS_OFF: readonly FaultKind[] = [
  "cut",
  "silence",
  "delay",
  "client-kill",
  "stall",
  "failover",
  "rights",
];
