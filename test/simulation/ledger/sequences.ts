import { isAbout, isStored, nameOfDelivery, type Promises, type Rule } from "./promises.ts";
import type { Delivery, Story } from "./story.ts";
import type { FaultKind } from "../sim.ts";

/**
 * **One handler for each key**, across all processes; with `orderBy`, in each process.
 *
 * Redis cannot stop a handler whose process has lost its partition. Then its signal has been aborted before the next one
 * begins, unless the process stands still.
 */
export const oneAtATime: Rule = (story, promises) => {
  const { isExclusive = false, isOrderedBy = false } = promises;
  if (!isExclusive && !isOrderedBy) return [];
  const mayOverlap = isExclusive ? hasLostPartition : hasLostLease;
  return sequencesOf(story, promises).flatMap((sequence) =>
    sequence.flatMap((first, i) =>
      sequence.slice(i + 1).flatMap((second) => {
        if (!isExclusive && first.by !== second.by) return [];
        if (endOf(first, story) < second.index || mayOverlap(first, second, story)) return [];
        return [`two handlers: ${nameOfDelivery(first)}, ${nameOfDelivery(second)}`];
      }),
    ),
  );
};

/** Whether the process of the first delivery knows, or cannot know, that the partition is another process's. */
function hasLostPartition(first: Delivery, second: Delivery, story: Story): boolean {
  if ((first.abortedAt?.index ?? Infinity) < second.index) return true;
  if (story.isHit(first.by, ["stall"], second, second)) return true;
  // Where the clock was set twice within a lease, nobody can tell whether it is over.
  const steps = story.faults.filter(
    ({ kind, at }) =>
      kind === "clock-step" && at >= second.at - 3 * LONGEST_LEASE && at <= second.at,
  );
  if (steps.some(({ at }, i) => i > 0 && at - (steps[i - 1]?.at ?? 0) <= LONGEST_LEASE))
    return true;
  // The lease itself was forgotten. The next renewal shows it.
  return story.isHit(first.by, ["failover"], { at: second.at - LONGEST_LEASE }, second);
}

function hasLostLease(first: Delivery, second: Delivery, story: Story): boolean {
  return story.isHit(first.by, CUTS_OFF, first, second);
}

/** Milliseconds for which a process believes that a partition is its own without hearing from Redis. */
const LONGEST_LEASE = 2500;

/** **A fence never falls** for a key, and grows with each holder, unless Redis lost its data and its clock went back. */
export const fences: Rule = (story, promises) => {
  if (promises.isExclusive !== true) return [];
  if (story.faults.some(({ kind }) => kind === "failover")) return [];
  return sequencesOf(story, promises).flatMap((sequence) =>
    sequence.slice(1).flatMap((second, i) => {
      const first = sequence[i];
      if (first?.fence === undefined) return [];
      if (second.fence === undefined) return [`no fence: ${nameOfDelivery(second)}`];
      if (second.fence > first.fence) return [];
      if (second.fence === first.fence && first.by === second.by) return [];
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
  return sequencesOf(story, promises).flatMap((sequence) =>
    sequence.flatMap((first, i) =>
      sequence.slice(i + 1).flatMap((second) => {
        if (first.n === second.n || !isEarlier(second, first, story)) return [];
        if (isRedriven(second, story)) return [];
        return [`strict order: ${nameOfDelivery(first)} before ${nameOfDelivery(second)}`];
      }),
    ),
  );
};

/** Whether the message may have been a dead letter that came back: nothing has waited for it. */
function isRedriven({ n, group, index }: Delivery, story: Story): boolean {
  const [death] = story.deaths.filter((one) => one.n === n && one.group === group);
  return death !== undefined && death.index < index;
}

/** Whether `a` became ready before `b`, for certain. */
function isEarlier(a: Delivery, b: Delivery, story: Story): boolean {
  const [first, second] = [story.offers.get(a.n), story.offers.get(b.n)];
  if (first?.deadline === undefined || second?.deadline === undefined) return false;
  if (!isStored(first, story) || !isStored(second, story) || first.ended === undefined)
    return false;
  const moves = story.callsOf("reschedule", "promote");
  if (moves.some((call) => isAbout(call, first, story) || isAbout(call, second, story)))
    return false;
  if (story.latest(first.ended) >= second.deadline) return false;
  if (first.deadline !== second.deadline) return first.deadline < second.deadline;
  return first.by === second.by && first.begun.index < second.begun.index;
}

/** When the handler ended; with its process at the latest. */
function endOf(delivery: Delivery, story: Story): number {
  const crash = story.faultsOn(delivery.by, ["crash"], delivery)[0];
  return Math.min(delivery.end?.index ?? Infinity, crash?.index ?? Infinity);
}

/** The deliveries of each partition key; of each sequence, if those are not exclusive; in each group. */
function sequencesOf(story: Story, { isExclusive = false }: Promises): Delivery[][] {
  const sequences = new Map<string, Delivery[]>();
  for (const delivery of story.deliveries) {
    const sequence = isExclusive ? delivery.partitionKey : delivery.sequence;
    if (sequence === undefined) continue;
    const name = `${delivery.group} ${sequence}`;
    const list = sequences.get(name) ?? [];
    sequences.set(name, list);
    list.push(delivery);
  }
  return [...sequences.values()];
}

/** After these a process may have lost its lease without knowing it. */
const CUTS_OFF: readonly FaultKind[] = [
  "cut",
  "silence",
  "delay",
  "late-replies",
  "trickle",
  "client-kill",
  "stall",
  "failover",
  "rights",
];
